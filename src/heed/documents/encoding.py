"""Bytes of a text file to characters and back: UTF-8, or UTF-16 that begins with its mark."""

import codecs
from collections.abc import Callable
from typing import TypeVar

from heed.errors import DataError

T = TypeVar("T")

_UTF_32 = (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE)  # the first begins as UTF-16 does
_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


def decode(name: str, data: bytes) -> tuple[str, str, bytes]:
    """The text of a file, its encoding and its byte order mark.

    Raises:
        DataError: it is not UTF-8, nor UTF-16 with a byte order mark; names the first wrong byte.
    """
    if data.startswith(_UTF_32):
        raise DataError(
            f"{name} must be UTF-8, or UTF-16 with a byte order mark, but begins with the mark of "
            "UTF-32. Save the file as UTF-8."
        )
    mark, encoding = next(
        ((mark, encoding) for mark, encoding in _MARKS if data.startswith(mark)), (b"", "utf-8")
    )
    try:
        return data[len(mark) :].decode(encoding), encoding, mark
    except UnicodeDecodeError as error:
        place = error.start + len(mark)
        raise DataError(
            f"{name} must be UTF-8, or UTF-16 with a byte order mark, but byte {place + 1} "
            f"(0x{data[place]:02x}) does not fit {encoding.upper()}. Save the file as UTF-8."
        ) from None


def read(name: str, data: bytes, split: Callable[[str], T]) -> tuple[T, str, bytes]:
    """What `split` makes of the text of a file, the file's encoding and its byte order mark.

    Raises:
        DataError: of `decode`, or of `split`; names the file.
    """
    text, encoding, mark = decode(name, data)
    try:
        return split(text), encoding, mark
    except DataError as error:
        raise DataError(f"{name}: {error}") from None
