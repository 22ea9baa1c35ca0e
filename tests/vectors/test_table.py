"""Neighbors and analogies, by hand."""

import numpy as np
import pytest

from heed.errors import DataError
from heed.vectors.table import WordVectors, analogy, nearest

# Royal, female, and a third number that tells words apart.
PEOPLE = {
    "king": (1, 0, 0.1), "queen": (2, 2, 0.1), "man": (0, 0, 1), "woman": (0, 1, 1),
    "boy": (0, 0.1, 3), "nothing": (0, 0, 0),
}  # fmt: skip
VECTORS = WordVectors(tuple(PEOPLE), np.array(list(PEOPLE.values()), np.float32))


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b)))


def test_king_minus_man_plus_woman() -> None:
    """Claim 27."""
    found = analogy(VECTORS, "king", "man", "woman")
    assert found[0].word == "queen"
    unit = {word: np.array(v) / (np.linalg.norm(v) or 1) for word, v in PEOPLE.items()}
    target = unit["king"] - unit["man"] + unit["woman"]
    assert found[0].cosine == pytest.approx(cosine(unit["queen"], target), abs=1e-6)
    assert {one.word for one in found} == {"queen", "boy", "nothing"}
    assert [one.cosine for one in found] == sorted((one.cosine for one in found), reverse=True)


def test_neighbors_are_ordered_by_cosine() -> None:
    found = nearest(VECTORS, "man", 3)
    rows = {word: np.array(v) for word, v in PEOPLE.items() if word not in ("man", "nothing")}
    wanted = sorted(rows, key=lambda word: -cosine(rows[word], np.array(PEOPLE["man"])))[:3]
    assert [one.word for one in found] == wanted
    assert len(nearest(VECTORS, "man", 100)) == 5


def test_a_vector_of_zeros_has_no_neighbors() -> None:
    for ask in (
        lambda: nearest(VECTORS, "nothing"),
        lambda: analogy(VECTORS, "man", "nothing", "boy"),
    ):
        with pytest.raises(DataError, match="'nothing' in the vectors has no direction"):
            ask()


@pytest.mark.parametrize(
    ("word", "hint"), [("King", "did you mean 'king'"), ("kingg", "'king'"), ("zebra", "'zebra'.")]
)
def test_a_word_without_a_vector_is_named(word: str, hint: str) -> None:
    with pytest.raises(DataError, match=f"the vectors has no vector of '{word}'") as found:
        nearest(VECTORS, word)
    assert hint in str(found.value)
