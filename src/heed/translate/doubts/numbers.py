"""Finds numbers that a source and its translation do not share."""

import re
import unicodedata
from collections import Counter

from heed.text.number_words import WORDS

_NUMBER = re.compile(r"\d+(?:[.,:’'\u00a0\u202f\u066b\u066c]\d+)*")
_DIGIT = re.compile(r"\d")
_SPELLED = 12
"""Numbers up to this one are often written as words."""


def different_numbers(
    source: str, translation: str, source_lang: str = "", target_lang: str = ""
) -> tuple[list[str], list[str]]:
    """Numbers that only the source has, and numbers that only the translation has.

    Digits count in any script, signs between them do not: `1,234.50` equals `1.234,50`. A single
    missing small number is not reported, since it may be spelled as a word; two that differ are.

    Args:
        source: a text.
        translation: of it.
        source_lang: code of its language, for number words.
        target_lang: code of the translation's.

    Returns:
        Both lists are empty if there is no doubt.
    """
    has_digits = _DIGIT.search(source) or _DIGIT.search(translation)
    words = WORDS.get(source_lang[:2]), WORDS.get(target_lang[:2])
    if not has_digits and (words[0] is None or words[1] is None):
        return [], []
    ours, theirs = _numbers(source, words[0]), _numbers(translation, words[1])
    if ours == theirs:
        return [], []
    missing, extra = _without(ours, theirs), _without(theirs, ours)
    if missing and extra:
        return missing, extra
    # A number on only one side may be spelled as a word on the other.
    return [n for n in missing if not _is_small(n)], [n for n in extra if not _is_small(n)]


def _numbers(text: str, words: dict[str, str] | None) -> list[str]:
    """The numbers of a text in ascending order, by their digits."""
    found = [_canonical(match) for match in _NUMBER.findall(text)]
    if words is not None:
        parts = text.lower().replace(",", " ").replace(".", " ").split()
        if not words.keys().isdisjoint(parts):
            found += [words[part] for part in parts if part in words]
    return sorted(found)


def _without(ours: list[str], theirs: list[str]) -> list[str]:
    return list((Counter(ours) - Counter(theirs)).elements())


def _canonical(number: str) -> str:
    return "".join(str(unicodedata.digit(c)) for c in number if c.isdigit()).lstrip("0") or "0"


def _is_small(number: str) -> bool:
    return len(number) <= 2 and int(number) <= _SPELLED
