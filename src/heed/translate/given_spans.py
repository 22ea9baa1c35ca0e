"""Spans of a source in a given text of the target language.

A prefix is repeated exactly, so its spans must be spelled as in the translation. A whole
translation may come from any author, with numbers as the target language writes them.
"""

import re
from collections.abc import Iterator
from dataclasses import replace

from heed.text.protected import NAME, Rules, Span, find_spans
from heed.text.protection.pairs import begun_marks
from heed.text.protection.pattern import MARKS
from heed.text.shared import number_key
from heed.text.slots import Mark
from heed.translate.source import Kept, Place, Source

_WITHIN_WORD = re.compile(rf"(?:[^\W_]|[{MARKS}]){{2}}")
# Kinds of spans that no rule finds in the target language alone.
_FOUND_IN_SOURCES = frozenset((NAME, "term", "regex"))


def prefix_marks(begun: str, source: Source) -> list[Mark]:
    """The spans of a source that a translation begins with, and the ids of their slots in it.

    Args:
        begun: required beginning of the translation, normalized.
        source: the part of the line.
    """
    return _marks(begun, _matches(begun, source), source)


def given_marks(text: str, source: Source) -> tuple[list[Mark], Source]:
    """The spans of a source in a whole translation of it, and the ids of their slots.

    Args:
        text: the translation, normalized.
        source: the whole line.

    Returns:
        The marks, and the source with its spans spelled as in the translation.
    """
    matches = _matches(text, source, is_whole=True)
    there = {index for _, index in matches}
    # A mark of a pair counts only together with the other one.
    matches = [
        match
        for match in matches
        if (partner := source.spans[match[1]].partner) is None or partner in there
    ]
    spans = [*source.spans]
    for (start, end), index in matches:
        spans[index] = replace(spans[index], text=text[start:end])
    return _marks(text, matches, source), replace(source, spans=tuple(spans))


def _marks(text: str, matches: list[tuple[Place, int]], source: Source) -> list[Mark]:
    marks: list[Mark] = []
    for (start, end), index in matches:
        slots = source.spans[index].slots
        assert slots is not None, "only spans with slots are matched"
        marks.append((start, end, slots[1]))
    return marks


def _matches(text: str, source: Source, *, is_whole: bool = False) -> list[tuple[Place, int]]:
    """The places of spans with slots in a text, and their indices; each once, pairs nested."""
    waiting: dict[object, list[int]] = {}
    for index, span in enumerate(source.spans):
        if span.slots is not None:
            waiting.setdefault(_key(span, is_whole=is_whole), []).append(index)
    matches: list[tuple[Place, int]] = []
    around: list[int] = []
    for place, key in _candidates(text, source, is_whole=is_whole):
        for index in waiting.get(key, ()):
            span = source.spans[index]
            is_end = bool(around) and span.kind == "close" and span.partner == around[-1]
            if is_end or (span.kind != "close" and span.inside == (around[-1] if around else None)):
                break
        else:
            continue
        waiting[key].remove(index)
        if span.kind == "open":
            around.append(index)
        elif span.kind == "close":
            around.pop()
        matches.append((place, index))
    return matches


def _candidates(text: str, source: Source, *, is_whole: bool) -> Iterator[tuple[Place, object]]:
    """Stretches of a text that may be spans of its source, in order, without overlaps."""
    places: list[tuple[Place, object]] = [
        ((found.start, found.end), _key_of(found, text, is_whole=is_whole))
        for found in find_spans(text, source.rules)
    ]
    taken = {place for place, _ in places}
    if not is_whole and any(span.kind == "open" for span in source.spans):
        # A beginning may hold the first mark of a pair without the second.
        claimed = bytearray(len(text))
        for start, end in taken:
            claimed[start:end] = b"\1" * (end - start)
        places += [(place, text[slice(*place)]) for place in begun_marks(text, claimed)]
    copies = {
        span.text: _key(span, is_whole=is_whole)
        for span in source.spans
        if span.slots is not None and span.rule in _FOUND_IN_SOURCES
    }
    places += [
        (place, key)
        for copy, key in copies.items()
        for place in words_equal(text, copy)
        if place not in taken
    ]
    end = 0
    for place, key in sorted(places, key=lambda each: (each[0][0], -each[0][1])):
        if place[0] >= end:
            end = place[1]
            yield place, key


def _key(span: Kept, *, is_whole: bool) -> object:
    """A key that is equal for corresponding spans."""
    if is_whole and span.kind == "number":
        return number_key(span.text)
    return _without(span.text, span.inner) if is_whole and span.inner else span.text


def _key_of(span: Span, text: str, *, is_whole: bool) -> object:
    spelled = text[span.start : span.end]
    if is_whole and span.kind == "number":
        return number_key(spelled)
    inner = tuple((start - span.start, end - span.start) for start, end in span.inner)
    return _without(spelled, inner) if is_whole and inner else spelled


def different_spans(source: str, text: str, rules: Rules) -> tuple[list[str], list[str]]:
    """Protected spans that only the source has, and those that only its translation has.

    Numbers are left out, because a translation may spell them as words. A span inside a longer word
    counts as present: `UTF-8` in `UTF-8-Zeichen`.

    Args:
        source: normalized.
        text: the translation, normalized.
        rules: which spans to look for.
    """
    ours, theirs = _spans_by_key(source, rules), _spans_by_key(text, rules)
    return _surplus(ours, theirs, text), _surplus(theirs, ours, source)


def _spans_by_key(text: str, rules: Rules) -> dict[object, list[str]]:
    """The spans of a text except for numbers."""
    found: dict[object, list[str]] = {}
    for span in find_spans(text, rules):
        if span.kind != "number":
            key = _key_of(span, text, is_whole=True)
            found.setdefault(key, []).append(text[span.start : span.end])
    return found


def _surplus(
    ours: dict[object, list[str]], theirs: dict[object, list[str]], other_text: str
) -> list[str]:
    """Spans of one side that the other side has less often."""
    return [
        span
        for key, spans in ours.items()
        for span in spans[len(theirs.get(key, ())) :]
        if other_text.count(span) < len(spans)
    ]


def _without(text: str, inner: tuple[Place, ...]) -> tuple[str, ...]:
    """A message without the texts inside it."""
    ends = [0, *(end for _, end in inner)]
    starts = [*(start for start, _ in inner), len(text)]
    return tuple(text[start:end] for start, end in zip(ends, starts, strict=True))


def words_equal(text: str, copy: str) -> list[Place]:
    """The places of a text in another one, but not as a part of a word."""
    found: list[Place] = []
    start = text.find(copy)
    while start >= 0:
        end = start + len(copy)
        before, after = text[start - 1 : start], text[end : end + 1]
        is_part = _WITHIN_WORD.match(before + copy[0]) or _WITHIN_WORD.match(copy[-1] + after)
        if not is_part:
            found.append((start, end))
        start = text.find(copy, end)
    return found
