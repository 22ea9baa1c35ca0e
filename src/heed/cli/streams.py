r"""Read and write lines as bytes: only `\n` ends a line, and the order is kept."""

import io
import json
import os
import select
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import IO, Any, BinaryIO, Protocol, cast

from heed.cli.terminal import visible
from heed.data.lines import (
    MAX_LINE_BYTES,
    STDIN,
    as_data_error,
    is_compressed,
    not_utf8,
    open_bytes,
    require_file,
    require_line_feeds,
    require_single_bytes,
    shown_name,
)
from heed.disk.files import atomic_writer
from heed.errors import DataError, UsageError

PATIENCE_S = 0.03
"""Input counts as paused when waiting for its next lines takes this long in total."""

_CHUNK_BYTES = 1 << 16
_HEAD_BYTES = 64  # enough to recognize UTF-16 and UTF-32


class ByteLines(Protocol):
    """An input that is read line by line."""

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
        """Whether the next line has not arrived yet; a file never pauses."""
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
        """Whether the next line has not arrived after the rest of `PATIENCE_S`.

        The waits for successive lines are added up, so slow input is a pause too.
        """
        while self._end_of_line(MAX_LINE_BYTES) is None:
            started_at = time.monotonic()
            try:
                is_read = self._read(self._patience_s)
            except OSError:  # `readline` meets the error again and reports it
                return False
            self._patience_s -= time.monotonic() - started_at
            if not is_read or self._patience_s <= 0:
                self._patience_s = PATIENCE_S
                return self._end_of_line(MAX_LINE_BYTES) is None
        return False

    def _end_of_line(self, limit: int) -> int | None:
        """The end of the next line in the bytes read so far; None if it has not arrived."""
        end = self._bytes.find(b"\n", max(self._start, self._searched)) + 1
        if not end:
            end = self._searched = len(self._bytes)
            if not self._is_at_end and end - self._start < limit:
                return None
        return min(end, self._start + limit)

    def _read(self, timeout_s: float | None) -> bool:
        """Wait for input (None = forever) and read it; return whether any has arrived."""
        # Needed for a non-blocking descriptor, too: another program may have made it so.
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
    """Open a file, decompressed if its name ends in .gz, .xz or .zst, or standard input for `-`.

    Raises:
        DataError: the file is missing, or permission is denied.
    """
    if path != "-":
        # Check at once, not at the first line: a model may have to be loaded before that.
        require_file(path)
    return _opened(path)


@contextmanager
def _opened(path: str) -> Iterator[Input]:
    with open_bytes(path) as stream:
        yield PipeInput(stream) if _may_pause(stream) else Input(stream)


def _may_pause(stream: IO[bytes]) -> bool:
    # A decompressor has its file's descriptor, but yields other bytes.
    if not isinstance(stream, io.BufferedReader) or not isinstance(stream.raw, io.FileIO):
        return False
    return not stat.S_ISREG(os.fstat(stream.fileno()).st_mode)


def require_plain(path: str) -> None:
    """Refuse an output whose name is that of a compressed file.

    Raises:
        UsageError: it is.
    """
    if is_compressed(path):
        raise UsageError(
            f"{path}: the output is not compressed. Give another name, or compress standard output."
        )


@contextmanager
def open_output(path: str) -> Iterator["LineWriter"]:
    """Open a file, or standard output for `-`.

    The file is written in place: it can be watched as it grows, its hard links stay valid, and the
    lines before an error are kept. It is created or emptied only at the first line, so a command
    that fails earlier changes nothing.

    Raises:
        DataError: the file cannot be written, or the disk is full.
        UsageError: its name is that of a compressed file.
    """
    require_plain(path)
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


@contextmanager
def open_saved(path: str) -> Iterator["LineWriter"]:
    """Open a file that appears only when it is complete; pipes and devices are written directly.

    Raises:
        UsageError: its name is that of a compressed file.
        RunError: it cannot be written.
    """
    require_plain(path)
    if path == "-" or (os.path.exists(path) and not os.path.isfile(path)):
        with open_output(path) as writer:
            yield writer
        return
    with atomic_writer(path, follow_links=True) as file:
        yield LineWriter(cast(BinaryIO, file))


class _Output(io.FileIO):
    """A file that keeps its old content until the first write.

    Args:
        path: the path, also used as its name in errors.
    """

    def __init__(self, path: str) -> None:
        with _written(path):
            super().__init__(path, "wb", opener=_open_as_it_is)
        self.has_begun = False

    def begin(self) -> None:
        """Empty a regular file, at the first call only."""
        if not self.has_begun and stat.S_ISREG(os.fstat(self.fileno()).st_mode):
            with _written(self.name):
                self.truncate(0)
        self.has_begun = True

    def write(self, data: Any) -> int:
        """Call `begin`, then write."""
        self.begin()
        with _written(self.name):
            return super().write(data)


def _open_as_it_is(path: str, flags: int) -> int:
    return os.open(path, flags & ~os.O_TRUNC, 0o666)


@contextmanager
def _written(path: Any) -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:  # a named pipe whose reader has gone
        raise
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror}.") from None


class LineWriter:
    """Writes text as UTF-8 lines; on a terminal, control characters are made visible.

    Args:
        stream: the output.
        is_live: flush after every line, for a person or a pipe.
    """

    def __init__(self, stream: BinaryIO, *, is_live: bool = False) -> None:
        self.stream = stream
        self.is_live = is_live
        self._is_terminal = stream.isatty()
        self._is_flushed = True

    def write(self, line: str) -> None:
        """Write one line; a line break in it is a bug, because it would shift all later lines."""
        assert "\n" not in line
        line = visible(line) if self._is_terminal else line
        self.stream.write(line.encode("utf-8", "replace") + b"\n")
        self._is_flushed = False
        if self.is_live:
            self.flush()

    def flush(self) -> None:
        """Flush, if anything has been written."""
        if not self._is_flushed:
            self.stream.flush()
            self._is_flushed = True


def decode_lines(
    stream: ByteLines,
    name: str,
    *,
    on_invalid: Callable[[int], None] | None = None,
    otherwise: str = "",
) -> Iterator[str]:
    """The lines of a byte stream, each as soon as it has arrived.

    `heed.data.lines.read_lines` is faster, but waits for a whole block.

    Args:
        stream: UTF-8 text; only byte 0x0A ends a line, one 0x0D before it is dropped.
        name: the stream's name in errors.
        on_invalid: called with the number of a line that is not UTF-8; that line is then read with
            U+FFFD for each wrong byte. None makes such a line an error, and UTF-16 too.
        otherwise: another way out than to convert the file, which the error then names too.

    Raises:
        DataError: a line is not UTF-8 or is absurdly long, or the file is damaged; names the line.
            Or all lines end in carriage returns only.
    """
    path = STDIN if name == shown_name(STDIN) else name
    number = 0
    head = b""
    is_ascii = True
    while True:
        with as_data_error(name, number):
            raw = stream.readline(MAX_LINE_BYTES + 1)
        if not raw:
            return
        number += 1
        if on_invalid is None and len(head) < _HEAD_BYTES:
            head += raw[:_HEAD_BYTES]
            require_single_bytes(head, path)
        if on_invalid is None and number == 1:
            require_line_feeds(raw, path)
        if len(raw) > MAX_LINE_BYTES:
            raise DataError(
                f"{name} line {number} is longer than {MAX_LINE_BYTES >> 20} MiB: is this text?"
            )
        raw = raw.removesuffix(b"\n").removesuffix(b"\r")
        try:
            yield raw.decode("utf-8")
            is_ascii = is_ascii and raw.isascii()
        except UnicodeDecodeError as error:
            if on_invalid is None:
                is_ascii = is_ascii and raw[: error.start].isascii()
                line = raw[: error.start + 1]
                message = not_utf8(path, number, line, is_ascii=is_ascii)
                raise DataError(f"{message}{otherwise}") from None
            on_invalid(number)
            yield raw.decode("utf-8", "replace")


def on_one_line(token: str) -> str:
    r"""A piece with its line breaks spelled `\n` and `\r`; some vocabularies have such pieces."""
    return token.replace("\n", "\\n").replace("\r", "\\r")


def json_row(value: Any) -> str:
    r"""JSON on one line; a lone surrogate becomes \udcXX, as in JSON."""
    text = json.dumps(value, ensure_ascii=False)
    return text.encode("utf-8", "backslashreplace").decode()
