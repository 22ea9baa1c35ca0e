"""Batches for a search: sources of similar length together, and several batches at once.

A search alternates between the model and its own bookkeeping, during which other threads would be
idle. So each thread gets its own batch while there are enough batches; all threads share the last
ones. The results do not depend on it.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

import numpy as np

from heed.model.interface import Decodable, Ids, Parallel

Found = TypeVar("Found")

BESIDE_TOKENS = 1024
"""Source positions times beam of each batch, where several run at once.

Four such batches together take the memory of one that has all threads. With smaller batches the
bookkeeping of the search, which Python does for one batch at a time, takes too large a share.
"""


def each_batch(
    model: Decodable,
    lengths: Sequence[int],
    search: Callable[[Decodable, list[int]], Found],
    *,
    max_tokens: int,
    max_rows: int | None = None,
) -> Iterator[tuple[list[int], Found]]:
    """Group items of similar length, and search batch by batch, or several batches at once.

    Args:
        model: the one to search with.
        lengths: of each item, times its rows.
        search: of a model and positions in `lengths`.
        max_tokens: as in `batches`.
        max_rows: as in `batches`.

    Yields:
        The positions of a batch, and the results of its search.
    """
    rest = [*range(len(lengths))]
    if len(lengths) > 1 and isinstance(model, Parallel) and model.n_workers > 1:
        small = [*batches(lengths, min(max_tokens, BESIDE_TOKENS), max_rows)]
        n_beside = len(small) - len(small) % model.n_workers
        rest = [item for batch in small[n_beside:] for item in batch]
        if n_beside:
            yield from _side_by_side(model, small[:n_beside], search)
    for places in batches([lengths[item] for item in rest], max_tokens, max_rows):
        batch = [rest[place] for place in places]
        yield batch, search(model, batch)


def _side_by_side(
    model: Parallel,
    planned: list[list[int]],
    search: Callable[[Decodable, list[int]], Found],
) -> Iterator[tuple[list[int], Found]]:
    from concurrent.futures import ThreadPoolExecutor  # not needed for a short text

    pool = ThreadPoolExecutor(model.n_workers)
    try:
        yield from zip(
            planned, pool.map(partial(search, model.single_threaded()), planned), strict=True
        )
    finally:
        pool.shutdown(cancel_futures=True)


def batches(
    lengths: Sequence[int], max_tokens: int, max_rows: int | None = None
) -> Iterator[list[int]]:
    """Group items of similar length, shortest first.

    Args:
        lengths: of each item.
        max_tokens: bounds longest × count in a batch, unless one item alone exceeds it.
        max_rows: bounds the count; None = no bound.

    Yields:
        Positions in `lengths`.
    """
    batch: list[int] = []
    for item in sorted(range(len(lengths)), key=lengths.__getitem__):
        is_full = (len(batch) + 1) * lengths[item] > max_tokens or len(batch) == max_rows
        if batch and is_full:
            yield batch
            batch = []
        batch.append(item)
    if batch:
        yield batch


def padded(rows: list[list[int]], pad_id: int) -> Ids:
    """Padded rows of ids, `(batch, longest row)`."""
    found = np.full((len(rows), max(map(len, rows))), pad_id)
    for line, row in zip(found, rows, strict=True):
        line[: len(row)] = row
    return found
