r"""Files, compressed or not, as bytes or lines; every error names file, line and remedy.

Only `\n` ends a line. Memory stays small: a line longer than 16 MiB is refused.
"""

import codecs
import difflib
import gzip
import io
import lzma
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, Any, cast

from heed.errors import DataError, MissingExtraError, in_shell

STDIN = "-"
MAX_LINE_BYTES = 16 << 20
_CHUNK_BYTES = 1 << 16
_HEAD_BYTES = 4096  # enough to recognize UTF-16 and UTF-32
# Four bytes of a .zst file can unpack to 128 KiB, so this many unpack to 8 MiB at most.
_PACKED_BYTES = 256
_MAX_WINDOW_BYTES = 128 << 20
_FEWEST_RETURNS = 2  # one alone may be a stray character in the only line
_UNPACK = {".gz": "gzip -dc", ".xz": "xz -dc", ".zst": "zstd -dc"}
_PACKED = re.compile(
    rb"(?P<bzip2>BZh[1-9]1AY&SY)|(?P<zip>PK\x03\x04)|(?P<p7zip>7z\xbc\xaf)|(?P<rar>Rar!\x1a)"
    rb"|(?P<gzip>\x1f\x8b)|(?P<xz>\xfd7zXZ\x00)|(?P<zstd>\x28\xb5\x2f\xfd)"
)
"""First bytes of compressed files, by the name of the format."""


def read_lines(path: str | Path) -> Iterator[str]:
    r"""The lines of a UTF-8 file, `-` for stdin, without their `\n` and one `\r` before it.

    A byte order mark at the beginning is dropped. Other characters stay: form feeds, U+2028, NUL.

    Raises:
        DataError: the file is missing, not UTF-8, damaged, has a line above 16 MiB, or carriage
            returns for line ends.
    """
    n_read, n_open_bytes, is_ascii = 0, 0, True
    pieces: list[bytes] = []  # of a line that has not ended yet
    with open_bytes(path) as file:
        # Of a damaged archive, `read` would lose what precedes the damage.
        read = cast(io.BufferedReader, file).read1 if is_compressed(path) else file.read
        while True:
            with as_data_error(path, n_read):
                chunk = read(_CHUNK_BYTES)
            if not chunk:
                break
            if not n_read and not pieces:
                require_single_bytes(chunk, path)
                require_line_feeds(chunk, path)
            head, newline, rest = chunk.rpartition(b"\n")
            if newline:
                block = b"".join([*pieces, head])
                yield from (lines := _decoded(block, path, n_read, is_ascii=is_ascii))
                n_read += len(lines)
                is_ascii = is_ascii and block.isascii()
                pieces, n_open_bytes = [], 0
            pieces.append(rest)
            n_open_bytes += len(rest)
            if n_open_bytes > MAX_LINE_BYTES:
                raise DataError(
                    f"{shown_name(path)} line {n_read + 1}: a line must have at most "
                    f"{MAX_LINE_BYTES} bytes, but has more. Is this text, with one sentence a line?"
                )
            if len(chunk) < _CHUNK_BYTES and file.isatty():
                break  # Ctrl-D; a terminal that is read again waits for another one
    if n_open_bytes:
        yield from _decoded(b"".join(pieces), path, n_read, is_ascii=is_ascii)


def read_chunks(path: str | Path) -> Iterator[bytes]:
    """The bytes of a file, decompressed, 64 KiB at a time.

    Raises:
        DataError: the file is missing or damaged.
    """
    with open_bytes(path) as file:
        while True:
            with as_data_error(path):
                chunk = file.read(_CHUNK_BYTES)
            if not chunk:
                return
            yield chunk


def shown_name(path: str | Path) -> str:
    """A file as messages name it: its name, or "standard input"."""
    return "standard input" if str(path) == STDIN else str(path)


def suffix_of(path: str | Path) -> str:
    """The suffix of a name, without that of the compression: `.tsv` of `corpus.tsv.gz`."""
    name = Path(path)
    return (name.with_suffix("") if is_compressed(name) else name).suffix.lower()


def is_compressed(path: str | Path) -> bool:
    """Whether a name says that the file is compressed."""
    return Path(path).suffix.lower() in _UNPACK


def require_file(path: str | Path) -> None:
    """Check that a file to be read is there.

    Raises:
        DataError: it is missing (names the most similar file), or permission is denied.
    """
    path = Path(path)
    if path.is_dir():
        raise DataError(f"{path} must be a file, but is a folder.")
    if path.exists():
        if not os.access(path, os.R_OK):
            raise DataError(
                f"{path} cannot be read: permission denied. Try: chmod +r {in_shell(path)}"
            )
        return
    if path.is_symlink():
        raise DataError(f"{path} is a link to {os.readlink(path)}, which does not exist.")
    if not path.parent.is_dir():
        raise DataError(f"{path} does not exist: there is no folder {path.parent}.")
    near: list[str] = []
    with suppress(PermissionError):
        files = [each.name for each in os.scandir(path.parent) if not each.is_dir()]
        near = difflib.get_close_matches(path.name, files, n=1)
    hint = f" Did you mean {path.with_name(near[0])}?" if near else ""
    raise DataError(f"{path} does not exist.{hint}")


@contextmanager
def open_bytes(path: str | Path) -> Iterator[IO[bytes]]:
    """The bytes of a file, decompressed by its suffix; `-` is standard input.

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
                yield io.BufferedReader(_unpacked_xz(raw))
            case ".zst":
                yield io.BufferedReader(_unpacked_zst(raw))
            case _:
                yield raw


class _Unpacked(io.RawIOBase):
    """The content of concatenated .xz or .zst frames.

    Memory holds at most the content of `_PACKED_BYTES`. The readers of both packages end without an
    error too early: zstandard's in a truncated file, lzma's at padding.

    Args:
        file: the packed bytes.
        new_frame: returns an object that unpacks one frame.
        error: the exception of that object for bytes that it cannot unpack.
    """

    def __init__(
        self, file: IO[bytes], new_frame: Callable[[], Any], error: type[Exception]
    ) -> None:
        self._file = file
        self._new_frame = new_frame
        self._error = error
        self._frame: Any = new_frame()
        self._packed = b""
        self._ready = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._ready:
            packed = self._packed or self._file.read(_PACKED_BYTES)
            if not packed:
                if self._frame is not None:
                    raise EOFError("it ends in the middle")
                return 0
            self._packed = b""
            if self._frame is None:
                packed = packed.lstrip(b"\0")  # .xz may have padding between frames
                if not packed:
                    continue
                self._frame = self._new_frame()
            try:
                self._ready = memoryview(self._frame.decompress(packed))
            except self._error as error:
                # Neither library has a separate exception for this.
                if "memory" in str(error).lower():
                    raise _WindowTooLarge from error
                raise EOFError(str(error)) from error
            self._packed = self._frame.unused_data
            if self._frame.eof:
                self._frame = None
        size = min(len(buffer), len(self._ready))
        buffer[:size], self._ready = self._ready[:size], self._ready[size:]
        return size


class _WindowTooLarge(Exception):
    """A frame needs more than `_MAX_WINDOW_BYTES` of memory to be unpacked."""


def _unpacked_xz(file: IO[bytes]) -> _Unpacked:
    new_frame = partial(lzma.LZMADecompressor, memlimit=_MAX_WINDOW_BYTES)
    return _Unpacked(file, new_frame, lzma.LZMAError)


def _unpacked_zst(file: IO[bytes]) -> _Unpacked:
    try:
        import zstandard
    except ImportError:
        raise MissingExtraError("reading .zst files", "train") from None
    new_frame = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW_BYTES).decompressobj
    return _Unpacked(file, new_frame, zstandard.ZstdError)


@contextmanager
def as_data_error(path: str | Path, number: int | None = None) -> Iterator[None]:
    """Turn the exceptions of reading a broken file into a DataError.

    Args:
        path: its name in the message.
        number: lines read so far.

    Raises:
        DataError: instead of the exception.
    """
    try:
        yield
    except _WindowTooLarge as error:
        raise DataError(
            f"{path} needs more than {_MAX_WINDOW_BYTES >> 20} MiB of memory to be unpacked. Pack "
            "it again with a smaller window: xz -9 or zstd -19, without --long."
        ) from error
    except (EOFError, OSError, lzma.LZMAError, zlib.error) as error:
        after = f" after line {number}" if number else ""
        suffix = Path(path).suffix
        if not number and _is_plain(path):
            raise DataError(
                f"{path} is not compressed, though its name ends in {suffix}. Rename it: "
                f"mv {in_shell(path)} {in_shell(Path(path).with_suffix(''))}"
            ) from error
        if not number and (packer := _other_packer(path)):
            raise DataError(
                f"{path} is packed with {packer}, though its name ends in {suffix}. "
                f"{_unpacking(packer, path)}"
            ) from error
        raise DataError(f"{path} is damaged{after}: {error}. Copy or download it again.") from error


def _is_plain(path: str | Path) -> bool:
    """Whether a file with the name of an archive is text: UTF-8, and not begun as any archive."""
    with suppress(OSError, UnicodeDecodeError):
        if not is_compressed(path):
            return False
        with open(path, "rb") as file:
            head = file.read(_HEAD_BYTES)
        if not head or _PACKED.match(head) or b"\0" in head:
            return False
        codecs.getincrementaldecoder("utf-8")().decode(head)
        return True
    return False


def _other_packer(path: str | Path) -> str | None:
    """The format of an archive that has the suffix of another one; None if it has not."""
    suffix = Path(path).suffix.lower()
    with suppress(OSError):
        if is_compressed(path):
            with open(path, "rb") as file:
                packed = _PACKED.match(file.read(_HEAD_BYTES))
            if packed and not _UNPACK[suffix].startswith(f"{packed.lastgroup} "):
                return packed.lastgroup
    return None


def _decoded(block: bytes, path: str | Path, n_before: int, *, is_ascii: bool) -> list[str]:
    r"""The lines of a block of bytes, the last one without its `\n`.

    Args:
        block: the bytes.
        path: their file.
        n_before: number of lines before them.
        is_ascii: all characters of these lines are ASCII.

    Raises:
        DataError: the block is not UTF-8.
    """
    try:
        text = block.decode("utf-8")
    except UnicodeDecodeError as error:
        number = n_before + block.count(b"\n", 0, error.start) + 1
        line = block[block.rfind(b"\n", 0, error.start) + 1 : error.start + 1]
        is_ascii = is_ascii and block[: error.start].isascii()
        raise DataError(not_utf8(path, number, line, is_ascii=is_ascii)) from error
    if n_before == 0:
        text = text.removeprefix("\ufeff")
    lines = text.split("\n")
    return [line.removesuffix("\r") for line in lines] if "\r" in text else lines


def not_utf8(path: str | Path, number: int, line: bytes, *, is_ascii: bool) -> str:
    """The message for a line that is not UTF-8: its first wrong byte, and what to do.

    Args:
        path: the file.
        number: the line's number.
        line: the line up to and including that byte.
        is_ascii: all characters of the file before the wrong byte are ASCII.
    """
    remedy = (
        f"Convert the file: {_to_utf8('ENCODING', path)}, where ENCODING is what it was saved "
        "in, such as cp1252, gb18030 or shift_jis."
    )
    if not is_ascii:
        others = _piped("grep -naxv '.*'", path)
        remedy = (
            "What stands before it is UTF-8, and would be damaged if the whole file were "
            f"converted. Convert or correct only the lines that this lists: {others}"
        )
    return (
        f"{shown_name(path)} line {number}: must be UTF-8, but byte {len(line)} of the line is "
        f"0x{line[-1]:02X}. {remedy}"
    )


def require_single_bytes(head: bytes, path: str | Path) -> None:
    """Check by the first bytes of a file that it is not compressed, UTF-16 or UTF-32.

    Without a byte order mark, English text in them is valid UTF-8 full of NUL characters.

    Raises:
        DataError: it is; gives the command that converts it.
    """
    if packed := _PACKED.match(head):
        raise DataError(
            f"{shown_name(path)} must be text, but is packed with {packed.lastgroup}. "
            f"{_unpacking(packed.lastgroup, path)}"
        )
    encoding = _wide_encoding(head)
    if encoding:
        raise DataError(
            f"{shown_name(path)} must be UTF-8, but its first bytes are {encoding.upper()}. "
            f"Convert the file: {_to_utf8(encoding, path)}"
        )


def require_line_feeds(head: bytes, path: str | Path) -> None:
    """Check by the beginning of a file that its lines do not end in carriage returns only.

    Raises:
        DataError: they do, as on old Macs, so all of it would be one line.
    """
    if b"\n" in head or head.rstrip(b"\r").count(b"\r") < _FEWEST_RETURNS:
        return
    command = _conversion(r"tr '\r' '\n'", path, mark="lf")
    raise DataError(
        f"{shown_name(path)} must have line feeds at the ends of its lines, but has carriage "
        f"returns, as on old Macs. Convert it: {command}"
    )


def _unpacking(packer: str | None, path: str | Path) -> str:
    """What to do with a packed file whose name does not say so."""
    if str(path) != STDIN:
        return (
            "Unpack it, or pack the text alone with gzip, xz or zstd and let the name end in .gz, "
            ".xz or .zst."
        )
    is_stream = packer in ("gzip", "xz", "zstd", "bzip2")
    return f"Unpack it first: {packer} -dc" if is_stream else "Unpack it first."


def _wide_encoding(head: bytes) -> str:
    """`utf-16`, `utf-32` or one of their byte orders; "" for any other encoding."""
    if head.startswith((codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)):
        return "utf-32"
    if head.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    n = min(len(head), _HEAD_BYTES) // 4
    zeros = [head[start : 4 * n : 4].count(0) for start in range(4)]
    if n < 8 or not any(zeros):
        return ""
    if not zeros[0]:
        if zeros[2] == zeros[3] == n:
            return "utf-32le"
        return "utf-16le" if not zeros[2] and zeros[1] + zeros[3] >= n else ""
    if not zeros[3]:
        if zeros[0] == zeros[1] == n:
            return "utf-32be"
        return "utf-16be" if not zeros[1] and zeros[0] + zeros[2] >= n else ""
    return ""


def _to_utf8(encoding: str, path: str | Path) -> str:
    """The command that writes a copy of a file in UTF-8."""
    return _conversion(f"iconv -f {encoding} -t utf-8", path, mark="utf-8")


def _conversion(command: str, path: str | Path, *, mark: str) -> str:
    """A command that writes a converted copy of a file: `command < train.en > train.MARK.en`."""
    if str(path) == STDIN:
        return command
    place = Path(path)
    plain = place.with_suffix("") if place.suffix.lower() in _UNPACK else place
    copy = plain.with_name(f"{plain.stem}.{mark}{plain.suffix}")
    return f"{_piped(command, path, reads='< ')} > {in_shell(copy)}"


def _piped(command: str, path: str | Path, *, reads: str = "") -> str:
    """A command that reads a file, which is unpacked first if necessary."""
    unpack = _UNPACK.get(Path(path).suffix.lower())
    if str(path) == STDIN:
        return command
    name = in_shell(path)
    return f"{unpack} {name} | {command}" if unpack else f"{command} {reads}{name}"
