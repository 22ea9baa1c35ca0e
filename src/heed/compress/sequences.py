"""Labeled sequences to test a model on: those of its run, or the pairs of two files."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heed.bundle.bundle import Bundle
from heed.data.batch import Batch, collate, plan_epoch
from heed.data.corpus import Corpus
from heed.data.prepared import DATA, REPORT_FILE
from heed.data.readers import Pair
from heed.errors import DataError
from heed.text.normalize import normalize
from heed.text.vocab import Vocab
from heed.train.recipe.files import RECIPE_FILE
from heed.train.recipe.recipe import load_recipe
from heed.train.step.trainer import EpochPairs
from heed.train.tasks.table import TASKS

BATCH_TOKENS = 2048
N_BATCHES = 16
"""Most batches of each kind: some 2,000 sentences are enough to rank the units of a sublayer."""
N_SINGLES = 100
LONGEST = 256
"""Most tokens of a side of a pair; a longer one is left out."""


@dataclass(frozen=True, kw_only=True)
class Sequences:
    """The sequences to test a model on.

    Attributes:
        training: batches of its training corpus, or of the given files.
        held_out: batches of its development corpus, or the same batches of the given files.
        singles: some of those sequences, each in a batch of its own, without padding.
        pairs: for a translator, the pairs to translate.
    """

    training: list[Batch]
    held_out: list[Batch]
    singles: list[Batch]
    pairs: list[Pair]


def has_run(folder: Path) -> bool:
    """Whether a folder is a run with a prepared corpus."""
    return (folder / RECIPE_FILE).is_file() and (folder / DATA / REPORT_FILE).is_file()


def sequences_of_run(run: Path, bundle: Bundle) -> Sequences:
    """Training and development sequences of a run, whatever its task.

    Raises:
        FormatError: the run folder is damaged.
        DataError: no sequence is short enough.
    """
    recipe = load_recipe(run / RECIPE_FILE)
    task = TASKS[recipe.task]
    data = task.open(Corpus(), run / DATA)
    if data.dev_text is None:
        held_out: EpochPairs = EncodedPairs(bundle, data.dev)
    else:
        held_out = task.epochs(recipe, replace(data, train=data.dev_text))(0)
    return Sequences(
        training=_batches(task.epochs(recipe, data)(0), task.collate, data.tgt_vocab),
        held_out=_batches(held_out, task.collate, data.tgt_vocab),
        singles=_batches(held_out, task.collate, data.tgt_vocab, n=N_SINGLES, max_tokens=1),
        pairs=data.dev,
    )


def sequences_of_files(bundle: Bundle, pairs: Sequence[Pair]) -> Sequences:
    """Sequences of pairs, for a translator.

    Raises:
        DataError: no pair is short enough.
    """
    encoded = EncodedPairs(bundle, pairs)
    batches = _batches(encoded, collate, bundle.tgt_vocab)
    singles = _batches(encoded, collate, bundle.tgt_vocab, n=N_SINGLES, max_tokens=1)
    return Sequences(training=batches, held_out=batches, singles=singles, pairs=list(pairs))


class EncodedPairs:
    """Pairs of text as ids, without those that are too long.

    Args:
        bundle: the model whose vocabularies split the text.
        pairs: text; without a target language, that of the model.
    """

    def __init__(self, bundle: Bundle, pairs: Iterable[Pair]) -> None:
        self._rows = []
        longest = min(LONGEST, bundle.config.length_limit or LONGEST) - 2  # tag and `<eos>`
        for pair in pairs:
            src = bundle.src_vocab.encode(normalize(pair.src))
            tgt = bundle.tgt_vocab.encode(normalize(pair.tgt))
            if max(len(src), len(tgt)) <= longest:
                language = pair.target_lang or bundle.target_lang
                tag = [bundle.src_vocab.language_id(language)] if bundle.target_langs else []
                self._rows.append((np.array(tag + src), np.array(tgt)))
        self.src_lengths = np.array([len(src) + 1 for src, _ in self._rows])
        self.tgt_lengths = np.array([len(tgt) + 1 for _, tgt in self._rows])

    def src(self, index: int) -> NDArray[np.int64]:
        """Source ids, `(n_pieces,)`."""
        return self._rows[index][0]

    def tgt(self, index: int) -> NDArray[np.int64]:
        """Target ids, `(n_pieces,)`."""
        return self._rows[index][1]


def _batches(
    pairs: EpochPairs,
    lay_out: Callable[..., Batch],
    vocab: Vocab,
    *,
    n: int = N_BATCHES,
    max_tokens: int = BATCH_TOKENS,
) -> list[Batch]:
    """A random sample of the sequences, in batches.

    Raises:
        DataError: there are none.
    """
    order = plan_epoch(pairs.src_lengths, pairs.tgt_lengths, max_tokens=max_tokens, seed=1, epoch=0)
    if not order:
        raise DataError(
            f"there is no pair with {LONGEST - 2} pieces on each side at most to try the model on."
        )
    special_ids = {"pad_id": vocab.pad_id, "bos_id": vocab.bos_id, "eos_id": vocab.eos_id}
    return [lay_out(pairs, rows, **special_ids) for rows in order[:n]]
