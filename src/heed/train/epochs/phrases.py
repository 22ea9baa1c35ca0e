"""Phrases of a pair that translate one another, by an alignment of its words.

Source: Koehn, Och and Marcu 2003, "Statistical Phrase-Based Translation", section 3.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

MAX_WORDS = 5
"""Most words of a phrase on either side."""


class Place(NamedTuple):
    """Where a phrase and its translation stand in a pair: the first word, one past the last."""

    src: tuple[int, int]
    tgt: tuple[int, int]

    def touches(self, other: "Place") -> bool:
        """Whether the places overlap or are adjacent on one of the sides."""
        return any(
            start <= other_end and other_start <= end
            for (start, end), (other_start, other_end) in zip(self, other, strict=True)
        )


def phrases(links: Mapping[int, int], n_src: int) -> Iterator[Place]:
    """Adjacent source words whose translations are adjacent too, but not the whole source.

    Args:
        links: the target word of each source word that has one; no two have the same.
        n_src: words of the source.
    """
    for start in range(n_src):
        tgt: list[int] = []
        for end in range(start + 1, min(start + MAX_WORDS, n_src) + 1):
            if end - 1 not in links:
                break
            tgt.append(links[end - 1])
            low, high = min(tgt), max(tgt) + 1
            if high - low == len(tgt) < n_src:
                yield Place((start, end), (low, high))
