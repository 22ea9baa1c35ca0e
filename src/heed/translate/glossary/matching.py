"""Finds the terms of a glossary in a text: whole words, and of two that overlap the longer one.

Terms are looked up by their first word. With a million terms this takes as long as the Aho-Corasick
automaton of a library, which also finds parts of words, and no more memory; `docs/terms.md` has the
figures.
"""

from collections import ChainMap
from collections.abc import Callable, Iterable, MutableMapping, Sequence
from copy import copy
from dataclasses import dataclass
from itertools import accumulate
from typing import Generic, TypeVar

from heed.text.spans import overlaps
from heed.translate.words import Span, word_spans, words_in

Entry = TypeVar("Entry")


@dataclass(frozen=True, slots=True)
class Match(Generic[Entry]):
    """Words of a text that match entries.

    Attributes:
        entries: all entries with these words, in any case.
        start: start of the words in the text.
        end: their end.
        first: the index of the first word.
        n_words: number of words.
    """

    entries: Sequence[Entry]
    start: int
    end: int
    first: int
    n_words: int


class Matcher(Generic[Entry]):
    """Finds entries by their words, in any case.

    Args:
        entries: with their texts.
    """

    def __init__(self, entries: Iterable[tuple[str, Entry]]) -> None:
        self._by_words: MutableMapping[str, list[Entry]] = {}
        lengths: dict[str, set[int]] = {}
        for text, entry in entries:
            words = folded_words(text)
            if words:
                self._by_words.setdefault(" ".join(words), []).append(entry)
                lengths.setdefault(words[0], set()).add(len(words))
        self._lengths: MutableMapping[str, list[int]] = {
            word: sorted(found, reverse=True) for word, found in lengths.items()
        }

    def over(
        self,
        other: "Matcher[Entry]",
        join: Callable[[list[Entry], list[Entry]], list[Entry]],
    ) -> "Matcher[Entry]":
        """A matcher of the entries of both. The time does not depend on the size of the other.

        Args:
            other: of further entries.
            join: the entries for the same words, from those of this matcher and of the other.
        """
        by_words = {
            words: join(entries, other._by_words.get(words, []))
            for words, entries in self._by_words.items()
        }
        lengths = {
            word: sorted({*own, *other._lengths.get(word, ())}, reverse=True)
            for word, own in self._lengths.items()
        }
        found = copy(self)
        found._by_words = ChainMap(by_words, other._by_words)
        found._lengths = ChainMap(lengths, other._lengths)
        return found

    def find(self, text: str, taken: Sequence[Span] = ()) -> list[Match[Entry]]:
        """The entries in a text, without overlap, in order.

        Args:
            text: any text.
            taken: stretches of it that no entry may touch, without overlap.
        """
        spans = word_spans(text)
        words = [text[start:end].casefold() for start, end in spans]
        lengths = self._lengths
        if not any(word in lengths for word in words):
            return []
        # Terms are compared with slices of this: a slice is faster than a list of words.
        joined = " ".join(words)
        taken = sorted(taken)
        starts = [0, *accumulate(len(word) + 1 for word in words)]
        found: list[Match[Entry]] = []
        place = 0
        while place < len(words):
            match = None
            for n in lengths.get(words[place], ()):
                if place + n > len(words):
                    continue
                entries = self._by_words.get(joined[starts[place] : starts[place + n] - 1])
                start, end = spans[place][0], spans[place + n - 1][1]
                if entries and not overlaps(taken, start, end):
                    match = Match(entries, start, end, place, n)
                    break
            if match:
                found.append(match)
            place += match.n_words if match else 1
        return found


def folded_words(text: str) -> list[str]:
    """The words of a text, case-folded for comparison."""
    return [word.casefold() for word in words_in(text)]
