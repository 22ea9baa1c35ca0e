"""Learn from sentence pairs which target pieces translate which source pieces.

Source: Brown et al. 1993, section 4.1 (model 1), with an empty source word.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from heed.data.links import translations
from heed.data.portions import PAIRS_AT_ONCE
from heed.data.store import Store
from heed.engine.shortlist import Shortlist
from heed.text.vocab import Vocab

MAX_LINKS = 1 << 25
"""Most links of a source and a target piece that are read: bounds memory (half a gigabyte) and time
(half a minute); some 150,000 short sentence pairs."""

EACH = 100
"""Most target pieces for one source piece."""

FIRST_ALWAYS = 125
"""The most frequent target pieces in the smallest shortlist; each next list has twice as many."""

_BYTE = re.compile("<0x[0-9A-F]{2}>")

Numbers = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class Lexicon:
    """Translations of pieces, and the target pieces by frequency.

    Attributes:
        src: source id of each entry, ascending, `(n_entries,)`.
        tgt: target id of each entry, the most probable of each source id first, `(n_entries,)`.
        frequent: target ids that occur, the most frequent first, `(n_seen,)`.
        needed: target ids in every shortlist: the end of sentence, and bytes that occur.
        src_vocab_size: number of source ids.
        tgt_vocab_size: number of target ids.
    """

    src: Numbers
    tgt: Numbers
    frequent: Numbers
    needed: Numbers
    src_vocab_size: int
    tgt_vocab_size: int

    @classmethod
    def learn(cls, pairs: Store, src_vocab: Vocab, tgt_vocab: Vocab) -> Self:
        """Learn from pairs in random order, as many as `MAX_LINKS` allows.

        Args:
            pairs: ids without special pieces.
            src_vocab: vocabulary of the sources.
            tgt_vocab: vocabulary of the targets.
        """
        sizes = src_vocab.size, tgt_vocab.size
        src, tgt, chances, _ = translations(pairs, *sizes, at_most=MAX_LINKS)
        same = _same_pieces(src_vocab, tgt_vocab)
        src, tgt = np.append(src, same[:, 0]), np.append(tgt, same[:, 1])
        # Names are often copied, even if no pair contains them, so copies come first.
        order = np.lexsort((-np.append(chances, np.full(len(same), 2.0)), src))
        order = order[src[order] < src_vocab.size]
        counts = np.zeros(tgt_vocab.size, np.int64)
        for first in range(0, len(pairs), PAIRS_AT_ONCE):
            numbers = range(first, min(first + PAIRS_AT_ONCE, len(pairs)))
            counts += np.bincount(
                np.concatenate([pairs.tgt(number) for number in numbers]), minlength=len(counts)
            )
        frequent = np.argsort(-counts, kind="stable")[: np.count_nonzero(counts)]
        is_byte = [bool(_BYTE.fullmatch(piece)) for piece in tgt_vocab.pieces(range(len(counts)))]
        return cls(
            src=src[order],
            tgt=tgt[order],
            frequent=frequent,
            needed=np.append(np.flatnonzero(is_byte & (counts > 0)), tgt_vocab.eos_id),
            src_vocab_size=src_vocab.size,
            tgt_vocab_size=tgt_vocab.size,
        )

    def shortlists(self) -> Iterator[Shortlist]:
        """Shortlists from the smallest, with `FIRST_ALWAYS` common pieces, to the largest."""
        n_always = FIRST_ALWAYS
        while n_always < len(self.frequent):
            yield self.shortlist(n_always)
            n_always *= 2
        yield self.shortlist(len(self.frequent))

    def shortlist(self, n_always: int, n_each: int = EACH) -> Shortlist:
        """Make a shortlist.

        Args:
            n_always: number of most frequent target pieces that are allowed for any source.
            n_each: number of most probable translations of each source piece.
        """
        always = np.union1d(self.frequent[:n_always], self.needed)
        rank = np.arange(len(self.src)) - np.searchsorted(self.src, self.src)
        is_in = (rank < n_each) & ~np.isin(self.tgt, always)
        keys = np.unique(self.src[is_in] * self.tgt_vocab_size + self.tgt[is_in])
        src, tgt = np.divmod(keys, self.tgt_vocab_size)
        offsets = np.searchsorted(src, np.arange(self.src_vocab_size + 1))
        return Shortlist(
            common_ids=always.astype(np.int32),
            offsets=offsets.astype(np.int32),
            source_ids=tgt.astype(np.int32),
        )


def _same_pieces(src_vocab: Vocab, tgt_vocab: Vocab) -> Numbers:
    """Ids of the pieces that both vocabularies have, `(n, 2)`."""
    ids = {piece: id for id, piece in enumerate(tgt_vocab.pieces(range(tgt_vocab.size)))}
    controls = {*tgt_vocab.control_ids}
    same = [
        (id, ids[piece])
        for id, piece in enumerate(src_vocab.pieces(range(src_vocab.size)))
        if piece in ids and ids[piece] not in controls
    ]
    return np.array(same, np.int64).reshape(-1, 2)
