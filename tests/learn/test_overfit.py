"""Twenty pairs by heart: the first thing to try when nothing learns (check N10).

Fast, unlike its neighbors here. There is no rule to find, so this shows that gradients reach the
weights, not that a model understands: that is `test_toy.py`.
"""

from collections.abc import Callable
from typing import Any

import numpy as np


def test_twenty_pairs_that_follow_no_rule_are_learned_by_heart(learn: Callable[..., Any]) -> None:
    words = 4 + np.random.default_rng(0).integers(20, size=(20, 2, 6))  # below 4: special ids
    pairs = [(tuple(src), tuple(tgt)) for src, tgt in words.tolist()]
    small = {"d_model": 32, "n_heads": 2, "d_ff": 64, "n_encoder_layers": 1, "n_decoder_layers": 1}
    learned = learn(pairs, model=small, max_steps=200, learning_rate=0.01)
    assert learned.losses[0] > 3.0  # a blind guess among 24 words costs ln 24 = 3.2
    assert max(learned.losses[-10:]) < 0.01
    assert learned.exact_match(pairs) == 1.0
