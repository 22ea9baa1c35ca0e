"""What a run writes: checkpoints, the best model so far, the final model.

It also wraps the current weights as a `Translator`, for validation.
"""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from torch import Tensor

from heed.bundle.bundle import description_files, load_bundle, save_bundle
from heed.bundle.find import BEST, CHECKPOINTS, INT8, SHORTLIST, step_folders
from heed.data.foreign import foreign_pieces
from heed.data.prepared import Prepared
from heed.disk.files import read_json_lines
from heed.disk.folders import read_manifest
from heed.errors import FormatError, RunError, in_shell
from heed.machine.device import describe_environment
from heed.model.build import count_parameters
from heed.model.network import TorchNetwork
from heed.train.recipe.files import RECIPE_FILE
from heed.train.recipe.recipe import Recipe
from heed.train.recipe.snapshot import decoding_to_store, make_bundle
from heed.train.run import checkpoint
from heed.train.run.calibrate import calibrate_after_training
from heed.train.run.remember import helpful_memory
from heed.train.run.setup import make_trainer, take_over
from heed.train.step.averages import copy_into, using_weights
from heed.train.step.events import METRICS_FILE, Report, finite
from heed.train.step.optimizer import Optimizer
from heed.train.step.trainer import Trainer
from heed.train.step.validate import Validation
from heed.train.tasks.table import TASKS

SCORES = ("loss", "bits", "accuracy", "f1", "bleu", "chrf")
"""Scores of a validation that a model card lists."""


@dataclass(frozen=True, kw_only=True)
class RunKeeper:
    """Keeps a run's checkpoints in its folder.

    Attributes:
        out: the run folder.
        recipe: written into every model folder.
        data: its vocabularies and languages are written into every model folder.
        report: gets an event for every checkpoint.
    """

    out: Path
    recipe: Recipe
    data: Prepared
    report: Report

    def save(self, trainer: Trainer, optimizer: dict[str, Tensor]) -> None:
        """Save a checkpoint, in a folder that is a model too."""
        self._require_folder()
        config = self.recipe.training
        checkpoint.save(
            self.out,
            trainer.progress.step,
            model={name: p.detach() for name, p in trainer.model.named_parameters()},
            optimizer=optimizer,
            average=trainer.averaged,
            progress=asdict(trainer.progress),
            extra=description_files(make_bundle(trainer, self.recipe, self.data)),
            environment={**describe_environment(), "processes": trainer.group.size},
            keep=max(config.keep_checkpoints, config.average_checkpoints),
        )
        self.report({"kind": "checkpoint", "step": trainer.progress.step})

    def restore(self, trainer: Trainer) -> int:
        """Load the newest checkpoint's weights, or the initial ones; data and clock stay."""
        found = checkpoint.load_newest(self.out)
        if found is None:
            fresh = make_trainer(self.recipe, self.data, trainer.group)
            copy_into(trainer.model, fresh.weights())
            trainer.averaged, trainer.optimizer = (
                fresh.averaged,
                Optimizer(trainer.model, fresh.config),
            )
            return 0
        take_over(trainer, found)
        return found.step

    def save_best(self, trainer: Trainer, validation: Validation) -> bool:
        """Save the weights with the best validation so far as a model folder.

        Returns:
            Whether they were saved: after a kill, better ones than those of the checkpoint may be
            there.
        """
        self._require_folder()
        score = validation.score(self.recipe.training.metric)
        if _stored_with_best(self.out).get("score", score) > score:
            return False
        bundle = make_bundle(trainer, self.recipe, self.data)
        # With the weights, because the checkpoint with these numbers follows later: after a kill
        # in between the run goes back behind them, but these weights stay the best.
        found = {key: value for key, value in asdict(validation).items() if key != "samples"}
        metadata = {
            "score": score,
            "validation": finite({"step": trainer.progress.step, **found}),
        }
        path = self.out / CHECKPOINTS / BEST
        save_bundle(path, bundle, numbers=_numbers(validation), metadata=metadata)
        return True

    def _require_folder(self) -> None:
        # Saving would make a new folder, without the corpus and recipe needed to continue.
        if not (self.out / RECIPE_FILE).exists():
            raise RunError(f"cannot write {self.out}: it was moved or removed during the run.")


def finish(
    out: Path,
    trainer: Trainer,
    recipe: Recipe,
    data: Prepared,
    report: Report,
    at_end: Callable[[Path], object] = lambda out: None,
) -> None:
    """Write the best model into the run folder; the average of checkpoints if it is better.

    `at_end` is called with the folder before the run is said to have ended.
    """
    best = load_bundle(out / CHECKPOINTS / BEST)
    best = replace(best, decoding=decoding_to_store(data, recipe))
    # What a parent wrote is not known, so a run that starts from a model forbids nothing.
    if data.target_langs and not recipe.training.parent:
        vocabs = best.src_vocab, best.tgt_vocab
        best.tgt_vocab.foreign = foreign_pieces(data.train, data.n_real, *vocabs)
    validation = best_validation(out) or {}
    if recipe.training.average_checkpoints > 1:
        folders = [folder for step, folder in step_folders(out) if step]
        folders = folders[: recipe.training.average_checkpoints]
        mean = checkpoint.average_checkpoints(folders)
        averaged = replace(trainer, averaged=mean)
        found = validate_trainer(averaged, data, recipe)
        score = _stored_with_best(out).get("score", trainer.progress.best)
        is_better = score is None or found.score(recipe.training.metric) > score
        report(
            {"kind": "average", "checkpoints": len(folders), "is_best": is_better, **asdict(found)}
        )
        if is_better:
            best, validation = make_bundle(averaged, recipe, data), asdict(found)
    numbers = {
        **{key: validation[key] for key in SCORES if validation.get(key) is not None},
        **_by_language(validation),
        "parameters": count_parameters(trainer.model),
        **_counted(recipe, data),
        "training time (s)": round(trainer.elapsed_s),
    }
    threads, notes = recipe.training.threads or None, []
    if recipe.task == "translate" and recipe.data.memory:
        place, time_s = out / CHECKPOINTS / BEST, recipe.training.time_s
        memory, text = helpful_memory(place, data, threads, time_s)
        best = replace(best, memory=memory)
        notes.append(text)
    save_bundle(out, best, numbers=numbers, metadata={"step": trainer.progress.step})
    _remove_rounded(out, report, trainer.progress.step)
    if recipe.task == "translate":
        notes += calibrate_after_training(out, threads, recipe.training.time_s)
    for text in filter(None, notes):
        report({"kind": "note", "step": trainer.progress.step, "text": text})
    at_end(out)
    report(
        {"kind": "end", "step": trainer.progress.step, "elapsed_s": trainer.elapsed_s, **numbers}
    )


def _remove_rounded(out: Path, report: Report, step: int) -> None:
    """Remove the int8 weights of the model that the run wrote before, if there are any."""
    stale = [out / name for name in (INT8, SHORTLIST) if (out / name).is_file()]
    for path in stale:
        path.unlink()
    if stale:
        again = f"heed quantize {in_shell(out)}"
        text = f"the int8 weights of the earlier model were removed: run {again} again"
        report({"kind": "note", "step": step, "text": text})


def validate_trainer(
    trainer: Trainer,
    data: Prepared,
    recipe: Recipe,
    examine: Callable[[TorchNetwork], None] | None = None,
) -> Validation:
    """Validate the weights that would be saved now, and probe them."""
    with using_weights(trainer.model, trainer.averaged):
        trainer.model.eval()
        found = TASKS[recipe.task].validate(trainer, data, recipe)
        if examine:
            examine(trainer.model)
        trainer.model.train()
        return found


def best_validation(out: Path) -> dict[str, Any] | None:
    """The numbers of the best validation so far: those of the best weights.

    Those that an older heed stored come without any; then it is the event in the run's metrics.
    """
    if stored := _stored_with_best(out).get("validation"):
        return dict(stored)
    path = out / METRICS_FILE
    if not path.exists():
        return None
    best = None
    for event in read_json_lines(path):
        if event.get("kind") == "validation" and event.get("is_best"):
            best = event
    return best


def _stored_with_best(out: Path) -> dict[str, Any]:
    """What `save_best` stored with the weights; empty if there are none."""
    try:
        return read_manifest(out / CHECKPOINTS / BEST).metadata
    except FormatError:
        return {}


def _by_language(validation: Mapping[str, Any]) -> dict[str, float]:
    return {
        f"{name} into {language}": scores[key]
        for language, scores in validation.get("by_language", {}).items()
        for key, name in (("bleu", "BLEU"), ("chrf", "chrF2"))
    }


def _numbers(validation: Validation) -> dict[str, Any]:
    found = asdict(validation)
    return {key: round(found[key], 4) for key in SCORES if found[key] is not None}


def _counted(recipe: Recipe, data: Prepared) -> dict[str, int]:
    """The amounts of training data."""
    name, count = next(iter(TASKS[recipe.task].counts(data).items()))
    return {name: count}
