"""Corrects typing errors: unseen words that are one slip away from a frequent word.

Four slips are known: two letters swapped, one left out, one doubled, and a letter of a neighboring
key or without its accent. Other small differences, such as an ending, are mostly different words.
Not here: errors made for training (`disturb.py`); the known words (`known.py`).
"""

import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from heed.text.scripts import ROWS

MIN_LENGTH = 3
"""Shortest word that is corrected; of two letters, only swapped ones are."""

MAX_LENGTH = 64
"""Longest word that is corrected: the words that may be meant are about 30 for each letter."""

LEVELS_PER_DOUBLING = 8
"""A word's frequency as a level: this many times the logarithm of its count to base 2."""

MOST_LETTERS = 64
"""Letters that may have been left out, the most frequent ones of the words that are known."""

MOST_FALSE = 0.012
"""Largest share of training sources with a word seen once that would be taken for an error.

Such words stand for right ones that a model will not know. From English and German, Multi30k and
53,000 strings of programs have 0.6 to 1.1 %, Tatoeba 0.2 to 0.5 %; of the words in their test sets
about half as many are changed.
"""

SHORT = 4
"""A word of fewer letters is corrected only to one `SHORT_LEAST` times as frequent as others."""

SHORT_LEAST = 8

_KEY_PENALTY = 2 * LEVELS_PER_DOUBLING
"""A key has several neighbors, so each of them is less probable."""

_BEFORE = re.compile(r"(?:^|[\s\"'“”„«»‘’‚(¿¡—–-])$")
_BEHIND = re.compile(r"$|[\s\"'“”«»’),;:!?…—–-]|\.(?!\w)")

Levels = Callable[[Sequence[str]], Sequence[int]]
"""Words → their frequencies as levels; 0 = seen once or never."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The conditions for correcting an unknown word to a known one.

    Attributes:
        least: fewest occurrences of the known word.
        ratio: smallest ratio of its frequency to that of any other candidate.
    """

    least: int
    ratio: int


LIMITS = (Limits(5, 3), Limits(10, 5), Limits(20, 10), Limits(50, 10))
"""From the loosest to the strictest."""


def is_plain(word: str) -> bool:
    """Whether a word has no inner capitals, except after a shift key pressed too late."""
    return word[1:].islower() or (word[:1].islower() and _shifted(word) is not None)


def stands_alone(text: str, start: int, end: int) -> bool:
    """Whether a stretch of a text touches only blanks and ordinary punctuation."""
    return (
        _BEFORE.search(text, max(0, start - 1), start) is not None
        and _BEHIND.match(text, end) is not None
    )


def correct(word: str, letters: str, levels: Levels, limits: Limits) -> str | None:
    """The intended word, in the case of the typed one; None = it is not clear.

    Args:
        word: a word that `is_plain` and was never seen.
        letters: letters that may have been left out.
        levels: words → levels of their frequencies.
        limits: the conditions for a correction.
    """
    small = word.lower()
    if len(small) != len(word) or not MIN_LENGTH - 1 <= len(word) <= MAX_LENGTH:
        return None
    candidates = dict(_meant(small, letters))
    if len(word) < MIN_LENGTH:
        candidates = {small[::-1]: 0}
    ranked = sorted(
        (
            (level - candidates[meant], meant)
            for meant, level in zip(candidates, levels(list(candidates)), strict=True)
            if level > 0
        ),
        reverse=True,
    )
    least = limits.least if len(word) >= SHORT else SHORT_LEAST * limits.least
    if not ranked or ranked[0][0] + candidates[ranked[0][1]] < level_of(least):
        return None
    if len(ranked) > 1 and ranked[0][0] - ranked[1][0] < level_of(limits.ratio):
        return None
    meant = ranked[0][1]
    is_large = word[0].isupper() or (_shifted(word) or "").lower() == meant
    is_large = is_large and not word.islower()
    return meant[0].upper() + meant[1:] if is_large else meant


def level_of(count: int) -> int:
    """The level of a frequency, at most 255."""
    # The same as a rounded logarithm, on every machine.
    return min(255, ((count**LEVELS_PER_DOUBLING).bit_length() - 1)) if count > 0 else 0


def _shifted(word: str) -> str | None:
    """`hTe` as `The`: the first two letters are swapped, each with its case; else None."""
    if len(word) > 1 and word[1].isupper() and not word[2:].upper() == word[2:] != "":
        return word[1] + word[0] + word[2:]
    return None


def _meant(word: str, letters: str) -> Iterator[tuple[str, int]]:
    """Candidates for the intended word, with penalties in levels; the least probable first."""
    keys, accents = _keys("ß" in letters or "ü" in letters), _accents(letters)
    for place, letter in enumerate(word):
        before, after = word[:place], word[place + 1 :]
        for other in keys.get(letter, ""):
            yield before + other + after, _KEY_PENALTY
        for other in accents.get(letter, ""):
            yield before + other + after, 0
    for place in range(len(word) + 1):
        for letter in letters:
            yield word[:place] + letter + word[place:], 0
    for place in range(1, len(word)):
        if word[place] == word[place - 1]:
            yield word[:place] + word[place + 1 :], 0
        else:
            yield word[: place - 1] + word[place] + word[place - 1] + word[place + 1 :], 0


@cache
def _keys(is_german: bool) -> Mapping[str, str]:
    """The keys beside each key; the rows of a keyboard are offset by half a key."""
    beside: dict[str, str] = {}
    for name, rows in ROWS.items():
        if name == ("latin" if is_german else "latin-qwertz"):
            continue
        for number, row in enumerate(rows):
            above = rows[number - 1] if number else ""
            below = rows[number + 1] if number + 1 < len(rows) else ""
            for place, key in enumerate(row):
                near = row[max(0, place - 1) : place] + row[place + 1 : place + 2]
                near += above[place : place + 2] + below[max(0, place - 1) : place + 1]
                beside[key] = near
    return beside


@cache
def _accents(letters: str) -> Mapping[str, str]:
    """For each letter, its forms with an accent."""
    found: dict[str, str] = {}
    for letter in letters:
        bare = unicodedata.normalize("NFD", letter)[0]
        if bare != letter:
            found[bare] = found.get(bare, "") + letter
    return found
