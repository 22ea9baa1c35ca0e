"""Pairs in which spans that are the same on both sides, such as `%s`, are replaced by slots.

The store holds texts as they are; spans are replaced when training begins.
"""

import unicodedata
from collections.abc import Iterator
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from heed.data.store import Store
from heed.machine.seeds import derived_random
from heed.text.protected import Rules
from heed.text.shared import marks_of, shared_spans
from heed.text.slots import Slots, encode_with
from heed.text.spans import BLANK_SIGN
from heed.text.vocab import Vocab
from heed.train.epochs.replaced import ReplacedPairs, Replacement
from heed.train.step.trainer import EpochPairs

N_NUMBERINGS = 32
"""Ways to number slots in an epoch. In every second one they are numbered in order, as they are
when a text is translated; the others let all of them be learned."""

_PLAIN_MARKS = frozenset(" .,;:!?'\"()-–—…“”„‘’«»、。，！？「」")

Ids = NDArray[np.integer[Any]]

_known: WeakValueDictionary[tuple[int, str, str], ReplacedPairs] = WeakValueDictionary()
"""Pairs with slots that are in use: training reads them, and at its end the memory. They keep their
store, so no other one has its id."""


def with_slots(store: Store, src_vocab: Vocab, tgt_vocab: Vocab) -> EpochPairs:
    """All pairs, with common spans replaced by slots that are numbered in order.

    Args:
        store: the corpus; it is returned as it is if one of the vocabularies has no slots.
        src_vocab: pieces of the sources.
        tgt_vocab: pieces of the targets.
    """
    if not (src_vocab.slots and tgt_vocab.slots):
        return store
    key = id(store), src_vocab.hash, tgt_vocab.hash
    known = _known.get(key)
    if known is None:
        known = _known[key] = ReplacedPairs(store, _slotted(store, src_vocab, tgt_vocab))
    return known


def _slotted(store: Store, src_vocab: Vocab, tgt_vocab: Vocab) -> Iterator[Replacement]:
    rules = Rules.default()
    assert src_vocab.slots is not None and tgt_vocab.slots is not None
    for number in _candidates(store, src_vocab, tgt_vocab).tolist():
        src_ids, tgt_ids = store.src(number).tolist(), store.tgt(number).tolist()
        n_tags = next((i for i, id in enumerate(src_ids) if not src_vocab.is_control(id)), 0)
        src, tgt = src_vocab.decode(src_ids), tgt_vocab.decode(tgt_ids)
        shared = shared_spans(src, tgt, rules)
        if shared:
            src_marks, _ = marks_of(shared, src_vocab.slots)
            _, tgt_marks = marks_of(shared, tgt_vocab.slots)
            yield Replacement(
                number,
                src_ids[:n_tags] + encode_with(src_vocab, src, src_marks),
                encode_with(tgt_vocab, tgt, tgt_marks),
            )


def _candidates(store: Store, src_vocab: Vocab, tgt_vocab: Vocab) -> NDArray[np.int64]:
    """Numbers of the pairs in which both sides hold more than words and common marks.

    Reading the pieces costs a hundredth of searching all texts for spans.
    """
    found = []
    for vocab in (src_vocab, tgt_vocab):
        pieces = vocab.pieces(range(vocab.size))
        found.append(np.array([_is_unusual(piece) for piece in pieces]))
        found[-1][list(vocab.control_ids)] = False
    is_candidate = [
        number
        for number in range(len(store))
        if found[0][store.src(number)].any() and found[1][store.tgt(number)].any()
    ]
    return np.array(is_candidate, dtype=np.int64)


def _is_unusual(piece: str) -> bool:
    """Whether a piece can be part of a span: it has a digit, a rare sign, or is a byte."""
    return any(
        c not in _PLAIN_MARKS and c != BLANK_SIGN and unicodedata.category(c)[0] not in "LM"
        for c in piece
    )


class Renumbered:
    """Pairs whose slots have other numbers in every epoch, the same on both sides of a pair.

    Args:
        pairs: with slots numbered in order.
        src_vocab: pieces of the sources; has slots.
        tgt_vocab: pieces of the targets; has slots.
        seed: with `epoch` decides the numbers.
        epoch: number of the pass through the data.

    Attributes:
        src_lengths: source tokens of each pair, `<eos>` included, `(n_pairs)`.
        tgt_lengths: target tokens of each pair, `<eos>` included, `(n_pairs)`.
    """

    def __init__(
        self,
        pairs: EpochPairs,
        src_vocab: Vocab,
        tgt_vocab: Vocab,
        *,
        seed: int,
        epoch: int,
    ) -> None:
        self._pairs = pairs
        self._src_tables, self._tgt_tables = (
            _tables(vocab, derived_random(seed, "slots", epoch)) for vocab in (src_vocab, tgt_vocab)
        )
        self.src_lengths, self.tgt_lengths = pairs.src_lengths, pairs.tgt_lengths

    def src(self, index: int) -> Ids:
        """Source ids of pair `index` without special pieces, `(n_pieces)`."""
        ids: Ids = self._src_tables[index % N_NUMBERINGS][self._pairs.src(index)]
        return ids

    def tgt(self, index: int) -> Ids:
        """Target ids of pair `index` without special pieces, `(n_pieces)`."""
        ids: Ids = self._tgt_tables[index % N_NUMBERINGS][self._pairs.tgt(index)]
        return ids


def _tables(vocab: Vocab, random: np.random.Generator) -> NDArray[np.int32]:
    """For each numbering of the slots, the new id of each id, `(n_numberings, vocab_size)`."""
    slots = vocab.slots
    assert isinstance(slots, Slots)
    tables = np.tile(np.arange(vocab.size, dtype=np.int32), (N_NUMBERINGS, 1))
    is_in_order = random.permutation(N_NUMBERINGS) < N_NUMBERINGS // 2
    for row in np.flatnonzero(~is_in_order):
        for ids in (slots.numbers, slots.things):
            tables[row, list(ids)] = random.permutation(ids)
        order = random.permutation(len(slots.opens))
        tables[row, list(slots.opens)] = np.array(slots.opens)[order]
        tables[row, list(slots.closes)] = np.array(slots.closes)[order]
    return tables
