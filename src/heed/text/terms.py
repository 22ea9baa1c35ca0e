"""Terms shown to a model: the words of a source with the translation that is wanted beside them.

A model learns in training that it should write what stands between `<is>` and `</term>`.
"""

from collections.abc import Sequence
from typing import NamedTuple


class Shown(NamedTuple):
    """A term in a source.

    Attributes:
        start: where it begins, in characters.
        end: where it ends.
        target: its translation.
    """

    start: int
    end: int
    target: str


def show_terms(
    text: str, terms: Sequence[Shown], signs: tuple[str, str, str]
) -> tuple[str, list[int]]:
    """A text with the translations of its terms, and the places of the signs in it.

    The blank before a term goes, so that no piece is spent on it: its sign parts the words.

    Args:
        text: any text.
        terms: in it, without overlap, in order.
        signs: characters that stand for `<term>`, `<is>` and `</term>`.
    """
    begin, between, end = signs
    written, places, place = "", [], 0
    for term in terms:
        written += text[place : term.start].removesuffix(" ")
        places.append(len(written))
        written += f"{begin} {text[term.start : term.end]}"
        places.append(len(written))
        written += f"{between} {term.target}"
        places.append(len(written))
        written += end
        place = term.end
    return written + text[place:], places
