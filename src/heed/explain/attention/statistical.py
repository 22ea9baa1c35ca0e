"""Alignments by counts as a gold standard, where there is no manual one."""

from heed.data.word_alignment import Words, aligned
from heed.explain.attention.links import Gold


def reference(sources: Words, targets: Words) -> list[Gold]:
    """Links of both directions as a gold standard: sure in both, possible in either one.

    Args:
        sources: words of each source.
        targets: words of each target; the same number.
    """
    forth = aligned(sources, targets)
    back = [{(i, j) for j, i in links} for links in aligned(targets, sources)]
    return [
        Gold(frozenset(one & other), frozenset(one | other))
        for one, other in zip(forth, back, strict=True)
    ]
