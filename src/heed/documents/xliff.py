"""XLIFF 1.2 and 2: missing translations are filled in, everything else is kept.

A unit is translated from its source, or from its source in segments (`<seg-source>`) if it has one.
Inline elements move among the words as tags do (`inline.py`); the content of codes is kept.

Source: https://docs.oasis-open.org/xliff/v1.2/os/xliff-core.html and
https://docs.oasis-open.org/xliff/xliff-core/v2.1/xliff-core-v2.1.html
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from heed.data.xliff import ASIDE, CODES, FIELDS, UNITS, UNTRANSLATED
from heed.documents.assembly import Assembly
from heed.documents.attributes import attribute, forbids_translation
from heed.documents.flow import flow
from heed.documents.markup import Markup, escape_xml
from heed.documents.passages import sentences
from heed.documents.segment import Segment
from heed.documents.structure import Rules, Structure, structure
from heed.documents.tags import Token, position, read_tokens
from heed.errors import DataError
from heed.text.protection.fields import is_field
from heed.translate.result import Translation

_CDATA = re.compile(r"<!\[CDATA\[(.+)]]>", re.S)
_STATE = re.compile(r"(\sstate\s*=\s*)(\"[^\"]*\"|'[^']*')")
_TRANSLATED = {"segment": "translated", "target": "needs-review-translation"}
"""The new state of an element that had one: a person has still to look at the translation."""

_FIRST, _SECOND = frozenset(("bpt", "bx", "sc")), frozenset(("ept", "ex", "ec"))
"""Codes that begin and end what a pair of tags encloses."""


_RULES = Rules(
    is_xml=True,
    ignored=frozenset(),
    splitting=frozenset(),
    joining=frozenset(),
    has_outline=False,
)


@dataclass(frozen=True, slots=True)
class _Target:
    """The content of a target, and its tags."""

    markup: Markup
    opening: str
    closing: str

    @property
    def segments(self) -> list[Segment]:
        return self.markup.segments

    def join(self, translations: Sequence[Translation]) -> str:
        return f"{self.opening}{self.markup.join(translations)}{self.closing}"


@dataclass(slots=True)
class _Unit:
    """The elements of a unit: the first and the last token of each, by name."""

    segment: int
    places: dict[str, tuple[int, int]]


def split_xliff(text: str) -> Assembly:
    """The untranslated units of a file.

    Raises:
        DataError: the XML is malformed, or not XLIFF.
    """
    found = structure(text, _tokens(text), _RULES)
    root = next((token for token in found.tokens if token.name), None)
    if root is None or _local(root) != "xliff":
        where = position(text, root.start if root else 0)
        raise DataError(f"The file must begin with <xliff>, but does not, at {where}.")
    assembly = Assembly()
    written = 0
    for unit in _units(found):
        if "source" in unit.places and _is_to_fill(found, unit):
            written = _fill(assembly, text, found, unit, written)
    assembly.keep(text[written:])
    return assembly


def _tokens(text: str) -> list[Token]:
    """The tokens of a file or a part of it. CDATA is text: here it holds sentences."""
    return [
        replace(token, kind="text", text=cdata[1])
        if (cdata := _CDATA.fullmatch(token.raw))
        else token
        for token in read_tokens(text, is_xml=True)
    ]


def _units(found: Structure) -> Iterator[_Unit]:
    """The units and segments that may be translated, with what stands directly in them."""
    number = 0
    parents: list[_Unit | None] = []
    forbidden: list[int] = []
    while number < len(found.tokens):
        token = found.tokens[number]
        name, end = _local(token), found.partner.get(number, number)
        if token.kind == "open":
            if name in ASIDE and name != "seg-source":
                number = end
            else:
                is_forbidden = bool(forbidden and forbidden[-1]) or forbids_translation(token.raw)
                forbidden.append(is_forbidden)
                _note(parents, name, number, end)
                parents.append(_Unit(number, {}) if name in UNITS and not is_forbidden else None)
        elif token.kind == "close":
            forbidden.pop()
            if (unit := parents.pop()) is not None:
                yield unit
        elif token.kind == "empty":
            _note(parents, name, number, number)
        number += 1


def _note(parents: "list[_Unit | None]", name: str, first: int, last: int) -> None:
    if parents and (unit := parents[-1]) is not None:
        unit.places.setdefault(name, (first, last))


def _is_to_fill(found: Structure, unit: _Unit) -> bool:
    """Whether a unit has no translation yet."""
    if "target" not in unit.places:
        return True
    first, last = unit.places["target"]
    raws = found.tokens[unit.segment].raw, found.tokens[first].raw
    if any(attribute(raw, "state") in UNTRANSLATED for raw in raws):
        return True
    inside = found.tokens[first + 1 : last]
    return not any(token.name or token.text.strip() or _is_entity(token) for token in inside)


def _is_entity(token: Token) -> bool:
    """Whether a token is an entity of the document's own, whose text is not known here."""
    return token.kind == "other" and token.raw.startswith("&")


def _fill(assembly: Assembly, text: str, found: Structure, unit: _Unit, written: int) -> int:
    """Add the translation of a unit, and return the end of the text added so far."""
    tokens = found.tokens
    start = tokens[unit.segment]
    assembly.keep(text[written : start.start] + _with_state(start.raw, "segment"))
    written = start.start + len(start.raw)
    source, has_segments = unit.places["source"], "seg-source" in unit.places
    first, last = unit.places["seg-source"] if has_segments else source
    name = tokens[source[0]].name.removesuffix("source") + "target"
    opening, closing = f"<{name}>", f"</{name}>"
    if "target" in unit.places:
        begin, end = (tokens[place] for place in unit.places["target"])
        opening = _with_state(begin.raw, "target")
        if begin.kind == "empty":
            opening = f"{opening.removesuffix('/>').rstrip()}>"
        insert, behind = begin.start, end.start + len(end.raw)
    else:
        insert = behind = tokens[last].start + len(tokens[last].raw)
        before = tokens[source[0] - 1]
        opening = (before.raw if before.text.isspace() else "") + opening
    content = _inner(text, tokens, first, last)
    assembly.keep(text[written:insert])
    assembly.add(_Target(_markup(content, has_segments=has_segments), opening, closing))
    return behind


def _with_state(raw: str, name: str) -> str:
    """A start tag whose state says that there is a translation, if it said that there is none."""
    if attribute(raw, "state") not in UNTRANSLATED:
        return raw
    return _STATE.sub(lambda match: f'{match[1]}"{_TRANSLATED[name]}"', raw, count=1)


def _inner(text: str, tokens: Sequence[Token], first: int, last: int) -> str:
    """What stands between two tags."""
    return text[tokens[first].start + len(tokens[first].raw) : tokens[last].start]


def _markup(content: str, *, has_segments: bool) -> Markup:
    """The content of a source, ready to be translated."""
    rules = replace(_RULES, splitting=frozenset(("mrk",))) if has_segments else _RULES
    tokens = _with_codes(content, _tokens(content))
    try:
        found = structure(content, _with_pairs(tokens), rules)
    except DataError:  # codes that cross others are no pairs
        found = structure(content, tokens, rules)
    segments, parts = flow(found, is_html=False, split=sentences, escape=escape_xml)
    return Markup(segments, parts)


def _with_codes(content: str, tokens: Sequence[Token]) -> list[Token]:
    """The tokens, with each code and its content as one."""
    merged: list[Token] = []
    number = 0
    while number < len(tokens):
        token, start = tokens[number], number
        if _local(token) in CODES:
            if token.kind == "open":
                number = _end_of(tokens, number)
            last = tokens[number]
            raw = content[token.start : last.start + len(last.raw)]
            inside = "".join(each.text for each in tokens[start + 1 : number])
            token = Token("kept", raw, token.start, token.name, _field(token.raw, inside))
        merged.append(token)
        number += 1
    return merged


def _field(raw: str, inside: str) -> str:
    """The field that a code stands for, which the model then reads; "" if there is none."""
    texts = (inside, *(attribute(raw, name) for name in FIELDS))
    return next(filter(is_field, texts), "")


def _end_of(tokens: Sequence[Token], number: int) -> int:
    """The end tag of an element."""
    name, depth = tokens[number].name, 0
    for place in range(number, len(tokens)):
        if tokens[place].name == name:
            depth += {"open": 1, "close": -1}.get(tokens[place].kind, 0)
        if not depth:
            return place
    return len(tokens) - 1


def _with_pairs(tokens: Sequence[Token]) -> list[Token]:
    """The tokens, with codes that belong together as tags of an element."""
    firsts, seconds = {}, {}
    for number, token in enumerate(tokens):
        if token.kind == "kept" and _local(token) in _FIRST:
            firsts[attribute(token.raw, "rid") or attribute(token.raw, "id")] = number
        elif token.kind == "kept" and _local(token) in _SECOND:
            names = ("startref", "rid", "id")
            seconds[next(filter(None, (attribute(token.raw, each) for each in names)), "")] = number
    paired = [*tokens]
    for key, first in firsts.items():
        second = seconds.get(key, -1)
        if key and second > first:
            paired[first] = replace(tokens[first], kind="open", name=f"code {key}")
            paired[second] = replace(tokens[second], kind="close", name=f"code {key}")
    return paired


def _local(token: Token) -> str:
    """The name of a tag without its prefix."""
    return token.name.rpartition(":")[2]
