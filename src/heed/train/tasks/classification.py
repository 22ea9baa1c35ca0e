"""Classification: the label of a text."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from heed.data.batch import Batch, IdPairs, Indices, collate
from heed.data.corpus import Corpus
from heed.data.labeled import open_labeled, prepare_labeled
from heed.data.prepared import Prepared
from heed.data.progress import Report
from heed.data.store import Store
from heed.evaluate.labels import accuracy, mean_f1
from heed.model.families import family_of
from heed.text.vocab import N_SPECIAL, Vocab
from heed.train.recipe.recipe import Draft, Recipe
from heed.train.step.trainer import EpochPairs, Trainer
from heed.train.step.validate import Validation
from heed.train.tasks.predicted import predicted
from heed.train.tasks.task import Task
from heed.train.watch.observe import Observed


def collate_labeled(
    pairs: IdPairs, indices: Indices | Sequence[int], *, pad_id: int, bos_id: int, eos_id: int
) -> Batch:
    """Lay texts out as a batch with one label each."""
    batch = collate(pairs, indices, pad_id=pad_id, bos_id=bos_id, eos_id=eos_id)
    return Batch(
        src=batch.src,
        tgt_in=batch.tgt_in[:, :0],
        tgt_out=batch.tgt_out[:, :1],
        src_mask=batch.src_mask,
        n_src_tokens=batch.n_src_tokens,
        n_tgt_tokens=len(batch.src),
        indices=batch.indices,
    )


def _prepare(
    corpus: Corpus,
    directory: Path,
    draft: Draft,
    base: tuple[Vocab, Vocab] | None,
    report: Report,
) -> Prepared:
    return prepare_labeled(
        corpus,
        directory,
        config=draft.text,
        tokenizer=draft.tokenizer,
        seed=draft.seed,
        base=base,
        report=report,
    )


class MarkedWords:
    """Labeled texts with `<bos>` in front of each word of the sources.

    Args:
        store: the texts, and their labels as targets.
        vocab: their pieces.

    Attributes:
        src_lengths: the mean length for each text, marks and `<eos>` included, `(n_texts)`, so that
            batches mix texts of all lengths and have equally many. In a batch of its own length, a
            long text would be one of fewer and weigh more.
        tgt_lengths: as in `store`, `(n_texts)`.
    """

    def __init__(self, store: Store, vocab: Vocab) -> None:
        self._store, self._vocab = store, vocab
        n_tokens = sum(len(self.src(index)) + 1 for index in range(len(store)))
        self.src_lengths: NDArray[Any] = np.full(len(store), round(n_tokens / len(store)), np.int64)
        self.tgt_lengths: NDArray[Any] = store.tgt_lengths
        self.tgt = store.tgt

    def src(self, index: int) -> NDArray[np.int32]:
        """Ids of text `index`, `(n_pieces,)`."""
        return self._vocab.with_words_marked(self._store.src(index))


def _as_read(store: Store, data: Prepared, recipe: Recipe) -> Store | MarkedWords:
    """The texts as the model of this recipe reads them."""
    marks_words = family_of(recipe.model).marks_words
    return MarkedWords(store, data.src_vocab) if marks_words else store


def _epochs(recipe: Recipe, data: Prepared) -> Callable[[int], EpochPairs]:
    pairs = _as_read(data.train, data, recipe)
    return lambda epoch: pairs


@torch.no_grad()
def _validate(trainer: Trainer, data: Prepared, recipe: Recipe) -> Validation:
    """Loss, accuracy and F1 of the development texts."""
    assert data.dev_text is not None
    started_at = time.monotonic()
    found: list[int] = []
    right: list[int] = []
    total = 0.0
    texts = _as_read(data.dev_text, data, recipe)
    for nll, logits, labels in predicted(trainer, texts):
        total += nll
        found += logits[:, N_SPECIAL:].argmax(dim=-1).tolist()
        right += (labels - N_SPECIAL).tolist()
    return Validation(
        loss=total / len(right),
        seconds=time.monotonic() - started_at,
        accuracy=accuracy(found, right),
        f1=mean_f1(found, right),
    )


class _OneLabel:
    """The training texts; the targets are counted without `<eos>`, which labels do not have."""

    def __init__(self, data: Prepared) -> None:
        self._store = data.train
        self.src, self.tgt = data.train.src, data.train.tgt
        self.src_lengths = data.train.src_lengths
        self.tgt_lengths = np.ones_like(data.train.tgt_lengths)


def _counts(data: Prepared) -> dict[str, int]:
    return {"training texts": data.report["train"], "for development": data.report["dev"]}


CLASSIFICATION = Task(
    prepare=_prepare,
    open=lambda corpus, directory: open_labeled(directory),
    epochs=_epochs,
    collate=collate_labeled,
    validate=_validate,
    observe=lambda recipe, data: Observed(train=_OneLabel(data)),
    usage="Label texts with: heed classify -m {out} < lines > labels",
    counts=_counts,
)
