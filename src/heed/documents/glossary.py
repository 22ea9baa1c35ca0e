"""Glossaries: source terms, and the target terms that have to stand for them.

The models of heed have no slots for terms yet. So a term is put in after the translation: where the
source has it, the words of the translation that belong to its words, by the alignment, are replaced
by the target term. The words around it, such as an article, do not change with it.
"""

import csv
import io
import reprlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from heed.documents.segment import has_words
from heed.errors import DataError, UsageError
from heed.text.normalize import BLANKS
from heed.translate.result import Translation
from heed.translate.words import Links, Span, best_stretch, link_words, word_spans

MAX_ENTRIES = 1_000_000
MAX_TERM_CHARS = 1000

FORMATS = ("tsv", "csv")
# A term is placed if so much of one word, at least, is linked with its words.
_LEAST_SHARE = 0.25
# Words of the source times words of the translation: to link them takes so many numbers.
_MAX_LINKS = 4_000_000


@dataclass(frozen=True)
class Glossary:
    """Source terms and their target terms.

    Attributes:
        entries: the target term of each source term, as they were given.
    """

    entries: dict[str, str]

    @cached_property
    def _by_words(self) -> dict[tuple[str, ...], list[str]]:
        """Source terms by their words in small letters."""
        terms: dict[tuple[str, ...], list[str]] = {}
        for term in self.entries:
            terms.setdefault(_words(term.casefold()), []).append(term)
        return terms

    @cached_property
    def _lengths(self) -> dict[str, list[int]]:
        """How many words the terms have that begin with a word, largest first."""
        lengths: dict[str, set[int]] = {}
        for words in self._by_words:
            lengths.setdefault(words[0], set()).add(len(words))
        return {word: sorted(found, reverse=True) for word, found in lengths.items()}

    def occurrences(self, text: str) -> list["Occurrence"]:
        """Where terms stand in a text, as whole words; of two that overlap the longer one.

        A term in small letters is found in any case, another as it is written.
        """
        spans = word_spans(text)
        words = [text[start:end].casefold() for start, end in spans]
        found = []
        place = 0
        while place < len(words):
            occurrence = self._at(text, spans, words, place)
            if occurrence:
                found.append(occurrence)
            place += occurrence.n_words if occurrence else 1
        return found

    def _at(
        self, text: str, spans: list[Span], words: list[str], place: int
    ) -> "Occurrence | None":
        for length in self._lengths.get(words[place], ()):
            terms = self._by_words.get(tuple(words[place : place + length]))
            if not terms:
                continue
            start, end = spans[place][0], spans[place + length - 1][1]
            written = _words(text[start:end])
            if term := next((term for term in terms if _words(term) == written), None):
                return Occurrence(term, self.entries[term], start, end, length)
            if term := next((term for term in terms if term == term.casefold()), None):
                # A capital at the beginning of a sentence says nothing about the term.
                is_first = place == 0 and not text[start:end].isupper()
                target = self.entries[term]
                target = target if is_first else _in_case(target, text[start:end])
                return Occurrence(term, target, start, end, length)
        return None


@dataclass(frozen=True, slots=True)
class Occurrence:
    """A source term in a text.

    Attributes:
        term: as the glossary has it.
        target: its target term, in the case of the occurrence.
        start: where the occurrence begins.
        end: where it ends.
        n_words: how many words it has.
    """

    term: str
    target: str
    start: int
    end: int
    n_words: int


@dataclass(frozen=True, slots=True)
class Applied:
    """A translation with the terms of a glossary.

    Attributes:
        translation: its text has the terms. If any was put in, its tokens are words, so that its
            alignment fits the text.
        unplaced: source terms that occur and whose target terms could not be placed.
    """

    translation: Translation
    unplaced: list[str]

    @property
    def text(self) -> str:
        """The text with the terms."""
        return self.translation.text


def read_glossary(text: str, format: str = "tsv") -> Glossary:
    """Read a glossary: a line for each entry, source term first.

    Empty lines are skipped; what comes after the second column is not read.

    Args:
        text: of the glossary.
        format: `tsv`, with a tab between both, or `csv`, with a comma, and quotes where needed.

    Raises:
        DataError: names the line that is not an entry, or repeats another one's source term.
        UsageError: there is no such format.
    """
    if format not in FORMATS:
        raise UsageError(f"format must be one of {', '.join(FORMATS)}, but is {format!r}.")
    return make_glossary(_rows(text, format))


def make_glossary(rows: Iterable[tuple[int, str, str]]) -> Glossary:
    """A glossary from rows of line number, source term and target term.

    Raises:
        DataError: names the line that is not an entry, or repeats another one's source term.
    """
    entries: dict[str, str] = {}
    lines: dict[str, int] = {}
    for line, source, target in rows:
        source, target = source.strip(BLANKS), target.strip(BLANKS)
        _require_term(line, "source", source)
        _require_term(line, "target", target)
        if source in lines:
            raise DataError(
                f"Line {line} of the glossary repeats the source term {source!r} of line "
                f"{lines[source]}. Keep one of them."
            )
        if len(entries) >= MAX_ENTRIES:
            raise DataError(f"The glossary must have at most {MAX_ENTRIES:,} entries.")
        entries[source], lines[source] = target, line
    if not entries:
        raise DataError("The glossary must have at least one entry, but is empty.")
    return Glossary(entries)


def apply_glossary(glossary: Glossary, source_text: str, translation: Translation) -> Applied:
    """Put the target terms of a glossary into a translation.

    A term stays as it is where the words that belong to its words have the target term already.

    Args:
        glossary: the terms.
        source_text: what was translated.
        translation: with its alignment; without, words are linked by where they stand.
    """
    occurrences = glossary.occurrences(source_text)
    if not occurrences:
        return Applied(translation, [])
    if len(word_spans(source_text)) * len(word_spans(translation.text)) > _MAX_LINKS:
        return Applied(translation, [occurrence.term for occurrence in occurrences])
    links = link_words(source_text, translation)
    free = np.ones(len(links.tgt), dtype=bool)
    replaced: list[tuple[int, int, str]] = []
    unplaced: list[str] = []
    places = {word: i for i, (word, _) in enumerate(links.src)}
    # The translation may hold target terms already; these are not to be replaced by others.
    missing = [
        occurrence
        for occurrence in occurrences
        if not _take(translation.text, links, free, occurrence, places[occurrence.start])
    ]
    for occurrence in missing:
        stretch = _stretch(links, free, occurrence, places[occurrence.start])
        if stretch is None:
            unplaced.append(occurrence.term)
            continue
        first, last = stretch
        free[first:last] = False
        replaced.append((first, last, occurrence.target))
    if replaced:
        translation = _replaced(source_text, translation, links, sorted(replaced))
    return Applied(translation, unplaced)


def _take(
    text: str, links: Links, free: NDArray[np.bool_], occurrence: Occurrence, place: int
) -> bool:
    """Take the words of a translation that are the target term; False if there are none."""
    words = [text[start:end].casefold() for start, end in links.tgt]
    wanted = list(_words(occurrence.target.casefold()))
    n = len(wanted)
    starts = [i for i in range(len(words) - n + 1) if free[i : i + n].all()]
    found = [i for i in starts if words[i : i + n] == wanted]
    if not found:
        return False
    share = links.weights[:, place : place + occurrence.n_words].sum(axis=1)
    best = max(found, key=lambda i: float(share[i : i + n].sum()))
    free[best : best + n] = False
    return True


def _stretch(
    links: Links, free: NDArray[np.bool_], occurrence: Occurrence, place: int
) -> tuple[int, int] | None:
    share = links.weights[:, place : place + occurrence.n_words].sum(axis=1)
    if not len(share) or share[free].max(initial=0) < _LEAST_SHARE:
        return None
    return best_stretch(share, free)


def _replaced(
    source: str, translation: Translation, links: Links, replaced: list[tuple[int, int, str]]
) -> Translation:
    """A translation with stretches of words replaced, described by words in place of pieces."""
    parts: list[str] = []
    tokens: list[str] = []
    rows: list[list[float]] = []
    weights = links.weights.tolist()
    place = 0

    def keep(first: int, last: int) -> None:
        tokens.extend(translation.text[slice(*span)] for span in links.tgt[first:last])
        rows.extend(weights[first:last])

    word = 0
    for first, last, target in replaced:
        start, end = links.tgt[first][0], links.tgt[last - 1][1]
        keep(word, first)
        if start == 0 and translation.text[0].isupper():
            target = target[:1].upper() + target[1:]
        parts += (translation.text[place:start], target)
        terms = _words(target)
        tokens += terms
        rows += [links.weights[first:last].mean(axis=0).tolist()] * len(terms)
        place, word = end, last
    keep(word, len(links.tgt))
    parts.append(translation.text[place:])
    return replace(
        translation,
        text="".join(parts),
        tokens=tokens,
        token_scores=[],
        source_tokens=[source[start:end] for start, end in links.src],
        alignment=rows,
    )


def _rows(text: str, format: str) -> Iterator[tuple[int, str, str]]:
    text = text.removeprefix("\ufeff")
    rows = _tsv_rows(text) if format == "tsv" else _csv_rows(text)
    for line, columns in rows:
        if not any(column.strip(BLANKS) for column in columns):
            continue
        if len(columns) < 2:
            separator = "a tab" if format == "tsv" else "a comma"
            raise DataError(
                f"Line {line} of the glossary must have a source term, {separator} and a target "
                f"term, but is {reprlib.repr(columns[0])}."
            )
        yield line, columns[0], columns[1]


def _tsv_rows(text: str) -> Iterator[tuple[int, list[str]]]:
    for line, row in enumerate(text.splitlines(), start=1):
        yield line, row.split("\t")


def _csv_rows(text: str) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    while True:
        line = reader.line_num + 1
        try:
            columns = next(reader, None)
        except csv.Error as error:
            raise DataError(f"Line {line} of the glossary is no CSV: {error}.") from None
        if columns is None:
            return
        yield line, columns


def _require_term(line: int, side: str, term: str) -> None:
    if not has_words(term) and not any(map(str.isalnum, term)):
        raise DataError(
            f"The {side} term in line {line} of the glossary must hold a letter or a digit, but is "
            f"{term!r}."
        )
    if len(term) > MAX_TERM_CHARS:
        raise DataError(
            f"The {side} term in line {line} of the glossary must have at most {MAX_TERM_CHARS} "
            f"characters, but has {len(term)}."
        )
    if len(term.splitlines()) > 1:
        raise DataError(f"The {side} term in line {line} of the glossary must be one line.")


def _words(text: str) -> tuple[str, ...]:
    return tuple(text[start:end] for start, end in word_spans(text))


def _in_case(target: str, written: str) -> str:
    """A target term in the case of an occurrence: HOUSE, House or house."""
    if len(written) > 1 and written.isupper():
        return target.upper()
    return target[:1].upper() + target[1:] if written[:1].isupper() else target
