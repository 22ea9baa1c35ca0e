r"""Lines in and out as bytes: only `\n` ends a line, and order is kept."""

import io
import json
import os
import select
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import IO, Any, BinaryIO, Protocol

from heed.cli.terminal import visible
from heed.data.lines import MAX_LINE_BYTES, as_data_error, open_bytes, require_file
from heed.errors import DataError

PATIENCE_S = 0.03
"""Input has paused when waiting for its next lines takes this long in total."""

_CHUNK_BYTES = 1 << 16


class ByteLines(Protocol):
    """Anything that is read line by line."""

    def readline(self, limit: int, /) -> bytes:
        """The next line with its line end, at most `limit` bytes of it; empty at the end."""


class Input:
    """A file as lines of bytes; it never pauses."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def readline(self, limit: int, /) -> bytes:
        """The next line with its line end, at most `limit` bytes of it; empty at the end."""
        return self._stream.readline(limit)

    def has_paused(self) -> bool:
        """Whether the next line has not arrived yet."""
        return False


class PipeInput(Input):
    """A pipe, socket or terminal as lines of bytes; its writer may pause.

    Nothing else may read from `stream`, before or after.
    """

    def __init__(self, stream: IO[bytes]) -> None:
        super().__init__(stream)
        self._fd = stream.fileno()
        self._bytes = bytearray()
        self._start = 0
        self._searched = 0
        self._is_at_end = False
        self._patience_s = PATIENCE_S

    def readline(self, limit: int, /) -> bytes:
        """The next line with its line end, at most `limit` bytes of it; empty at the end."""
        while (end := self._end_of_line(limit)) is None:
            self._read(None)
        line = bytes(self._bytes[self._start : end])
        self._start = end
        return line

    def has_paused(self) -> bool:
        """Whether the next line has not arrived, after waiting for the rest of the patience.

        Successive lines share the patience, so that slow input is a pause too.
        """
        while self._end_of_line(MAX_LINE_BYTES) is None:
            started_at = time.monotonic()
            try:
                is_read = self._read(self._patience_s)
            except OSError:  # `readline` meets the error again, and reports it
                return False
            self._patience_s -= time.monotonic() - started_at
            if not is_read or self._patience_s <= 0:
                self._patience_s = PATIENCE_S
                return self._end_of_line(MAX_LINE_BYTES) is None
        return False

    def _end_of_line(self, limit: int) -> int | None:
        """The end of the next line in the bytes read so far; None = read more."""
        end = self._bytes.find(b"\n", max(self._start, self._searched)) + 1
        if not end:
            end = self._searched = len(self._bytes)
            if not self._is_at_end and end - self._start < limit:
                return None
        return min(end, self._start + limit)

    def _read(self, timeout_s: float | None) -> bool:
        """Wait for input, forever if None, and read what has arrived; returns whether any has."""
        # Also for a non-blocking descriptor: another program may have made it so.
        if not select.select([self._fd], [], [], timeout_s)[0]:
            return False
        with suppress(BlockingIOError):
            chunk = os.read(self._fd, _CHUNK_BYTES)
            self._is_at_end = not chunk
            del self._bytes[: self._start]
            self._searched -= self._start
            self._start = 0
            self._bytes += chunk
        return True


def open_input(path: str) -> AbstractContextManager[Input]:
    """A file, decompressed if its name ends in .gz, .xz or .zst, or standard input for `-`.

    Raises:
        DataError: the file is missing or may not be read.
    """
    if path != "-":
        # At once, not at the first line, before which a model may have to be loaded.
        require_file(path)
    return _opened(path)


@contextmanager
def _opened(path: str) -> Iterator[Input]:
    with open_bytes(path) as stream:
        yield PipeInput(stream) if _may_pause(stream) else Input(stream)


def _may_pause(stream: IO[bytes]) -> bool:
    # A decompressor has the descriptor of its file, but other bytes.
    if not isinstance(stream, io.BufferedReader) or not isinstance(stream.raw, io.FileIO):
        return False
    return not stat.S_ISREG(os.fstat(stream.fileno()).st_mode)


@contextmanager
def open_output(path: str) -> Iterator["LineWriter"]:
    """A file, or standard output for `-`.

    A file is written in place, so that a person can watch it, it stays the same file under all of
    its names, and the lines before an error are kept; it is not emptied before there are lines, so
    that a command that fails earlier leaves an older file as it was, and none where none was.

    Raises:
        DataError: the file cannot be written, or the disk is full.
    """
    if path == "-":
        yield LineWriter(sys.stdout.buffer, is_live=sys.stdout.isatty() or sys.stdin.isatty())
        sys.stdout.buffer.flush()
        return
    is_new = not os.path.lexists(path)
    output = _Output(path)
    try:
        with io.BufferedWriter(output) as file:
            yield LineWriter(file)
            file.flush()
            output.begin()
    except BaseException:
        if is_new and not output.has_begun:
            os.unlink(path)
        raise


class _Output(io.FileIO):
    """A file that keeps its content until something is written.

    Args:
        path: also its name in errors.
    """

    def __init__(self, path: str) -> None:
        with _written(path):
            super().__init__(path, "wb", opener=_open_as_it_is)
        self.has_begun = False

    def begin(self) -> None:
        """Empty a regular file, once."""
        if not self.has_begun and stat.S_ISREG(os.fstat(self.fileno()).st_mode):
            with _written(self.name):
                self.truncate(0)
        self.has_begun = True

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
    except BrokenPipeError:  # of a named pipe: its reader has gone
        raise
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror}.") from None


class LineWriter:
    """Writes text as UTF-8 lines; on a terminal, control characters are made visible.

    Args:
        stream: the output.
        is_live: flush every line, for a person or a pipe.
    """

    def __init__(self, stream: BinaryIO, *, is_live: bool = False) -> None:
        self.stream = stream
        self.is_live = is_live
        self._is_terminal = stream.isatty()
        self._is_flushed = True

    def write(self, line: str) -> None:
        """Write one line; a line break inside would shift all later lines, so it is a bug."""
        assert "\n" not in line
        line = visible(line) if self._is_terminal else line
        self.stream.write(line.encode("utf-8", "replace") + b"\n")
        self._is_flushed = False
        if self.is_live:
            self.flush()

    def flush(self) -> None:
        """Flush, if anything was written."""
        if not self._is_flushed:
            self.stream.flush()
            self._is_flushed = True


def decode_lines(
    stream: ByteLines,
    name: str,
    *,
    on_invalid: Callable[[int], None] | None = None,
    remedy: str = "Convert it to UTF-8.",
) -> Iterator[str]:
    """The lines of a byte stream, each given as soon as it has arrived.

    `heed.data.lines.read_lines` is faster, but waits for a whole block.

    Args:
        stream: UTF-8 text; only byte 0x0A ends a line, one 0x0D before it is dropped.
        name: its name in errors.
        on_invalid: told the number of a line that is not UTF-8, which is then read with U+FFFD
            for each wrong byte; None makes such a line an error.
        remedy: the end of that error's message.

    Raises:
        DataError: a line is not UTF-8 or is absurdly long, or the file is damaged; names the line.
    """
    number = 0
    while True:
        with as_data_error(name, number):
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
                    f"{name} line {number} is not valid UTF-8 (byte {error.start + 1}). {remedy}"
                ) from None
            on_invalid(number)
            yield raw.decode("utf-8", "replace")


def on_one_line(token: str) -> str:
    r"""A piece with line breaks spelled `\n` and `\r`: some vocabularies have such pieces."""
    return token.replace("\n", "\\n").replace("\r", "\\r")


def json_row(value: Any) -> str:
    r"""JSON on one line; half a surrogate pair becomes \udcXX, which is also how JSON spells it."""
    text = json.dumps(value, ensure_ascii=False)
    return text.encode("utf-8", "backslashreplace").decode()
