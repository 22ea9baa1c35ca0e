"""All training pairs as ids in one memory-mapped file, so a corpus may be larger than memory.

The file: a header of 96 bytes; the ids of each pair, source then target, without special pieces;
the number of source ids of every pair; the number of target ids. All numbers are little-endian.
"""

import struct
import zlib
from array import array
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from heed.disk.files import atomic_writer
from heed.errors import FormatError

_MAGIC = b"HEEDIDS\n"
_VERSION = 1
# magic, version, crc32 of all that follows | vocabulary hashes, number of pairs, number of ids
_START = struct.Struct("<8sII")
_FACTS = struct.Struct("<32s32sQQ")
_HEADER_BYTES = _START.size + _FACTS.size
_ID = np.dtype("<i4")
_CHUNK_BYTES = 1 << 22
_WAITING_IDS = 1 << 16  # written together: a call for each pair costs more than all its ids
_REMEDY = "Delete its folder and run the same command to prepare the data again."

TokenIds32 = NDArray[np.int32]


class _Facts(NamedTuple):
    src_vocab: bytes
    tgt_vocab: bytes
    n_pairs: int
    n_ids: int


class StoreWriter:
    """Writes pairs one by one; made by `Store.create`. Memory: eight bytes a pair."""

    def __init__(self, file: IO[bytes]) -> None:
        """Leave room for the header at the beginning of `file`."""
        self._file = file
        self._file.write(bytes(_HEADER_BYTES))
        self._n_ids, self._checksum = 0, 0
        self._src_counts, self._tgt_counts, self._waiting = array("i"), array("i"), array("i")

    def add(self, src_ids: Sequence[int] | TokenIds32, tgt_ids: Sequence[int] | TokenIds32) -> None:
        """Append one pair, ids without special pieces."""
        self._src_counts.append(len(src_ids))
        self._tgt_counts.append(len(tgt_ids))
        self._n_ids += len(src_ids) + len(tgt_ids)
        self._waiting.extend(src_ids)
        self._waiting.extend(tgt_ids)
        if len(self._waiting) > _WAITING_IDS:
            self._write_waiting()

    def finish(self, src_vocab_hash: str, tgt_vocab_hash: str) -> None:
        """Write the counts, then the header."""
        self._write_waiting()
        for counts in (self._src_counts, self._tgt_counts):
            self._write(np.asarray(counts, dtype=_ID).tobytes())
        hashes = bytes.fromhex(src_vocab_hash), bytes.fromhex(tgt_vocab_hash)
        facts = _FACTS.pack(*hashes, len(self._src_counts), self._n_ids)
        self._file.seek(0)
        self._file.write(_START.pack(_MAGIC, _VERSION, zlib.crc32(facts, self._checksum)))
        self._file.write(facts)

    def _write_waiting(self) -> None:
        self._write(np.asarray(self._waiting, dtype=_ID).tobytes())
        self._waiting = array("i")

    def _write(self, data: bytes) -> None:
        self._checksum = zlib.crc32(data, self._checksum)
        self._file.write(data)


class Store:
    """Pairs of id sequences on disk, read by number.

    Attributes:
        src_lengths: source tokens of each pair, the `<eos>` that batches add included, `(n_pairs)`.
        tgt_lengths: target tokens of each pair, `<eos>` included, `(n_pairs)`.
    """

    def __init__(self, ids: TokenIds32, src_counts: TokenIds32, tgt_counts: TokenIds32) -> None:
        """Wrap arrays; call `Store.open` instead."""
        self._ids = ids
        self.src_lengths: TokenIds32 = src_counts + 1
        self.tgt_lengths: TokenIds32 = tgt_counts + 1
        self._starts = np.zeros(len(src_counts) + 1, dtype=np.int64)
        np.cumsum(src_counts.astype(np.int64) + tgt_counts, out=self._starts[1:])

    @classmethod
    @contextmanager
    def create(
        cls, path: Path | str, src_vocab_hash: str, tgt_vocab_hash: str
    ) -> Iterator[StoreWriter]:
        """Write a new file, which appears whole when the `with` block ends without an exception.

        Raises:
            RunError: the disk is full or read-only, or permission is denied; an old file stays.
        """
        with atomic_writer(path) as file:
            writer = StoreWriter(file)
            yield writer
            writer.finish(src_vocab_hash, tgt_vocab_hash)

    @classmethod
    def open(cls, path: Path | str, src_vocab_hash: str, tgt_vocab_hash: str) -> "Store":
        """Map a file into memory, after reading it once to verify its checksum.

        Raises:
            FormatError: it is missing, damaged, or of another version or vocabulary.
        """
        facts = _checked_facts(Path(path))
        wanted = {"source": src_vocab_hash, "target": tgt_vocab_hash}
        for (side, hash_hex), found in zip(wanted.items(), facts[:2], strict=True):
            if found.hex() != hash_hex:
                raise FormatError(
                    f"{path} must be made with the {side} vocabulary {hash_hex[:12]}, but was made "
                    f"with {found.hex()[:12]}. {_REMEDY}"
                )
        numbers: TokenIds32 = np.memmap(path, dtype=_ID, mode="r")[_HEADER_BYTES // _ID.itemsize :]
        ids, src_counts, tgt_counts = np.split(numbers, [facts.n_ids, facts.n_ids + facts.n_pairs])
        counts = np.concatenate((src_counts, tgt_counts))
        if counts.min(initial=0) < 0 or counts.sum(dtype=np.int64) != facts.n_ids:
            raise FormatError(
                f"{path} must hold {facts.n_ids} ids, but its counts do not match. {_REMEDY}"
            )
        return cls(np.asarray(ids), src_counts, tgt_counts)

    @property
    def ids(self) -> TokenIds32:
        """The ids of all pairs, concatenated, `(n_ids,)`."""
        return self._ids

    def __len__(self) -> int:
        """The number of pairs."""
        return len(self.src_lengths)

    def src(self, index: int) -> TokenIds32:
        """Source ids of pair `index` without special pieces, `(n_pieces)`."""
        start = self._starts[index]
        return self._ids[start : start + self.src_lengths[index] - 1]

    def tgt(self, index: int) -> TokenIds32:
        """Target ids of pair `index` without special pieces, `(n_pieces)`."""
        end = self._starts[index + 1]
        return self._ids[end - self.tgt_lengths[index] + 1 : end]


def _checked_facts(path: Path) -> _Facts:
    """The second half of the header, once the first half and the whole file have been checked."""
    if not path.is_file():
        raise FormatError(f"{path} is missing or not a file. {_REMEDY}")
    try:
        with open(path, "rb") as file:
            magic, version, checksum = _START.unpack(_exactly(file.read(_START.size), _START.size))
            if magic != _MAGIC:
                raise FormatError(
                    f"{path} must be a heed store of ids, but does not start with its signature. "
                    f"{_REMEDY}"
                )
            if version != _VERSION:
                raise FormatError(
                    f"{path} must have store version {_VERSION}, but has {version}. {_REMEDY}"
                )
            header = _exactly(file.read(_FACTS.size), _FACTS.size)
            found = 0
            while piece := file.read(_CHUNK_BYTES):
                found = zlib.crc32(piece, found)
            size_bytes = file.tell()
    except OSError as error:
        raise FormatError(f"{path} cannot be read: {error.strerror}.") from error
    facts = _Facts(*_FACTS.unpack(header))
    size_expected = _HEADER_BYTES + _ID.itemsize * (facts.n_ids + 2 * facts.n_pairs)
    if zlib.crc32(header, found) != checksum or size_bytes != size_expected:
        raise FormatError(
            f"{path} is damaged: its checksum does not match ({size_bytes} bytes read). {_REMEDY}"
        )
    return facts


def _exactly(data: bytes, size: int) -> bytes:
    """`data` padded with zeros, so that a short file fails the check of magic or checksum."""
    return data.ljust(size, b"\0")
