"""Translation: pairs of sentences, judged by translating those held out."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

from heed.data.batch import collate
from heed.data.corpus import Corpus
from heed.data.prepare import prepare
from heed.data.prepared import Prepared, open_prepared
from heed.data.progress import Report
from heed.decode.options import DecodeOptions
from heed.text.vocab import Vocab
from heed.train.epochs.maker import EpochMaker
from heed.train.recipe.recipe import Draft, Recipe
from heed.train.recipe.snapshot import make_reader, make_translator
from heed.train.step.trainer import EpochPairs, Trainer
from heed.train.step.validate import Validation, dev_sets, validate
from heed.train.tasks.task import Task
from heed.train.watch.observe import Observed, observed_pairs
from heed.translate.doubts.calibrate import MOST_PAIRS, n_pairs_after, validations_after
from heed.translate.rerank import LEAST_PAIRS

MOST_TRIED = 300
"""Development sentences with which `run/remember.py` tries the training pairs, a second or two."""


def _prepare(
    corpus: Corpus,
    directory: Path,
    draft: Draft,
    base: tuple[Vocab, Vocab] | None,
    report: Report,
) -> Prepared:
    return prepare(
        corpus,
        directory,
        config=draft.data,
        tokenizer=draft.tokenizer,
        seed=draft.seed,
        base=base,
        report=report,
    )


def _epochs(recipe: Recipe, data: Prepared) -> Callable[[int], EpochPairs]:
    """The pairs of each epoch: with slots, changed, segmented anew, as the recipe has it."""
    has_slots = bool(data.src_vocab.slots and data.tgt_vocab.slots)
    is_changed = recipe.data.recombine or recipe.data.disturb or recipe.tokenizer.subword_alpha
    if not (has_slots or is_changed):
        return lambda epoch: data.train
    make = cache(lambda: EpochMaker(recipe, data))  # not before an epoch is needed
    latest: dict[int, EpochPairs] = {}

    def pairs(epoch: int) -> EpochPairs:
        if epoch not in latest:
            latest.clear()
            latest[epoch] = make()(epoch)
        return latest[epoch]

    return pairs


def _validate(trainer: Trainer, data: Prepared, recipe: Recipe) -> Validation:
    return validate(
        make_translator(trainer, data, recipe),
        dev_sets(data),
        n_sentences=recipe.training.validation_sentences,
    )


def _observe(recipe: Recipe, data: Prepared) -> Observed:
    return observed_pairs(
        data.train,
        dev_sets(data),
        make_reader(data, recipe),
        n_dev_in_train=data.report["leaks"]["train_in_dev"],
    )


def _counts(data: Prepared) -> dict[str, int]:
    n_made = len(data.train) - data.n_real
    made = {"made by teachers": n_made} if n_made else {}
    return {"training pairs": data.n_real, **made, "for development": len(data.dev)}


def _ending(recipe: Recipe, data: Prepared) -> float:
    """The duration of what follows training, in validations: of calibration, and of the memory."""
    time_s, ranking = recipe.training.time_s, 0.0
    if len(data.train) >= LEAST_PAIRS:
        # With a beam of 5, 3.9 to 5.1 for 1,000 development pairs and 1.2 to 1.7 for 240. A beam of
        # 10 takes 1.7 more for 1,000, of the search.
        n_beams = recipe.decoding.beam_size / DecodeOptions.beam_size
        ranking = 0.5 + (2.8 + 1.7 * n_beams) * n_pairs_after(time_s) / MOST_PAIRS
    # With 1.2 validations for the memory, runs of a minute ended after 58 to 59.5 s, with 0.8 after
    # 60.3 and 61.3.
    return ranking + validations_after(time_s) + 1.0 + 0.6 * n_tried_after(time_s) / MOST_TRIED


def n_tried_after(time_s: float | None) -> int:
    """The most sentences to try after a run of this many seconds; None = no limit."""
    return MOST_TRIED if time_s is None else max(60, min(MOST_TRIED, round(1.5 * time_s)))


TRANSLATION = Task(
    prepare=_prepare,
    open=open_prepared,
    epochs=_epochs,
    collate=collate,
    validate=_validate,
    observe=_observe,
    usage="Translate with: heed translate -m {out}",
    counts=_counts,
    ending=_ending,
)
