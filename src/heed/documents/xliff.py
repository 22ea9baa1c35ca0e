"""XLIFF 1.2 and 2: missing translations are filled in, everything else is kept.

A unit is translated from its source, or from its source in segments (`<seg-source>`) if it has one.
Inline elements move among the words as tags do (`inline.py`); the content of codes is kept. Line
breaks separate texts only where `xml:space` says that they have a meaning.

Source: https://docs.oasis-open.org/xliff/v1.2/os/xliff-core.html and
https://docs.oasis-open.org/xliff/xliff-core/v2.1/xliff-core-v2.1.html
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from html import unescape

from heed.data.xliff import ASIDE, CODES, FIELDS, SEGMENTED, UNITS, UNTRANSLATED, is_forbidden
from heed.data.xml_events import MAX_NAME_CHARS
from heed.data.xml_segments import rank_of
from heed.documents.assembly import Assembly
from heed.documents.attributes import attribute
from heed.documents.flow import flow
from heed.documents.markup import Markup, escape_xml
from heed.documents.passages import parts_of, sentences
from heed.documents.segment import Segment
from heed.documents.structure import Rules, Structure, matched, structure
from heed.documents.tags import Token, position, read_tokens
from heed.errors import DataError
from heed.text.protection.fields import is_field
from heed.translate.result import Translation

_MOST_SHOWN = 10  # languages in a message
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
    """The elements of a unit: the first and the last token of each, by name.

    `keeps_breaks` says whether line breaks have a meaning.
    """

    segment: int
    places: dict[str, tuple[int, int]]
    keeps_breaks: bool


@dataclass(frozen=True, slots=True)
class _State:
    """What the elements around a unit say about it."""

    is_forbidden: bool = False
    keeps_breaks: bool = False

    def inside(self, raw: str) -> "_State":
        """The state inside another element, given its start tag."""
        translate = attribute(raw, "translate") or attribute(raw, "its:translate")
        space = attribute(raw, "xml:space")
        return _State(
            is_forbidden(translate, self.is_forbidden),
            space == "preserve" if space else self.keeps_breaks,
        )


def split_xliff(text: str, target_lang: str = "") -> Assembly:
    """The untranslated units of a file.

    Args:
        text: the file.
        target_lang: the language of the translations: files in other ones are kept unchanged, and
            version 2 without a language gets this one. "" = unknown.

    Raises:
        DataError: the XML is malformed, or not XLIFF; or all is in other languages.
    """
    tokens = _tokens(text)
    found = Structure(tokens, matched(text, tokens, is_xml=True))
    root = next((token for token in found.tokens if token.name), None)
    if root is None or _local(root) != "xliff":
        where = position(text, root.start if root else 0)
        raise DataError(f"The file must begin with <xliff>, but does not, at {where}.")
    _require_language(found, target_lang)
    assembly = Assembly()
    written = 0
    for unit in _units(found, target_lang):
        if "source" in unit.places and _is_to_fill(found, unit):
            if not written and target_lang and _lacks_language(root.raw):
                written = root.start + len(root.raw) - 1
                assembly.keep(f'{text[:written]} trgLang="{target_lang}"')
            written = _fill(assembly, text, found, unit, written)
    assembly.keep(text[written:])
    return assembly


def _lacks_language(root: str) -> bool:
    """Whether the first tag lacks the language that version 2 requires where there are targets."""
    return attribute(root, "version").startswith("2") and not attribute(root, "trglang")


def _require_language(found: Structure, target_lang: str) -> None:
    """Refuse a file that is translated into other languages only.

    Raises:
        DataError: it is; names them.
    """
    languages = [_language(token) for token in found.tokens if _local(token) in ("xliff", "file")]
    declared = [*dict.fromkeys(filter(None, languages))]
    if (
        target_lang
        and declared
        and not any(rank_of(each, target_lang) is not None for each in declared)
    ):
        raise DataError(
            f"The file must be translated into {target_lang}, but says that it is translated into "
            f"{' and '.join(each[:MAX_NAME_CHARS] for each in declared[:_MOST_SHOWN])}."
        )


def _language(token: Token) -> str:
    """The language into which a file is translated, as its first tags say."""
    if token.kind != "open":
        return ""
    return attribute(token.raw, "target-language") or attribute(token.raw, "trglang")


def _tokens(text: str) -> list[Token]:
    """The tokens of a file or a part of it. CDATA is text: here it holds sentences."""
    return [
        replace(token, kind="text", text=cdata[1])
        if (cdata := _CDATA.fullmatch(token.raw))
        else token
        for token in read_tokens(text, is_xml=True)
    ]


def _units(found: Structure, target_lang: str) -> Iterator[_Unit]:
    """The units and segments that may be translated, with what stands directly in them."""
    number = 0
    parents: list[_Unit | None] = []
    states = [_State()]
    while number < len(found.tokens):
        token = found.tokens[number]
        name, end = _local(token), found.partner.get(number, number)
        if token.kind == "open":
            if name in ASIDE or (name == "file" and _is_in_other_language(token, target_lang)):
                number = end
            else:
                states.append(state := states[-1].inside(token.raw))
                _note(parents, name, number, end, state)
                is_unit = name in UNITS and not state.is_forbidden
                parents.append(_Unit(number, {}, state.keeps_breaks) if is_unit else None)
        elif token.kind == "close":
            states.pop()
            if (unit := parents.pop()) is not None:
                yield unit
        elif token.kind == "empty":
            _note(parents, name, number, number, states[-1])
        number += 1


def _is_in_other_language(file: Token, target_lang: str) -> bool:
    language = _language(file)
    return bool(language and target_lang) and rank_of(language, target_lang) is None


def _note(parents: "list[_Unit | None]", name: str, first: int, last: int, state: _State) -> None:
    if parents and (unit := parents[-1]) is not None:
        unit.places.setdefault(name, (first, last))
        if name in ("source", SEGMENTED):
            unit.keeps_breaks = state.keeps_breaks


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
    source, has_segments = unit.places["source"], SEGMENTED in unit.places
    first, last = unit.places[SEGMENTED] if has_segments else source
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
    markup = _markup(content, has_segments=has_segments, keeps_breaks=unit.keeps_breaks)
    assembly.add(_Target(markup, opening, closing))
    return behind


def _with_state(raw: str, name: str) -> str:
    """A start tag whose state says that there is a translation, if it said that there is none."""
    if attribute(raw, "state") not in UNTRANSLATED:
        return raw
    return _STATE.sub(lambda match: f'{match[1]}"{_TRANSLATED[name]}"', raw, count=1)


def _inner(text: str, tokens: Sequence[Token], first: int, last: int) -> str:
    """What stands between two tags."""
    return text[tokens[first].start + len(tokens[first].raw) : tokens[last].start]


def _markup(content: str, *, has_segments: bool, keeps_breaks: bool) -> Markup:
    """The content of a source, ready to be translated."""
    rules = replace(_RULES, splitting=frozenset(("mrk",))) if has_segments else _RULES
    tokens = _with_codes(content, _tokens(content))
    try:
        found = structure(content, _with_pairs(tokens), rules)
    except DataError:  # codes that cross others are no pairs
        found = structure(content, tokens, rules)
    split = _lines_and_sentences if keeps_breaks else sentences
    segments, parts = flow(found, is_html=False, split=split, escape=escape_xml)
    return Markup(segments, parts)


def _lines_and_sentences(text: str) -> list[str]:
    return parts_of(text, "1")


def _with_codes(content: str, tokens: Sequence[Token]) -> list[Token]:
    """The tokens, with each code, or protected text, and its content as one."""
    merged: list[Token] = []
    number = 0
    while number < len(tokens):
        token, start = tokens[number], number
        is_protected = attribute(token.raw, "mtype") == "protected" and token.kind == "open"
        if is_protected or _local(token) in CODES:
            if token.kind == "open":
                number = _end_of(tokens, number)
            last = tokens[number]
            raw = content[token.start : last.start + len(last.raw)]
            inside = "".join(each.text for each in tokens[start + 1 : number])
            read = inside if is_protected else _field(token.raw, inside)
            token = Token("kept", raw, token.start, token.name, read)
        merged.append(token)
        number += 1
    return merged


def _field(raw: str, inside: str) -> str:
    """The field that a code stands for, which the model then reads; "" if there is none."""
    texts = (inside, *(unescape(attribute(raw, name)) for name in FIELDS))
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
