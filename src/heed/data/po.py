"""The messages of a gettext catalog (.po), and the pairs that are translated.

Source: the GNU gettext manual, section 3 (the format of PO files).
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from heed.data.lines import read_chunks, read_lines
from heed.data.xml_encoding import codec_of
from heed.data.xml_segments import rank_of
from heed.errors import DataError

_TOKEN = re.compile(
    r"\s++|(?P<comment>#[^\n]*+)|\"(?P<string>(?:[^\"\\\n]|\\.)*+)\""
    r"|(?P<keyword>domain|msgctxt|msgid_plural|msgid|msgstr(?:[ \t]*\[\s*\d+\s*\])?)(?=[\s\"]|\Z)"
)
_BEGINNINGS = ("domain", "msgctxt", "msgid")
_CHARSET = re.compile(rb"^\"Content-Type:[^\"\n]*\bcharset=([\w.:-]+)", re.M)
_LANGUAGE = re.compile(r"^Language:[ \t]*([\w@.-]+)", re.M)
_ESCAPE = re.compile(r"((?:\\[0-7]{1,3}|\\x[0-9a-fA-F]{1,2})+)|\\(.)", re.S)
_CODE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2}))")
ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
"""Letters behind a backslash, and the characters that they stand for."""

_MOST_FORMS = 4
"""Of a language whose first plural form is that for 1: Arabic has six, the first for 0."""


@dataclass(slots=True)
class Entry:
    """A message.

    Attributes:
        flags: such as `fuzzy, c-format`.
        texts: its texts by keyword.
        places: for each keyword, its start and the end of its text in the catalog.
    """

    flags: str = ""
    texts: dict[str, str] = field(default_factory=dict)
    places: dict[str, tuple[int, int]] = field(default_factory=dict)

    def translations(self) -> dict[str, tuple[int, int]]:
        """The places of its translations."""
        return {name: place for name, place in self.places.items() if name.startswith("msgstr")}

    def is_to_fill(self) -> bool:
        """Whether it has a source, and no translation."""
        return bool(self.texts.get("msgid")) and not any(
            self.texts[name] for name in self.translations()
        )

    def is_header(self) -> bool:
        """Whether it describes the catalog."""
        return self.texts.get("msgid") == "" and "msgctxt" not in self.texts

    def pairs(self) -> list[tuple[str, str]]:
        """Its sources with their translations, also empty ones.

        Of a message with a plural, the singular is translated by the first form and the plural by
        the last one.
        """
        source = self.texts.get("msgid", "")
        forms = [self.texts[name] for name in self.translations() if name != "msgstr"]
        if not forms:
            return [(source, self.texts.get("msgstr", ""))]
        plural = self.texts.get("msgid_plural", ""), forms[-1]
        return [(source, forms[0]), plural] if 1 < len(forms) <= _MOST_FORMS else [plural]


def entries(text: str) -> Iterator[Entry]:
    """The messages of a catalog. Comments between them belong to the next one.

    Raises:
        DataError: a line is malformed; names it.
    """
    entry = Entry()
    flags: list[str] = []
    keyword = ""
    parts: list[str] = []  # of its text
    place = 0
    while place < len(text):
        match = _TOKEN.match(text, place)
        is_lost = match is None or (match["string"] is not None and not keyword)
        if match is None or is_lost or (match["comment"] and _line(text, place)[:1] != "#"):
            raise _malformed(text, place)
        place = match.end()
        if comment := match["comment"]:
            flags = [] if comment.startswith("#~") else flags
            flags += [comment[2:]] if comment.startswith("#,") else []
        elif match["keyword"]:
            if keyword:
                entry.texts[keyword] = "".join(parts)
            keyword, parts = "".join(match["keyword"].split()), []
            if keyword in _BEGINNINGS and (not entry.texts or entry.translations()):
                if entry.texts:
                    yield entry
                entry = Entry(",".join(flags))
                flags = []
            entry.texts[keyword] = ""
            entry.places[keyword] = match.span()
        elif (string := match["string"]) is not None:
            parts.append(unescaped(string))
            entry.places[keyword] = (entry.places[keyword][0], place)
    if keyword:
        entry.texts[keyword] = "".join(parts)
    yield entry


def _line(text: str, place: int) -> str:
    """The line around a place, without the blanks at its ends."""
    end = text.find("\n", place)
    return text[text.rfind("\n", 0, place) + 1 : end if end >= 0 else len(text)].strip()


def _malformed(text: str, place: int) -> DataError:
    return DataError(
        f"The catalog is malformed at line {text.count(chr(10), 0, place) + 1}: a line must be a "
        "comment, a keyword such as msgid with a string, or a string, but is "
        f"{_line(text, place)!r}."
    )


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


class Message(NamedTuple):
    """A source and its translation, with the line on which the message begins."""

    src: str
    tgt: str
    line: int


def read_messages(path: str | Path, source_lang: str, target_lang: str) -> Iterator[Message]:
    """The translated messages of a catalog; fuzzy and obsolete ones are left out.

    If its header says that it is translated into the source language, the sides are exchanged.

    Raises:
        DataError: the file is missing, damaged, not a catalog, or in another language.
    """
    text = _text_of(path)
    line, latest, is_reversed = 1, 0, False
    try:
        for entry in entries(text):
            if entry.is_header():
                header = entry.texts.get("msgstr", "")
                is_reversed = _is_into(source_lang, header) and not _is_into(target_lang, header)
                if not is_reversed:
                    require_language(header, target_lang)
                continue
            begin = min((first for first, _ in entry.places.values()), default=latest)
            line, latest = line + text.count("\n", latest, begin), begin
            for src, tgt in [] if "fuzzy" in entry.flags else entry.pairs():
                if src.strip() and tgt.strip():
                    yield Message(tgt, src, line) if is_reversed else Message(src, tgt, line)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None


def names_language(path: str | Path) -> bool:
    """Whether the header of a catalog names the language of its translations.

    Raises:
        DataError: the file is missing, damaged or not a catalog.
    """
    headers = (each.texts.get("msgstr", "") for each in entries(_text_of(path)) if each.is_header())
    return bool(_LANGUAGE.search(next(headers, "")))


def charset_of(data: bytes) -> str:
    """The encoding that the header of a catalog declares; "" if it declares none."""
    found = _CHARSET.search(data)
    return found[1].decode() if found else ""


def _text_of(path: str | Path) -> str:
    """The text of a catalog in UTF-8 or in the encoding that it declares.

    Raises:
        DataError: the file is missing, or in another encoding.
    """
    data = b"".join(read_chunks(path))
    codec = codec_of(charset_of(data))
    if codec not in (None, "utf-8"):
        try:
            data.decode()
        except UnicodeDecodeError:
            return _decoded(data, codec, path).replace("\r\n", "\n")
    return "\n".join(read_lines(path))


def _decoded(data: bytes, codec: str, path: str | Path) -> str:
    try:
        return data.decode(codec)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{path} line {line}: must be {codec}, which the catalog declares, but byte "
            f"0x{data[error.start]:02X} is invalid in it. Save the file as UTF-8."
        ) from None


def require_language(header: str, target_lang: str) -> None:
    """Refuse a catalog whose header names another language.

    Args:
        header: its translation.
        target_lang: the wanted language; "" = any.

    Raises:
        DataError: it does; names both.
    """
    found = _LANGUAGE.search(header)
    if found and target_lang and not _is_into(target_lang, header):
        raise DataError(
            f"The catalog must be translated into {target_lang}, but its header says Language: "
            f"{found[1]}."
        )


def _is_into(language: str, header: str) -> bool:
    """Whether the header names this language."""
    found = _LANGUAGE.search(header)
    return bool(language and found and rank_of(found[1], language) is not None)
