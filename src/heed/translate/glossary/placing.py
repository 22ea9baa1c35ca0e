"""Target terms put into a translation that lacks them: the last resort.

The words of the translation that belong to the term, by the alignment, are replaced by it. The
words around it, such as an article, do not change.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from heed.translate.glossary.glossary import Glossary, Occurrence
from heed.translate.glossary.honored import find_targets
from heed.translate.result import Translation
from heed.translate.words import Links, Span, best_stretch, link_words, word_spans

# A term is placed if so much of one word, at least, is linked with its words.
_LEAST_SHARE = 0.25
# Words of the source times words of the translation: to link them takes so many numbers.
_MAX_LINKS = 4_000_000


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


def apply_glossary(glossary: Glossary, source_text: str, translation: Translation) -> Applied:
    """Put the target terms of a glossary into a translation.

    Args:
        glossary: the terms.
        source_text: what was translated.
        translation: with its alignment; without, words are linked by where they stand.
    """
    return place_terms(glossary.occurrences(source_text), source_text, translation)


def place_terms(
    occurrences: Sequence[Occurrence],
    source_text: str,
    translation: Translation,
    taken: Sequence[Span] = (),
) -> Applied:
    """Put the target terms of occurrences into a translation.

    A term stays as it is where the translation has one of its forms already.

    Args:
        occurrences: of terms in the source.
        source_text: what was translated.
        translation: with its alignment; without, words are linked by where they stand.
        taken: stretches of the translation that are not to be replaced.
    """
    wanted = [one for one in occurrences if one.targets]
    there = find_targets(translation.text, wanted)
    missing = [one for one, span in zip(wanted, there, strict=True) if span is None]
    if not missing:
        return Applied(translation, [])
    if len(word_spans(source_text)) * len(word_spans(translation.text)) > _MAX_LINKS:
        return Applied(translation, [occurrence.term for occurrence in missing])
    links = link_words(source_text, translation)
    # The translation has target terms already; these are not to be replaced by others.
    free = _free_words(links, [*taken, *(span for span in there if span is not None)])
    replaced: list[tuple[int, int, str]] = []
    unplaced: list[str] = []
    places = {word: i for i, (word, _) in enumerate(links.src)}
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


def _free_words(links: Links, taken: Sequence[Span]) -> NDArray[np.bool_]:
    free = np.ones(len(links.tgt), dtype=bool)
    for word, (start, end) in enumerate(links.tgt):
        free[word] = not any(a < end and start < b for a, b in taken)
    return free


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
        if translation.text.isupper():
            target = target.upper()  # a line in capitals is answered in capitals
        elif start == 0 and translation.text[0].isupper():
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


def _words(text: str) -> tuple[str, ...]:
    return tuple(text[start:end] for start, end in word_spans(text))
