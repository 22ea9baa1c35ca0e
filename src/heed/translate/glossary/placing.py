"""Target terms put into a translation that lacks them.

The words of the translation that are aligned with a term are replaced by it. The words around it,
such as an article, do not change. If no words are aligned with it, or it has several forms,
`Site.variants` returns possible translations, for a model to choose from.
"""

import unicodedata
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from heed.text.scripts import is_solid
from heed.translate.glossary.glossary import Occurrence, in_large
from heed.translate.result import Translation
from heed.translate.words import (
    Links,
    Matrix,
    Span,
    best_stretch,
    link_spans,
    word_spans,
)

# A term is placed if at least this share of one word is linked with its words.
_LEAST_SHARE = 0.25
# With at least this share, a word may be replaced by the term, if the model finds that likely.
_POOR_SHARE = 0.15
# At most this many forms are tried at a place.
_MOST_FORMS = 3
# Signs that open a bracket or a quotation.
_OPENING = ("Ps", "Pi")
# Most words of the source times words of the translation: the size of the matrix that links them.
_MAX_LINKS = 4_000_000


@dataclass(frozen=True, slots=True)
class Applied:
    """A translation with the terms of a glossary.

    Attributes:
        translation: its text has the terms. If any was put in, its tokens are words, so that its
            alignment fits the text.
        unplaced: source terms that occur and whose target terms were not placed.
    """

    translation: Translation
    unplaced: list[str]


@dataclass(frozen=True, slots=True)
class _Put:
    """A target term in the place of words of a translation, or in a gap between two.

    Attributes:
        first: the first of these words.
        last: the word after them; equal to `first` for a gap.
        target: the term.
        src: the words of the source that it translates, `(first, last)`.
        is_kept: whether it gets no capital at the beginning of a sentence.
    """

    first: int
    last: int
    target: str
    src: Span
    is_kept: bool


@dataclass(frozen=True, slots=True)
class Site:
    """A translation that lacks terms, linked with its source.

    Attributes:
        source: the source text.
        translation: the translation.
        links: between its words and those of the source.
        free: which of its words may be replaced.
        missing: occurrences that it lacks; also none if it is too long to be linked.
        taken: stretches that must not change.
        n_fixed: characters of a required beginning, before which nothing is put in either.
        is_large: whether it is the translation of a line in capitals, in capitals itself.
    """

    source: str
    translation: Translation
    links: Links
    free: NDArray[np.bool_]
    missing: Sequence[Occurrence]
    taken: Sequence[Span]
    n_fixed: int = 0
    is_large: bool = False

    @classmethod
    def of(
        cls,
        occurrences: Sequence[Occurrence],
        there: Sequence[Span | None],
        source_text: str,
        translation: Translation,
        taken: Sequence[Span],
        n_fixed: int = 0,
        *,
        is_large: bool = False,
    ) -> "Site":
        """Find the missing terms, and link the words.

        Args:
            occurrences: of terms in the source.
            there: the place of a form of each, from `find_targets`.
            source_text: the source text.
            translation: with its alignment.
            taken: stretches of it that must not be replaced.
            n_fixed: characters of a required beginning.
            is_large: source and translation are lines in capitals.
        """
        text = translation.text
        missing = [
            one for one, span in zip(occurrences, there, strict=True) if one.targets and not span
        ]
        # Target terms that are already in the translation must not be replaced by others.
        taken = [*taken, *(span for span in there if span is not None)]
        links = Links([], [], np.zeros((0, 0)), np.zeros((0, 0)))
        if missing:
            src, tgt = word_spans(source_text), word_spans(text)
            if len(src) * len(tgt) <= _MAX_LINKS:
                links = link_spans(source_text, src, translation, tgt)
        free = np.array(
            [
                start >= n_fixed and not any(a < end and start < b for a, b in taken)
                for start, end in links.tgt
            ],
            dtype=bool,
        )
        return cls(source_text, translation, links, free, missing, taken, n_fixed, is_large)

    @property
    def text(self) -> str:
        """Of the translation."""
        return self.translation.text

    def placed(self, *, is_certain: bool = False) -> Applied:
        """The translation with the missing terms in place of the words linked with them.

        Args:
            is_certain: leave out terms of several forms, of which the first would be put in.
        """
        if not self.missing:
            return Applied(self.translation, [])
        free = self.free.copy()
        put: list[_Put] = []
        unplaced: list[str] = []
        for occurrence in self.missing:
            is_open = is_certain and len(occurrence.targets) > 1
            stretch = None if is_open else self.stretch(occurrence, free)
            if stretch is None:
                unplaced.append(occurrence.term)
                continue
            first, last = stretch
            free[first:last] = False
            put.append(self._put(occurrence, first, last, occurrence.target))
        if not put:
            return Applied(self.translation, unplaced)
        put.sort(key=lambda one: one.first)
        return Applied(_with_terms(self, put), unplaced)

    def variants(self) -> list[Translation]:
        """Translations with the first missing term in each possible place and form."""
        if not self.missing or not self.links.src:
            return []
        occurrence = self.missing[0]
        stretch = self.stretch(occurrence, self.free)
        places = self.likely_places(occurrence) if stretch is None else [stretch]
        put = [
            self._put(occurrence, first, last, target)
            for first, last in places
            for target in self.likely_forms(occurrence, first, last)
        ]
        return [_with_terms(self, [one]) for one in put]

    def _put(self, occurrence: Occurrence, first: int, last: int, target: str) -> _Put:
        return _Put(first, last, target, self.words(occurrence), occurrence.is_kept)

    def words(self, occurrence: Occurrence) -> Span:
        """The words of an occurrence, by their indices in the source."""
        first = bisect_left(self.links.src, (occurrence.start, 0))
        return first, min(first + occurrence.n_words, len(self.links.src))

    def stretch(self, occurrence: Occurrence, free: NDArray[np.bool_]) -> Span | None:
        """The free words linked with an occurrence; None if the links are too weak."""
        share = self._share(occurrence)
        if share[free].max(initial=0) < _LEAST_SHARE:
            return None
        return best_stretch(share, free)

    def likely_places(self, occurrence: Occurrence) -> list[Span]:
        """The word most linked with it, and gaps beside this word and those of its neighbors."""
        n_words = len(self.links.tgt)
        share = self._share(occurrence)
        likely = [
            word
            for word in np.argsort(-share, kind="stable").tolist()
            if self.free[word] and self.text[self.links.tgt[word][0]].isalnum()
        ][:1]
        gaps = {gap for word in likely for gap in (word, word + 1)} or {n_words}
        first, last = self.words(occurrence)
        if n_words and first > 0:
            gaps.add(int(self.links.weights[:, first - 1].argmax()) + 1)
        if n_words and last < len(self.links.src):
            gaps.add(int(self.links.weights[:, last].argmax()))
        replaced = [(word, word + 1) for word in likely if share[word] >= _POOR_SHARE]
        return replaced + [(gap, gap) for gap in sorted(gaps) if self._is_open(gap)]

    def likely_forms(self, occurrence: Occurrence, first: int, last: int) -> Sequence[str]:
        """Some forms of a term for the place of these words; for a gap, the first."""
        if first == last:
            return [occurrence.target]
        if len(occurrence.targets) <= _MOST_FORMS:
            return occurrence.targets
        replaced = self.text[self.links.tgt[first][0] : self.links.tgt[last - 1][1]]
        alike = sorted(occurrence.targets, key=lambda form: -_n_equal_at_end(form, replaced))
        return alike[:_MOST_FORMS]

    def _share(self, occurrence: Occurrence) -> Matrix:
        """The share of each word that is linked with an occurrence, `(n_words,)`."""
        first, last = self.words(occurrence)
        shares: Matrix = self.links.weights[:, first:last].sum(axis=1)
        return shares

    def _is_open(self, gap: int) -> bool:
        """Whether a gap is outside all stretches that must not change."""
        if gap == len(self.links.tgt):
            return True
        place = self.links.tgt[gap][0]
        return place >= self.n_fixed and not any(start < place < end for start, end in self.taken)


def _with_terms(site: Site, put: Sequence[_Put]) -> Translation:
    """The translation with terms put in, in order; its tokens are words instead of pieces."""
    text, links = site.text, site.links
    parts: list[str] = []
    tokens: list[str] = []
    rows: list[list[float]] = []
    weights = links.weights.tolist()
    place = 0

    def keep(first: int, last: int) -> None:
        tokens.extend(text[slice(*span)] for span in links.tgt[first:last])
        rows.extend(weights[first:last])

    word = 0
    for one in put:
        start = links.tgt[one.first][0] if one.first < len(links.tgt) else len(text)
        end = links.tgt[one.last - 1][1] if one.last > one.first else start
        keep(word, one.first)
        target = one.target
        if site.is_large:
            target = in_large(target)
        elif start == 0 and text[:1].isupper() and not one.is_kept:
            target = target[:1].upper() + target[1:]
        if one.first == one.last:
            before, after = text[:start], text[start:]
            parts.append(text[place:start] + _apart(before, target, after))
        else:
            parts += (text[place:start], target)
        terms = [target[first:last] for first, last in word_spans(target)]
        tokens += terms
        rows += [_row(links, one)] * len(terms)
        place, word = end, one.last
    keep(word, len(links.tgt))
    parts.append(text[place:])
    return replace(
        site.translation,
        text="".join(parts),
        tokens=tokens,
        token_scores=[],
        source_tokens=[site.source[start:end] for start, end in links.src],
        alignment=rows,
    )


def _n_equal_at_end(one: str, other: str) -> int:
    """How many letters at the ends of two words are equal."""
    pairs = zip(reversed(one), reversed(other), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _row(links: Links, put: _Put) -> list[float]:
    """The weights of a term that was put in, for each word of the source."""
    if put.first < put.last:
        row: list[float] = links.weights[put.first : put.last].mean(axis=0).tolist()
        return row
    first, last = put.src
    return [float(first <= word < last) / max(1, last - first) for word in range(len(links.src))]


def _apart(before: str, target: str, after: str) -> str:
    """A term between two stretches of text, with the blanks that it needs."""
    if before and not (before[-1].isspace() or is_solid(before[-1]) or is_solid(target[0])):
        target = target if unicodedata.category(before[-1]) in _OPENING else " " + target
    if after and not (after[0].isspace() or is_solid(after[0]) or is_solid(target[-1])):
        # A field such as `%s` begins with a sign; the blank before it shows that it is a word.
        is_word = not before or before[-1].isspace() or after[0].isalnum()
        is_word = is_word or unicodedata.category(after[0]) in _OPENING
        target = target + " " if is_word else target
    return target
