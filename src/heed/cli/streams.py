r"""Lines in and lines out, as bytes: only `\n` ends a line, and what comes in goes out in order.

Not here: corpora (`data/readers.py`), or what a line means.
"""

import io
import os
import stat
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import IO, Any, BinaryIO

from heed.data.lines import damage_told, open_bytes, require_file
from heed.errors import DataError

MAX_LINE_BYTES = 64 << 20
"""A line beyond this is no text; the limit keeps memory bounded."""


def open_input(path: str) -> AbstractContextManager[IO[bytes]]:
    """A file, decompressed if its name ends in .gz, .xz or .zst, or standard input for `-`.

    Raises:
        DataError: the file is missing or may not be read.
    """
    if path != "-":
        # At once, not when the first line is asked for: a model may have to be loaded before.
        require_file(path)
    return open_bytes(path)


@contextmanager
def open_output(path: str) -> Iterator["LineWriter"]:
    """A file, or standard output for `-`.

    A file is written in place, so that a person can watch it, it stays the same file under all of
    its names, and the lines before an error are kept; it is not emptied before there are lines, so
    that a command that fails earlier leaves an older file as it was.

    Raises:
        DataError: the file cannot be written, or the disk is full.
    """
    if path == "-":
        yield LineWriter(sys.stdout.buffer, is_live=sys.stdout.isatty() or sys.stdin.isatty())
        sys.stdout.buffer.flush()
        return
    output = _Output(path)
    with io.BufferedWriter(output) as file:
        yield LineWriter(file)
        file.flush()
        output.begin()


class _Output(io.FileIO):
    """A file that keeps what it held until something else is written.

    Args:
        path: also what errors call it.
    """

    def __init__(self, path: str) -> None:
        with _written(path):
            super().__init__(path, "wb", opener=_open_as_it_is)
        self._has_begun = False

    def begin(self) -> None:
        """Drop what a regular file held, once."""
        if not self._has_begun and stat.S_ISREG(os.fstat(self.fileno()).st_mode):
            with _written(self.name):
                self.truncate(0)
        self._has_begun = True

    def write(self, data: Any) -> int:
        """Write after `begin`."""
        self.begin()
        with _written(self.name):
            return super().write(data)


def _open_as_it_is(path: str, flags: int) -> int:
    return os.open(path, flags & ~os.O_TRUNC, 0o666)


@contextmanager
def _written(path: Any) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:  # of a named pipe: nobody reads on
        raise
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror}.") from None


class LineWriter:
    """Writes text as UTF-8 lines.

    Args:
        stream: where to.
        is_live: somebody is watching: flush every line.
    """

    def __init__(self, stream: BinaryIO, *, is_live: bool = False) -> None:
        self.stream = stream
        self.is_live = is_live

    def write(self, line: str) -> None:
        """Write one line; a line break inside would shift all that follow, so it is a mistake."""
        assert "\n" not in line
        self.stream.write(line.encode("utf-8", "replace") + b"\n")
        if self.is_live:
            self.stream.flush()


def decode_lines(
    stream: IO[bytes], name: str, *, on_invalid: Callable[[int], None] | None = None
) -> Iterator[str]:
    """The lines of a byte stream, read as they are asked for.

    Args:
        stream: UTF-8 text; only byte 0x0A ends a line, one 0x0D before it is dropped.
        name: what errors call it.
        on_invalid: told the number of a line that is not UTF-8, which is then read with U+FFFD
            for each wrong byte; None makes such a line an error.

    Raises:
        DataError: a line is not UTF-8 or is absurdly long, or the file is damaged; names the line.
    """
    number = 0
    while True:
        with damage_told(name, number):
            raw = stream.readline(MAX_LINE_BYTES + 1)
        if not raw:
            return
        number += 1
        if len(raw) > MAX_LINE_BYTES:
            raise DataError(
                f"{name} line {number} is longer than {MAX_LINE_BYTES >> 20} MiB: is this text?"
            )
        raw = raw.removesuffix(b"\n").removesuffix(b"\r")
        try:
            yield raw.decode("utf-8")
        except UnicodeDecodeError as error:
            if on_invalid is None:
                raise DataError(
                    f"{name} line {number} is not valid UTF-8 (byte {error.start + 1}). Convert "
                    "the file, or pass --encoding-errors replace."
                ) from None
            on_invalid(number)
            yield raw.decode("utf-8", "replace")


def shown_name(path: str) -> str:
    """What a person calls an input."""
    return "standard input" if path == "-" else path
