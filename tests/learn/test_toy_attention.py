"""Copy, reverse and sort with every variant of attention: each must learn them too.

The plain Transformer and the other families are in `test_toy.py`.
"""

from collections.abc import Callable
from typing import Any

import pytest
from tests.learn.test_toy import MAX_STEPS, split

Learn = Callable[..., Any]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]

VARIANTS: dict[str, dict[str, Any]] = {
    "linear": {"attention": "linear"},
    "favor": {"attention": "favor", "n_features": 64},
    "window": {"window": 3},
    "masked after the softmax": {"mask": "after"},
    "decoder, linear": {"family": "decoder", "n_layers": 4, "attention": "linear"},
    "decoder, favor": {"family": "decoder", "n_layers": 4, "attention": "favor", "n_features": 64},
    "decoder, window": {"family": "decoder", "n_layers": 4, "window": 3},
}


@pytest.mark.parametrize("task", ["copy", "reverse", "sort"])
@pytest.mark.parametrize("variant", VARIANTS)
def test_it_answers_unseen_sentences_exactly(learn: Learn, variant: str, task: str) -> None:
    train, unseen = split(task)
    learned = learn(train, model=VARIANTS[variant], max_steps=MAX_STEPS)
    assert learned.exact_match(unseen) > 0.99
