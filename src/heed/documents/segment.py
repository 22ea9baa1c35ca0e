"""Segments: the texts of a document to translate, each one sentence or less.

This module does not translate. A document returns its segments, the caller translates them in any
way, and the document joins the results.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from heed.errors import UsageError
from heed.text.normalize import BLANKS
from heed.translate.result import Translation

# A web or mail address alone has letters, but no words.
_ADDRESS = re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]+|(?:https?|ftp|file)://\S+|www\.\S+", re.I)


OnRead = Callable[[int, int], object]
"""Receives the number of characters to translate, and of elements, that were just read; it may
raise an error to stop the reading of a file."""

SIGNS_AN_ELEMENT = 3
"""Tags, entities, fields, escapes and lines of a file count a third of an element, because each
takes a third of the time at most: 25 µs, and 400 bytes."""

REPEATED_AN_ELEMENT = 1000
"""So many characters of the beginning of a run count as an element for each text that it is written
with: a run of many texts may become many runs."""


def ignore(n_chars: int, n_elements: int) -> None:
    """An `OnRead` that lets a file have any size."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A text to translate.

    Attributes:
        text: in the source language; may hold line breaks, which count as blanks.
        needs_alignment: whether something must be placed among the words of its translation.
            `Translation.alignment` gives the place; without it, the place is estimated.
    """

    text: str
    needs_alignment: bool = False


def has_words(text: str) -> bool:
    """Whether there is anything to translate: a letter outside a lone web or mail address.

    Numbers, signs and emoji mean the same in every language.
    """
    return any(map(str.isalpha, text)) and not _ADDRESS.fullmatch(text.strip())


def split_edges(text: str) -> tuple[str, str, str]:
    """The blanks before a text, the text, and the blanks after it."""
    body = text.strip(BLANKS)
    if not body:
        return text, "", ""
    start = text.index(body)
    return text[:start], body, text[start + len(body) :]


def is_unchanged(segments: Sequence[Segment], translations: Sequence[Translation]) -> bool:
    """Whether each segment equals its translation."""
    pairs = zip(segments, translations, strict=True)
    return all(segment.text == translation.text for segment, translation in pairs)


def require_one_each(segments: Sequence[Segment], translations: Sequence[Translation]) -> None:
    """Check that there are as many translations as segments.

    Raises:
        UsageError: there are not; gives both numbers.
    """
    if len(segments) != len(translations):
        raise UsageError(
            f"There must be one translation for each segment, but there are {len(segments)} "
            f"segments and {len(translations)} translations."
        )
