"""Cleaned pairs in a temporary file, one a line, to be read several times; also dev and test sets.

Pairs are normalized before, so none contains a line break.
"""

from collections.abc import Iterable, Iterator
from itertools import compress
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heed.data.lines import read_lines
from heed.data.readers import Pair
from heed.disk.files import atomic_writer, crc32
from heed.errors import FormatError


class Spool(NamedTuple):
    """The clean pairs on disk and the split each belongs to; each reading starts over.

    Attributes:
        path: the file.
        splits: `TRAIN`, `DEV` or `TEST` for each pair, `(n_pairs)`.
    """

    path: Path
    splits: NDArray[np.uint8]

    def pairs(self, split: int, *, at_most: int | None = None) -> Iterator[Pair]:
        """The pairs of one split, or `at_most` of them, spread evenly."""
        is_wanted = self.splits == split
        numbers = np.flatnonzero(is_wanted)
        if at_most is not None and at_most < len(numbers):
            is_wanted[:] = False
            is_wanted[numbers[np.arange(at_most) * len(numbers) // at_most]] = True
        return map(_as_pair, compress(read_lines(self.path), is_wanted))


def write_pairs(path: Path, pairs: Iterable[Pair]) -> None:
    """Write pairs as they come; the file appears when the last one is written.

    Raises:
        RunError: the disk is full or read-only, or permission is denied.
    """
    with atomic_writer(path) as file:
        file.writelines(map(_as_row, pairs))


def read_pairs(path: Path, checksum: str | None = None) -> Iterator[Pair]:
    """The pairs that `write_pairs` wrote.

    Args:
        path: the file.
        checksum: its CRC-32 when it was written, eight hexadecimal digits; None = unknown.

    Raises:
        FormatError: the file is missing, or was changed.
    """
    remedy = f"Remove {path.parent} to prepare the corpus again."
    if not path.is_file():
        raise FormatError(f"{path} is missing or not a file. {remedy}")
    found = f"{crc32(path):08x}"
    if checksum is not None and found != checksum:
        raise FormatError(f"{path} was changed: its checksum is {found}, not {checksum}. {remedy}")
    for number, row in enumerate(read_lines(path), start=1):
        try:
            yield _as_pair(row)
        except ValueError:
            raise FormatError(
                f"{path} line {number} must have six columns, the third a number, but is "
                f"{row[:60]!r}. {remedy}"
            ) from None


def _as_row(pair: Pair) -> bytes:
    fields = (
        pair.source_lang,
        pair.target_lang,
        str(pair.line),
        " ".join(pair.origin.split()),
        pair.src,
        pair.tgt,
    )
    return ("\t".join(fields) + "\n").encode("utf-8", "replace")


def _as_pair(row: str) -> Pair:
    source_lang, target_lang, number, origin, src, tgt = row.split("\t")
    return Pair(src, tgt, int(number), origin, source_lang, target_lang)
