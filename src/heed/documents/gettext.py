"""Catalogs of gettext (.po): missing translations are filled in, everything else is kept.

Fields such as `%s`, `%1$d` and `{name}` are not given to the model; alignment decides their place.
A program fills `%s` and `%d` in the order of the text. If they change places, they get numbers
where the format of the message has some (`%2$s`); else they keep the order of the source.
New translations are not marked as fuzzy; users who want them reviewed can add the mark.

Source: the GNU gettext manual, section 3 (the format of PO files).
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import count

from heed.documents.assembly import Assembly
from heed.documents.flow import flow
from heed.documents.markup import Markup
from heed.documents.passages import parts_of
from heed.documents.segment import Segment
from heed.documents.structure import Rules, structure
from heed.documents.tags import Token, position, read_tokens
from heed.errors import DataError
from heed.translate.result import Translation

_LINE = re.compile(r"[^\n]*+\n|[^\n]++\Z")
_STRING = re.compile(r'"((?:[^"\\\n]|\\.)*+)"\s*+')
_STRINGS = re.compile(rf"(?:{_STRING.pattern})++\Z")
_KEYWORD = re.compile(r"(domain|msgctxt|msgid_plural|msgid|msgstr(?:\[(\d+)\])?)\s*+(?=\")")
_BEGINNINGS = ("domain", "msgctxt", "msgid")
_ESCAPE = re.compile(r"((?:\\[0-7]{1,3}|\\x[0-9a-fA-F]{1,2})+)|\\(.)", re.S)
_CODE = re.compile(r"\\(?:([0-7]{1,3})|x([0-9a-fA-F]{1,2}))")
_CHARSET = re.compile(r'^("Content-Type:[^"\n]*\bcharset=)(?!utf-?8\b)[\w.:-]+', re.M | re.I)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_WRITTEN = {"\\": "\\\\", '"': '\\"'} | {sign: f"\\{letter}" for letter, sign in _ESCAPED.items()}
FIELD = re.compile(
    r"%(?:\(\w+\)|\d+\$|<\w+>)?(?:-(?=\d)|[+0#'])*(?:\*|\d+)?(?:\.(?:\*|\d+))?(?:hh|ll|[hlLqjzt])?"
    r"[diouxXeEfgGcrsaup@]|%%|%\d+|\$\{[^{}\s]*\}|\{\{[^{}]*\}\}|\{[\w.:!]*\}"
)
"""Fields of C, Python, Qt, shells and templates."""
_IN_TURN = re.compile(r"%(?![%(<]|\d+(?:\$|\Z))")  # the start of a field filled by its place
_NUMBER = re.compile(r"%(\d+)\$")
_NUMBERED_FORMATS = re.compile(
    r"\b(?<!no-)(?:c|objc|php|perl|java-printf|sh-printf|awk|tcl)-format\b"
)
_RULES = Rules(
    is_xml=False,
    ignored=frozenset(),
    splitting=frozenset(),
    joining=frozenset(),
    has_outline=False,
)


@dataclass(slots=True)
class _Entry:
    """A message: its texts by keyword, and the lines of its translations.

    `lines` are all lines of the entry; `places` gives the range of lines of each translation.
    """

    lines: list[str] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)
    places: dict[str, tuple[int, int]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Message:
    """The translation of a message as lines of the catalog.

    Attributes:
        markup: its text; if `is_numbered`, with numbers in the fields that are filled in turn.
        is_numbered: whether it has several such fields.
        allows_numbers: whether the format of the message has numbers.
        keyword: the keyword before the translation.
        indent: the blanks before the keyword.
        line_end: the line break of the catalog.
    """

    markup: Markup
    is_numbered: bool
    allows_numbers: bool
    keyword: str
    indent: str
    line_end: str

    @property
    def segments(self) -> list[Segment]:
        return self.markup.segments

    def join(self, translations: Sequence[Translation]) -> str:
        text = self.markup.join(translations)
        if self.is_numbered:
            text = _in_order(text, allows_numbers=self.allows_numbers)
        lines = text.splitlines(keepends=True) if "\n" in text[:-1] else [text]
        quoted = [_quoted(line) for line in lines]
        if len(quoted) > 1:
            quoted = ['""', *quoted]
        return f"{self.indent}{self.keyword} " + "".join(line + self.line_end for line in quoted)


def split_po(text: str) -> Assembly:
    """The untranslated messages of a catalog; its header declares UTF-8 in the result.

    Raises:
        DataError: a line is malformed; names it.
    """
    text = _CHARSET.sub(r"\1UTF-8", text, count=1)
    assembly = Assembly()
    entry = _Entry()
    keyword = ""
    start = 0
    for line in _LINE.findall(text):
        body = line.strip()
        match = _KEYWORD.match(body)
        begins = (match and match[1] in _BEGINNINGS) or body.startswith("#") or not body
        if begins and any(name.startswith("msgstr") for name in entry.texts):
            _add_entry(assembly, entry)
            entry = _Entry()
        if match:
            keyword = match[1]
            entry.places[keyword] = (len(entry.lines), len(entry.lines))
            entry.texts[keyword] = ""
            body = body[match.end() :]
        if body and not body.startswith("#"):
            if not _STRINGS.match(body) or not entry.texts:
                raise DataError(
                    f"The catalog is malformed at {position(text, start)}: a line must be a "
                    f"comment, a keyword such as msgid with a string, or a string, but is {body!r}."
                )
            entry.texts[keyword] += _ESCAPE.sub(_unescaped, "".join(_STRING.findall(body)))
            entry.places[keyword] = (entry.places[keyword][0], len(entry.lines) + 1)
        entry.lines.append(line)
        start += len(line)
    _add_entry(assembly, entry)
    return assembly


def _add_entry(assembly: Assembly, entry: _Entry) -> None:
    places = {name: place for name, place in entry.places.items() if name.startswith("msgstr")}
    is_filled = any(entry.texts[name] for name in places)
    source = entry.texts.get("msgid")
    if not source or is_filled:
        assembly.keep("".join(entry.lines))
        return
    plural = entry.texts.get("msgid_plural", source)
    flags = "".join(line for line in entry.lines if line.startswith("#,"))
    allows_numbers = _NUMBERED_FORMATS.search(flags) is not None
    written = 0
    for number, (name, (start, end)) in enumerate(places.items()):
        assembly.keep("".join(entry.lines[written:start]))
        # A language with one form uses it for any number.
        text = source if number == 0 and len(places) > 1 else plural
        line = entry.lines[start]
        line_end = line[len(line.rstrip("\r\n")) :] or "\n"
        indent = line[: len(line) - len(line.lstrip())]
        numbered = _numbered(text)
        message = _Message(
            _markup(numbered), numbered != text, allows_numbers, name, indent, line_end
        )
        assembly.add(message)
        written = end
    assembly.keep("".join(entry.lines[written:]))


def _numbered(text: str) -> str:
    """A text with numbers in its fields that are filled in turn, if there are several."""
    fields = FIELD.findall(text)
    if sum(map(bool, map(_IN_TURN.match, fields))) < 2 or any(map(_NUMBER.match, fields)):
        return text
    numbers = count(1)
    return FIELD.sub(
        lambda field: _IN_TURN.sub(lambda _: f"%{next(numbers)}$", field[0], count=1), text
    )


def _in_order(text: str, *, allows_numbers: bool) -> str:
    """A text without the numbers of its fields, if these are in order or not allowed."""
    fields = [field for field in FIELD.findall(text) if _NUMBER.match(field)]
    ordered = sorted(fields, key=lambda field: int(field[1 : field.index("$")]))
    # A width or precision given as `*` is filled in turn, too, and would need its own number.
    if fields != ordered and allows_numbers and not any("*" in field for field in fields):
        return text
    plain = iter([_NUMBER.sub("%", field) for field in ordered])
    return FIELD.sub(lambda field: next(plain) if _NUMBER.match(field[0]) else field[0], text)


def _markup(text: str) -> Markup:
    tokens: list[Token] = []
    for token in read_tokens(text, is_xml=False):
        if token.kind == "text":
            tokens += _fields(token)
        else:
            tokens.append(token)
    segments, parts = flow(
        structure(text, tokens, _RULES),
        is_html=False,
        split=lambda text: parts_of(text, "1"),
        escape=str,
    )
    return Markup(segments, parts)


def _fields(token: Token) -> list[Token]:
    """Split a text, as written, into its fields and the rest."""
    tokens = []
    start = 0
    for match in FIELD.finditer(token.raw):
        tokens.append(_text(token, start, match.start()))
        tokens.append(Token("kept", match[0], token.start + match.start(), "field"))
        start = match.end()
    return [part for part in (*tokens, _text(token, start, len(token.raw))) if part.raw]


def _text(token: Token, start: int, end: int) -> Token:
    raw = token.raw[start:end]
    return Token("text", raw, token.start + start, text=raw)


def _unescaped(match: re.Match[str]) -> str:
    codes, letter = match.groups()
    if letter:
        return _ESCAPED.get(letter, letter)
    data = bytes(
        int(octal, 8) & 0xFF if octal else int(hexadecimal, 16)
        for octal, hexadecimal in _CODE.findall(codes)
    )
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _quoted(text: str) -> str:
    return '"' + "".join(_WRITTEN.get(character, character) for character in text) + '"'
