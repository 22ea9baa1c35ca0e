"""Sentences longer than any that was learned from: what each kind of positions makes of them."""

import random
from collections.abc import Callable, Sequence
from typing import Any

import pytest
import torch

from heed.errors import DataError

Row = tuple[int, ...]
Learn = Callable[..., Any]

FIRST_WORD, N_WORDS = 4, 20
LEARNED, TWICE = (3, 10), (16, 20)
"""Words of the shortest and of the longest sentence."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]  # 30 s each on an idle core


def copies(n_pairs: int, lengths: tuple[int, int], *, seed: int) -> list[tuple[Row, Row]]:
    """Sentences of random words, to be said again."""
    draw = random.Random(seed)
    rows = [
        tuple(
            draw.randrange(FIRST_WORD, FIRST_WORD + N_WORDS) for _ in range(draw.randint(*lengths))
        )
        for _ in range(n_pairs)
    ]
    return [(row, row) for row in rows]


@torch.inference_mode()
def loss(learned: Any, pairs: Sequence[tuple[Row, Row]]) -> float:
    """Nats a target token, with the right words before each."""
    model, total, n_tokens = learned.trainer.model.eval(), 0.0, 0
    for length in sorted({len(src) for src, _ in pairs}):
        group = [(src, tgt) for src, tgt in pairs if len(src) == length]
        src = torch.tensor([[*src, 3] for src, _ in group])
        tgt = torch.tensor([[2, *tgt, 3] for _, tgt in group])
        log_probs = model.teacher_forced(src, tgt[:, :-1]).log_softmax(dim=-1)
        total -= log_probs.gather(-1, tgt[:, 1:, None]).sum().item()
        n_tokens += tgt[:, 1:].numel()
    return total / n_tokens


MEASURED = {"sinusoidal": 2.36, "rotary": 4.62, "alibi": 2.82, "shaw": 0.57}
"""Nats a target token at twice the length, one seed; at the lengths learned 0.002 to 0.025."""


@pytest.mark.parametrize("kind", MEASURED)
def test_twice_the_length_costs_more_than_the_lengths_that_were_learned(
    learn: Learn, kind: str
) -> None:
    """Claim 37: all of these read longer sentences, and none as well; Shaw's vectors do best.

    Beyond `max_distance` a distance is no news to them, nor is a longer sentence.
    """
    settings = {"positions": kind, "max_distance": 4}
    learned = learn(copies(20_000, LEARNED, seed=0), model=settings, max_steps=350)
    near, far = (loss(learned, copies(300, span, seed=1)) for span in (LEARNED, TWICE))
    assert near < 0.1
    assert 10 * near < far
    assert (far < 1.2) == (kind == "shaw")


def test_learned_positions_read_no_longer_sentence(learn: Learn) -> None:
    """Claim 37."""
    settings = {"positions": "learned", "max_positions": LEARNED[1] + 1}  # and `<eos>`
    learned = learn(copies(100, LEARNED, seed=0), model=settings, max_steps=1)
    with pytest.raises(DataError, match="has 17 positions, but this model learned only 11"):
        loss(learned, copies(300, TWICE, seed=1))
