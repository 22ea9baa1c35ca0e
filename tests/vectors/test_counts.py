"""Counts of neighbors, information and decomposition, by hand and by LAPACK."""

from collections import defaultdict
from typing import Any

import numpy as np
import pytest

from heed.errors import DataError
from heed.vectors import counts
from heed.vectors.config import VectorsConfig
from heed.vectors.corpus import read_corpus
from heed.vectors.counts import information, learn_counts, left_singular, neighbor_counts


def test_neighbors_count_less_the_farther_they_are() -> None:
    corpus = read_corpus([["a", "b", "a", "c"], ["b", "c"]], 1)
    rows, columns, found = neighbor_counts(corpus, 2)
    words = corpus.words
    pairs = {(words[r], words[c]): n for r, c, n in zip(rows, columns, found, strict=True)}
    assert pairs == {
        ("a", "b"): 2.0, ("b", "a"): 2.0,
        ("a", "a"): 1.0,  # a _ a, half in each order
        ("b", "c"): 1.5, ("c", "b"): 1.5,
        ("a", "c"): 1.0, ("c", "a"): 1.0,
    }  # fmt: skip


def test_neighbors_are_those_of_brute_force(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(1)
    lines = [random.integers(7, size=n).astype(str).tolist() for n in (9, 1, 0, 30, 4)]
    corpus = read_corpus(lines, 1)
    wanted: dict[tuple[str, str], float] = defaultdict(float)
    for line in lines:
        for i, one in enumerate(line):
            for j, other in enumerate(line):
                if 0 < abs(i - j) <= 4:
                    wanted[one, other] += (4 - abs(i - j) + 1) / 4
    for at_once in (counts.TOKENS_AT_ONCE, 5):
        monkeypatch.setattr(counts, "TOKENS_AT_ONCE", at_once)
        found = {
            (corpus.words[r], corpus.words[c]): n
            for r, c, n in zip(*neighbor_counts(corpus, 4), strict=True)
        }
        assert found == pytest.approx(wanted)


def test_words_that_never_meet_have_no_vectors() -> None:
    corpus = read_corpus([["a"], ["b"], ["a"]], 1)
    with pytest.raises(DataError, match="no two known words on one line"):
        learn_counts(corpus, VectorsConfig(kind="counts", size=2, min_count=1))


def test_information_by_hand() -> None:
    """Claim 26. p(0, 1) = 3/8, p(0) = 1/2, p(1) = 1/2 over counts of 8."""
    rows, columns = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
    found = information(rows, columns, np.array([1, 3, 3, 1]), 2)
    assert found[0].tolist() == [0, 1]
    assert found[1].tolist() == [1, 0]
    np.testing.assert_allclose(found[2], np.log((3 / 8) / (1 / 2 * 1 / 2)))


def test_smoothing_is_of_the_context() -> None:
    rows, columns, times = np.array([0, 0, 1]), np.array([0, 1, 0]), np.array([6.0, 1.0, 1.0])
    found = information(rows, columns, times, 2, smoothing=0.75)
    smoothed = np.array([7.0, 1.0]) ** 0.75
    p_context = smoothed / smoothed.sum()
    dense = np.log(np.array([[6, 1], [1, 1e-9]]) / 8 / np.outer([7 / 8, 1 / 8], p_context))
    wanted = {(r, c): dense[r, c] for r, c in ((0, 0), (0, 1), (1, 0)) if dense[r, c] > 0}
    assert dict(zip(zip(*found[:2], strict=True), found[2], strict=True)) == pytest.approx(wanted)


@pytest.mark.parametrize("n", [5, 60])
def test_the_decomposition_is_lapacks(n: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Claim 26."""
    monkeypatch.setattr(counts, "ENTRIES_AT_ONCE", 37)
    monkeypatch.setattr(counts, "OVERSAMPLES", 60)  # all there are: then it is exact
    random = np.random.default_rng(1)
    dense = random.random((n, n)) * (random.random((n, n)) < 0.3)
    dense[2] = 0
    rows, columns = np.nonzero(dense)
    vectors, strengths = left_singular((rows, columns, dense[rows, columns]), n, 8, seed=1)
    u, s, _ = np.linalg.svd(dense)
    assert vectors.shape == (n, min(8, n))
    np.testing.assert_allclose(strengths, s[:8], atol=1e-5)
    rank = min(8, int((s > 1e-6).sum()))
    cosines = np.abs((vectors[:, :rank] * u[:, :rank]).sum(axis=0))
    np.testing.assert_allclose(cosines, 1, atol=1e-4)


def test_words_with_the_same_neighbors_are_alike() -> None:
    """Claims 26 and 27: dense vectors from sparse counts."""
    random = np.random.default_rng(1)
    lines = [
        [f"x{random.integers(3)}", random.choice(pair), f"y{random.integers(3)}"]
        for pair in (["a", "b"],) * 200
    ] + [[f"p{random.integers(3)}", "c", f"q{random.integers(3)}"] for _ in range(200)]
    corpus = read_corpus(lines, 1)
    found = learn_counts(corpus, VectorsConfig(kind="counts", size=4, min_count=1))
    a, b, c = (found[corpus.words.index(word)] for word in "abc")
    cosine = lambda x, y: x @ y / np.linalg.norm(x) / np.linalg.norm(y)  # noqa: E731
    assert cosine(a, b) > 0.95
    assert cosine(a, c) < 0.3
    assert np.array_equal(found, learn_counts(corpus, VectorsConfig(kind="counts", size=4)))


def test_fewer_words_than_numbers_leave_zeros() -> None:
    told: list[dict[str, Any]] = []
    corpus, config = read_corpus([["a", "b", "a"]], 1), VectorsConfig(kind="counts", size=6)
    found = learn_counts(corpus, config, told.append)
    assert found.shape == (2, 6)
    assert not found[:, 2:].any()
    (note,) = [event["text"] for event in told if event["kind"] == "note"]
    assert note == "2 words have 2 numbers each; the others, up to 6, are 0"
