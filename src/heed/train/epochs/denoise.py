"""Sentences with gaps, to be restored: training pairs from text in one language.

The gaps follow from seed, epoch and sentence, so each epoch has new gaps and a resumed run has
the same. Source: Lewis et al. 2020, "BART", section 2.2, text infilling: 30 % hidden, 3 pieces a
gap.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from heed.data.store import Store, TokenIds32
from heed.machine.seeds import derived_random

HIDDEN = 0.3
"""Share of the pieces that are hidden."""

PER_GAP = 3
"""Mean number of pieces in a gap."""

MIN_PIECES = 4
"""Fewest pieces of a sentence: a shorter one says too little about a gap."""

Numbers = NDArray[np.int64]


class DenoisedText:
    """One epoch's sentences of a language as pairs: with gaps, and complete.

    Args:
        store: the sentences, as its targets.
        tag: the id of their language.
        mask_id: the id that stands for a gap.
        at_most: most sentences of an epoch; if there are more, each epoch draws a sample.
        seed: with `epoch` decides all that is random.
        epoch: number of the pass through the data.

    Attributes:
        src_lengths: pieces of the sources, tag and `<eos>` included, `(n_sentences)`.
        tgt_lengths: pieces of the targets, `<eos>` included, `(n_sentences)`.
    """

    def __init__(
        self, store: Store, *, tag: int, mask_id: int, at_most: int, seed: int, epoch: int
    ) -> None:
        usable = np.flatnonzero(store.tgt_lengths > MIN_PIECES)
        self._numbers = draw(usable, at_most, seed, "denoised", epoch)
        self._store, self._tag, self._mask_id = store, tag, mask_id
        self._seeds = (seed, "gaps", tag, epoch)
        self.tgt_lengths: NDArray[Any] = store.tgt_lengths[self._numbers]
        n_hidden, n_gaps = _sizes(self.tgt_lengths - 1)
        self.src_lengths: NDArray[Any] = self.tgt_lengths - n_hidden + n_gaps + 1

    def src(self, index: int) -> TokenIds32:
        """Tag and visible pieces of sentence `index`, `(n_pieces)`."""
        number = int(self._numbers[index])
        random = derived_random(*self._seeds, number)
        return np.concatenate(([self._tag], with_gaps(self.tgt(index), self._mask_id, random)))

    def tgt(self, index: int) -> TokenIds32:
        """Sentence `index`, `(n_pieces)`."""
        return self._store.tgt(int(self._numbers[index]))


def with_gaps(ids: TokenIds32, mask_id: int, random: np.random.Generator) -> TokenIds32:
    """`ids` with some spans replaced by one mask each, never two masks side by side.

    The number of visible pieces depends on the length, not on chance.
    """
    hidden, gaps = (int(size) for size in _sizes(np.array(len(ids))))
    n_kept = len(ids) - hidden
    # A gap begins before one of the kept pieces, or after the last.
    slots = np.sort(random.choice(n_kept + 1, size=gaps, replace=False))
    widths = np.full(gaps, hidden // gaps) + (np.arange(gaps) < hidden % gaps)
    random.shuffle(widths)
    starts = slots + np.cumsum(widths) - widths
    is_hidden = np.zeros(len(ids), dtype=bool)
    for start, width in zip(starts, widths, strict=True):
        is_hidden[start : start + width] = True
    masked = ids.copy()
    masked[starts] = mask_id
    is_hidden[starts] = False
    return masked[~is_hidden]


def draw(numbers: Numbers, at_most: int, seed: int, *parts: int | str) -> Numbers:
    """`at_most` of these numbers, at random but decided by `seed` and `parts`, ascending."""
    if len(numbers) <= at_most:
        return numbers
    return np.sort(derived_random(seed, *parts).choice(numbers, size=at_most, replace=False))


def _sizes(n_pieces: NDArray[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The number of hidden pieces, and of gaps."""
    hidden = np.maximum(1, np.rint(HIDDEN * n_pieces).astype(np.int64))
    return hidden, np.maximum(1, np.rint(hidden / PER_GAP).astype(np.int64))
