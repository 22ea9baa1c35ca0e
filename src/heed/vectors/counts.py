"""Vectors from counts: positive pointwise mutual information, then a truncated decomposition.

The baseline for word2vec, which factors nearly the same matrix without writing it down.

Source: Levy and Goldberg 2014, "Neural Word Embedding as Implicit Matrix Factorization"; Levy,
Goldberg and Dagan 2015, "Improving Distributional Similarity with Lessons Learned from Word
Embeddings".
"""

from typing import Self

import numpy as np
from numpy.typing import NDArray

from heed.data.progress import Report, phase, silent
from heed.errors import DataError
from heed.machine.seeds import derived_random
from heed.vectors.config import VectorsConfig
from heed.vectors.corpus import Corpus
from heed.vectors.table import Floats

SMOOTHING = 0.75
"""Exponent for the counts of context words (Levy, Goldberg and Dagan 2015, section 3.2)."""

ROUNDS, OVERSAMPLES = 4, 16
"""Power iterations, and the number of extra directions, of the randomized decomposition."""

TOKENS_AT_ONCE = 1 << 20
ENTRIES_AT_ONCE = 1 << 18

Entries = tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]
"""Rows, columns and values of a sparse matrix."""


def learn_counts(corpus: Corpus, config: VectorsConfig, report: Report = silent) -> Floats:
    """A vector for each word, `(n_words, size)`: U √Σ of the matrix of `information`.

    Args:
        corpus: the words as ids.
        config: `size`, `window` and `seed` are used.
        report: receives progress events.

    Raises:
        DataError: no two words stand on one line.
    """
    n = len(corpus.words)
    phase(report, "counting", unit="words")
    rows, columns, counts = neighbor_counts(corpus, config.window)
    if not len(counts):
        raise DataError(
            "the text has no two known words on one line, so nothing can be counted: give lines "
            "of several words, or lower --min-count."
        )
    entries = information(rows, columns, counts, n, smoothing=SMOOTHING)
    phase(report, "decomposing", unit="words")
    found, strengths = left_singular(entries, n, config.size, seed=config.seed)
    if n < config.size:
        text = f"{n} words have {n} numbers each; the others, up to {config.size}, are 0"
        report({"kind": "note", "text": text})
    vectors = np.zeros((n, config.size), np.float32)
    vectors[:, : len(strengths)] = found * np.sqrt(strengths)
    return vectors


def neighbor_counts(corpus: Corpus, window: int) -> Entries:
    """The number of times two words stand near each other, in both orders, in ascending rows.

    A pair at distance d counts (window − d + 1) / window. That is the probability that a window of
    word2vec, whose size is random, holds both words.
    """
    n = len(corpus.words)
    lines = np.repeat(np.arange(len(corpus.ends)), np.diff(corpus.ends, prepend=0))
    keys: NDArray[np.int64] = np.empty(0, np.int64)
    sums: NDArray[np.float64] = np.empty(0)
    for start in range(0, len(corpus.ids), TOKENS_AT_ONCE):
        found, weights = [keys], [sums]
        for distance in range(1, window + 1):
            end = max(start, min(start + TOKENS_AT_ONCE, len(corpus.ids) - distance))
            left, right = slice(start, end), slice(start + distance, end + distance)
            is_near = lines[left] == lines[right]
            one = corpus.ids[left][is_near].astype(np.int64)
            other = corpus.ids[right][is_near].astype(np.int64)
            met, times = np.unique(np.append(one * n + other, other * n + one), return_counts=True)
            found.append(met)
            weights.append(times.astype(np.float64) * ((window - distance + 1) / window))
        keys, places = np.unique(np.concatenate(found), return_inverse=True)
        sums = np.bincount(places, np.concatenate(weights), len(keys)).astype(np.float64)
    return keys // n, keys % n, sums


def information(
    rows: NDArray[np.int64],
    columns: NDArray[np.int64],
    counts: NDArray[np.int64] | NDArray[np.float64],
    n: int,
    *,
    smoothing: float = 1.0,
) -> Entries:
    """Positive pointwise mutual information: max(0, log p(row, column) / (p(row) p(column))).

    Args:
        rows: row indices of the counts that are not 0.
        columns: their column indices.
        counts: how often the row's and the column's word occur together.
        n: the number of rows, and of columns, of the whole matrix.
        smoothing: exponent for the columns' counts in p(column); below 1, rare words weigh less.

    Source: Levy and Goldberg 2014, section 3.3.
    """
    of_row, of_column = (np.bincount(ids, counts, n) for ids in (rows, columns))
    if smoothing != 1.0:
        smoothed = of_column**smoothing
        of_column = smoothed * (of_column.sum() / smoothed.sum())
    found = np.log(counts * counts.sum() / (of_row[rows] * of_column[columns]))
    is_more = found > 0
    return rows[is_more], columns[is_more], found[is_more]


class _Sparse:
    """A sparse matrix stored by rows, `(n, n)`."""

    def __init__(self, entries: Entries, n: int) -> None:
        rows, columns, values = entries
        order = np.argsort(rows, kind="stable")
        self.rows, self.columns = rows[order], columns[order]
        self.values = values[order].astype(np.float32)
        self.n = n

    def __matmul__(self, dense: Floats) -> Floats:
        product = np.zeros((self.n, dense.shape[1]), np.float32)
        for start in range(0, len(self.rows), ENTRIES_AT_ONCE):
            part = slice(start, start + ENTRIES_AT_ONCE)
            firsts = np.flatnonzero(np.diff(self.rows[part], prepend=-1))
            terms = self.values[part, None] * dense[self.columns[part]]
            product[self.rows[part][firsts]] += np.add.reduceat(terms, firsts)
        return product

    @classmethod
    def transposed(cls, entries: Entries, n: int) -> Self:
        rows, columns, values = entries
        return cls((columns, rows, values), n)


def left_singular(entries: Entries, n: int, width: int, *, seed: int) -> tuple[Floats, Floats]:
    """The strongest left singular vectors of a matrix `(n, n)`, and their singular values.

    Args:
        entries: the matrix.
        n: the number of its rows, and of its columns.
        width: the number of vectors; at most n.
        seed: decides the random directions of the first iteration.

    Returns:
        `(n, width)` and `(width,)`.

    Source: Halko et al. 2011, "Finding Structure with Randomness", algorithms 4.4 and 5.1.
    """
    width = min(n, width)
    matrix, transposed = _Sparse(entries, n), _Sparse.transposed(entries, n)
    random = derived_random(seed, "directions")
    start = random.standard_normal((n, min(n, width + OVERSAMPLES)), np.float32)
    basis = np.linalg.qr(matrix @ start)[0]
    for _ in range(ROUNDS):
        basis = np.linalg.qr(transposed @ basis)[0]
        basis = np.linalg.qr(matrix @ basis)[0]
    small, strengths, _ = np.linalg.svd((transposed @ basis).T, full_matrices=False)
    vectors = (basis @ small)[:, :width]
    # The sign of a vector is arbitrary. Its largest entry is made positive, so that machines agree.
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(width)]
    return vectors * np.where(largest < 0, np.float32(-1), np.float32(1)), strengths[:width]
