"""From the structure of a page to its segments: sentences with their inline tags.

A run is the text between two tokens that separate texts. A pair of tags that contains the end of a
sentence, with text on both sides, separates texts too.
"""

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import dropwhile

from heed.documents.attributes import Placeholder, Template, render, tag_template
from heed.documents.inline import Node, place_nodes
from heed.documents.segment import Segment, has_words
from heed.documents.structure import Structure
from heed.documents.tags import Token
from heed.text.normalize import BLANKS
from heed.text.protected import Rules, find_spans
from heed.translate.result import Translation

# More tags separate texts instead: alignment takes time and memory that grow with the square.
MAX_MARKS = 128
MAX_ALIGNED_CHARS = 2000
# The model reads the words of a short kept element, such as a name; longer ones would not help it.
_MAX_READ_WORDS = 4
_MAX_READ_CHARS = 40
# Characters on each side of a tag that decide whether a protected span ends there.
_CONTEXT = 80
# `1<sup>st</sup>` is one word.
_ORDINAL = re.compile(
    r"(?<![^\s(])\d{1,4}\0(?:(?:st|nd|rd|th)(?!\w)|(?:er|re|ère|e|ème|de|ste|a|o)\Z)"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """A segment, and the elements within it.

    Attributes:
        number: the segment's number.
        text: the segment's text.
        raw: the original text, including tags.
        around: the blanks before and after the text that are inside its elements.
        nodes: its elements, with positions in the text including these blanks.
        escape: a function that escapes text between tags.
    """

    number: int
    text: str
    raw: Template
    around: tuple[str, str]
    nodes: list[Node]
    escape: Callable[[str], str]

    def render(self, translations: Sequence[Translation]) -> str:
        """The translation with its tags; an unchanged text returns as it was written."""
        translation = translations[self.number]
        if translation.text == self.text:
            return render(self.raw, translations)
        if not self.nodes:
            return self.escape(translation.text)
        before, behind = self.around
        return place_nodes(
            before + self.text + behind,
            self.nodes,
            replace(translation, text=before + translation.text + behind),
            translations=translations,
            escape=self.escape,
        )


Part = str | Placeholder


@dataclass(slots=True)
class _Mark:
    """A tag in a run, with the start and end of the text that it stands for.

    `is_joint` marks a tag with an inserted blank: before an opening tag, behind another one.
    """

    kind: str
    start: int
    end: int
    template: Template
    is_break: bool = False
    is_joint: bool = False


@dataclass(slots=True)
class _Run:
    """Text without a token that separates texts, and the tags in it.

    `raws` holds the ranges whose original spelling differs: start, end and spelling.
    """

    texts: list[str] = field(default_factory=list)
    length: int = 0
    raws: list[tuple[int, int, str]] = field(default_factory=list)
    marks: list[_Mark] = field(default_factory=list)

    def add(self, text: str, raw: str) -> None:
        if text != raw:
            self.raws.append((self.length, self.length + len(text), raw))
        self.texts.append(text)
        self.length += len(text)

    def tail(self) -> str:
        """The last characters."""
        found, place = "", len(self.texts)
        while place and len(found) < _CONTEXT:
            place -= 1
            found = self.texts[place][-_CONTEXT:] + found
        return found[-_CONTEXT:]

    def insert_blank(self) -> None:
        """Separate the text so far from the next one, outside of the pairs between them."""
        first = len(self.marks)
        while first and self.marks[first - 1].start == self.length:
            first -= 1
        between = self.marks[first:]
        self.add(" ", "")
        behind = list(dropwhile(lambda mark: mark.kind != "open", between))
        for mark in behind:
            mark.start = mark.end = self.length
        for mark in behind[:1] or between[-1:]:
            mark.is_joint = True


def flow(
    structure: Structure,
    *,
    is_html: bool,
    split: Callable[[str], list[str]],
    escape: Callable[[str], str],
) -> tuple[list[Segment], list[Part]]:
    """The segments of a page, and its parts, some of which refer to segments.

    Args:
        structure: the structure of the page.
        is_html: whether attributes are translated and `br` is a line break.
        split: cuts a text into sentences; joining them restores the text.
        escape: escapes text between tags.
    """
    segments: list[Segment] = []
    return segments, _parts(structure, segments, is_html=is_html, split=split, escape=escape)


def _parts(
    structure: Structure,
    segments: list[Segment],
    *,
    is_html: bool,
    split: Callable[[str], list[str]],
    escape: Callable[[str], str],
) -> list[Part]:
    """The parts of a page or a note; their segments are appended."""
    parts: list[Part] = []
    run = _Run()
    for number, token in enumerate(structure.tokens):
        template: Template = [token.raw]
        if is_html and token.kind in ("open", "empty"):
            template = tag_template(token.raw, segments)
        elif is_html and token.opening:
            template = tag_template(token.opening, segments)
            template.append(token.raw[len(token.opening) :])
        elif note := structure.nested.get(number):
            template = [*_parts(note, segments, is_html=is_html, split=split, escape=escape)]
        if number in structure.apart:
            _Cutter(run, segments, parts, escape).cut(split)
            parts += template
            run = _Run()
        else:
            _separate(run, structure, number)
            if token.kind == "text":
                run.add(token.text, token.raw)
            else:
                following = structure.tokens[number + 1 : number + 2]
                _add_mark(run, token, template, following)
    _Cutter(run, segments, parts, escape).cut(split)
    return parts


def _separate(run: _Run, structure: Structure, number: int) -> None:
    """Insert a blank where a number or the like touches another element: `12:30<b>today</b>`.

    A model reads no tags, and `12:30today` is not a number.
    """
    token, latest = structure.tokens[number], structure.tokens[number - 1 : number]
    is_behind_tag = bool(run.marks and latest) and latest[0].kind != "text"
    if not _has_text(token) or not (is_behind_tag or token.kind == "kept"):
        return
    before, text = run.tail(), token.text[:_CONTEXT]
    if _ORDINAL.search(f"{before}\0{text}"):
        return
    apart = _not_within(_spans_at_border(before, text), before + text)
    following = _text_from(structure, number) if apart else text
    if apart and (following == text or _not_within(apart, before + following)):
        run.insert_blank()


def _spans_at_border(before: str, text: str) -> list[tuple[int, int]]:
    """The protected spans that touch the border of two texts, with places in both joined."""
    border, rules = len(before), Rules.default()
    if before[-1:] in BLANKS or text[:1] in BLANKS:
        return []
    apart = [(a.start, a.end) for a in find_spans(before, rules) if a.end == border]
    return apart + [(border, border + a.end) for a in find_spans(text, rules) if a.start == 0]


def _not_within(places: list[tuple[int, int]], text: str) -> list[tuple[int, int]]:
    """The places that are not within a protected span of a text; it is searched only if needed."""
    found = find_spans(text, Rules.default()) if places else []
    return [
        (start, end)
        for start, end in places
        if not any(span.start <= start and end <= span.end for span in found)
    ]


def _text_from(structure: Structure, number: int) -> str:
    """The next characters for the model, from a token on."""
    text = ""
    for place in range(number, len(structure.tokens)):
        if place in structure.apart or len(text) >= _CONTEXT:
            break
        if _has_text(structure.tokens[place]):
            text += structure.tokens[place].text
    return text[:_CONTEXT]


def _has_text(token: Token) -> bool:
    """Whether a token has text for the model."""
    return token.kind == "text" or (token.kind == "kept" and _is_read(token.text))


def _add_mark(run: _Run, token: Token, template: Template, following: list[Token]) -> None:
    start = run.length
    is_break = token.name == "br" and token.kind == "empty"
    if is_break:
        # If no blank separates the lines, the model gets one.
        is_parted = run.texts and run.texts[-1][-1:] in BLANKS
        is_parted = is_parted or any(t.kind == "text" and t.text[:1] in BLANKS for t in following)
        if run.texts and not is_parted:
            run.add(" ", "")
    elif _has_text(token):
        run.add(token.text, "")
    kind = token.kind if token.kind in ("open", "close") else "atom"
    run.marks.append(_Mark(kind, start, run.length, template, is_break))


def _is_read(text: str) -> bool:
    """Whether the model reads a kept element: a few words, or one protected span."""
    return (
        len(text) <= _MAX_READ_CHARS
        and len(text.split()) <= _MAX_READ_WORDS
        and has_words(text)
        and text == text.strip()
        # Several spans would be translated apart from each other.
        and all(
            (span.start, span.end) == (0, len(text)) for span in find_spans(text, Rules.default())
        )
    )


class _Cutter:
    """Cuts one run into sentences, and appends them to the segments and parts of the page."""

    def __init__(
        self,
        run: _Run,
        segments: list[Segment],
        parts: list[Part],
        escape: Callable[[str], str],
    ) -> None:
        self.text = "".join(run.texts)
        self.raws = run.raws
        self.raw_starts = [start for start, _, _ in run.raws]
        self.marks = run.marks
        self.segments = segments
        self.parts = parts
        self.escape = escape

    def cut(self, split: Callable[[str], list[str]]) -> None:
        """Cut the run at ends of sentences, and at the tags of pairs that contain such an end."""
        if not has_words(self.text):
            self.parts += self._raw(0, len(self.text), self.marks)
            return
        ends = self._sentence_ends(split)
        broken = self._broken(ends)
        cuts = [self._mark_cut(end) for end in ends]
        cuts += [(number, self.marks[number].start) for number in broken]
        cuts += [(number + 1, self.marks[number].end) for number in broken]
        first, start = 0, 0
        for last, end in sorted({*cuts, (len(self.marks), len(self.text))}):
            if last == first + 1 and first in broken:
                self.parts += self.marks[first].template
            else:
                self._sentence(start, end, self.marks[first:last])
            first, start = last, end

    def _sentence_ends(self, split: Callable[[str], list[str]]) -> list[tuple[int, int]]:
        """For each end inside the run: the index after its last character, and after its blanks."""
        ends = []
        place = 0
        for sentence in split(self.text)[:-1]:
            place += len(sentence)
            behind = place - len(sentence) + len(sentence.rstrip(BLANKS))
            number = bisect_left(self.raw_starts, place) - 1
            # Not inside an entity of several characters, and not inside a kept element.
            if number < 0 or self.raws[number][1] <= place:
                ends.append((behind, place))
        return ends

    def _broken(self, ends: list[tuple[int, int]]) -> set[int]:
        """The tags of pairs that have text both before and after the end of a sentence."""
        behind = [end for end, _ in ends]
        broken: set[int] = set()
        opened: list[int] = []
        for number, mark in enumerate(self.marks):
            if mark.kind == "open":
                opened.append(number)
            elif mark.kind == "close":
                start = opened.pop()
                # The first end of a sentence that has text of the pair before it.
                first = bisect_left(behind, self.marks[start].start + 1)
                if first < len(ends) and ends[first][1] < mark.start:
                    broken |= {start, number}
        return broken

    def _mark_cut(self, end: tuple[int, int]) -> tuple[int, int]:
        """The number of tags, and of characters, before the end of a sentence."""
        behind, place = end
        first = bisect_left(self.marks, behind, key=lambda mark: mark.start)
        last = first
        n_open = 0
        for number in range(first, len(self.marks)):
            mark = self.marks[number]
            if mark.start > place:
                break
            if mark.kind == "open":
                n_open += 1
            elif mark.kind == "close":
                n_open = max(0, n_open - 1)
                # An element that opens here and continues belongs wholly to the next sentence.
                last = last if n_open else number + 1
        if last < len(self.marks) and self.marks[last].start <= place:
            return last, self.marks[last].start
        return last, place

    def _sentence(self, start: int, end: int, marks: list[_Mark]) -> None:
        """Append one sentence with its tags."""
        if not self._has_words(start, end, marks):
            self.parts += self._raw(start, end, marks)
        elif len(marks) > MAX_MARKS or (marks and end - start > MAX_ALIGNED_CHARS):
            for mark in marks:
                self._sentence(start, mark.start, [])
                self.parts += mark.template
                start = mark.end
            self._sentence(start, end, [])
        else:
            self._whole_sentence(start, end, marks)

    def _has_words(self, start: int, end: int, marks: list[_Mark]) -> bool:
        texts = []
        for mark in marks:
            texts.append(self.text[start : mark.start])
            start = mark.end
        return has_words(" ".join([*texts, self.text[start:end]]))

    def _whole_sentence(self, start: int, end: int, marks: list[_Mark]) -> None:
        body = self.text[start:end].strip(BLANKS)
        first = self.text.index(body, start)
        last = first + len(body)
        low, high = _inner(marks, first, last)
        inner = marks[low:high]
        # A tag that stays may precede the blanks before the first word.
        begin = min([first, *(mark.start for mark in inner[:1])])
        finish = max([last, *(mark.end for mark in inner[-1:])])
        self.parts += self._raw(start, begin, marks[:low])
        sentence = Sentence(
            number=len(self.segments),
            text=body,
            raw=self._raw(begin, finish, inner),
            around=(self.text[begin:first], self.text[last:finish]),
            nodes=_nodes(inner, begin),
            escape=self.escape,
        )
        self.segments.append(Segment(body, needs_alignment=bool(inner)))
        self.parts.append(sentence)
        self.parts += self._raw(finish, end, marks[high:])

    def _raw(self, start: int, end: int, marks: list[_Mark]) -> Template:
        """The original text between two indices, including tags."""
        template: Template = []
        for mark in marks:
            template += (self._text(start, mark.start), *mark.template)
            start = mark.end
        return [*template, self._text(start, end)]

    def _text(self, start: int, end: int) -> str:
        """The original text between two indices, without tags."""
        written: list[str] = []
        number = bisect_left(self.raw_starts, start)
        while number < len(self.raws) and self.raws[number][1] <= end:
            raw_start, raw_end, raw = self.raws[number]
            written += (self.text[start:raw_start], raw)
            start = raw_end
            number += 1
        return "".join([*written, self.text[start:end]])


def _partners(marks: list[_Mark]) -> dict[int, int]:
    partner: dict[int, int] = {}
    opened: list[int] = []
    for number, mark in enumerate(marks):
        if mark.kind == "open":
            opened.append(number)
        elif mark.kind == "close":
            partner[number] = opened.pop()
            partner[partner[number]] = number
    return partner


def _inner(marks: list[_Mark], first: int, last: int) -> tuple[int, int]:
    """The marks to place among the words; those before and after stay in place.

    Args:
        marks: the marks of a sentence.
        first: start of its first word.
        last: end of its last word.
    """
    partner = _partners(marks)
    low, high = 0, len(marks)
    while low < high:
        opening, closing = marks[low], marks[high - 1]
        is_one = opening.kind == "open" and partner[low] == high - 1
        if is_one and opening.start <= first and closing.start >= last:
            low, high = low + 1, high - 1
        elif marks[(end := partner.get(low, low))].end <= first:
            low = end + 1
        elif marks[(begin := partner.get(high - 1, high - 1))].start >= last:
            high = begin
        else:
            break
    return low, high


def _nodes(marks: list[_Mark], begin: int) -> list[Node]:
    """The elements of marks, with positions in a text that begins at `begin`."""
    siblings: list[Node] = []
    opened: list[tuple[Node, list[Node]]] = []
    for mark in marks:
        if mark.kind == "close":
            node, siblings = opened.pop()
            node.end = mark.start - begin
            node.is_joined_behind = mark.is_joint
            node.closing = mark.template
            continue
        node = Node(mark.start - begin, mark.end - begin, mark.template)
        node.is_kept, node.is_break = mark.kind == "atom", mark.is_break
        node.is_joined_before = mark.is_joint and mark.kind == "open"
        siblings.append(node)
        if mark.kind == "open":
            opened.append((node, siblings))
            siblings = node.children
    return siblings
