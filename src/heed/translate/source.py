"""A source with protected spans: the model's input, and the slots its translation must contain.

`text.protected` finds the spans; `protect.py` puts them into the translation.
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import attrgetter

from heed.decode.slots import Slot
from heed.text.number_words import spelled_numbers
from heed.text.protected import Kind, Rules, Span
from heed.text.slots import Mark, Slots

Place = tuple[int, int]

# A model without slots reads these spans as text: it may have learned to copy them.
_READ_RULES = frozenset(("number", "count", "printf", "braces", "term", "regex"))
_LONGEST_READ = 24


@dataclass(frozen=True, kw_only=True, slots=True)
class Kept:
    """A protected span of a source.

    Attributes:
        text: its text in the translation.
        written: its text in the source.
        kind: `open` and `close` are the two marks of a pair.
        rule: the rule that found it.
        place: its place in `Source.text`.
        read: its place in `Source.read`; an empty stretch if the model does not read it.
        partner: for a mark of a pair, the index of the other one.
        inside: the index of the opening mark of the pair around it; None = there is none.
        slots: the ids that represent it in the source and in the translation; None = no slots.
        inner: stretches of its text that are translated separately.
        before: the character before it in `Source.text`; "" at the beginning.
    """

    text: str
    written: str
    kind: Kind
    rule: str
    place: Place
    read: Place
    partner: int | None = None
    inside: int | None = None
    slots: tuple[int, int] | None = None
    inner: tuple[Place, ...] = ()
    before: str = ""

    @property
    def is_read(self) -> bool:
        """Whether the model reads it, as text or as a slot."""
        return self.read[0] < self.read[1]


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """A part of a line that holds protected spans, or was in capitals.

    Attributes:
        text: of the part, normalized.
        read: the text without the spans that the model does not read.
        spans: in order.
        rules: the rules that found them.
        in_capitals: the line was in capitals; `text` and `read` are in lower case.
        lang: code of its language; "" = unknown.
    """

    text: str
    read: str
    spans: tuple[Kept, ...]
    rules: Rules
    in_capitals: bool = False
    lang: str = ""

    @property
    def marks(self) -> list[Mark]:
        """The spans in `read` that have slots, and the ids of these in the source."""
        return [(*span.read, span.slots[0]) for span in self.spans if span.slots is not None]

    @property
    def has_words(self) -> bool:
        """Whether there is anything to translate around the spans: a letter."""
        place = 0
        for span in self.spans:
            if any(map(str.isalpha, self.read[place : span.read[0]])):
                return True
            place = span.read[1]
        return any(map(str.isalpha, self.read[place:]))

    def spelled_numbers(self) -> Counter[str]:
        """How often the text outside the spans may spell each small number as a word."""
        ends = [0, *(span.place[1] for span in self.spans)]
        starts = [*(span.place[0] for span in self.spans), len(self.text)]
        outside = [self.text[end:start] for end, start in zip(ends, starts, strict=True)]
        return spelled_numbers(" ".join(outside), self.lang)

    def required(self, prefix: Sequence[int] = ()) -> list[Slot]:
        """The slots that a translation must hold.

        Args:
            prefix: ids that it begins with. Slots inside a pair that the prefix closes are no
                longer required.
        """
        closed = {
            index
            for index, span in enumerate(self.spans)
            if span.kind == "open"
            and span.partner is not None
            and (ids := self.spans[span.partner].slots) is not None
            and ids[1] in prefix
        }
        found: list[Slot] = []
        numbers: dict[int, int] = {}
        for index, span in enumerate(self.spans):
            if span.slots is None or span.kind == "close":
                continue
            around = self._around(span)
            if around in closed and span.slots[1] not in prefix:
                closed.add(index)
                continue
            numbers[index] = len(found)
            closing = None
            if span.partner is not None:
                partner = self.spans[span.partner].slots
                assert partner is not None, "both marks of a pair have slots, or none"
                closing = partner[1]
            inside = None if around is None else numbers[around]
            found.append(Slot(id=span.slots[1], closing_id=closing, inside=inside))
        return found

    def _around(self, span: Kept) -> int | None:
        """The innermost pair with slots around a span."""
        around = span.inside
        while around is not None and self.spans[around].slots is None:
            around = self.spans[around].inside
        return around


def make_source(
    text: str,
    spans: Sequence[Span],
    rules: Rules,
    slots: tuple[Slots, Slots] | None,
    localize: Callable[[str], str] = str,
    *,
    in_capitals: bool = False,
    lang: str = "",
) -> Source:
    """The source that a model reads for a text with protected spans.

    Args:
        text: of a part of a line, normalized.
        spans: of the text; a mark of a pair without its partner here becomes a thing.
        rules: the rules that found them.
        slots: of the source and the target vocabulary; None = the model has none.
        localize: a number → its form in the target language.
        in_capitals: the line was in capitals, and `text` is in lower case.
        lang: code of its language; "" = unknown.
    """
    kept = _nested(text, spans, localize)
    if slots is not None:
        kept = _with_slots(kept, slots)
    shown = ["" if span.slots is None and not _is_readable(span) else span.written for span in kept]
    read, places = _joined(text, [span.place for span in kept], shown)
    spans_read = zip(kept, places, strict=True)
    return Source(
        text=text,
        read=read,
        spans=tuple(replace(span, read=place) for span, place in spans_read),
        rules=rules,
        in_capitals=in_capitals,
        lang=lang,
    )


def _joined(text: str, spans: Sequence[Place], shown: Sequence[str]) -> tuple[str, list[Place]]:
    """A text with other texts in place of its spans, and their places in it.

    If a span between two blanks is replaced by nothing, one of the blanks is left out, too.
    """
    read, place = "", 0
    places: list[Place] = []
    for (start, end), new in zip(spans, shown, strict=True):
        read += _after(read, text[place:start])
        places.append((len(read), len(read) + len(new)))
        read += new
        place = end
    read = (read + _after(read, text[place:])).rstrip(" ")
    return read, [(min(start, len(read)), min(end, len(read))) for start, end in places]


def _after(read: str, text: str) -> str:
    """The text to append to another one, without a second blank in a row."""
    return text[1:] if text[:1] == " " and read[-1:] in ("", " ") else text


def _nested(text: str, spans: Sequence[Span], localize: Callable[[str], str]) -> list[Kept]:
    """The spans with the pairs that are around them."""
    found: list[Kept] = []
    around: list[int] = []
    for index, span in enumerate(spans):
        kind, partner = span.kind, span.partner
        if kind in ("open", "close") and partner is None:
            kind = "thing"
        if kind == "close":
            around.pop()
        written = text[span.start : span.end]
        found.append(
            Kept(
                text=localize(written) if kind == "number" else written,
                written=written,
                kind=kind,
                rule=span.rule,
                place=(span.start, span.end),
                read=(span.start, span.end),
                partner=partner,
                inside=around[-1] if around else None,
                inner=tuple((start - span.start, end - span.start) for start, end in span.inner),
                before=text[max(0, span.start - 1) : span.start],
            )
        )
        if kind == "open":
            around.append(index)
    return found


def _with_slots(spans: Sequence[Kept], slots: tuple[Slots, Slots]) -> list[Kept]:
    """The spans with slots, as long as there are any left."""
    src, tgt = slots
    free = {
        "number": list(zip(src.numbers, tgt.numbers, strict=True)),
        "thing": list(zip(src.things, tgt.things, strict=True)),
        "open": list(zip(src.opens, tgt.opens, strict=True)),
    }
    found: list[Kept] = []
    for span in spans:
        if span.kind == "close":
            assert span.partner is not None, "a closing mark has a partner"
            first = found[span.partner].slots
            pair = None
            if first is not None:
                place = src.opens.index(first[0])
                pair = src.closes[place], tgt.closes[place]
        else:
            pair = free[span.kind].pop(0) if free[span.kind] else None
        found.append(replace(span, slots=pair))
    return found


def _is_readable(span: Kept) -> bool:
    """Whether a model without a slot for it reads it as text."""
    return span.kind in ("number", "thing") and (
        span.rule in _READ_RULES and len(span.written) <= _LONGEST_READ
    )


def within(spans: Sequence[Span], start: int, end: int) -> list[Span]:
    """The spans of a stretch of a text; a pair that is cut becomes two things.

    Args:
        spans: of the text, in order.
        start: start of the stretch.
        end: its end.
    """
    first = bisect_left(spans, start, key=attrgetter("start"))
    numbers = range(first, bisect_right(spans, end, lo=first, key=attrgetter("end")))
    found: list[Span] = []
    for number in numbers:
        span = spans[number]
        partner = None
        if span.partner is not None and span.partner in numbers:
            partner = span.partner - first
        inner = tuple((a - start, b - start) for a, b in span.inner)
        found.append(
            replace(
                span, start=span.start - start, end=span.end - start, partner=partner, inner=inner
            )
        )
    return found


def moved(spans: Sequence[Span], place: int, by: int) -> list[Span]:
    """The spans of a text; those after `place` are moved by `by` characters."""
    return [
        replace(
            span,
            start=span.start + by,
            end=span.end + by,
            inner=tuple((a + by, b + by) for a, b in span.inner),
        )
        if by and span.start >= place
        else span
        for span in spans
    ]


def _ends(stretches: Sequence[str], spans: Sequence[Span]) -> list[int]:
    """The ends of the parts of a text, including those around the marks of pairs that are cut."""
    ends: list[int] = []
    for end in accumulate(map(len, stretches)):
        before = bisect_left(spans, end, key=attrgetter("start"))
        if before and end < (cut := spans[before - 1]).end:
            end = cut.start if cut.start > (ends or [0])[-1] else cut.end
        ends.append(end)
    marks = [
        place
        for span in spans
        if span.kind == "open" and span.partner is not None
        for first, last in [(span, spans[span.partner])]
        if bisect_right(ends, first.start) < bisect_left(ends, last.end)
        for place in (first.start, first.end, last.start, last.end)
    ]
    return sorted({*ends, *marks})


def stretches_around(text: str, stretches: Sequence[str], spans: Sequence[Span]) -> Iterator[Place]:
    """Start and end of the parts of a text, without blanks around them; none cuts a span.

    The marks of a pair that is cut are separate parts, which are copied: so they keep their order,
    and the text between them stays there.

    Args:
        text: of the line.
        stretches: its parts, which may cut spans.
        spans: of the text.
    """
    begin = 0
    for end in _ends(stretches, spans):
        if end <= begin:
            continue
        part = text[begin:end]
        start = begin + len(part) - len(part.lstrip(" "))
        if part.strip(" "):
            yield start, start + len(part.strip(" "))
        begin = end
