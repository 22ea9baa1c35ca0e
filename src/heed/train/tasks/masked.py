"""Masked language modeling: hidden pieces of a line, each predicted from all that is visible.

Each piece is chosen with a probability of 15 %, at least one in a line. Of these 80 % are replaced
by `<mask>`, 10 % by a random piece, and 10 % stay. Each epoch chooses others. Source: Devlin et al.
2019, "BERT", section 3.1.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from heed.data.batch import Batch, Indices, collate
from heed.data.corpus import Corpus, TextConfig
from heed.data.prepared import Prepared
from heed.data.progress import Report
from heed.data.running_text import open_text, prepare_text
from heed.data.store import Store
from heed.machine.seeds import derived_random
from heed.text.vocab import N_SPECIAL, Vocab
from heed.train.recipe.recipe import Draft, Recipe
from heed.train.step.trainer import EpochPairs, Trainer
from heed.train.step.validate import Validation
from heed.train.tasks.predicted import predicted
from heed.train.tasks.task import Task
from heed.train.watch.observe import Observed

VALIDATED_LINES = 2000
"""Most development lines of a validation."""

MASKED, REPLACED = 0.8, 0.1
"""Shares of the chosen pieces that become `<mask>`, and a random piece."""


class MaskedText:
    """One epoch of lines: sources with masks, targets with the pieces that were chosen.

    Args:
        store: the lines, as its targets.
        vocab: their pieces.
        config: the share of pieces that is chosen, and whether whole words are.
        seed: with `epoch` decides which pieces are chosen.
        epoch: number of the pass through the data.
        n_lines: lines to take, from the first; None = all.

    Attributes:
        src_lengths: pieces of each line, `<eos>` included, `(n_lines)`.
        tgt_lengths: the same.
    """

    def __init__(
        self,
        store: Store,
        vocab: Vocab,
        config: TextConfig,
        *,
        seed: int,
        epoch: int,
        n_lines: int | None = None,
    ) -> None:
        self._store, self._vocab, self._config = store, vocab, config
        self._seeds = (seed, "masks", epoch)
        self.src_lengths: NDArray[Any] = store.tgt_lengths[:n_lines]
        self.tgt_lengths: NDArray[Any] = self.src_lengths

    def src(self, index: int) -> NDArray[np.int32]:
        """Line `index` with masks, `(n_pieces,)`."""
        ids, is_chosen, random = self._drawn(index)
        chances = random.random(len(ids))
        random_ids = random.integers(N_SPECIAL, self._vocab.size, len(ids), dtype=np.int32)
        masked = np.where(is_chosen & (chances < MASKED), np.int32(self._vocab.mask_id), ids)
        is_replaced = is_chosen & (chances >= MASKED) & (chances < MASKED + REPLACED)
        return np.where(is_replaced, random_ids, masked)

    def tgt(self, index: int) -> NDArray[np.int32]:
        """The chosen pieces of line `index` in their places, `<pad>` elsewhere, `(n_pieces,)`."""
        ids, is_chosen, _ = self._drawn(index)
        return np.where(is_chosen, ids, np.int32(self._vocab.pad_id))

    def _drawn(
        self, index: int
    ) -> tuple[NDArray[np.int32], NDArray[np.bool_], np.random.Generator]:
        """A line, which of its pieces are chosen, and further random numbers."""
        random = derived_random(*self._seeds, index)
        ids = self._store.tgt(index)
        if not self._config.whole_words:
            units = np.arange(len(ids))
        else:
            units = np.cumsum(self._vocab.begins_word[ids])
            units -= units[0]
        n_units = int(units[-1]) + 1
        is_chosen = random.random(n_units) < self._config.mask_share
        is_chosen[random.integers(n_units)] |= not is_chosen.any()
        return ids, is_chosen[units], random


def collate_masked(
    pairs: MaskedText, indices: Indices | Sequence[int], *, pad_id: int, bos_id: int, eos_id: int
) -> Batch:
    """Lay lines out as a batch whose labels have the positions of the sources."""
    batch = collate(pairs, indices, pad_id=pad_id, bos_id=bos_id, eos_id=eos_id)
    is_end = batch.src == eos_id
    tgt_out = batch.tgt_out.masked_fill(is_end, pad_id)
    return Batch(
        src=batch.src,
        tgt_in=batch.tgt_in[:, :0],
        tgt_out=tgt_out,
        src_mask=batch.src_mask,
        n_src_tokens=batch.n_src_tokens,
        n_tgt_tokens=int((tgt_out != pad_id).sum()),
        indices=batch.indices,
    )


def _prepare(
    corpus: Corpus,
    directory: Path,
    draft: Draft,
    base: tuple[Vocab, Vocab] | None,
    report: Report,
) -> Prepared:
    return prepare_text(
        corpus,
        directory,
        config=draft.text,
        tokenizer=draft.tokenizer,
        is_running=False,
        base=base,
        report=report,
    )


def _epochs(recipe: Recipe, data: Prepared) -> Callable[[int], EpochPairs]:
    def pairs(epoch: int) -> MaskedText:
        seed = recipe.training.seed
        return MaskedText(data.train, data.src_vocab, recipe.text, seed=seed, epoch=epoch)

    return pairs


@torch.no_grad()
def _validate(trainer: Trainer, data: Prepared, recipe: Recipe) -> Validation:
    """Loss and accuracy of masked pieces of the first development lines, the same each time."""
    assert data.dev_text is not None
    started_at = time.monotonic()
    lines = MaskedText(
        data.dev_text, data.src_vocab, recipe.text, seed=0, epoch=0, n_lines=VALIDATED_LINES
    )
    total, n_right, n_masked = 0.0, 0, 0
    for nll, logits, labels in predicted(trainer, lines):
        total += nll
        n_right += int((logits.argmax(dim=-1) == labels).sum())
        n_masked += len(labels)
    return Validation(
        loss=total / n_masked,
        seconds=time.monotonic() - started_at,
        accuracy=100 * n_right / n_masked,
    )


def _counts(data: Prepared) -> dict[str, int]:
    tokens = data.report["tokens"]
    return {"training tokens": tokens["train"], "for development": tokens["dev"]}


MASKED_LANGUAGE_MODEL = Task(
    prepare=_prepare,
    open=lambda corpus, directory: open_text(directory),
    epochs=_epochs,
    collate=collate_masked,
    validate=_validate,
    observe=lambda recipe, data: Observed(train=data.train),  # no masks: each piece counts
    usage='Fill gaps with: heed fill -m {out} "New York is a <mask>"',
    counts=_counts,
)
