"""Words of pairs that translate one another beyond doubt, as a glossary would have them."""

from collections import Counter
from collections.abc import Sequence

from heed.explain.attention.statistical import reference
from heed.translate.words import word_spans

SHORTEST = 4
"""Letters that a term has at least: shorter words are mostly not content."""

Term = tuple[str, str]


def linked_terms(sources: Sequence[str], targets: Sequence[str]) -> list[list[Term]]:
    """Words of each pair that a statistical aligner links both ways, and with no other words.

    There are none in scripts without blanks, where each character is a word.

    Args:
        sources: lines.
        targets: their translations, as many.
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
        targets: their translations, as many.
        most: terms of a line; the rarest are taken.
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
