"""Words of pairs that certainly translate each other, for use as glossary terms."""

from collections import Counter
from collections.abc import Sequence

from heed.explain.attention.statistical import reference
from heed.translate.words import word_spans

SHORTEST = 4
"""Least number of letters of a term: shorter words are mostly function words."""

Term = tuple[str, str]


def linked_terms(sources: Sequence[str], targets: Sequence[str]) -> list[list[Term]]:
    """Words of each pair that a statistical aligner links only to each other, in both directions.

    There are none in scripts without blanks, where each character is a word.

    Args:
        sources: lines.
        targets: their translations; the same number.
    """
    src, tgt = ([words_of(text) for text in texts] for texts in (sources, targets))
    found = []
    for one, other, links in zip(src, tgt, reference(src, tgt), strict=True):
        n_links = Counter(i for i, _ in links.sure)
        found.append(
            [
                (one[i], other[j])
                for i, j in sorted(links.sure)
                if n_links[i] == 1 and _is_term(one[i]) and _is_term(other[j])
            ]
        )
    return found


def repeated_terms(
    sources: Sequence[str], targets: Sequence[str], *, most: int
) -> list[dict[str, str]]:
    """A small glossary for each pair: linked words that are linked in another pair, too.

    Args:
        sources: lines.
        targets: their translations; the same number.
        most: maximum number of terms per line; the rarest are taken.
    """
    found = linked_terms(sources, targets)
    counts = Counter(term for terms in found for term in set(terms))
    chosen = []
    for terms in found:
        rarest_first: dict[str, str] = {}
        for _, (src, tgt) in sorted((counts[term], term) for term in terms):
            if counts[src, tgt] > 1:
                rarest_first.setdefault(src, tgt)
        chosen.append(dict([*rarest_first.items()][:most]))
    return chosen


def words_of(text: str) -> list[str]:
    """The words of a text."""
    return [text[start:end] for start, end in word_spans(text)]


def _is_term(word: str) -> bool:
    return word.isalpha() and len(word) >= SHORTEST
