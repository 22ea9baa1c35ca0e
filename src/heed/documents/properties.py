r"""Texts of programs as keys and values: Java's `.properties`, Apple's `.strings`.

Values are translated; keys, comments and all else are kept. In `.properties`, other characters than
ASCII are written as `\u00e9`, which every version of Java reads, unless the file shows that it is
in UTF-8. A value with `{0}` is a pattern of MessageFormat, in which an apostrophe is doubled.

Source: the Java SE API, java.util.Properties.load and java.text.MessageFormat; Apple, Resource
Programming Guide, "String Resources".
"""

import re
from functools import partial

from heed.documents.assembly import Assembly
from heed.documents.fields import PLAIN, format_of
from heed.documents.message import Message
from heed.documents.segment import OnRead, ignore
from heed.errors import DataError

_CONTINUED = r"\\\r?\n[ \t\f]*+"
_BLANKS = rf"(?:[ \t\f]|{_CONTINUED})*+"
_PROPERTY = re.compile(
    r"^[ \t\f]*+(?:[#!][^\n]*+"
    rf"|(?:[^\\\s=:#!]|\\[^\r\n]|{_CONTINUED})(?:[^\\\s=:]|\\[^\r\n]|{_CONTINUED})*+"
    rf"{_BLANKS}(?:[=:]{_BLANKS})?(?P<value>(?:[^\\\r\n]|\\[^\r\n]|{_CONTINUED})*+))",
    re.M,
)
_ESCAPE = re.compile(rf"{_CONTINUED}|\\u([0-9a-fA-F]{{4}})|\\(.)", re.S)
_PATTERN = re.compile(r"\{\d")
_PAIR = re.compile(
    r"/\*.*?(?:\*/|\Z)|//[^\n]*+"
    r"|(?:(?<!\\)\"(?:[^\"\\]|\\.)*+\"|(?<![\w.-])[\w.-]++)\s*+=\s*+(?P<value>\"(?:[^\"\\]|\\.)*+\")\s*+;",
    re.S,
)
_APPLE_ESCAPE = re.compile(r"\\[uU]([0-9a-fA-F]{4})|\\(.)", re.S)
_LETTERS = {"n": "\n", "t": "\t", "r": "\r", "f": "\f"}
_WRITTEN = {sign: f"\\{letter}" for letter, sign in _LETTERS.items()} | {"\\": "\\\\"}
_LAST_OF_LATIN_1 = "\xff"


def split_properties(text: str, on_read: OnRead = ignore) -> Assembly:
    """The values of a file of Java's properties; `on_read` may stop this."""
    is_ascii = max(text, default="") <= _LAST_OF_LATIN_1
    write = partial(_property, is_ascii=is_ascii)
    assembly = Assembly(text, on_read=on_read)
    for match in _PROPERTY.finditer(text):
        raw = match["value"]
        value = None if raw is None else _read(raw, _ESCAPE)
        if value is not None:
            format = format_of("java") if _PATTERN.search(value) else PLAIN
            assembly.replace(*match.span("value"), Message.of(value, format, write, raw))
    assembly.keep_until(len(text))
    return assembly


def split_strings(text: str, on_read: OnRead = ignore) -> Assembly:
    """The values of a file of Apple's strings; `on_read` may stop this.

    Raises:
        DataError: it has neither pairs of key and value nor comments, as a binary file.
    """
    assembly = Assembly(text, on_read=on_read)
    found = False
    for match in _PAIR.finditer(text):
        found = True
        raw = match["value"]
        value = None if raw is None else _read(raw[1:-1], _APPLE_ESCAPE)
        if value is not None:
            message = Message.of(value, format_of("objc"), _string, raw)
            assembly.replace(*match.span("value"), message)
    if text.strip() and not found:
        raise DataError('The file must have lines such as "key" = "text";, but has none.')
    assembly.keep_until(len(text))
    return assembly


def _read(raw: str, escape: re.Pattern[str]) -> str | None:
    """The text of a value; None if it is not text, but half of a character."""
    text = escape.sub(_character, raw)
    try:
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        return None


def _character(match: re.Match[str]) -> str:
    code, letter = match.groups()
    if code:
        return chr(int(code, 16))
    return _LETTERS.get(letter, letter) if letter else ""


def _property(text: str, *, is_ascii: bool) -> str:
    written = "".join(_WRITTEN.get(character, character) for character in text)
    if is_ascii:
        written = "".join(
            character if character.isascii() else _in_ascii(character) for character in written
        )
    return f"\\{written}" if written[:1] in (" ", "=", ":") else written  # Java skips these


def _in_ascii(character: str) -> str:
    """A character as one or two codes of UTF-16."""
    data = character.encode("utf-16-be", "surrogatepass")
    return "".join(
        f"\\u{data[place : place + 2].hex().upper()}" for place in range(0, len(data), 2)
    )


def _string(text: str) -> str:
    written = "".join(_WRITTEN.get(character, character) for character in text)
    return '"' + written.replace('"', '\\"') + '"'
