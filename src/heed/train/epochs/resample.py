"""Subword regularization: segment the corpus anew for every epoch.

The texts are decoded from the ids of the store, so they are not stored a second time. Source: Kudo
2018, "Subword Regularization".
"""

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heed.machine.seeds import derive_seed
from heed.text.vocab import Vocab
from heed.train.epochs.marked import SlotText
from heed.train.step.trainer import EpochPairs


class ResampledPairs:
    """One epoch of a store, segmented at random; its ids are held in memory.

    Args:
        pairs: the corpus, or an epoch of it.
        src_vocab: pieces of the source side.
        tgt_vocab: pieces of the target side.
        alpha: how freely to segment, as in `Vocab.sample`; smaller is freer.
        seed: with `epoch` decides every segmentation.
        epoch: number of the pass through the data.
        max_length: most pieces of a side, `<eos>` included; a side that would be longer is left as
            the store has it.
    """

    def __init__(
        self,
        pairs: EpochPairs,
        src_vocab: Vocab,
        tgt_vocab: Vocab,
        *,
        alpha: float,
        seed: int,
        epoch: int,
        max_length: int,
    ) -> None:
        def sampled(ids: NDArray[Any], vocab: Vocab, side: str, index: int) -> list[int]:
            # A language tag at the beginning is not text: it stays in its place, as slots do.
            n_tags = int(side == "src" and bool(vocab.languages))
            text = slots[side].decode(ids[n_tags:].tolist())
            if text is None:
                return _listed(ids)
            drawn = derive_seed(seed, side, epoch, index) % 2**32
            encode = partial(vocab.sample, alpha=alpha, seed=drawn)
            whole = [*ids[:n_tags].tolist(), *slots[side].encode(text, encode)]
            return whole if len(whole) < max_length else _listed(ids)

        slots = {"src": SlotText(src_vocab), "tgt": SlotText(tgt_vocab)}
        numbers = range(len(pairs.src_lengths))
        self._src = [sampled(pairs.src(i), src_vocab, "src", i) for i in numbers]
        self._tgt = [sampled(pairs.tgt(i), tgt_vocab, "tgt", i) for i in numbers]
        self.src_lengths = np.array([len(ids) + 1 for ids in self._src], dtype=np.int32)
        self.tgt_lengths = np.array([len(ids) + 1 for ids in self._tgt], dtype=np.int32)

    def src(self, index: int) -> NDArray[np.int32]:
        """Source ids of pair `index` without special pieces, `(n_pieces)`."""
        return np.array(self._src[index], dtype=np.int32)

    def tgt(self, index: int) -> NDArray[np.int32]:
        """Target ids of pair `index` without special pieces, `(n_pieces)`."""
        return np.array(self._tgt[index], dtype=np.int32)


def _listed(ids: NDArray[Any]) -> list[int]:
    return [int(id) for id in ids]
