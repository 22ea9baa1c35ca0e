"""Initialize embeddings from co-occurrence counts: pieces with similar contexts start similar.

The counts are of pieces in the same sentence pair, so a word starts near its translation, and of
adjacent pieces, so it starts near words that could replace it.

Source: Levy and Goldberg 2014, "Neural Word Embedding as Implicit Matrix Factorization".
"""

from collections.abc import Mapping, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from heed.data.portions import random_portions
from heed.data.store import Store
from heed.machine.seeds import derive_seed
from heed.model.config import AnyConfig
from heed.train.start.rows import own_target_rows, with_rows
from heed.vectors.counts import information

MAX_COOCCURRENCES = 1 << 24
"""Most co-occurrences counted: bounds time (seconds) and memory (0.4 GB). It is the number in
14,000 pairs of 25 pieces a side, or in 100,000 of 9."""

ROUNDS, OVERSAMPLES = 4, 16
"""Power iterations, and the number of extra directions, of the randomized SVD."""

Numbers = NDArray[np.int64]
Counts = tuple[Numbers, Numbers]
"""Keys, row * n + column, ascending, and their counts."""

Entries = tuple[Numbers, Numbers, NDArray[np.float64]]
"""Rows, columns and values of a sparse matrix."""


def cooccurrence_weights(
    weights: Mapping[str, Tensor], config: AnyConfig, pairs: Store, *, seed: int
) -> dict[str, Tensor]:
    """Weights with embeddings from co-occurrence counts; the others stay as they are.

    Args:
        weights: those of a fresh model, by name.
        config: its shape.
        pairs: the corpus, ids without special pieces.
        seed: decides the sample of a large corpus, and the random directions.

    Returns:
        The weights; rows have the length of random ones, and pieces without neighbors keep
        their rows.
    """
    n_src, n_own = config.src_vocab_size, own_target_rows(config)
    rows = cooccurrence_rows(pairs, n_src, n_own, config.d_model, seed=seed)
    return with_rows(weights, config, rows[:n_src], rows[n_src:])


def cooccurrence_rows(pairs: Store, n_src: int, n_tgt: int, width: int, *, seed: int) -> Tensor:
    """A direction for each piece, close to those of pieces with similar contexts.

    Args:
        pairs: ids without special pieces.
        n_src: source ids.
        n_tgt: target ids, which come after the source's; 0 = the same ids serve both sides.
        width: numbers a piece.
        seed: decides the sample of a large corpus, and the random directions.

    Returns:
        Rows of length 1, of pieces without neighbors 0, `(n_src + n_tgt, width)`.
    """
    n = n_src + n_tgt
    (met, times), (followed, counts) = _count(pairs, n, n_src if n_tgt else 0, seed)
    # A single co-occurrence may be chance: a model learns faster without these.
    met, times = met[times > 1], times[times > 1]
    one, other = np.divmod(met, n)
    sharing = information(np.append(one, other), np.append(other, one), np.tile(times, 2), n)
    following = information(*np.divmod(followed, n), counts, n)
    preceding = following[1], following[0], following[2]
    return _directions([sharing, following, preceding], n, width, seed=seed)


def _count(pairs: Store, n: int, shift: int, seed: int) -> tuple[Counts, Counts]:
    """Counts of the pairs that two pieces share, and of one piece following another.

    Args:
        pairs: ids without special pieces.
        n: rows.
        shift: row of the first target id.
        seed: decides the sample of a large corpus.
    """
    cooccurrences: list[Counts] = []
    bigrams: list[Counts] = []
    lengths = (pairs.src_lengths + pairs.tgt_lengths).astype(np.int64) - 2
    costs = lengths * (lengths - 1) // 2
    for numbers in random_portions(costs, MAX_COOCCURRENCES, seed=derive_seed(seed, "company")):
        sides = [pairs.src(number) for number in numbers], [pairs.tgt(number) for number in numbers]
        ids = [np.concatenate(side).astype(np.int64) for side in sides]
        ids[1] += shift
        owners = [np.repeat(np.arange(len(side)), [len(each) for each in side]) for side in sides]
        followed = [
            (own[:-1] * n + own[1:])[owner[:-1] == owner[1:]]
            for own, owner in zip(ids, owners, strict=True)
        ]
        met = _cooccurrences(np.concatenate(owners) * n + np.concatenate(ids), n)
        cooccurrences.append(np.unique(met, return_counts=True))
        bigrams.append(np.unique(np.concatenate(followed), return_counts=True))
    return _summed(cooccurrences), _summed(bigrams)


def _cooccurrences(occurrences: Numbers, n: int) -> Numbers:
    """Keys of two different pieces in the same pair, each once a pair.

    Args:
        occurrences: pair * n + piece, in any order.
        n: pieces.
    """
    owners, pieces = np.divmod(np.unique(occurrences), n)
    sizes = np.bincount(owners)
    found = [np.zeros(0, np.int64)]
    for size in np.unique(sizes[sizes > 1]).tolist():
        rows = pieces[sizes[owners] == size].reshape(-1, size)
        one, other = np.triu_indices(size, 1)
        found.append((rows[:, one] * n + rows[:, other]).ravel())
    return np.concatenate(found)


def _summed(found: Sequence[Counts]) -> Counts:
    nothing = np.zeros(0, np.int64)
    every = np.concatenate([nothing, *(keys for keys, _ in found)])
    keys, places = np.unique(every, return_inverse=True)
    counts = np.zeros(len(keys), np.int64)
    np.add.at(counts, places, np.concatenate([nothing, *(counts for _, counts in found)]))
    return keys, counts


def _directions(contexts: Sequence[Entries], n: int, width: int, *, seed: int) -> Tensor:
    """The strongest left singular vectors of all contexts concatenated, as rows of length 1.

    Each vector is scaled by the root of its singular value; then all are rotated at random, so that
    coordinates have equal weight.

    Args:
        contexts: entries of matrices `(n, n)`.
        n: rows.
        width: numbers a row.
        seed: decides the random directions.

    Source: Levy and Goldberg 2014, section 4.
    """
    rows = np.concatenate([entries[0] for entries in contexts])
    columns = np.concatenate([place * n + entries[1] for place, entries in enumerate(contexts)])
    values = np.concatenate([entries[2] for entries in contexts]).astype(np.float32)
    unchecked = torch.sparse.check_sparse_tensor_invariants(enable=False)  # type: ignore[no-untyped-call]
    # Explicit, because torch warns about its default.
    with unchecked, torch.random.fork_rng(devices=[]):
        matrix = torch.sparse_coo_tensor(
            torch.from_numpy(np.stack([rows, columns])),
            torch.from_numpy(values),
            (n, n * len(contexts)),
        ).coalesce()
        torch.manual_seed(derive_seed(seed, "directions"))
        vectors, weights = _strongest(matrix, min(n, width + OVERSAMPLES))
        turn = torch.linalg.qr(torch.randn(width, width))[0]
    # The sign of a singular vector is arbitrary: making its largest entry positive makes it the
    # same on all machines.
    signs = vectors.gather(0, vectors.abs().argmax(dim=0, keepdim=True)).sign()
    found = (vectors * signs * weights.sqrt())[:, :width]
    turned = F.normalize(found @ turn[: found.size(1)], dim=1)
    has_neighbors = torch.from_numpy(np.bincount(rows, minlength=n) > 0)
    return turned * has_neighbors[:, None]


def _strongest(matrix: Tensor, n_directions: int) -> tuple[Tensor, Tensor]:
    """The strongest left singular vectors of a sparse matrix `(n, m)`, and their singular values.

    torch has the same, but takes three times as long: it sorts the entries of the transpose
    for every product, and multiplies with column-major matrices.

    Returns:
        `(n, n_directions)` and `(n_directions,)`.

    Source: Halko et al. 2011, "Finding Structure with Randomness", algorithms 4.4 and 5.1.
    """
    transposed = matrix.mT.coalesce()
    found = _orthonormal(matrix @ torch.randn(matrix.size(1), n_directions))
    for _ in range(ROUNDS):
        found = _orthonormal(matrix @ _orthonormal(transposed @ found))
    _, weights, turn = torch.linalg.svd(transposed @ found, full_matrices=False)
    return found @ turn.mT, weights


def _orthonormal(matrix: Tensor) -> Tensor:
    """An orthonormal basis of the columns, `(n_rows, n_columns)`."""
    basis: Tensor = torch.linalg.qr(matrix)[0]
    return basis.contiguous()
