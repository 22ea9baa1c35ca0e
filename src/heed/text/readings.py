"""Corrects a line before a model reads it: misspelled words and unusual case.

A line of usual words in usual case is not changed. Not here: how words are counted, and which of
them are names (`known.py`).
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from operator import itemgetter

from heed.text.capitals import in_small_letters
from heed.text.known import KnownWords, Place, begins_sentence
from heed.text.scripts import is_solid
from heed.text.spans import overlaps
from heed.text.typos import is_plain, stands_alone

MAX_UNKNOWN = 0.5
"""A line of more unknown words than this share is in another language, not misspelled."""

MIN_TITLE_WORDS = 3
"""Fewest words of a Line Written Like This."""

NEVER_LARGE = 12
"""A word with a capital in fewer than this many 255ths of its occurrences is lowercase."""

OFTEN_LARGE = 25
"""A misspelled word with a capital inside a line is corrected only to a word with at least this."""

_TAGS = "<*"
_START, _END = itemgetter(0), itemgetter(1)


@dataclass(frozen=True, slots=True)
class Correction:
    """A corrected word.

    Attributes:
        place: its place in the text.
        word: the typed word.
        meant: the correction.
    """

    place: Place
    word: str
    meant: str


def corrections(known: KnownWords, text: str, taken: Sequence[Place]) -> list[Correction]:
    """The misspelled words of a line.

    Args:
        known: the words of the model.
        text: a source.
        taken: stretches to leave unchanged, in order.
    """
    if known.limits is None or known.has_seen_all(text):
        return []
    places = list(known.word_places(text))
    unknown = [
        (start, end)
        for start, end in places
        if end - start > 1 and known.place_of(text[start:end]) < 0
    ]
    if not unknown or (len(unknown) > 1 and len(unknown) > MAX_UNKNOWN * len(places)):
        return []
    n_large = sum(text[start].isupper() for start, _ in places)
    is_title = len(places) > 2 and n_large > 0.6 * len(places)
    found = []
    for start, end in unknown:
        word = text[start:end]
        if not is_plain(word) or is_solid(word[0]):
            continue
        if not stands_alone(text, *_with_tags(text, start, end, taken)):
            continue
        if overlaps(taken, start, end):
            continue
        meant = known.correct(word)
        if meant is None:
            continue
        is_free = is_title or word.islower() or begins_sentence(text, start)
        if is_free or known.larges[known.place_of(meant)] >= OFTEN_LARGE:
            found.append(Correction((start, end), word, meant))
    return found


def _with_tags(text: str, start: int, end: int, taken: Sequence[Place]) -> Place:
    """A stretch with the tags that touch it."""
    before = bisect_right(taken, start, key=_END) - 1
    while before >= 0 and taken[before][1] == start and text[taken[before][0]] in _TAGS:
        start = taken[before][0]
        before -= 1
    after = bisect_left(taken, end, key=_START)
    while after < len(taken) and taken[after][0] == end and text[end] in _TAGS:
        end = taken[after][1]
        after += 1
    return start, end


def in_usual_case(known: KnownWords, text: str, taken: Sequence[Place]) -> str | None:
    """A line Written Like This, or without any capital, in the usual case; else None.

    A model may have learned Titles Like This. So a line counts as one only if a word in it has a
    capital that it does not have in lines of the training text.

    Args:
        known: the words of the model.
        text: a source.
        taken: stretches that stay as they are, in order.
    """
    if text == text.lower():
        small = in_small_letters(text, taken) if known.begins_large else None
        return small and with_usual_capitals(known, small, taken)
    n_words, is_title = 0, False
    for start, end in known.word_places(text):
        if overlaps(taken, start, end):
            continue
        if text[start].islower():
            return None
        n_words += 1
        is_title = is_title or (
            is_small(known, text[start:end]) and not begins_sentence(text, start)
        )
    if n_words < MIN_TITLE_WORDS or not is_title:
        return None
    small = in_small_letters(text, taken)
    return small and with_usual_capitals(known, small, taken)


def is_small(known: KnownWords, word: str) -> bool:
    """Whether a word is only known without a capital."""
    place = known.place_of(word)
    return place >= 0 and int(known.larges[place]) < NEVER_LARGE


def with_usual_capitals(known: KnownWords, text: str, taken: Sequence[Place]) -> str:
    """A lowercase text with the usual capitals of its words."""
    letters = list(text)
    for start, end in known.word_places(text):
        if overlaps(taken, start, end):
            continue
        place = known.place_of(text[start:end])
        if place >= 0 and (capitals := int(known.capitals[place])):
            for i in range(start, min(end, start + 16)):
                if capitals >> (i - start) & 1 and len(large := letters[i].upper()) == 1:
                    letters[i] = large
    return "".join(letters)
