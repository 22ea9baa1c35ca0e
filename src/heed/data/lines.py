r"""A file, compressed or not, as bytes or as lines; every fault is told with file, line and remedy.

Not here: what the lines mean (`readers.py`). Only `\n` ends a line, and memory stays small: a line
that goes on after 16 MiB is refused. Read on in `readers.py`.
"""

import difflib
import gzip
import io
import lzma
import os
import sys
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, cast

from heed.errors import DataError, MissingExtraError

STDIN = "-"
MAX_LINE_BYTES = 16 << 20
_CHUNK_BYTES = 1 << 16
_COMPRESSED = (".gz", ".xz", ".zst")


def read_lines(path: str | Path) -> Iterator[str]:
    r"""The lines of a UTF-8 file, `-` for stdin, without their `\n` and one `\r` before it.

    A byte order mark at the very beginning is dropped. All else stays: form feeds, U+2028, NUL.

    Raises:
        DataError: the file is missing, not UTF-8, damaged, or has a line above 16 MiB.
    """
    n_read, rest = 0, b""
    with open_bytes(path) as file:
        while True:
            with damage_told(path, n_read):
                chunk = file.read(_CHUNK_BYTES)
            if not chunk:
                break
            block, newline, rest = (rest + chunk).rpartition(b"\n")
            if newline:
                yield from (lines := _decoded(block, path, n_read))
                n_read += len(lines)
            if len(rest) > MAX_LINE_BYTES:
                raise DataError(
                    f"{path} line {n_read + 1}: a line must have at most {MAX_LINE_BYTES} bytes, "
                    "but has more. Is this text, with one sentence a line?"
                )
            if len(chunk) < _CHUNK_BYTES:
                break  # the end; a terminal that is asked again waits for another Ctrl-D
    if rest:
        yield from _decoded(rest, path, n_read)


def read_chunks(path: str | Path) -> Iterator[bytes]:
    """The bytes of a file, decompressed, 64 KiB at a time.

    Raises:
        DataError: the file is missing or damaged.
    """
    with open_bytes(path) as file:
        while True:
            with damage_told(path):
                chunk = file.read(_CHUNK_BYTES)
            if not chunk:
                return
            yield chunk


def suffix_of(path: str | Path) -> str:
    """What a name ends in, without the compression: `.tsv` of `corpus.tsv.gz`."""
    name = Path(path)
    return (name.with_suffix("") if is_compressed(name) else name).suffix.lower()


def is_compressed(path: str | Path) -> bool:
    """Whether a name says that the file is compressed."""
    return Path(path).suffix.lower() in _COMPRESSED


def require_file(path: str | Path) -> None:
    """See that a file to be read is there.

    Raises:
        DataError: it is not, and names the nearest file that is; or it may not be read.
    """
    path = Path(path)
    if path.is_dir():
        raise DataError(f"{path} must be a file, but is a folder.")
    if path.exists():
        if not os.access(path, os.R_OK):
            raise DataError(f"{path} cannot be read: this user may not. Try: chmod +r {path}")
        return
    if not path.parent.is_dir():
        raise DataError(f"{path} does not exist: there is no folder {path.parent}.")
    near = difflib.get_close_matches(path.name, os.listdir(path.parent), n=1)
    hint = f" Did you mean {path.with_name(near[0])}?" if near else ""
    raise DataError(f"{path} does not exist.{hint}")


@contextmanager
def open_bytes(path: str | Path) -> Iterator[IO[bytes]]:
    """The bytes of a file, decompressed by what its name ends in; `-` is standard input.

    Raises:
        DataError: the file is missing.
    """
    if str(path) == STDIN:
        yield sys.stdin.buffer
        return
    require_file(path)
    with open(path, "rb") as raw:
        match Path(path).suffix.lower():
            case ".gz":
                with gzip.GzipFile(fileobj=raw) as file:
                    yield cast(IO[bytes], file)
            case ".xz":
                with lzma.LZMAFile(raw) as file:
                    yield cast(IO[bytes], file)
            case ".zst":
                yield io.BufferedReader(_ZstdFrames(raw))
            case _:
                yield raw


class _ZstdFrames(io.RawIOBase):
    """Zstandard frames end to end, as `zstd` and `cat` write them.

    The package's own reader takes a file that was cut short for one that ends there.
    """

    def __init__(self, file: IO[bytes]) -> None:
        try:
            import zstandard
        except ImportError:
            raise MissingExtraError("reading .zst files", "train") from None
        self._new_frame = zstandard.ZstdDecompressor().decompressobj
        self._error = zstandard.ZstdError
        self._file = file
        self._frame: Any = None
        self._packed = self._ready = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            self._packed = self._packed or self._file.read(_CHUNK_BYTES)
            if not self._packed:
                if self._frame is not None:
                    raise EOFError("it ends in the middle")
                return 0
            self._frame = self._frame or self._new_frame()
            try:
                self._ready = self._frame.decompress(self._packed)
            except self._error as error:
                raise EOFError(str(error)) from error
            self._packed = self._frame.unused_data
            if self._frame.eof:
                self._frame = None
        size = min(len(buffer), len(self._ready))
        buffer[:size], self._ready = self._ready[:size], self._ready[size:]
        return size


@contextmanager
def damage_told(path: str | Path, number: int | None = None) -> Iterator[None]:
    """Turn what a broken file raises while it is read into words.

    Args:
        path: what the words call it.
        number: lines read so far.

    Raises:
        DataError: in the place of what was raised.
    """
    try:
        yield
    except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
        after = "" if number is None else f" after line {number}"
        raise DataError(f"{path} is damaged{after}: {error}. Copy or download it again.") from error


def _decoded(block: bytes, path: str | Path, n_before: int) -> list[str]:
    r"""The lines of a block of bytes, the last one without its `\n`."""
    try:
        text = block.decode("utf-8")
    except UnicodeDecodeError as error:
        number = n_before + block.count(b"\n", 0, error.start) + 1
        byte = error.start - block.rfind(b"\n", 0, error.start)
        raise DataError(
            f"{path} line {number}: must be UTF-8, but byte {byte} of the line is "
            f"0x{block[error.start]:02X}. Convert the file, for example: "
            f"iconv -f latin1 -t utf-8 {path}"
        ) from error
    if n_before == 0:
        text = text.removeprefix("\ufeff")
    lines = text.split("\n")
    return [line.removesuffix("\r") for line in lines] if "\r" in text else lines
