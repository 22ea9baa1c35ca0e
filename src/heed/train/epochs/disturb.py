"""Pairs with errors as in real text: an epoch in which a share of the pairs is disturbed.

Seed and epoch decide which pairs are disturbed and how, so every epoch disturbs different pairs,
and a resumed run the same. `text/disturb.py` disturbs one text; `insert.py` changes both texts of
a pair.
"""

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from heed.machine.seeds import derived_random
from heed.text.disturb import KINDS
from heed.text.normalize import normalize
from heed.text.vocab import Vocab
from heed.train.epochs.anchors import Anchors
from heed.train.epochs.insert import Texts, copied, with_name, with_raw_span, with_spans
from heed.train.epochs.marked import MarkedPair, SlotText, in_order
from heed.train.epochs.replaced import ReplacedPairs, Replacement
from heed.train.step.trainer import EpochPairs

Change = Callable[[MarkedPair, np.random.Generator], Texts | None]
"""A pair → its texts changed; None if there is nothing to change."""


def _of_source(kind: str) -> Change:
    """A disturbance of the source alone: the target does not change."""

    def change(pair: MarkedPair, random: np.random.Generator) -> Texts | None:
        return KINDS[kind](pair.src, random), pair.tgt

    return change


def _in_capitals(pair: MarkedPair, random: np.random.Generator) -> Texts | None:
    """One to three words of the source in capitals."""
    words = pair.src.split(" ")
    first = int(random.random() * len(words))
    last = first + 1 + int(random.random() * 3)
    words[first:last] = [word.upper() for word in words[first:last]]
    return " ".join(words), pair.tgt


SHARES: dict[str, tuple[float, Change]] = {
    "typo": (0.51, _of_source("typo")),
    "spans": (0.28, with_spans),
    "title": (0.06, _of_source("title")),
    "lower": (0.02, _of_source("lower")),
    "capitals": (0.02, _in_capitals),
    "name": (0.02, with_name),
    "raw_span": (0.03, with_raw_span),
    "copied": (0.02, copied),
    "spaces": (0.02, _of_source("spaces")),
    "quotes": (0.02, _of_source("quotes")),
}
"""Kinds of disturbances, and the share of each among the pairs that are disturbed."""

_NEED_SLOTS = frozenset({"spans"})


class Disturber:
    """Epoch → its pairs, some of them disturbed.

    Args:
        anchors: finds words that translate one another.
        src_vocab: pieces of the sources.
        tgt_vocab: pieces of the targets.
        share: share of the pairs of an epoch that is disturbed.
        seed: decides which.
        max_length: most pieces of a side, `<eos>` included; a pair that would be longer is not
            disturbed.
    """

    def __init__(
        self,
        anchors: Anchors,
        src_vocab: Vocab,
        tgt_vocab: Vocab,
        *,
        share: float,
        seed: int,
        max_length: int,
    ) -> None:
        self._anchors = anchors
        self._src_vocab = src_vocab
        self._src_slots, self._tgt_slots = SlotText(src_vocab), SlotText(tgt_vocab)
        self._share, self._seed, self._max_length = share, seed, max_length
        has_slots = bool(src_vocab.slots and tgt_vocab.slots)
        kinds = [kind for kind in SHARES if has_slots or kind not in _NEED_SLOTS]
        self._changes = [SHARES[kind][1] for kind in kinds]
        shares = np.array([SHARES[kind][0] for kind in kinds])
        self._ends = np.cumsum(shares / shares.sum())

    def __call__(self, epoch: int, pairs: EpochPairs) -> ReplacedPairs:
        """The pairs of an epoch.

        Args:
            epoch: decides with the seed which are disturbed, and how.
            pairs: with common spans as slots, numbered in order, where the vocabularies have slots.
        """
        return ReplacedPairs(pairs, self._replacements(epoch, pairs))

    def _replacements(self, epoch: int, pairs: EpochPairs) -> Iterator[Replacement]:
        random = derived_random(self._seed, "disturbed", epoch)
        chosen = np.flatnonzero(random.random(len(pairs.src_lengths)) < self._share)
        kinds = np.searchsorted(self._ends, random.random(len(chosen)), side="right")
        for number, kind in zip(chosen.tolist(), kinds.tolist(), strict=True):
            change = self._changes[min(kind, len(self._changes) - 1)]
            found = self._changed(pairs, number, change, random)
            if found is not None and found.fits(self._max_length):
                yield found

    def _changed(
        self, pairs: EpochPairs, number: int, change: Change, random: np.random.Generator
    ) -> Replacement | None:
        src_ids = pairs.src(number).tolist()
        tgt_ids = pairs.tgt(number).tolist()
        n_tags = int(bool(self._src_vocab.languages))
        tags, src_ids = src_ids[:n_tags], src_ids[n_tags:]
        src, tgt = self._src_slots.decode(src_ids), self._tgt_slots.decode(tgt_ids)
        if not src or not tgt:
            return None
        pair = MarkedPair(
            src=src,
            tgt=tgt,
            find=partial(self._anchors.find, src_ids, tgt_ids, src, tgt),
            slots=self._src_slots,
        )
        texts = change(pair, random)
        if texts is None or texts == (src, tgt):
            return None
        src, tgt = in_order(*texts)
        return Replacement(
            number,
            tags + self._src_slots.encode(normalize(src)),
            self._tgt_slots.encode(normalize(tgt)),
        )
