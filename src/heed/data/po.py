"""Translated messages of a gettext catalog (.po).

Source: the GNU gettext manual, section 3 (the format of PO files).
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from heed.data.lines import read_lines
from heed.data.xml_segments import rank_of
from heed.errors import DataError

_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"\s*')
_KEYWORD = re.compile(r"(msgctxt|msgid_plural|msgid|msgstr(?:\s*\[\s*(\d+)\s*\])?|domain)\s*(?=\")")
_BEGINNINGS = ("domain", "msgctxt", "msgid")
_LANGUAGE = re.compile(r"^Language:[ \t]*([\w@.-]+)", re.M)
_ESCAPE = re.compile(r"((?:\\[0-7]{1,3}|\\x[0-9a-fA-F]{1,2})+)|\\(.)", re.S)
_CODE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2}))")
ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
"""Letters behind a backslash, and the characters that they stand for."""

_MOST_FORMS = 4
"""Of a language whose first plural form is that for 1: Arabic has six, the first for 0."""


class Message(NamedTuple):
    """A message and its translation, with the line on which it begins."""

    src: str
    tgt: str
    line: int


def read_messages(path: str | Path, target_lang: str) -> Iterator[Message]:
    """The translated messages of a catalog; fuzzy and obsolete ones are left out.

    Of a message with a plural, the singular is translated by the first form and the plural by the
    last one.

    Raises:
        DataError: the file is missing, damaged, not a catalog, or in another language.
    """
    entry = _Entry()
    for number, line in enumerate(read_lines(path), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            # A comment stands before the message that it is about, hardly ever inside it.
            if entry.is_ended:
                yield from entry.messages(path, target_lang)
                entry = _Entry()
            entry.is_fuzzy |= text.startswith("#,") and "fuzzy" in text
            continue
        while text:
            keyword = _KEYWORD.match(text)
            if keyword:
                name = "".join(keyword[0].split())
                if name in _BEGINNINGS and entry.is_ended:
                    yield from entry.messages(path, target_lang)
                    entry = _Entry()
                entry.begin(name, number)
                text = text[keyword.end() :]
            string = _STRING.match(text)
            if string is None or not entry.name:
                raise DataError(
                    f"{path} line {number}: must be a keyword, such as msgid, and text in quotes, "
                    f"but is {line.strip()[:40]!r}."
                )
            entry.texts[entry.name] += unescaped(string[1])
            text = text[string.end() :]
    if entry.texts:
        yield from entry.messages(path, target_lang)


def unescaped(text: str) -> str:
    """The text of a string between its quotes."""
    return _ESCAPE.sub(_character, text)


def _character(match: re.Match[str]) -> str:
    codes, letter = match.groups()
    if letter:
        return ESCAPED.get(letter, letter)
    data = bytes(
        int(octal, 8) & 0xFF if octal else int(hexadecimal, 16)
        for octal, hexadecimal in _CODE.findall(codes)
    )
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


class _Entry:
    """A message as it is read."""

    def __init__(self) -> None:
        self.name = ""
        self.texts: dict[str, str] = {}
        self.is_fuzzy = False
        self._line = 0

    @property
    def is_ended(self) -> bool:
        """Whether its translation was read."""
        return self.name.startswith("msgstr")

    def begin(self, name: str, line: int) -> None:
        """A keyword begins."""
        self.name = name
        self.texts[name] = ""
        self._line = self._line or line

    def messages(self, path: str | Path, target_lang: str) -> Iterator[Message]:
        """The pairs of the entry.

        Raises:
            DataError: it is the header, and names another language.
        """
        source = self.texts.get("msgid", "")
        if not source:
            _require_language(path, self.texts.get("msgstr", ""), target_lang)
            return
        if self.is_fuzzy:
            return
        forms = [text for name, text in self.texts.items() if name.startswith("msgstr[")]
        pairs = [(source, self.texts.get("msgstr", ""))]
        if forms:
            pairs = [(self.texts.get("msgid_plural", ""), forms[-1])]
            if 1 < len(forms) <= _MOST_FORMS:
                pairs.insert(0, (source, forms[0]))
        for src, tgt in pairs:
            if src.strip() and tgt.strip():
                yield Message(src, tgt, self._line)


def _require_language(path: str | Path, header: str, target_lang: str) -> None:
    found = _LANGUAGE.search(header)
    if found and target_lang and rank_of(found[1], target_lang) is None:
        raise DataError(
            f"{path} must be translated into {target_lang}, but its header says Language: "
            f"{found[1]}."
        )
