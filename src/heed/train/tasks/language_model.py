"""Language modeling: the next token of running text, read in windows of one length.

A window begins with `<bos>`, so its first token is predicted without context. Each epoch cuts the
text at different positions.
"""

import math
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from heed.data.batch import Batch, Indices
from heed.data.corpus import Corpus
from heed.data.prepared import Prepared
from heed.data.progress import Report
from heed.data.running_text import open_text, prepare_text
from heed.machine.seeds import derive_seed
from heed.text.vocab import Vocab
from heed.train.recipe.recipe import Draft, Recipe
from heed.train.step.train_step import batch_losses
from heed.train.step.trainer import EpochPairs, Trainer
from heed.train.step.validate import Validation
from heed.train.tasks.task import Task
from heed.train.watch.observe import Observed

VALIDATED_TOKENS = 1 << 17
"""Most development tokens of a validation: the loss is then known to 0.005 nats."""


class Windows:
    """One text cut into windows, as targets of empty sources.

    Args:
        ids: the text, `(n_ids,)`.
        length: tokens of a window.
        offset: tokens of the first window, if it is shorter than the others.
    """

    def __init__(self, ids: NDArray[np.int32], length: int, offset: int = 0) -> None:
        starts = np.arange(offset, len(ids), length)
        self._ids = ids
        self._starts = np.concatenate([[0], starts]) if offset else starts
        self._ends = np.append(self._starts[1:], len(ids))
        self.tgt_lengths: NDArray[np.int64] = self._ends - self._starts
        self.src_lengths: NDArray[np.int64] = np.zeros_like(self.tgt_lengths)

    def src(self, index: int) -> NDArray[np.int32]:
        """No source."""
        return self._ids[:0]

    def tgt(self, index: int) -> NDArray[np.int32]:
        """Ids of window `index`, `(n_pieces,)`."""
        return self._ids[self._starts[index] : self._ends[index]]


def collate_windows(
    pairs: Windows, indices: Indices | Sequence[int], *, pad_id: int, bos_id: int, eos_id: int
) -> Batch:
    """Lay windows out as a batch without sources; `eos_id` is not used, as the text goes on."""
    numbers = np.asarray(indices, dtype=np.int64)
    rows = [pairs.tgt(number) for number in numbers.tolist()]
    tgt_out = np.full((len(rows), max(map(len, rows))), pad_id, dtype=np.int64)
    for place, row in enumerate(rows):
        tgt_out[place, : len(row)] = row
    tgt_in = np.roll(tgt_out, 1, axis=1)
    tgt_in[:, 0] = bos_id
    return Batch(
        src=torch.zeros(len(rows), 0, dtype=torch.long),
        tgt_in=torch.from_numpy(tgt_in),
        tgt_out=torch.from_numpy(tgt_out),
        src_mask=None,
        n_src_tokens=0,
        n_tgt_tokens=sum(map(len, rows)),
        indices=numbers,
    )


def _prepare(
    corpus: Corpus,
    directory: Path,
    draft: Draft,
    base: tuple[Vocab, Vocab] | None,
    report: Report,
) -> Prepared:
    return prepare_text(
        corpus, directory, config=draft.text, tokenizer=draft.tokenizer, base=base, report=report
    )


def _epochs(recipe: Recipe, data: Prepared) -> Callable[[int], EpochPairs]:
    length = recipe.text.context

    def pairs(epoch: int) -> EpochPairs:
        offset = derive_seed(recipe.training.seed, "window", epoch) % length
        return Windows(data.train.ids, length, offset if len(data.train.ids) > length else 0)

    return pairs


@torch.no_grad()
def _validate(trainer: Trainer, data: Prepared, recipe: Recipe) -> Validation:
    """The loss of the beginning of the development text, and its bits a character."""
    assert data.dev_text is not None
    started_at = time.monotonic()
    windows = Windows(data.dev_text.ids[:VALIDATED_TOKENS], recipe.text.context)
    n_rows = max(1, recipe.training.batch_tokens // recipe.text.context)
    total = n_tokens = 0.0
    for start in range(0, len(windows.tgt_lengths), n_rows):
        rows = range(start, min(start + n_rows, len(windows.tgt_lengths)))
        batch = collate_windows(windows, rows, **trainer.special_ids)
        _, nll = batch_losses(trainer, batch)
        total += nll.item()
        n_tokens += batch.n_tgt_tokens
    report: dict[str, Any] = data.report
    tokens_a_character = report["tokens"]["dev"] / report["characters"]["dev"]
    return Validation(
        loss=total / n_tokens,
        seconds=time.monotonic() - started_at,
        bits=total / n_tokens * tokens_a_character / math.log(2),
    )


def _counts(data: Prepared) -> dict[str, int]:
    tokens = data.report["tokens"]
    return {"training tokens": tokens["train"], "for development": tokens["dev"]}


LANGUAGE_MODEL = Task(
    prepare=_prepare,
    open=lambda corpus, directory: open_text(directory),
    epochs=_epochs,
    collate=collate_windows,
    validate=_validate,
    observe=lambda recipe, data: Observed(train=_epochs(recipe, data)(0)),
    usage='Continue a text with: heed generate -m {out} "Once upon a time"',
    counts=_counts,
)
