"""Lines in capitals: read in lower case, and translated into capitals.

Pieces are learned from text in usual case, so a word in capitals would be read letter by letter.
"""

import re
from collections.abc import Iterable, Iterator, Sequence

from heed.text.letter_case import lower, upper
from heed.text.protection.pattern import MARKS

MIN_WORDS = 2
MIN_LETTERS = 6
"""Fewest words, and letters, of a line in capitals: `USB` or `PDF OK` are usual spellings."""

Place = tuple[int, int]

_WORD = re.compile(rf"[^\W\d_][{MARKS}]*+[^\W\d_](?:[^\W\d_]|[{MARKS}])*+")
_GAP = re.compile(r"\A|\W+")
_SENTENCE_END = re.compile(r"[.!?…]\s")


def is_in_capitals(text: str, kept: Sequence[Place] = ()) -> bool:
    """Whether all words of a line are in capitals.

    Args:
        text: of the line.
        kept: places that do not count, in order, such as those of protected spans.
    """
    if text == text.lower() or text.islower():
        return False
    words = 0
    letters = 0
    for part in _between(text, kept):
        if part != upper(part):
            return False
        found = [word for word in _WORD.findall(part) if word != lower(word)]
        words += len(found)
        letters += sum(map(len, found))
    return words >= MIN_WORDS and letters >= MIN_LETTERS


def in_small_letters(text: str, kept: Sequence[Place] = ()) -> str | None:
    """A line in lower case, sentences with a capital; None if its length would change.

    Args:
        text: of the line.
        kept: places that stay as they are, in order.
    """
    parts = []
    for part in _parts(text, kept):
        small = lower(part[0]) if part[1] else part[0]
        if len(small) != len(part[0]):
            return None
        parts.append(small)
    small = "".join(parts)
    begins = {
        gap.end() for gap in _GAP.finditer(small) if not gap.start() or _SENTENCE_END.search(gap[0])
    }
    begins -= {place for start, end in kept for place in range(start, end)}
    letters = list(small)
    for place in begins - {len(small)}:
        if len(letter := upper(small[place])) == 1:
            letters[place] = letter
    return "".join(letters)


def in_capitals(text: str, kept: Iterable[Place] = ()) -> tuple[str, list[Place]]:
    """A text in capitals, and the new positions of its kept places.

    Args:
        text: any text.
        kept: places that stay as they are, in order.
    """
    large = ""
    places: list[Place] = []
    for part, is_free in _parts(text, list(kept)):
        if not is_free:
            places.append((len(large), len(large) + len(part)))
        large += upper(part) if is_free else part
    return large, places


def _between(text: str, kept: Sequence[Place]) -> Iterator[str]:
    return (part for part, is_free in _parts(text, kept) if is_free)


def _parts(text: str, kept: Sequence[Place]) -> Iterator[tuple[str, bool]]:
    """The stretches of a text, and whether each may change."""
    place = 0
    for start, end in kept:
        yield text[place:start], True
        yield text[start:end], False
        place = end
    yield text[place:], True
