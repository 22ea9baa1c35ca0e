"""Subword regularization: segment the corpus anew for every epoch.

The texts are decoded from the ids of the store, so they are not stored a second time. Source: Kudo
2018, "Subword Regularization".
"""

import numpy as np
from numpy.typing import NDArray

from heed.data.store import Store
from heed.machine.seeds import derive_seed
from heed.text.vocab import Vocab


class ResampledPairs:
    """One epoch of a store, segmented at random; its ids are held in memory.

    Args:
        store: the corpus.
        src_vocab: pieces of the source side.
        tgt_vocab: pieces of the target side.
        alpha: how freely to segment, as in `Vocab.sample`; smaller is freer.
        seed: with `epoch` decides every segmentation.
        epoch: number of the pass through the data.
        max_length: a segmentation longer than this is left as the store has it.
    """

    def __init__(
        self,
        store: Store,
        src_vocab: Vocab,
        tgt_vocab: Vocab,
        *,
        alpha: float,
        seed: int,
        epoch: int,
        max_length: int,
    ) -> None:
        def sampled(ids: NDArray[np.int32], vocab: Vocab, side: str, index: int) -> list[int]:
            # A language tag in front is not text: it stays in its place.
            n_tags = next((i for i, id_ in enumerate(ids) if not vocab.is_control(int(id_))), 0)
            text = vocab.decode(ids[n_tags:].tolist())
            pieces = vocab.sample(
                text, alpha=alpha, seed=derive_seed(seed, side, epoch, index) % 2**32
            )
            whole = [*ids[:n_tags].tolist(), *pieces]
            return whole if len(whole) <= max_length else ids.tolist()

        numbers = range(len(store))
        self._src = [sampled(store.src(i), src_vocab, "src", i) for i in numbers]
        self._tgt = [sampled(store.tgt(i), tgt_vocab, "tgt", i) for i in numbers]
        self.src_lengths = np.array([len(ids) + 1 for ids in self._src], dtype=np.int32)
        self.tgt_lengths = np.array([len(ids) + 1 for ids in self._tgt], dtype=np.int32)

    def src(self, index: int) -> NDArray[np.int32]:
        """Source ids of pair `index` without special pieces, `(n_pieces)`."""
        return np.array(self._src[index], dtype=np.int32)

    def tgt(self, index: int) -> NDArray[np.int32]:
        """Target ids of pair `index` without special pieces, `(n_pieces)`."""
        return np.array(self._tgt[index], dtype=np.int32)
