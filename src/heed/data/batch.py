"""Groups pairs into batches, and turns them into tensors.

`train/step/loop.py` walks over a plan batch by batch.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heed.errors import ConfigError

Lengths = NDArray[np.integer[Any]]
Indices = NDArray[np.int64]
Item = TypeVar("Item")
Result = TypeVar("Result")

# Largest share of padding in one batch, of sources of one length and of pooled left-overs. Measured
# on Multi30k en-de at 2,048 tokens (8k pieces): 1.9 % padding in 260 batches; without limits 2.6 %
# in 256; with 3 % and 8 % it is 1.5 %, but in 287 batches, many of them small.
_PADDING_IN_RUN, _PADDING_IN_REST = 0.05, 0.10


class IdPairs(Protocol):
    """Pairs of id sequences by index: a `Store`, or one epoch that was segmented anew."""

    def src(self, index: int) -> NDArray[np.integer[Any]]:
        """Source ids without special pieces, `(n_pieces)`."""
        ...

    def tgt(self, index: int) -> NDArray[np.integer[Any]]:
        """Target ids without special pieces, `(n_pieces)`."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """A few pairs as tensors, ready for teacher forcing.

    Attributes:
        src: source ids, each row ends with `<eos>`, then padding, `(batch, src_len)`.
        tgt_in: decoder input, `<bos>` and the target, `(batch, tgt_len)`.
        tgt_out: the labels, the target and `<eos>`, `(batch, tgt_len)`.
        src_mask: True at real source tokens, `(batch, 1, 1, src_len)`; None when nothing is padded.
        n_src_tokens: real source tokens, `<eos>` included.
        n_tgt_tokens: real target tokens, `<eos>` included; the loss is averaged over them.
        indices: number of each row's pair in the store, `(batch)`.
    """

    src: Tensor
    tgt_in: Tensor
    tgt_out: Tensor
    src_mask: Tensor | None
    n_src_tokens: int
    n_tgt_tokens: int
    indices: Indices

    def to(self, device: torch.device | str) -> "Batch":
        """The same batch with its tensors on `device`."""
        return Batch(
            src=self.src.to(device, non_blocking=True),
            tgt_in=self.tgt_in.to(device, non_blocking=True),
            tgt_out=self.tgt_out.to(device, non_blocking=True),
            src_mask=None if self.src_mask is None else self.src_mask.to(device, non_blocking=True),
            n_src_tokens=self.n_src_tokens,
            n_tgt_tokens=self.n_tgt_tokens,
            indices=self.indices,
        )


def plan_epoch(
    src_lengths: Lengths, tgt_lengths: Lengths, *, max_tokens: int, seed: int, epoch: int
) -> list[Indices]:
    """Group all pairs into batches of nearly equal lengths, in random order.

    Sources of one length share a batch, so that nothing in them is padded and the model needs no
    source mask; inside, pairs are sorted by target length. Pairs that would fill less
    than half a batch are pooled, sorted by their longer side, and cut again with padding.

    Args:
        src_lengths: source tokens of each pair, `<eos>` included, `(n_pairs)`.
        tgt_lengths: target tokens of each pair, `<eos>` included, `(n_pairs)`.
        max_tokens: most positions of a batch on either side, padding included. A single pair
            longer than this is a batch of its own.
        seed: with `epoch` decides everything random; the result depends on nothing else.
        epoch: number of the pass through the data.

    Returns:
        One array of pair numbers per batch; each pair occurs exactly once.

    Raises:
        ConfigError: `max_tokens` is not positive.
    """
    if max_tokens < 1:
        raise ConfigError(f"training.max_tokens must be at least 1, but is {max_tokens}.")
    n_pairs = len(src_lengths)
    if n_pairs == 0:
        return []
    src_lengths, tgt_lengths = src_lengths.astype(np.int64), tgt_lengths.astype(np.int64)
    random = np.random.Generator(np.random.Philox(key=np.array([seed, epoch], dtype=np.uint64)))
    order = _sorted_by(random.permutation(n_pairs), src_lengths, tgt_lengths)
    src, tgt = src_lengths[order], tgt_lengths[order]

    run_ends = np.append(np.flatnonzero(np.diff(src)) + 1, n_pairs)
    starts, ends = _cut(src, tgt, run_ends, max_tokens, max_padding=_PADDING_IN_RUN)
    positions = (ends - starts) * np.maximum.reduceat(np.maximum(src, tgt), starts)
    half_empty = positions * 2 < max_tokens
    plan = [order[a:b] for a, b in zip(starts[~half_empty], ends[~half_empty], strict=True)]

    rest = order[np.repeat(half_empty, ends - starts)]
    rest = _sorted_by(rest, np.maximum(src_lengths, tgt_lengths), tgt_lengths)
    starts, ends = _cut(
        src_lengths[rest],
        tgt_lengths[rest],
        np.array([len(rest)]),
        max_tokens,
        max_padding=_PADDING_IN_REST,
    )
    plan += [rest[a:b] for a, b in zip(starts, ends, strict=True)]
    return [plan[number] for number in random.permutation(len(plan))]


def _sorted_by(order: Indices, first: Lengths, second: Lengths) -> Indices:
    """Sort `order` by two lengths; ties keep their order."""
    # The narrowest type lets numpy sort by radix: five million pairs in half a second, not three.
    narrow = [
        lengths.astype(np.min_scalar_type(int(lengths.max())))[order] for lengths in (second, first)
    ]
    return order[np.lexsort(narrow)]


def _cut(
    src: Lengths, tgt: Lengths, run_ends: Indices, max_tokens: int, *, max_padding: float
) -> tuple[Indices, Indices]:
    """Cut sorted pairs into batches as large as allowed, none across the end of a run.

    Args:
        src: source lengths in sorted order, `(n_pairs)`.
        tgt: target lengths in the same order, `(n_pairs)`.
        run_ends: where each run of pairs that may share a batch ends, ascending, `(n_runs)`.
        max_tokens: most positions of a batch on either side.
        max_padding: largest share of padding in a batch, 0 to 1.

    Returns:
        Start and end of each batch, `(n_batches)` both.
    """
    starts = []
    start = 0
    for run_end in run_ends.tolist():
        while start < run_end:
            starts.append(start)
            # The widest side only grows, so the first pair bounds how many can fit.
            end = min(run_end, start + max(1, max_tokens // int(max(src[start], tgt[start]))))
            n_rows = np.arange(1, end - start + 1)
            src_len = np.maximum.accumulate(src[start:end])
            tgt_len = np.maximum.accumulate(tgt[start:end])
            positions = n_rows * np.maximum(src_len, tgt_len)
            computed = n_rows * (src_len + tgt_len)
            real = np.cumsum(src[start:end] + tgt[start:end])
            fits = (positions <= max_tokens) & (computed - real <= max_padding * computed)
            fits[0] = True  # a single pair has no padding, and must be in some batch
            start += int(np.flatnonzero(fits)[-1]) + 1
    starts_of = np.array(starts, dtype=np.int64)
    return starts_of, np.append(starts_of, start)[1:]


def pad_share(plan: Iterable[Indices], src_lengths: Lengths, tgt_lengths: Lengths) -> float:
    """Share of padding among all source and target positions that a plan computes, 0 to 1."""
    real = computed = 0
    for indices in plan:
        for lengths in (src_lengths[indices], tgt_lengths[indices]):
            real += int(lengths.sum())
            computed += len(indices) * int(lengths.max())
    return 1.0 - real / computed if computed else 0.0


def collate(
    pairs: IdPairs,
    indices: Indices | Sequence[int],
    *,
    pad_id: int,
    bos_id: int,
    eos_id: int,
) -> Batch:
    """Read some pairs and lay them out as a padded batch.

    Args:
        pairs: all pairs.
        indices: the pairs to read, in the order of the rows, `(batch)`.
        pad_id: fills the short rows.
        bos_id: opens `tgt_in`.
        eos_id: closes `src` and `tgt_out`.
    """
    numbers = np.asarray(indices, dtype=np.int64)
    src, src_ends = _padded([pairs.src(number) for number in numbers.tolist()], pad_id)
    tgt_out, tgt_ends = _padded([pairs.tgt(number) for number in numbers.tolist()], pad_id)
    rows = np.arange(len(numbers))
    tgt_in = np.roll(tgt_out, 1, axis=1)  # the last column is still all padding
    tgt_in[:, 0] = bos_id
    src[rows, src_ends] = eos_id
    tgt_out[rows, tgt_ends] = eos_id
    is_real = np.arange(src.shape[1]) <= src_ends[:, None]
    return Batch(
        src=torch.from_numpy(src),
        tgt_in=torch.from_numpy(tgt_in),
        tgt_out=torch.from_numpy(tgt_out),
        src_mask=None if is_real.all() else torch.from_numpy(is_real)[:, None, None, :],
        n_src_tokens=int(src_ends.sum()) + len(rows),
        n_tgt_tokens=int(tgt_ends.sum()) + len(rows),
        indices=numbers,
    )


def ahead(make: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """The results of `make` for each item; a thread makes the next while this one is used."""
    with ThreadPoolExecutor(max_workers=1) as thread:
        waiting: Future[Result] | None = None
        for item in items:
            coming = thread.submit(make, item)
            if waiting:
                yield waiting.result()
            waiting = coming
        if waiting:
            yield waiting.result()


def _padded(rows: list[NDArray[Any]], pad_id: int) -> tuple[Indices, Indices]:
    """Stack rows, padded, with one free column at the right; and the column where each ends.

    Returns:
        The ids `(batch, longest row + 1)` and the ends `(batch)`.
    """
    ends = np.array([len(row) for row in rows], dtype=np.int64)
    columns = np.arange(ends.max(initial=0) + 1)
    ids = np.full((len(rows), len(columns)), pad_id, dtype=np.int64)
    ids[columns < ends[:, None]] = np.concatenate(rows) if rows else ()
    return ids, ends
