"""Random segmentations: each has the share that the papers give it, and all give the text back."""

import math
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heed.text.sampling import Sampler

SCORES = {"▁": -3.0, "a": -2.0, "b": -2.5, "▁a": -1.5, "ab": -2.0, "▁ab": -3.5, "ba": -4.0}
N = 20_000


def segmentations(text: str) -> Iterator[tuple[str, ...]]:
    if not text:
        yield ()
    for end in range(1, len(text) + 1):
        if text[:end] in SCORES:
            yield from ((text[:end], *rest) for rest in segmentations(text[end:]))


@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
def test_a_segmentation_is_as_frequent_as_its_probability_to_the_power_of_alpha(
    alpha: float,
) -> None:
    text = "▁abab"
    sampler = Sampler(SCORES, is_bpe=False)
    found = Counter(tuple(sampler.draw(text, alpha=alpha, seed=seed)) for seed in range(N))
    weights = {
        pieces: math.exp(alpha * sum(SCORES[piece] for piece in pieces))
        for pieces in segmentations(text)
    }
    assert found.keys() == weights.keys()
    total = sum(weights.values())
    for pieces, weight in weights.items():
        share = weight / total
        # Five standard deviations: by chance one share in a million is farther away.
        assert abs(found[pieces] / N - share) < 5 * math.sqrt(share / N)


def test_merges_are_left_out_as_often_as_alpha_says() -> None:
    ranks = {"a": -9.0, "b": -9.0, "c": -9.0, "▁": -9.0, "ab": 0.0, "bc": -1.0, "abc": -2.0}
    sampler = Sampler(ranks, is_bpe=True)
    found = Counter(tuple(sampler.draw("▁abc", alpha=0.25, seed=seed)) for seed in range(N))
    shares = {
        ("▁", "abc"): 0.75 * 0.75,
        ("▁", "ab", "c"): 0.75 * 0.25,
        ("▁", "a", "bc"): 0.25 * 0.75 * 0.25,
        ("▁", "a", "b", "c"): 0.25 * 0.25,
    }
    shares["▁", "abc"] += 0.25 * 0.75 * 0.75
    assert found.keys() == shares.keys()
    for pieces, share in shares.items():
        assert abs(found[pieces] / N - share) < 5 * math.sqrt(share / N)


@given(st.text("▁abx汉"), st.sampled_from([0.0, 0.2, 1.0]), st.booleans())
def test_the_pieces_give_the_text_back_and_follow_from_the_seed(
    text: str, alpha: float, is_bpe: bool
) -> None:
    sampler = Sampler(SCORES, is_bpe=is_bpe)
    found = sampler.draw(text, alpha=alpha, seed=7)
    assert "".join(found) == text
    assert all(piece in SCORES or len(piece) == 1 for piece in found)
    assert Sampler(SCORES, is_bpe=is_bpe).draw(text, alpha=alpha, seed=7) == found


def test_pieces_with_blanks_inside_are_found() -> None:
    sampler = Sampler({**SCORES, "a▁b": 0.0}, is_bpe=False)
    assert sampler.draw("▁a▁b", alpha=50.0, seed=1) == ["▁", "a▁b"]
