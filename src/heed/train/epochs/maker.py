"""The pairs of a corpus as each epoch reads them.

With slots, some with phrases of other pairs, some disturbed, segmented anew.
"""

from typing import Any

from heed.data.prepared import Prepared
from heed.train.epochs.anchors import Anchors
from heed.train.epochs.disturb import Disturber
from heed.train.epochs.recombine import Recombiner
from heed.train.epochs.resample import ResampledPairs
from heed.train.epochs.slots import Renumbered, with_slots
from heed.train.recipe.recipe import Recipe
from heed.train.step.trainer import EpochPairs


class EpochMaker:
    """Epoch → its pairs; parts that are the same in all epochs are computed once.

    Args:
        recipe: the changes to the pairs.
        data: the corpus.
    """

    def __init__(self, recipe: Recipe, data: Prepared) -> None:
        self._recipe, self._data = recipe, data
        self._vocabs = vocabs = data.src_vocab, data.tgt_vocab
        self._has_slots = all(vocab.slots for vocab in vocabs)
        self._pairs = with_slots(data.train, *vocabs)
        own: dict[str, Any] = {"seed": recipe.training.seed, "max_length": recipe.data.max_length}
        self._recombine: Recombiner | None = None
        if recipe.data.recombine:
            share = recipe.data.recombine
            self._recombine = Recombiner(self._pairs, *vocabs, share=share, **own)
        self._disturb: Disturber | None = None
        if recipe.data.disturb:
            anchors = Anchors(data.train, *vocabs)
            self._disturb = Disturber(anchors, *vocabs, share=recipe.data.disturb, **own)

    def __call__(self, epoch: int) -> EpochPairs:
        """The pairs of an epoch; equal arguments give equal pairs."""
        recipe, seed = self._recipe, self._recipe.training.seed
        pairs = self._recombine(epoch) if self._recombine else self._pairs
        if self._disturb:
            pairs = self._disturb(epoch, pairs)
        if recipe.tokenizer.subword_alpha:
            pairs = ResampledPairs(
                pairs,
                *self._vocabs,
                alpha=recipe.tokenizer.subword_alpha,
                seed=seed,
                epoch=epoch,
                max_length=recipe.data.max_length,
            )
        return (
            Renumbered(pairs, *self._vocabs, seed=seed, epoch=epoch) if self._has_slots else pairs
        )
