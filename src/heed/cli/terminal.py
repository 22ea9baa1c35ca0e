"""Print text for people, without characters that control the terminal.

Every command writes messages through `echo` and data through `LineWriter` (`streams.py`), which
escapes only output to a terminal.
"""

import codecs
import io
import json
import os
import sys
from typing import Any, NoReturn, TextIO

import click

from heed.errors import DataError

KEPT = "\n\t"
"""Control characters that are written unchanged."""

# C0; DEL and C1; bidirectional controls, which reorder the characters around them; surrogates.
_HIDDEN = [
    *range(0x20),
    *range(0x7F, 0xA0),
    0x061C,
    *range(0x200E, 0x2010),
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
    *range(0xD800, 0xE000),
]
# Above C0 the spelling is JSON's, so that escaped JSON remains the same JSON.
_SPELLED = {
    code: f"\\x{code:02x}" if code < 0x20 else f"\\u{code:04x}"
    for code in _HIDDEN
    if chr(code) not in KEPT
}


def visible(text: str) -> str:
    r"""`text` with control and bidirectional characters as `\x1b` or `\u202e`.

    Line breaks and tabs are kept.
    """
    return text if text.isprintable() and text.isascii() else text.translate(_SPELLED)


def echo(text: str = "", *, err: bool = False, nl: bool = True, is_drawing: bool = False) -> None:
    """Write a message for the user; one that standard error cannot take is dropped.

    Args:
        text: the message; its control characters are made visible.
        err: write to standard error instead of standard output.
        nl: end the line.
        is_drawing: `text` contains heed's color codes, and otherwise only visible characters.
    """
    try:
        click.echo(text if is_drawing else visible(text), err=err, nl=nl)
    except OSError:
        if not err:
            raise
        discard(sys.stderr)


class _Closed(io.RawIOBase):
    """A standard stream that the caller has closed (`<&-`)."""

    def __init__(self, message: str) -> None:
        self._message = message

    def readable(self) -> bool:
        return True

    def writable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> NoReturn:
        raise DataError(self._message)

    def write(self, data: Any) -> NoReturn:
        raise DataError(self._message)


def replace_closed_streams() -> None:
    """Replace closed standard streams.

    Reading or writing then raises `DataError`; messages to a closed standard error are dropped.
    """
    if sys.stdin is None:
        message = "standard input is closed: there is nothing to read. Give a file or a pipe."
        sys.stdin = io.TextIOWrapper(_Closed(message), encoding="utf-8")
    if sys.stdout is None:
        message = "standard output is closed: nothing can be written to it."
        sys.stdout = io.TextIOWrapper(
            _Closed(message),
            encoding="utf-8",
            write_through=True,
        )
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115 - until the end
    # Otherwise the next file opened would get the number of a standard stream, and C libraries
    # would write their messages into it.
    while (descriptor := os.open(os.devnull, os.O_RDWR)) <= 2:
        pass
    os.close(descriptor)


def discard(stream: TextIO) -> None:
    """Drop what is written to a stream from now on, because nobody can read it any more."""
    descriptor = os.open(os.devnull, os.O_WRONLY)
    os.dup2(descriptor, stream.fileno())
    os.close(descriptor)


def write_any_character() -> None:
    r"""Let standard output escape what its encoding lacks as JSON does: `▁` is `\u2581` in Latin-1.

    So `--json` prints the same JSON in every locale. Lines of data are always UTF-8.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        codecs.register_error("json", _escaped)
        sys.stdout.reconfigure(errors="json")


def _escaped(error: UnicodeError) -> tuple[str, int]:
    assert isinstance(error, UnicodeEncodeError)
    return json.dumps(error.object[error.start : error.end])[1:-1], error.end
