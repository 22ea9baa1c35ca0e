"""The parts of a run that depend on what it learns; the loop and its checkpoints do not."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from heed.data.batch import Batch
from heed.data.corpus import Corpus
from heed.data.prepared import Prepared
from heed.data.progress import Report
from heed.text.vocab import Vocab
from heed.train.recipe.recipe import Draft, Recipe
from heed.train.step.trainer import EpochPairs, Trainer
from heed.train.step.validate import Validation
from heed.train.watch.observe import Observed


@dataclass(frozen=True, kw_only=True)
class Task:
    """One kind of task.

    Attributes:
        prepare: reads the corpus into a folder, unless it is there. Takes the corpus, the folder,
            the draft, the vocabularies of a parent or None, and a listener.
        open: opens the output of `prepare`.
        epochs: epoch number → its pairs.
        collate: lays pairs out as a batch.
        validate: scores the weights of a trainer in evaluation mode.
        observe: the input of the observer.
        usage: how the model is used, with `{out}` for its folder.
        ending: recipe, corpus → duration of the work after training, in validations.
        counts: amounts of text for training and development, by the name of the unit.
    """

    prepare: Callable[[Corpus, Path, Draft, tuple[Vocab, Vocab] | None, Report], Prepared]
    open: Callable[[Corpus, Path], Prepared]
    epochs: Callable[[Recipe, Prepared], Callable[[int], EpochPairs]]
    collate: Callable[..., Batch]
    validate: Callable[[Trainer, Prepared, Recipe], Validation]
    observe: Callable[[Recipe, Prepared], Observed]
    usage: str
    counts: Callable[[Prepared], dict[str, int]]
    ending: Callable[[Recipe, Prepared], float] = lambda recipe, data: 0.0
