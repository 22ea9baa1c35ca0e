"""Standard input as a corpus: copied to a file first, because a corpus is read more than once."""

import sys
import zlib
from contextlib import nullcontext
from pathlib import Path

from heed.data.lines import STDIN, read_chunks, require_single_bytes
from heed.disk.files import atomic_writer
from heed.errors import DataError, in_shell


def keep_stdin(path: Path, *, is_kept: bool) -> str:
    """Copy standard input to a file; returns facts that identify the input.

    Args:
        path: where it goes, atomically; memory stays small whatever its size.
        is_kept: an earlier call has written it; the input is compared with it.

    Raises:
        DataError: standard input is empty, closed or a terminal, or packed, UTF-16 or UTF-32.
        RunError: the disk is full or read-only, or permission is denied.
    """
    is_there = is_kept and path.exists()
    remedy = (
        f"To continue with its earlier content: < {in_shell(path)}"
        if is_there
        else "Try: < corpus.tsv"
    )
    if sys.stdin is None or sys.stdin.isatty():
        found = "is closed" if sys.stdin is None else "is a terminal"
        raise DataError(f"standard input must contain sentence pairs, but {found}. {remedy}")
    size_bytes = checksum = 0
    with nullcontext() if is_kept else atomic_writer(path) as file:
        for chunk in read_chunks(STDIN):
            if not size_bytes:
                require_single_bytes(chunk, STDIN)
            size_bytes += len(chunk)
            checksum = zlib.crc32(chunk, checksum)
            if file:
                file.write(chunk)
        if not size_bytes:
            raise DataError(f"standard input must contain sentence pairs, but is empty. {remedy}")
    return f"standard input, {size_bytes} bytes, checksum {checksum:08x}"
