"""A statistical word aligner: IBM model 2 with a prior for the diagonal, as in fast_align.

It needs no model of ours, so it can rank attention heads where there is no manual alignment, and
find phrases before a model is trained.

Source: Dyer, Chahuneau and Smith 2013, "A Simple, Fast, and Effective Reparameterization of IBM
    Model 2", section 2, with a fixed λ.
"""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

TENSION = 4.0
"""λ: the penalty of a link for its distance from the diagonal."""
P_NONE = 0.08
"""Probability that a word is aligned with no word of the other side."""
ROUNDS = 5
MAX_CELLS = 1 << 20
"""Most words of the source times those of the target, for a pair to be aligned."""
_UNKNOWN = 1e-9

Link = tuple[int, int]
"""A source word and a target word, both from 0."""

Words = Sequence[Sequence[str]]
Numbers = NDArray[np.int64]
Shares = NDArray[np.float64]


def aligned(sources: Words, targets: Words) -> list[set[Link]]:
    """For each target word its most probable source word, if that is more probable than no word.

    Args:
        sources: words of each source.
        targets: words of each target; the same number.

    Returns:
        Links of each pair; none of a pair with more than `MAX_CELLS` cells, which take memory.
    """
    cells = _Cells(sources, targets)
    chances = np.ones(cells.n_kinds)
    for _ in range(ROUNDS):
        expected = np.bincount(cells.kinds, cells.shares(chances), minlength=cells.n_kinds)
        totals = np.bincount(cells.source_of_kind, expected)
        chances = expected / np.maximum(totals, _UNKNOWN)[cells.source_of_kind]
    return cells.best(cells.shares(chances), len(sources))


class _Cells:
    """All pairs of a target word and a source word or none (index 0), over all sentences in a row.

    Attributes:
        rows: number of the cell's target word, over all sentences, `(n_cells,)`.
        kinds: number of its pair of spellings, `(n_cells,)`.
        priors: its prior probability, `(n_cells,)`.
    """

    def __init__(self, sources: Words, targets: Words) -> None:
        source_ids, target_ids = _numbered(sources, first=1), _numbered(targets, first=0)
        n_target = 1 + max((max(ids, default=0) for ids in target_ids), default=0)
        rows, keys, priors, self._places = [], [], [], []
        n_rows = 0
        for number, (src, tgt) in enumerate(zip(source_ids, target_ids, strict=True)):
            if not src or not tgt or (len(src) + 1) * len(tgt) > MAX_CELLS:
                continue
            grid = np.add.outer(np.zeros(len(tgt), np.int64), np.array([0, *src])) * n_target
            keys.append((grid + np.array(tgt)[:, None]).ravel())
            rows.append(np.repeat(np.arange(n_rows, n_rows + len(tgt)), len(src) + 1))
            priors.append(_priors(len(tgt), len(src)).ravel())
            self._places += [(number, target) for target in range(len(tgt))]
            n_rows += len(tgt)
        empty = np.zeros(0, np.int64)
        self.rows = np.concatenate([empty, *rows])
        self.priors = np.concatenate([empty, *priors])
        distinct, self.kinds = np.unique(np.concatenate([empty, *keys]), return_inverse=True)
        self.source_of_kind = distinct // n_target
        self.n_kinds = len(distinct)

    def shares(self, chances: Shares) -> Shares:
        """The probability of each cell in its row, given p(target | source) by kind."""
        weights = self.priors * chances[self.kinds]
        totals = np.bincount(self.rows, weights)
        found: Shares = weights / np.maximum(totals, _UNKNOWN**3)[self.rows]
        return found

    def best(self, shares: Shares, n_pairs: int) -> list[set[Link]]:
        """The largest cell of each row, as links of each pair."""
        links: list[set[Link]] = [set() for _ in range(n_pairs)]
        bounds = np.searchsorted(self.rows, np.arange(len(self._places) + 1))
        for (pair, target), (start, end) in zip(self._places, pairwise(bounds), strict=True):
            source = int(shares[start:end].argmax()) - 1
            if source >= 0:
                links[pair].add((source, target))
        return links


def _numbered(sentences: Words, *, first: int) -> list[list[int]]:
    """Words as numbers; equal words have the same number whatever their case."""
    numbers: dict[str, int] = {}
    return [
        [numbers.setdefault(word.casefold(), len(numbers) + first) for word in words]
        for words in sentences
    ]


def _priors(n_tgt: int, n_src: int) -> Shares:
    """δ(i | j): exp(−λ |i/m − j/n|), with no word first, `(n_tgt, n_src + 1)`; rows sum to 1."""
    places = np.arange(1, n_tgt + 1)[:, None] / n_tgt - np.arange(1, n_src + 1) / n_src
    near = np.exp(-TENSION * np.abs(places))
    near *= (1 - P_NONE) / near.sum(axis=1, keepdims=True)
    return np.hstack([np.full((n_tgt, 1), P_NONE), near])
