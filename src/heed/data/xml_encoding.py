"""The text of an XML file, in any encoding Python supports, as UTF-8.

The encoding is found as in https://www.w3.org/TR/xml/#sec-guessing.
"""

import codecs
import re
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from heed.data.lines import read_chunks
from heed.errors import DataError

_HEAD_BYTES = 1024
_MAX_PENDING_BYTES = 1 << 20
_BYTE_ORDER_MARKS = {  # the longer ones first: that of UTF-32 begins like that of UTF-16
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
    b"<\0\0\0": "utf-32-le",
    b"\0\0\0<": "utf-32-be",
    b"<\0": "utf-16-le",
    b"\0<": "utf-16-be",
}
_DECLARATION = re.compile(r"""<\?xml\s[^>]*?\bencoding\s*=\s*["']([A-Za-z][\w.:-]*)["']""", re.A)
# The real encodings of files with these names; each is a superset. Source: encoding.spec.whatwg.org
_SUPERSETS = {"gb2312": "gb18030", "gbk": "gb18030", "shift_jis": "cp932", "euc_kr": "cp949"}
# Python lists these as encodings, but no file is written in them.
_NOT_OF_FILES = {"idna", "punycode", "unicode-escape", "raw-unicode-escape"}


def read_xml(path: str | Path) -> Iterator[bytes]:
    """The text of an XML file as UTF-8 without a byte order mark, some 64 KiB at a time.

    Raises:
        DataError: the file is missing or damaged; declares an encoding that Python does not know;
            or has bytes that are invalid in its encoding: names the line.
    """
    chunks = read_chunks(path)
    head = b""
    for chunk in chunks:
        head += chunk
        if len(head) >= _HEAD_BYTES:
            break
    name = encoding_of(head)
    decoder = _decoder(name, path)
    n_newlines = 0
    for number, chunk in enumerate(chain((head,), chunks, (b"",))):
        try:
            text = decoder.decode(chunk, final=not chunk)
            if number == 0:
                text = text.removeprefix("\ufeff")
            yield text.encode()
        except (UnicodeDecodeError, UnicodeEncodeError) as error:
            line = n_newlines + _newlines_before(error) + 1
            raise DataError(
                f"{path} line {line}: must be {name}, but is not: {error.reason}. If the file is "
                "in another encoding, name it at its beginning, for example: "
                '<?xml version="1.0" encoding="windows-1252"?>'
            ) from error
        n_newlines += text.count("\n")
        if len(decoder.getstate()[0]) > _MAX_PENDING_BYTES:  # UTF-7 waits for the end of a run
            raise DataError(
                f"{path} line {n_newlines + 1}: a run of {name} must have at most "
                f"{_MAX_PENDING_BYTES} bytes, but has more. Convert the file to UTF-8."
            )


def encoding_of(head: bytes) -> str:
    """The encoding that the first bytes of an XML file show or declare."""
    for mark, encoding in _BYTE_ORDER_MARKS.items():
        if head.startswith(mark):
            return encoding
    for readable in ("latin-1", "cp037", "cp1026"):  # the latter two: EBCDIC
        if declared := _DECLARATION.match(head[:_HEAD_BYTES].decode(readable)):
            name = declared[1]
            # A file in UTF-16 would not be readable so: it was converted, its declaration was not.
            was_converted = name.lower().replace("_", "-").startswith(("utf-16", "utf-32"))
            return "utf-8" if was_converted else name
    return "utf-8"


def codec_of(name: str) -> str | None:
    """Python's codec for files under the name of an encoding; None if there is none."""
    try:
        " ".encode(name)  # refuses codecs that do not encode text, such as zlib
        codec = codecs.lookup(name).name
    except (LookupError, UnicodeError):
        return None
    return None if codec in _NOT_OF_FILES else _SUPERSETS.get(codec, codec)


def _decoder(name: str, path: str | Path) -> codecs.IncrementalDecoder:
    codec = codec_of(name)
    if codec is None:
        raise _unknown(name, path)
    return codecs.getincrementaldecoder(codec)()


def _unknown(name: str, path: str | Path) -> DataError:
    return DataError(
        f"{path} line 1: encoding must be one that Python knows, but is {name}. Convert the file "
        'to UTF-8 and write encoding="UTF-8" there.'
    )


def _newlines_before(error: UnicodeDecodeError | UnicodeEncodeError) -> int:
    """Line ends of a chunk before the place that cannot be converted."""
    if isinstance(error, UnicodeEncodeError):
        return error.object.count("\n", 0, error.start)
    before = error.object[: error.start]
    return codecs.decode(before, error.encoding, "ignore").count("\n")
