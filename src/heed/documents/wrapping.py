"""Break a translation into lines as in its source, at about the same relative positions."""

import re
from bisect import bisect_left
from collections.abc import Sequence

from heed.text.normalize import BLANKS
from heed.text.protected import Rules, find_spans
from heed.text.scripts import is_written_solid

_BLANK = re.compile(f"[{re.escape(BLANKS)}]+")
_PAUSES = tuple(".,;:!?…。，、；：！？")
# The number of positions tried near the ideal one; more would be slow for a text of many lines.
_N_TRIED = 12
_PAUSE_BONUS = 0.6


def break_like(
    text: str, lines: Sequence[str], unbroken: re.Pattern[str] | None = None
) -> list[str]:
    """Break `text` into at most as many lines as `lines`, with about the same shares of the text.

    Lines end at blanks, preferably after a punctuation mark; in scripts without blanks, at any
    character. No line ends inside a protected span, such as a number.

    Args:
        text: a translation, without line breaks.
        lines: the lines of its source; joined by blanks they are the translated text.
        unbroken: a pattern of text that must not be broken, such as a tag.
    """
    spans = [(span.start, span.end) for span in find_spans(text, Rules.default())]
    if unbroken:
        spans += [match.span() for match in unbroken.finditer(text)]
    inside = {place for start, end in spans for place in range(start + 1, end)}
    places = [place for place in _places(text) if place[0] not in inside]
    ends = [end for end, _ in places]
    whole = max(1, sum(map(len, lines)) + len(lines) - 1)
    broken: list[str] = []
    start, first, reached = 0, 0, 0
    for line in lines[:-1]:
        reached += len(line) + 1
        wanted = (reached - 1) * len(text) / whole
        middle = max(first, bisect_left(ends, wanted))
        near = range(max(first, middle - _N_TRIED), min(len(places), middle + _N_TRIED))
        if not near:
            break
        best = min(near, key=lambda i, wanted=wanted: _cost(text, ends[i], wanted))  # type: ignore[misc]
        broken.append(text[start : ends[best]])
        start, first = places[best][1], best + 1
    return [*broken, text[start:]]


def _places(text: str) -> list[tuple[int, int]]:
    """The indices where a line may end, each with the start of the next line."""
    blanks = [match.span() for match in _BLANK.finditer(text)]
    if len(text) < 2 or not is_written_solid(text[len(text) // 2]):
        return [(start, end) for start, end in blanks if start > 0 and end < len(text)]
    inside = {place for start, end in blanks for place in range(start, end + 1)}
    solid = [
        (i, i)
        for i in range(1, len(text))
        if i not in inside
        and text[i] not in _PAUSES
        and any(map(is_written_solid, text[i - 1 : i + 1]))
    ]
    return sorted([*solid, *blanks])


def _cost(text: str, place: int, wanted: float) -> float:
    distance = abs(place - wanted)
    return distance * _PAUSE_BONUS if text[place - 1] in _PAUSES else distance
