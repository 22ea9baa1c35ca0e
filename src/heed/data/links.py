"""Counts of source and target pieces that occur in the same pairs, and word translation by EM.

Source: Brown et al. 1993, section 4.1 (model 1), with an empty source word.
"""

from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from heed.data.portions import random_portions
from heed.machine.seeds import derive_seed

ROUNDS = 5
"""Iterations of expectation and maximization, as in GIZA++."""

Numbers = NDArray[np.int64]


class Pairs(Protocol):
    """Pairs as ids, such as a `heed.data.store.Store`; or the same with the sides swapped.

    Attributes:
        src_lengths: source tokens of each pair and one more, `(n_pairs,)`.
        tgt_lengths: target tokens of each pair and one more, `(n_pairs,)`.
    """

    src_lengths: NDArray[np.int32]
    tgt_lengths: NDArray[np.int32]

    def src(self, index: int, /) -> NDArray[np.int32]:
        """Source ids of a pair without special pieces."""
        ...

    def tgt(self, index: int, /) -> NDArray[np.int32]:
        """Target ids of a pair without special pieces."""
        ...


class Swapped:
    """Pairs with source and target swapped."""

    def __init__(self, pairs: Pairs) -> None:
        self.src_lengths, self.tgt_lengths = pairs.tgt_lengths, pairs.src_lengths
        self.src, self.tgt = pairs.tgt, pairs.src


class Links(NamedTuple):
    """The links in some sentence pairs.

    Attributes:
        places: index of each link among the distinct ones; those of a target piece are adjacent.
        counts: number of links of each target piece, `(n_target_pieces,)`.
    """

    places: NDArray[np.int32]
    counts: Numbers


def read_links(
    pairs: Pairs, src_vocab_size: int, tgt_vocab_size: int, *, at_most: int
) -> tuple[Numbers, list[Links]]:
    """The distinct links, source * tgt_vocab_size + target, ascending; and their occurrences.

    Args:
        pairs: read in random order.
        src_vocab_size: source ids; the one after the last is the empty word.
        tgt_vocab_size: target ids.
        at_most: most pairs of a source and a target piece to read.
    """
    costs = pairs.src_lengths.astype(np.int64) * (pairs.tgt_lengths - 1)
    found: list[tuple[Numbers, Numbers, Numbers]] = []
    for numbers in random_portions(costs, at_most, seed=derive_seed(0, "lexicon")):
        keys, counts = [], []
        for number in numbers:
            src = np.append(pairs.src(number), src_vocab_size).astype(np.int64)
            tgt = pairs.tgt(number)
            keys.append((src * tgt_vocab_size + tgt[:, None]).ravel())
            counts.append(np.full(len(tgt), len(src)))
        distinct, places = np.unique(np.concatenate(keys), return_inverse=True)
        found.append((distinct, places.astype(np.int32), np.concatenate(counts)))
    distinct = np.unique(np.concatenate([np.zeros(0, np.int64), *(keys for keys, _, _ in found)]))
    links = [
        Links(np.searchsorted(distinct, keys).astype(np.int32)[places], counts)
        for keys, places, counts in found
    ]
    return distinct, links


class Translations(NamedTuple):
    """The distinct links in some pairs, by source id and then by target id.

    Attributes:
        src: source id of each; the one after the last is the empty word, `(n_links,)`.
        tgt: target id of each, `(n_links,)`.
        chances: p(target | source), `(n_links,)`.
        links: their occurrences.
    """

    src: Numbers
    tgt: Numbers
    chances: NDArray[np.float64]
    links: list[Links]


def translations(
    pairs: Pairs, src_vocab_size: int, tgt_vocab_size: int, *, at_most: int
) -> Translations:
    """Which pieces translate which, by EM; arguments as in `read_links`."""
    keys, links = read_links(pairs, src_vocab_size, tgt_vocab_size, at_most=at_most)
    src, tgt = np.divmod(keys, tgt_vocab_size)
    return Translations(src, tgt, estimate(links, src), links)


class Counted:
    """Pairs whose translations are counted when they are first needed, once for each direction.

    Args:
        pairs: as ids.
        src_vocab_size: source ids.
        tgt_vocab_size: target ids.
        at_most: most pairs of a source and a target piece to read.

    Attributes:
        pairs: the same.
    """

    def __init__(
        self, pairs: Pairs, src_vocab_size: int, tgt_vocab_size: int, *, at_most: int
    ) -> None:
        self.pairs = pairs
        self._sizes, self._at_most = (src_vocab_size, tgt_vocab_size), at_most

    def __len__(self) -> int:
        return len(self.pairs.src_lengths)

    @cached_property
    def forth(self) -> Translations:
        """p(target | source)."""
        return translations(self.pairs, *self._sizes, at_most=self._at_most)

    @cached_property
    def back(self) -> Translations:
        """p(source | target): its `src` are target ids, and its `tgt` source ids."""
        return translations(Swapped(self.pairs), *self._sizes[::-1], at_most=self._at_most)


def estimate(links: list[Links], src: Numbers) -> NDArray[np.float64]:
    """p(target | source) of each distinct link `(n_links,)`, whose source ids are `src`."""
    chances = np.ones(len(src))
    for _ in range(ROUNDS):
        expected = expected_counts(links, chances)
        chances = expected / np.bincount(src, expected)[src]
    return chances


def expected_counts(links: list[Links], chances: NDArray[np.float64]) -> NDArray[np.float64]:
    """The expected number of times that each distinct link is made, `(n_links,)`.

    Args:
        links: from `read_links`.
        chances: p(target | source) of each distinct link, `(n_links,)`.
    """
    expected = np.zeros(len(chances))
    for places, counts in links:
        shares = chances[places]
        totals = np.add.reduceat(shares, np.cumsum(counts) - counts)
        expected += np.bincount(places, shares / totals.repeat(counts), len(chances))
    return expected
