"""Puts faults into good translations, to learn and to measure how well faults are found.

All functions change texts; letters and words are taken from the texts themselves.
"""

import re
from collections.abc import Sequence

import numpy as np

from heed.text.scripts import is_written_solid

LEAST = 3
"""A stretch that is cut out or repeated has at least so many words."""

LEAST_CHARACTERS = 5
"""The same of a script without blanks, in characters."""

SHARES = (0.25, 0.5)
"""A stretch that is cut out has such a share of the text."""

_CLAUSE = re.compile(r"(?<=[,;:–—，、；：])\s*|\s+(?=[(\[–—])")
_NUMBER = re.compile(r"\d+")


def cut_stretch(text: str, random: np.random.Generator) -> str | None:
    """The text without some words in a row; None if it is too short."""
    units, blank, least = _units(text)
    share = random.uniform(*SHARES)
    size = max(least, round(share * len(units)))
    if len(units) < size + least:
        return None
    start = int(random.integers(0, len(units) - size + 1))
    return _ended(blank.join(units[:start] + units[start + size :]), text)


def cut_clause(text: str, random: np.random.Generator) -> str | None:
    """The text without one of its parts between commas and the like; None if it has only one."""
    _, _, least = _units(text)
    parts = [part for part in _CLAUSE.split(text) if part]
    long = [place for place, part in enumerate(parts) if len(_units(part)[0]) >= least]
    rest = [place for place in long if len(long) > 1]
    if not rest:
        return None
    place = rest[int(random.integers(len(rest)))]
    kept = parts[:place] + parts[place + 1 :]
    return _ended(("" if is_written_solid(text[-1]) else " ").join(kept), text)


def repeat_phrase(text: str, random: np.random.Generator) -> str | None:
    """The text with some words in a row written twice; None if it is too short."""
    units, blank, least = _units(text)
    if len(units) < least:
        return None
    size = int(random.integers(least, min(len(units), 2 * least) + 1))
    start = int(random.integers(0, len(units) - size + 1))
    return blank.join(units[: start + size] + units[start:])


def change_number(text: str, random: np.random.Generator) -> str | None:
    """The text with another digit in one of its numbers; None if it has none."""
    numbers = list(_NUMBER.finditer(text))
    if not numbers:
        return None
    number = numbers[int(random.integers(len(numbers)))]
    place = number.start() + int(random.integers(len(number[0])))
    others = [digit for digit in "123456789" if digit != text[place]]
    return text[:place] + str(random.choice(others)) + text[place + 1 :]


def in_no_language(texts: Sequence[str], random: np.random.Generator) -> list[str]:
    """The texts with each letter replaced by another one, the same in all texts."""
    letters = sorted({c for text in texts for c in text.lower() if c.isalpha()})
    table = dict(zip(letters, random.permutation(letters).tolist(), strict=True))
    table |= {c.upper(): other.upper() for c, other in table.items() if c.upper() != c}
    spelled = str.maketrans({c: other for c, other in table.items() if len(c) == 1})
    return [text.translate(spelled) for text in texts]


def _units(text: str) -> tuple[list[str], str, int]:
    """Words, or characters of a script without blanks; their separator; fewest units to cut."""
    words = text.split()
    if len(words) < 2 * LEAST and sum(map(is_written_solid, text)) > len(text) / 2:
        return list(text), "", LEAST_CHARACTERS
    return words, " ", LEAST


def _ended(text: str, whole: str) -> str:
    """The text with the final mark of the whole one."""
    end = whole[-1]
    if end.isalnum() or text.endswith(end):
        return text
    return text.rstrip(" ,;:、，") + end
