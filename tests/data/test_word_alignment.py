"""The statistical aligner finds what a small corpus says."""

import math
import random

import numpy as np
import pytest

from heed.data import word_alignment
from heed.data.word_alignment import P_NONE, TENSION, _priors, aligned
from heed.explain.attention.links import Gold
from heed.explain.attention.statistical import reference

WORDS = [f"word{number}" for number in range(20)]


def test_words_that_go_together_are_linked_though_neighbors_swap() -> None:
    draw = random.Random(3)
    sources = [draw.sample(WORDS, 5) for _ in range(100)]
    swapped = [[1, 0, 2, 3, 4], [0, 1, 3, 2, 4], [0, 2, 1, 4, 3]]
    orders = [draw.choice(swapped) for _ in sources]
    targets = [
        [words[i].replace("word", "wort") for i in order]
        for words, order in zip(sources, orders, strict=True)
    ]
    expected = [{(i, j) for j, i in enumerate(order)} for order in orders]
    found = aligned(sources, targets)
    n_right = sum(len(a & b) for a, b in zip(found, expected, strict=True))
    assert n_right > 0.95 * 5 * 100
    for gold, links in zip(reference(sources, targets), found, strict=True):
        assert gold.sure <= links <= gold.possible


def test_equal_words_follow_the_diagonal() -> None:
    assert aligned([["a", "a", "a"]], [["b", "b", "b"]]) == [{(0, 0), (1, 1), (2, 2)}]
    assert reference([[]], [["b"]]) == [Gold(frozenset(), frozenset())]


def test_a_pair_that_is_too_long_has_no_links_and_changes_no_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sources, targets = [["a", "b"], ["b", "c"]], [["x", "y"], ["y", "z"]]
    expected = aligned(sources, targets)
    monkeypatch.setattr(word_alignment, "MAX_CELLS", 6)
    assert aligned(sources, targets) == expected
    long = [*sources, ["a", "c", "q"]], [*targets, ["x", "x", "x"]]
    assert aligned(*long) == [*expected, set()]
    # 500,000 words a side would take 1.8 TiB.
    monkeypatch.undo()
    assert aligned([["a"] * 500_000], [["b"] * 500_000]) == [set()]


def test_priors_are_those_of_the_paper() -> None:
    found = _priors(2, 3)
    weights = [math.exp(-TENSION * abs(1 / 2 - i / 3)) for i in (1, 2, 3)]
    expected = [(1 - P_NONE) * weight / sum(weights) for weight in weights]
    np.testing.assert_allclose(found[0], [P_NONE, *expected])
    assert found[1].sum() == pytest.approx(1)
