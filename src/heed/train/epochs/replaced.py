"""Pairs of an epoch some of which are replaced by others; only those are held in memory."""

from array import array
from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heed.train.step.trainer import EpochPairs


class Replacement(NamedTuple):
    """A pair in place of another.

    Attributes:
        number: the number of the pair that it replaces.
        src_ids: source ids without special pieces.
        tgt_ids: target ids without special pieces.
    """

    number: int
    src_ids: list[int]
    tgt_ids: list[int]

    def fits(self, max_length: int) -> bool:
        """Whether each side has at most `max_length` pieces, `<eos>` included."""
        return max(len(self.src_ids), len(self.tgt_ids)) < max_length


class ReplacedPairs:
    """All pairs of an epoch, some replaced.

    Args:
        pairs: the pairs before replacement.
        replacements: read once; if a number occurs twice, the last counts.

    Attributes:
        src_lengths: source tokens of each pair, `<eos>` included, `(n_pairs)`.
        tgt_lengths: target tokens of each pair, `<eos>` included, `(n_pairs)`.
        numbers: of the replaced pairs, in the order of `replacements`, `(n_replaced)`.
    """

    def __init__(self, pairs: EpochPairs, replacements: Iterable[Replacement]) -> None:
        ids, starts, numbers = array("i"), array("q", [0]), array("q")
        for number, src_ids, tgt_ids in replacements:
            numbers.append(number)
            ids.extend(src_ids)
            starts.append(len(ids))
            ids.extend(tgt_ids)
            starts.append(len(ids))
        self._pairs = pairs
        self._ids = np.asarray(ids, dtype=np.int32)
        self._starts = np.asarray(starts, dtype=np.int64)
        self.numbers: NDArray[np.int64] = np.asarray(numbers, dtype=np.int64)
        self._rows = dict(zip(numbers, range(len(numbers)), strict=True))
        widths = np.diff(self._starts) + 1
        self.src_lengths: NDArray[Any] = pairs.src_lengths.copy()
        self.tgt_lengths: NDArray[Any] = pairs.tgt_lengths.copy()
        self.src_lengths[self.numbers] = widths[::2]
        self.tgt_lengths[self.numbers] = widths[1::2]

    def src(self, index: int) -> NDArray[Any]:
        """Source ids of pair `index` without special pieces, `(n_pieces)`."""
        row = self._rows.get(int(index))
        return self._pairs.src(index) if row is None else self._row(2 * row)

    def tgt(self, index: int) -> NDArray[Any]:
        """Target ids of pair `index` without special pieces, `(n_pieces)`."""
        row = self._rows.get(int(index))
        return self._pairs.tgt(index) if row is None else self._row(2 * row + 1)

    def _row(self, row: int) -> NDArray[Any]:
        return self._ids[self._starts[row] : self._starts[row + 1]]
