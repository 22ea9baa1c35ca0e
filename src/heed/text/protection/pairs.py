"""Pairs of marks: tags, links and emphasis, such that no pair crosses another."""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from heed.text.protection.markup import EMPHASIS, HTML_NAMES, LINK, TAG

_CDATA = {"<![CDATA[": "open", "]]>": "close"}
_NO_EMPHASIS_BEFORE = frozenset(".,;)]")
# Elsewhere such a mark may be a part of a name, as in `*.txt` or `__init__.py`.
_BEFORE_PHRASE = re.compile(r"(?<![^\s*_~])")
_ENDS_PHRASE = re.compile(r"(?<=[^\s*_~])[*_~][.,;:!?…)*_~]{0,8}+(?!\S)")
_AFTER_PHRASE = re.compile(r"[.,;:!?…)*_~]{0,8}+(?!\S)")


class Mark(NamedTuple):
    """A mark that may be one of a pair.

    Attributes:
        start: its first character.
        end: one past its last character.
        name: marks of one name can be a pair; "" for a single mark.
        opens: whether it can be the first of a pair.
        closes: whether it can be the second.
        is_kept: whether it is protected even when it is alone.
    """

    start: int
    end: int
    name: str
    opens: bool
    closes: bool
    is_kept: bool


Pair = tuple[Mark, Mark]


def read_tag(start: int, tag: str) -> Mark:
    """The mark of a tag of XML or HTML, a comment, or CDATA."""
    end = start + len(tag)
    if side := _CDATA.get(tag):
        return Mark(start, end, "<![CDATA[", side == "open", side == "close", True)
    match = TAG.fullmatch(tag)
    if match is None or not (match["opened"] or match["closed"]) or match["empty"]:
        return Mark(start, end, "", False, False, True)
    name = (match["opened"] or match["closed"]).casefold()
    is_kept = bool(match["closed"] or match["attributes"]) or name in HTML_NAMES
    return Mark(start, end, name, bool(match["opened"]), bool(match["closed"]), is_kept)


def link_marks(text: str, taken: bytearray) -> list[Mark]:
    """Both marks of each link, `[` or `![` and `](address)`, in order."""
    found: list[Mark] = []
    waiting: list[tuple[int, int]] = []
    for match in LINK.finditer(text):
        start, end = match.span()
        if taken[start]:
            continue
        if match[0][-1] == "[":
            waiting.append((start, end))
        elif waiting:
            opening = waiting.pop()
            if end - start > 1 and opening[1] < start:
                name = f"[{start}"
                found.append(Mark(*opening, name, True, False, False))
                found.append(Mark(start, end, name, False, True, False))
    return sorted(found)


def emphasis_marks(text: str, taken: bytearray) -> list[Mark]:
    """The marks `*`, `**`, `_`, `~~` and the like that can begin or end emphasis."""
    found = []
    for match in EMPHASIS.finditer(text):
        start, end = match.span()
        if taken.find(1, start, end) >= 0:
            continue
        before, after = text[start - 1 : start] or " ", text[end : end + 1] or " "
        following = text[end + 1 : end + 2] or " "
        opens = not after.isspace() and _is_bound(before, match[0])
        closes = not before.isspace() and _is_bound(after, match[0])
        if match[0] == "*":
            opens = opens and after not in _NO_EMPHASIS_BEFORE
            closes = closes and before not in "([" and not (after == "." and following.isalnum())
        if opens or closes:
            found.append(Mark(start, end, match[0], opens, closes, False))
    return found


def begun_marks(text: str, taken: bytearray) -> list[tuple[int, int]]:
    """The places of marks that may begin a pair, in a text that goes on after its end.

    Args:
        text: the beginning of a line.
        taken: where no such mark is, such as in other spans and in whole pairs.
    """
    places = [match.span() for match in TAG.finditer(text) if match["opened"]]
    places += [match.span() for match in LINK.finditer(text) if match[0][-1] == "["]
    going_on = emphasis_marks(f"{text}a", taken + b"\0")
    places += [(mark.start, mark.end) for mark in going_on if mark.opens]
    return [place for place in places if taken.find(1, *place) < 0]


def with_quotes(text: str) -> str:
    """The text with quotation marks in place of marks of emphasis around words, of equal length.

    An underscore counts as a letter, so that a number between two would not be found.
    """
    if not _ENDS_PHRASE.search(text):
        return text
    marks = [
        mark._replace(
            opens=mark.opens and bool(_BEFORE_PHRASE.match(text, mark.start)),
            closes=mark.closes and bool(_AFTER_PHRASE.match(text, mark.end)),
        )
        for mark in emphasis_marks(text, bytearray(len(text)))
    ]
    if not (pairs := nest(marks)):
        return text
    letters = list(text)
    for mark in (mark for pair in pairs for mark in pair):
        letters[mark.start : mark.end] = '"' * (mark.end - mark.start)
    return "".join(letters)


def _is_bound(beside: str, mark: str) -> bool:
    """Whether a mark may be beside this character: a word ends or begins there.

    Two stars are a mark also within a word of a script without blanks.
    """
    is_word = beside.isalnum() or beside == "_"
    return not is_word or (mark[:2] in ("**", "~~") and not beside.isascii())


def nest(marks: Iterable[Mark]) -> list[Pair]:
    """Pairs of marks of which none crosses another.

    A closing mark belongs to the nearest open mark of its name; open marks between the two stay
    alone, and so does a closing mark whose opening mark is no longer open.

    Args:
        marks: in the order of the text.
    """
    pairs: list[Pair] = []
    stack: list[Mark] = []
    counts: dict[str, int] = defaultdict(int)
    for mark in marks:
        if mark.closes and counts[mark.name]:
            while (opening := stack.pop()).name != mark.name:
                counts[opening.name] -= 1
            counts[mark.name] -= 1
            pairs.append((opening, mark))
        elif mark.opens:
            stack.append(mark)
            counts[mark.name] += 1
    return pairs


def nest_within(marks: Sequence[Mark], pairs: Sequence[Pair]) -> list[Pair]:
    """Pairs of marks that cross neither each other nor any of the given pairs."""
    edges = sorted([(a.start, True) for a, _ in pairs] + [(b.start, False) for _, b in pairs])
    starts = [start for start, _ in edges]
    stretches = [0]
    around = [0]
    for number, (_, is_begin) in enumerate(edges, start=1):
        if is_begin:
            around.append(number)
        else:
            around.pop()
        stretches.append(around[-1])
    groups: dict[int, list[Mark]] = defaultdict(list)
    for mark in marks:
        groups[stretches[bisect_right(starts, mark.start)]].append(mark)
    return [pair for group in groups.values() for pair in nest(group)]
