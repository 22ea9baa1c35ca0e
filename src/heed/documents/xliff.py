"""XLIFF 1.2 and 2: missing translations are filled in, everything else is kept.

A unit is translated from its source, or from its source in segments (`<seg-source>`) if it has one;
if only some of its segments are translated, the others are filled in.
Inline elements move among the words as tags do (`xliff_content.py`). Line breaks separate texts
only where `xml:space` says that they have a meaning.

Source: https://docs.oasis-open.org/xliff/v1.2/os/xliff-core.html and
https://docs.oasis-open.org/xliff/xliff-core/v2.1/xliff-core-v2.1.html
"""

import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass

from heed.data.xliff import ASIDE, DATA, SEGMENTED, UNITS, UNTRANSLATED, is_forbidden
from heed.data.xml_segments import rank_of, require_target
from heed.documents.assembly import Assembly
from heed.documents.attributes import attribute
from heed.documents.markup import Markup
from heed.documents.passages import parts_of, sentences
from heed.documents.segment import OnRead, Segment, ignore
from heed.documents.structure import Structure, matched
from heed.documents.tags import Token, local_name, opened, require_root
from heed.documents.xliff_content import content_markup, tokens_of
from heed.translate.result import Translation

Place = tuple[int, int]

_STATE = re.compile(r"(\sstate\s*=\s*)(\"[^\"]*\"|'[^']*')")
_TRANSLATED = {"segment": "translated", "target": "needs-review-translation"}
"""The new state of an element that had one: a person has still to look at the translation."""
_DEFINITIONS = "seg-defs"
"""What Trados Studio knows about the segments of a unit."""


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
    """A unit, or a segment of one.

    Attributes:
        segment: the number of its start tag.
        places: its elements: the first and the last token of each, by name.
        keeps_breaks: whether line breaks have a meaning.
        data: the text of codes by name, in version 2.
    """

    segment: int
    places: dict[str, Place]
    keeps_breaks: bool
    data: Mapping[str, str]


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


def split_xliff(text: str, target_lang: str = "", on_read: OnRead = ignore) -> Assembly:
    """The untranslated units of a file.

    Args:
        text: the file.
        target_lang: the language of the translations: files in other ones are kept unchanged, and
            version 2 without a language gets this one. "" = unknown.
        on_read: called for each translation; may stop this.

    Raises:
        DataError: the XML is malformed, or not XLIFF; or all is in other languages.
    """
    tokens = tokens_of(text)
    found = Structure(tokens, matched(text, tokens, is_xml=True))
    root = require_root(text, tokens, "xliff")
    files = (token for token in tokens if local_name(token) in ("xliff", "file"))
    require_target(map(_language, files), target_lang)
    assembly = Assembly(text, on_read=on_read)
    for unit in _units(found, target_lang):
        if "source" not in unit.places:
            continue
        if not _is_to_fill(found, unit):
            _fill_segments(assembly, found, unit)
            continue
        if not assembly.place and target_lang and _lacks_language(root.raw):
            assembly.keep_until(root.start + len(root.raw) - 1)
            assembly.keep(f' trgLang="{target_lang}"')
        _fill(assembly, found, unit)
    assembly.keep_until(len(text))
    return assembly


def _lacks_language(root: str) -> bool:
    """Whether the first tag lacks the language that version 2 requires where there are targets."""
    return attribute(root, "version").startswith("2") and not attribute(root, "trglang")


def _language(token: Token) -> str:
    """The language into which a file is translated, as its first tags say."""
    if token.kind != "open":
        return ""
    return attribute(token.raw, "target-language") or attribute(token.raw, "trglang")


def _units(found: Structure, target_lang: str) -> Iterator[_Unit]:
    """The units and segments that may be translated, with what stands directly in them."""
    number = n_open = 0
    parents: list[_Unit | None] = []
    states = [_State()]
    data: dict[str, str] = {}
    while number < len(found.tokens):
        token = found.tokens[number]
        name, end = local_name(token), found.partner.get(number, number)
        if token.kind == "open":
            if name in ASIDE or (name == "file" and _is_in_other_language(token, target_lang)):
                if name == DATA:
                    data = _data(found, number, end)
                number = end
            else:
                if name == "unit":
                    data = {}
                states.append(state := states[-1].inside(token.raw))
                _note(parents, name, number, end, state)
                # One within another would be read once for each of them.
                is_unit = name in UNITS and not state.is_forbidden and not n_open
                n_open += is_unit
                unit = _Unit(number, {}, state.keeps_breaks, data) if is_unit else None
                parents.append(unit)
        elif token.kind == "close":
            states.pop()
            if (ended := parents.pop()) is not None:
                n_open -= 1
                yield ended
        elif token.kind == "empty":
            _note(parents, name, number, number, states[-1])
        number += 1


def _data(found: Structure, first: int, last: int) -> dict[str, str]:
    """The text of codes that stands apart from them, by name."""
    return {
        attribute(found.tokens[number].raw, "id"): _text(found, number)
        for number, _ in _outermost(found, first, last, lambda token: local_name(token) == "data")
    }


def _outermost(
    found: Structure, first: int, last: int, is_wanted: Callable[[Token], bool]
) -> Iterator[Place]:
    """The wanted elements between two tokens, without those in others."""
    behind = first
    for number in range(first + 1, last):
        token = found.tokens[number]
        if number > behind and token.kind in ("open", "empty") and is_wanted(token):
            behind = found.partner.get(number, number)
            yield number, behind


def _text(found: Structure, first: int) -> str:
    """The text of an element."""
    return "".join(token.text for token in found.tokens[first : found.partner.get(first, first)])


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
    if _segments(found, first, last) and not any(map(_is_said, inside)):
        return True
    return not any(token.name or _is_said(token) for token in inside)


def _is_said(token: Token) -> bool:
    """Whether a token has text, or is an entity of the document's own, which stands for some."""
    return bool(token.text.strip()) or (token.kind == "other" and token.raw.startswith("&"))


def _segments(found: Structure, first: int, last: int) -> dict[str, Place]:
    """The segments of a source or target, by name."""

    def is_segment(token: Token) -> bool:
        return attribute(token.raw, "mtype") == "seg" and attribute(token.raw, "mid") != ""

    places = _outermost(found, first, last, is_segment)
    return {attribute(found.tokens[place[0]].raw, "mid"): place for place in places}


def _open_segments(found: Structure, unit: _Unit) -> list[tuple[Place, Place]]:
    """The empty segments of a target, each with that of the source."""
    if not {SEGMENTED, "target"} <= unit.places.keys():
        return []
    sources = _segments(found, *unit.places[SEGMENTED])
    return [
        (place, sources[name])
        for name, place in _segments(found, *unit.places["target"]).items()
        if name in sources and not any(map(_is_said, found.tokens[slice(*place)]))
    ]


def _fill_segments(assembly: Assembly, found: Structure, unit: _Unit) -> None:
    """Add the translations of empty segments."""
    filled = set()
    for (first, last), source in _open_segments(found, unit):
        begin, end = found.tokens[first], found.tokens[last]
        markup = _markup(_inner(assembly.source, found.tokens, *source), unit, has_segments=True)
        target = _Target(markup, opened(begin), f"</{begin.name}>")
        assembly.replace(begin.start, end.start + len(end.raw), target)
        filled.add(attribute(begin.raw, "mid"))
    _mark_as_drafts(assembly, found, unit, filled)


def _fill(assembly: Assembly, found: Structure, unit: _Unit) -> None:
    """Add the translation of a unit."""
    tokens = found.tokens
    start = tokens[unit.segment]
    assembly.keep_until(start.start)
    assembly.keep(_with_state(start.raw, "segment"))
    assembly.place = start.start + len(start.raw)
    source, has_segments = unit.places["source"], SEGMENTED in unit.places
    first, last = unit.places[SEGMENTED] if has_segments else source
    name = tokens[source[0]].name.removesuffix("source") + "target"
    opening, closing = f"<{name}>", f"</{name}>"
    if "target" in unit.places:
        begin, end = (tokens[place] for place in unit.places["target"])
        opening = opened(begin, _with_state(begin.raw, "target"))
        insert, behind = begin.start, end.start + len(end.raw)
    else:
        insert = behind = tokens[last].start + len(tokens[last].raw)
        before = tokens[source[0] - 1]
        opening = (before.raw if before.text.isspace() else "") + opening
    content = _inner(assembly.source, tokens, first, last)
    markup = _markup(content, unit, has_segments=has_segments)
    assembly.replace(insert, behind, _Target(markup, opening, closing))
    if has_segments:
        _mark_as_drafts(assembly, found, unit, _segments(found, first, last))


def _mark_as_drafts(
    assembly: Assembly, found: Structure, unit: _Unit, filled: Container[str]
) -> None:
    """Say for Trados Studio, as `_TRANSLATED` does for others, that segments were filled.

    Source: https://docs.memoq.com/current/en/Globalese/How_Globalese_processes_XLIFF_files.html
    """
    first, last = unit.places.get(_DEFINITIONS, (0, 0))
    for token in found.tokens[first:last]:
        is_new = local_name(token) == "seg" and not attribute(token.raw, "conf")
        if is_new and attribute(token.raw, "id") in filled and token.start >= assembly.place:
            assembly.keep_until(token.start + len(token.raw.rstrip("/>").rstrip()))
            origin = "" if attribute(token.raw, "origin") else ' origin="mt"'
            assembly.keep(f' conf="Draft"{origin}')


def _with_state(raw: str, name: str) -> str:
    """A start tag whose state says that there is a translation, if it said that there is none."""
    if attribute(raw, "state") not in UNTRANSLATED:
        return raw
    return _STATE.sub(lambda match: f'{match[1]}"{_TRANSLATED[name]}"', raw, count=1)


def _inner(text: str, tokens: Sequence[Token], first: int, last: int) -> str:
    """What stands between two tags."""
    return text[tokens[first].start + len(tokens[first].raw) : tokens[last].start]


def _markup(content: str, unit: _Unit, *, has_segments: bool) -> Markup:
    split = _lines_and_sentences if unit.keeps_breaks else sentences
    return content_markup(content, unit.data, split=split, has_segments=has_segments)


def _lines_and_sentences(text: str) -> list[str]:
    return parts_of(text, "1")
