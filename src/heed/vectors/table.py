"""Words and their vectors: nearest neighbors and analogies, by cosine."""

import difflib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heed.errors import DataError

Floats = NDArray[np.float32]


class Neighbor(NamedTuple):
    """A word, and the cosine of the angle between its vector and the vector searched for."""

    word: str
    cosine: float


@dataclass(frozen=True)
class WordVectors:
    """Words and their vectors.

    Attributes:
        words: each once; usually the most frequent first.
        matrix: a row for each word, `(n_words, size)`.
        name: where they come from, for messages.
    """

    words: Sequence[str]
    matrix: Floats
    name: str = "the vectors"

    @cached_property
    def rows(self) -> dict[str, int]:
        """Maps a word to its row."""
        return {word: row for row, word in enumerate(self.words)}

    @cached_property
    def directions(self) -> Floats:
        """The rows scaled to length 1, `(n_words, size)`; a row of zeros stays as it is."""
        lengths = np.linalg.norm(self.matrix, axis=1, keepdims=True)
        directions: Floats = (self.matrix / np.where(lengths > 0, lengths, 1)).astype(np.float32)
        return directions

    def direction(self, word: str) -> Floats:
        """The direction of a word, `(size,)`.

        Raises:
            DataError: the word has no vector (the message names one with nearly the same spelling),
                or all numbers of its vector are 0.
        """
        if word not in self.rows:
            raise DataError(f"{self.name} has no vector of {word!r}{self._hint(word)}")
        direction: Floats = self.directions[self.rows[word]]
        if not direction.any():
            raise DataError(
                f"The vector of {word!r} in {self.name} has no direction: all its numbers are 0."
            )
        return direction

    def _hint(self, word: str) -> str:
        alike = [known for known in self.words if known.casefold() == word.casefold()]
        # A comparison with hundreds of thousands of words would take seconds.
        some = [known for known in self.words if known[:1] == word[:1]][:20_000]
        near = alike or difflib.get_close_matches(word, some, n=1)
        return f"; did you mean {near[0]!r}?" if near else "."


def nearest(vectors: WordVectors, word: str, count: int = 10) -> list[Neighbor]:
    """The words whose vectors have the nearest directions, nearest first, without the word itself.

    Args:
        vectors: the words to choose from.
        word: one of them.
        count: the number of words; all others, if there are fewer.

    Raises:
        DataError: the word has no vector.
    """
    return _closest(vectors, vectors.direction(word), [word], count)


def analogy(
    vectors: WordVectors, word: str, minus: str, plus: str, count: int = 10
) -> list[Neighbor]:
    """The words nearest to `word` − `minus` + `plus`, without these three: king − man + woman.

    The best word w has the largest cos(w, word − minus + plus), for directions of length 1.

    Args:
        vectors: the words to choose from.
        word: the first word, such as king.
        minus: the word that is subtracted, such as man.
        plus: the word that is added, such as woman.
        count: the number of words; all others, if there are fewer.

    Raises:
        DataError: a word has no vector.

    Source: Mikolov, Yih and Zweig 2013; Levy and Goldberg 2014, "Linguistic Regularities in Sparse
        and Explicit Word Representations", equation 1.
    """
    target = vectors.direction(word) - vectors.direction(minus) + vectors.direction(plus)
    return _closest(vectors, target, [word, minus, plus], count)


def _closest(
    vectors: WordVectors, target: Floats, known: Sequence[str], count: int
) -> list[Neighbor]:
    length = float(np.linalg.norm(target)) or 1.0
    cosines = vectors.directions @ (target / np.float32(length))
    cosines[[vectors.rows[word] for word in known]] = -np.inf
    order = np.argsort(-cosines, kind="stable")[:count]
    return [
        Neighbor(vectors.words[row], float(cosines[row])) for row in order if cosines[row] > -np.inf
    ]
