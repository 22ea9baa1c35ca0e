"""Bytes of a text file to characters and back.

The byte order mark decides the encoding; without one, it is UTF-8 or the declared one.
"""

import codecs
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from heed.data.po import charset_of
from heed.data.xml_encoding import codec_of, encoding_of
from heed.documents.segment import SIGNS_AN_ELEMENT, OnRead, ignore
from heed.errors import DataError

T = TypeVar("T")

_UTF_32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)  # the first begins like UTF-16's mark
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_META = re.compile(rb"<meta\s[^>]*?\bcharset\s*=\s*[\"']?\s*([\w.:-]+)", re.I)
_SCANNED_BYTES = 1024
_XML = ("xml", "xhtml", "xlf", "xliff", "sdlxliff", "mqxliff", "resx", "resw", "ts", "ncx")
_SIGNS = "<&%{\\\n"
# Encoding Standard, section 4.2: browsers use these encodings for these names.
_OF_PAGES = {"iso8859-1": "cp1252", "ascii": "cp1252", "iso8859-9": "cp1254"}


@dataclass(frozen=True, slots=True)
class Encoding:
    """The encoding of a file.

    Attributes:
        name: a Python codec.
        mark: the byte order mark, if there is one.
        has_references: whether a character that the encoding lacks can be written as `&#8364;`.
    """

    name: str = "utf-8"
    mark: bytes = b""
    has_references: bool = False

    def encode(self, text: str) -> bytes:
        """The bytes of a file with this text."""
        errors = "xmlcharrefreplace" if self.has_references else "strict"
        return self.mark + text.encode(self.name, errors)


def decode(name: str, data: bytes, ending: str = "") -> tuple[str, Encoding]:
    """The text of a file, and its encoding.

    A declaration counts only if the bytes are not UTF-8, or only ASCII: files converted to UTF-8
    often still declare the old encoding. A gettext catalog is written as UTF-8.

    Args:
        name: the file's name, for errors.
        data: its bytes.
        ending: the ending of its name, which determines where an encoding is declared.

    Raises:
        DataError: it is not in its encoding, or has a NUL; names the first wrong place.
    """
    if data.startswith(_UTF_32):
        raise DataError(
            f"{name} must be UTF-8, or UTF-16 with a byte order mark, but begins with the mark of "
            "UTF-32. Save the file as UTF-8."
        )
    mark, encoding = next(
        ((mark, encoding) for mark, encoding in _MARKS if data.startswith(mark)), (b"", "")
    )
    declared = "" if mark else _declared(ending, data)
    if declared and _is_written_in_utf_8(data):
        declared = ""
    try:
        text = data[len(mark) :].decode(encoding or declared or "utf-8")
    except UnicodeDecodeError as error:
        place = error.start + len(mark)
        what = f"{declared}, which it declares" if declared else ""
        raise DataError(
            f"{name} must be {what or 'UTF-8, or UTF-16 with a byte order mark'}, but byte "
            f"{place + 1} (0x{data[place]:02x}) is invalid in "
            f"{'that encoding' if what else (encoding or 'utf-8').upper()}. Save the file as UTF-8."
        ) from None
    _require_no_nul(name, text, has_mark=bool(mark))
    if ending == "po" or not declared:
        return text, Encoding(encoding or "utf-8", mark)
    return text, Encoding(declared, has_references=True)


def _require_no_nul(name: str, text: str, *, has_mark: bool) -> None:
    """Refuse NUL: English text in UTF-16 is valid UTF-8, with a NUL in every second place."""
    place = text.find("\0")
    if place < 0:
        return
    if has_mark:
        raise DataError(f"{name} must be text, but character {place + 1} is NUL. Remove it.")
    raise DataError(
        f"{name} must be text, but character {place + 1} is NUL, so it looks like UTF-16 without "
        "a byte order mark. Save the file as UTF-8, or as UTF-16 with a byte order mark."
    )


def _is_written_in_utf_8(data: bytes) -> bool:
    """Whether bytes are valid UTF-8 with more than ASCII; bytes with a NUL count as UTF-16."""
    if data.isascii() or b"\0" in data:
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _declared(ending: str, data: bytes) -> str:
    """The codec that a file declares; empty if there is none, Python lacks it, or it is UTF-8."""
    found = ""
    is_page = False
    if ending in _XML:
        found = encoding_of(data)
    if ending in ("html", "htm", "xhtml") and found in ("", "utf-8"):
        is_page = True
        match = _META.search(data[:_SCANNED_BYTES])
        # A file in which this declaration is readable as ASCII cannot be UTF-16.
        found = match[1].decode() if match and not match[1].lower().startswith(b"utf-16") else ""
    if ending == "properties":  # Java's encoding, unless the file is in UTF-8
        found = "latin-1"
    if ending == "po":
        found = charset_of(data)
    codec = codec_of(found)
    if codec is None or codec == "utf-8":
        return ""
    return _OF_PAGES.get(codec, codec) if is_page else codec


def read(
    name: str,
    data: bytes,
    split: Callable[[str], T],
    ending: str = "",
    on_read: OnRead = ignore,
) -> tuple[T, Encoding]:
    """Apply `split` to the text of a file; return its result and the file's encoding.

    Args:
        name: the file's name, for errors.
        data: its bytes.
        split: receives the text.
        ending: the ending of its name.
        on_read: receives a number of elements before `split` is called, and may refuse it.

    Raises:
        DataError: from `decode` or `split`; names the file.
    """
    text, encoding = decode(name, data, ending)
    on_read(0, sum(map(text.count, _SIGNS)) // SIGNS_AN_ELEMENT)
    try:
        return split(text), encoding
    except DataError as error:
        raise DataError(f"{name}: {error}") from None
