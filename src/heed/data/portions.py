"""Random pairs of a corpus, a few at a time, for statistics that need not read all of it."""

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

PAIRS_AT_ONCE = 4096


def random_portions(costs: NDArray[np.int64], limit: int, *, seed: int) -> Iterator[list[int]]:
    """Indices of pairs in random order, until their costs reach a limit.

    A pair that alone costs more is left out.

    Args:
        costs: of each pair, `(n_pairs,)`.
        limit: of the sum of costs.
        seed: decides the order.
    """
    order = np.random.Generator(np.random.Philox(key=seed)).permutation(len(costs))
    order = order[costs[order] <= limit]
    read = order[np.cumsum(costs[order]) <= limit]
    for start in range(0, len(read), PAIRS_AT_ONCE):
        yield read[start : start + PAIRS_AT_ONCE].tolist()
