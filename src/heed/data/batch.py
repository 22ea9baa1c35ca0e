"""Which pairs are computed together, and how they become tensors.

Not here: the ids on disk (`data/store.py`) or what the model does with a batch (`model/`).
Read on in `train/loop.py`, which walks over a plan batch by batch.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heed.errors import ConfigError

Lengths = NDArray[np.integer[Any]]
Indices = NDArray[np.int64]


class IdPairs(Protocol):
    """Pairs of id sequences by number: a `Store`, or one epoch that was segmented afresh."""

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
        tgt_in: what the decoder reads: `<bos>` and the target, `(batch, tgt_len)`.
        tgt_out: what it must say: the target and `<eos>`, `(batch, tgt_len)`.
        src_mask: True at real source tokens, `(batch, 1, 1, src_len)`; None when nothing is padded.
        n_src_tokens: real source tokens, `<eos>` included.
        n_tgt_tokens: real target tokens, `<eos>` included: what the loss is averaged over.
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
    source mask; inside, pairs are sorted by target length. What is left over at the end of each
    source length and fills less than half a batch is joined with its neighbours instead.

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
    random = np.random.Generator(np.random.Philox(key=np.array([seed, epoch], dtype=np.uint64)))
    order = _sorted_by_length(random.permutation(n_pairs), src_lengths, tgt_lengths)
    src, longer = src_lengths[order], np.maximum(src_lengths, tgt_lengths)[order]

    run_ends = np.append(np.flatnonzero(np.diff(src)) + 1, n_pairs)
    starts, ends = _cut(longer, run_ends, max_tokens)
    positions = (ends - starts) * np.maximum.reduceat(longer, starts)
    half_empty = positions * 2 < max_tokens

    left_over = np.repeat(half_empty, ends - starts)
    rest, rest_longer = order[left_over], longer[left_over]
    rest_starts, rest_ends = _cut(rest_longer, np.array([len(rest)]), max_tokens)

    plan = [order[a:b] for a, b in zip(starts[~half_empty], ends[~half_empty], strict=True)]
    plan += [rest[a:b] for a, b in zip(rest_starts, rest_ends, strict=True)]
    return [plan[number] for number in random.permutation(len(plan))]


def _sorted_by_length(order: Indices, src_lengths: Lengths, tgt_lengths: Lengths) -> Indices:
    """Sort `order` by source, then target length; what ties stays in the order given."""
    # The narrowest type lets numpy sort by radix: five million pairs in half a second, not three.
    narrow = [
        lengths.astype(np.min_scalar_type(int(lengths.max())))[order]
        for lengths in (tgt_lengths, src_lengths)
    ]
    return order[np.lexsort(narrow)]


def _cut(longer: Lengths, run_ends: Indices, max_tokens: int) -> tuple[Indices, Indices]:
    """Cut a sorted row of pairs into batches as large as allowed, none across the end of a run.

    Args:
        longer: the longer side of each pair, `(n_pairs)`.
        run_ends: where each run of pairs that may share a batch ends, ascending, `(n_runs)`.
        max_tokens: most positions of a batch.

    Returns:
        Start and end of each batch, `(n_batches)` both.
    """
    starts = []
    start = 0
    for run_end in run_ends.tolist():
        while start < run_end:
            starts.append(start)
            # The widest side only grows, so the first pair bounds how many can fit.
            window = longer[start : min(run_end, start + max_tokens // int(longer[start]) + 1)]
            n_rows = np.arange(1, len(window) + 1)
            positions = np.maximum.accumulate(window).astype(np.int64) * n_rows
            start += max(1, int(np.searchsorted(positions, max_tokens, side="right")))
    return np.array(starts, dtype=np.int64), np.array([*starts[1:], start], dtype=np.int64)


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
        pairs: where the ids come from.
        indices: which pairs, in the order of the rows, `(batch)`.
        pad_id: fills the short rows.
        bos_id: opens `tgt_in`.
        eos_id: closes `src` and `tgt_out`.
    """
    numbers = np.asarray(indices, dtype=np.int64)
    bos, eos = np.array([bos_id]), np.array([eos_id])
    src_rows = [np.append(pairs.src(number), eos) for number in numbers.tolist()]
    tgt_rows = [np.append(pairs.tgt(number), eos) for number in numbers.tolist()]
    src, real = _padded(src_rows, pad_id)
    tgt_out, _ = _padded(tgt_rows, pad_id)
    tgt_in, _ = _padded([np.concatenate((bos, row[:-1])) for row in tgt_rows], pad_id)
    return Batch(
        src=src,
        tgt_in=tgt_in,
        tgt_out=tgt_out,
        src_mask=None if bool(real.all()) else torch.from_numpy(real)[:, None, None, :],
        n_src_tokens=sum(map(len, src_rows)),
        n_tgt_tokens=sum(map(len, tgt_rows)),
        indices=numbers,
    )


def _padded(rows: list[NDArray[Any]], pad_id: int) -> tuple[Tensor, NDArray[np.bool_]]:
    """Rows side by side, and where they are real: both `(batch, longest row)`."""
    lengths = np.array([len(row) for row in rows])
    real = np.arange(lengths.max(initial=0)) < lengths[:, None]
    ids = np.full(real.shape, pad_id, dtype=np.int64)
    if rows:
        ids[real] = np.concatenate(rows)
    return torch.from_numpy(ids), real
