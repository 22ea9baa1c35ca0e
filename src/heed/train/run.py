"""A whole run: corpus in, model folder out; stopped anywhere, the same call goes on.

Not the training step (`loop.py`), nor what a terminal shows (`heed/cli/train.py`).
The run folder holds `recipe.toml` (resolved), `asked.json` (what was set by hand), `data/`,
`metrics.jsonl`, `checkpoints/`, and at the end the model itself.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from heed.bundle import (
    CHECKPOINTS,
    CONFIG,
    Bundle,
    description_files,
    load_bundle,
    save_bundle,
    step_folders,
)
from heed.config import load_config
from heed.data.prepare import Corpus, Prepared, open_prepared, prepare
from heed.decode.options import DecodeOptions
from heed.device import (
    choose_dtype,
    describe_environment,
    prepare_cpu,
    seed_everything,
    set_threads,
)
from heed.errors import RunError
from heed.files import crc32, lock, read_json_lines, to_json
from heed.folders import remove_temporaries
from heed.model.build import build_model, count_parameters
from heed.train import checkpoint
from heed.train.checkpoint import Checkpoint
from heed.train.distributed import Group, joined
from heed.train.log import METRICS_FILE, EventLog, Report, fan_out
from heed.train.loop import EpochPairs, Trainer, train
from heed.train.observe import Observer
from heed.train.optimizer import Optimizer
from heed.train.progress import Progress, training_seconds
from heed.train.recipe import Recipe, max_source_tokens, measure_gflops, resolve
from heed.train.resample import ResampledPairs
from heed.train.settings import RECIPE_FILE, require_same_asked, settle
from heed.train.validate import DevSet, Validation, validate
from heed.train.weights import copy_into, using_weights
from heed.translate import Translator

DATA = "data"
"""The prepared corpus, in the run folder."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """How a call of `run_training` ended.

    Attributes:
        is_finished: the model is complete; False = paused, the same call goes on.
        was_finished: nothing was left to do.
        progress: where the run stands.
        validation: the best validation's numbers; None if there was none.
    """

    is_finished: bool
    was_finished: bool
    progress: Progress
    validation: dict[str, Any] | None


def run_training(
    asked: Mapping[str, Any],
    corpus: Corpus,
    out: Path,
    *,
    report: Report,
    should_stop: Callable[[], bool] = lambda: False,
    where: str = "",
    started_at: float | None = None,
) -> Outcome:
    """Train a model from `corpus` into the folder `out`, or go on with it.

    Args:
        asked: settings made by hand, as nested dicts (see `recipe.resolve`).
        corpus: where the sentences are.
        out: the run folder; made if it is not there.
        report: hears every event.
        should_stop: asked after each step; True saves and pauses.
        where: the file the settings come from, for messages.
        started_at: `time.monotonic()` from which the time given counts; None = now.

    Raises:
        ConfigError: a setting is unknown or impossible.
        DataError: the corpus cannot be read.
        RunError: another process works in `out`, the recipe changed, or the disk is full.
    """
    started_at = time.monotonic() if started_at is None else started_at
    draft = resolve(asked, where=where)
    prepare_cpu()
    set_threads(draft.training.threads or None)
    with joined(draft.training.device) as group, _held_by_leader(out, group):
        if group.is_leader:
            recipe, data = _set_up(out, asked, draft, corpus, group, where)
        group.wait()
        if not group.is_leader:
            with group.on_its_own():
                recipe, data = _open_set_up(out, corpus)
        group.require_same(
            crc32(to_json(asked)),
            "the processes of a run must all be started with the same settings, but were not.",
        )
        trainer = make_trainer(recipe, data, group)
        was_finished, notes = _resume(trainer, out)
        if not was_finished:
            trainer.started_at = started_at - trainer.progress.elapsed_s
            _train(trainer, recipe, data, out, notes, report, should_stop)
        return Outcome(
            is_finished=trainer.progress.is_finished,
            was_finished=was_finished,
            progress=trainer.progress,
            validation=best_validation(out),
        )


def _held_by_leader(out: Path, group: Group) -> AbstractContextManager[None]:
    return lock(out) if group.is_leader else nullcontext()


def _set_up(
    out: Path,
    asked: Mapping[str, Any],
    draft: Recipe,
    corpus: Corpus,
    group: Group,
    where: str,
) -> tuple[Recipe, Prepared]:
    """Write all that training starts from into the run folder, or find it there."""
    require_same_asked(out, asked)
    remove_temporaries(out)
    data = prepare(
        corpus,
        out / DATA,
        config=draft.data,
        tokenizer=draft.tokenizer,
        seed=draft.training.seed,
    )
    recipe = settle(out, asked, data, lambda: group.size * measure_gflops(group.device), where)
    return recipe, data


def _open_set_up(out: Path, corpus: Corpus) -> tuple[Recipe, Prepared]:
    """Read what the leader has set up."""
    if not (out / RECIPE_FILE).exists():
        raise RunError(f"{out} must be a folder that all hosts of a run share, but it is not.")
    return load_config(Recipe, out / RECIPE_FILE), open_prepared(corpus, out / DATA)


def _train(
    trainer: Trainer,
    recipe: Recipe,
    data: Prepared,
    out: Path,
    notes: list[str],
    report: Report,
    should_stop: Callable[[], bool],
) -> None:
    """Train to the end or to a pause; at the end put the model into the run folder.

    Only the leader of several processes reports and writes.
    """
    is_leader = trainer.group.is_leader
    if is_leader:
        log = EventLog(out)
        log.forget_after(trainer.progress.step)
        observer = make_observer(fan_out(log, report), trainer, data, recipe)
        observer.recall(read_json_lines(log.path) if log.path.exists() else ())
        report, examine = observer, observer.examine
    else:
        report, examine = fan_out(), None
    for note in notes:
        report({"kind": "note", "text": note, "step": trainer.progress.step})
    report(_start_event(trainer, recipe, data))
    is_finished = trainer.progress.is_finished or train(
        trainer,
        keeper=RunKeeper(out=out, recipe=recipe, data=data, report=report),
        validate=lambda trainer: validate_trainer(trainer, data, recipe, examine),
        report=report,
        should_stop=should_stop,
    )
    if is_finished and is_leader:
        finish(out, trainer, recipe, data, report)


def make_trainer(recipe: Recipe, data: Prepared, group: Group) -> Trainer:
    """A fresh model and optimiser for this recipe."""
    config, device = recipe.training, group.device
    seed_everything(config.seed, "weights")
    model = build_model(recipe.model).to(device)
    averaged = {}
    if config.ema_decay:
        averaged = {name: p.detach().clone() for name, p in model.named_parameters()}
    vocab = data.tgt_vocab
    return Trainer(
        model=model,
        config=config,
        optimizer=Optimizer(model, config),
        pairs=_pairs_by_epoch(recipe, data),
        special_ids={"pad_id": vocab.pad_id, "bos_id": vocab.bos_id, "eos_id": vocab.eos_id},
        device=device,
        group=group,
        dtype=choose_dtype(config.precision, device),
        averaged=averaged,
        time_limit_s=training_seconds(config.time_s, None),
    )


def _pairs_by_epoch(recipe: Recipe, data: Prepared) -> Callable[[int], EpochPairs]:
    """Epoch number → its pairs: the store itself, or the store segmented anew each epoch."""
    alpha = recipe.tokenizer.subword_alpha
    if not alpha:
        return lambda epoch: data.train
    latest: dict[int, ResampledPairs] = {}

    def pairs(epoch: int) -> EpochPairs:
        if epoch not in latest:
            latest.clear()
            latest[epoch] = ResampledPairs(
                data.train,
                data.src_vocab,
                data.tgt_vocab,
                alpha=alpha,
                seed=recipe.training.seed,
                epoch=epoch,
                max_length=recipe.data.max_length,
            )
        return latest[epoch]

    return pairs


def validate_trainer(
    trainer: Trainer,
    data: Prepared,
    recipe: Recipe,
    examine: Callable[[Translator], None] | None = None,
) -> Validation:
    """Validate the weights that would be kept now; then let them be examined."""
    with using_weights(trainer.model, trainer.averaged):
        translator = make_translator(trainer, data, recipe)
        found = validate(
            translator, _dev_sets(data), n_sentences=recipe.training.validation_sentences
        )
        if examine:
            examine(translator)
        return found


def make_observer(report: Report, trainer: Trainer, data: Prepared, recipe: Recipe) -> Observer:
    """One that tells `report` what it sees of this run."""
    return Observer(
        report,
        trainer,
        train=data.train,
        dev_sets=_dev_sets(data),
        n_dev_in_train=data.report["leaks"]["train_in_dev"],
        translator=make_translator(trainer, data, recipe),
    )


@dataclass(frozen=True, kw_only=True)
class RunKeeper:
    """Keeps a run's checkpoints in its folder.

    Attributes:
        out: the run folder.
        recipe: goes into every model folder.
        data: vocabularies and languages go into every model folder.
        report: hears of every checkpoint.
    """

    out: Path
    recipe: Recipe
    data: Prepared
    report: Report

    def save(self, trainer: Trainer) -> None:
        """Keep everything needed to go on from here, in a folder that is a model too."""
        self._require_folder()
        config = self.recipe.training
        checkpoint.save(
            self.out,
            trainer.progress.step,
            model={name: p.detach() for name, p in trainer.model.named_parameters()},
            optimizer=trainer.optimizer.state(),
            average=trainer.averaged,
            progress=asdict(trainer.progress),
            extra=description_files(make_bundle(trainer, self.recipe, self.data)),
            keep=max(config.keep_checkpoints, config.average_checkpoints),
        )
        self.report({"kind": "checkpoint", "step": trainer.progress.step})

    def restore(self, trainer: Trainer) -> int:
        """Give back the newest checkpoint's weights, or the first ones; data and clock stay."""
        found = checkpoint.load_newest(self.out)
        if found is None:
            fresh = make_trainer(self.recipe, self.data, trainer.group)
            copy_into(trainer.model, fresh.weights())
            trainer.averaged, trainer.optimizer = (
                fresh.averaged,
                Optimizer(trainer.model, fresh.config),
            )
            return 0
        _load(trainer, found)
        return found.step

    def save_best(self, trainer: Trainer, validation: Validation) -> None:
        """Keep the weights that just validated best, as a model folder of their own."""
        self._require_folder()
        bundle = make_bundle(trainer, self.recipe, self.data)
        save_bundle(self.out / CHECKPOINTS / "best", bundle, numbers=_numbers(validation))

    def _require_folder(self) -> None:
        # Saving would make it anew, without the corpus and the recipe it needs to go on.
        if not (self.out / RECIPE_FILE).exists():
            raise RunError(
                f"cannot write {self.out}: it was moved or removed while its run was going on."
            )


def finish(out: Path, trainer: Trainer, recipe: Recipe, data: Prepared, report: Report) -> None:
    """Put the best model into the run folder itself; the average of checkpoints if it is better."""
    best = load_bundle(out / CHECKPOINTS / "best")
    validation = best_validation(out) or {}
    if recipe.training.average_checkpoints > 1:
        folders = [folder for _, folder in step_folders(out)]
        mean = checkpoint.average_checkpoints(folders[: recipe.training.average_checkpoints])
        averaged = replace(trainer, averaged=mean)
        found = validate_trainer(averaged, data, recipe)
        metric = recipe.training.metric
        is_better = trainer.progress.best is None or found.score(metric) > trainer.progress.best
        report(
            {"kind": "average", "checkpoints": len(folders), "is_best": is_better, **asdict(found)}
        )
        if is_better:
            best, validation = make_bundle(averaged, recipe, data), asdict(found)
    numbers = {
        **{key: validation[key] for key in ("loss", "bleu", "chrf") if validation.get(key)},
        "parameters": count_parameters(trainer.model),
        "training pairs": len(data.train),
        "training time (s)": round(trainer.elapsed_s),
    }
    save_bundle(out, best, numbers=numbers)
    report(
        {"kind": "end", "step": trainer.progress.step, "elapsed_s": trainer.elapsed_s, **numbers}
    )


def make_bundle(trainer: Trainer, recipe: Recipe, data: Prepared) -> Bundle:
    """The model as it is now, with all that is needed to translate with it."""
    defaults = asdict(DecodeOptions())
    decoding = {
        key: value for key, value in asdict(recipe.decoding).items() if value != defaults[key]
    }
    return Bundle(
        config=recipe.model,
        weights=dict(trainer.weights()),
        src_vocab=data.src_vocab,
        tgt_vocab=data.tgt_vocab,
        source_lang=data.source_lang,
        target_lang=data.target_lang,
        target_langs=data.target_langs,
        decoding={**decoding, "max_source_tokens": _max_source_tokens(data, recipe)},
    )


def _max_source_tokens(data: Prepared, recipe: Recipe) -> int:
    longest = int(data.train.src_lengths.max())
    # Of these, `<eos>` and the tag of a target language are no pieces of the sentence.
    return max_source_tokens(recipe, longest - 1 - bool(data.target_langs))


def make_translator(trainer: Trainer, data: Prepared, recipe: Recipe) -> Translator:
    """The model as it is now, ready to translate text."""
    return Translator(
        trainer.model,
        data.src_vocab,
        data.tgt_vocab,
        options=recipe.decoding,
        source_lang=data.source_lang,
        target_lang=data.target_lang,
        target_langs=data.target_langs,
        max_source_tokens=_max_source_tokens(data, recipe),
        device=str(trainer.device),
    )


def best_validation(out: Path) -> dict[str, Any] | None:
    """The event of the best validation so far, from the run's metrics."""
    path = out / METRICS_FILE
    if not path.exists():
        return None
    best = None
    for event in read_json_lines(path):
        if event.get("kind") == "validation" and event.get("is_best"):
            best = event
    return best


def _resume(trainer: Trainer, out: Path) -> tuple[bool, list[str]]:
    """Load the newest whole checkpoint, if any.

    Returns:
        Whether the run is finished already, and what a person should know.
    """
    group = trainer.group
    with group.on_its_own():
        found = checkpoint.load_newest(out)
    group.require_same(
        found.step if found else 0,
        f"the processes of a run must all go on from one checkpoint, but see different ones in "
        f"{out}. Its folder must be one that all hosts share.",
    )
    if found is None:
        return False, []
    trainer.progress = progress = Progress(**found.progress)
    _load(trainer, found)
    trainer.time_limit_s = training_seconds(trainer.config.time_s, progress.reserve_s)
    trainer.started_at = time.monotonic() - progress.elapsed_s
    trainer.tick()
    if progress.is_finished:
        # A run given more time or steps than it has used goes on.
        progress.is_finished = trainer.share >= 1.0 or _has_stopped_early(trainer)
    is_complete = bool(group.agree(progress.is_finished and (out / CONFIG).exists()))
    notes = [*found.warnings]
    if not is_complete:
        notes.append(f"going on from step {found.step}")
    if progress.step_batches not in (0, trainer.config.accumulate * group.size):
        notes.append(
            f"a step learns from {progress.step_batches} batches, as when the run began; "
            f"processes now: {group.size}"
        )
    return is_complete, notes


def _load(trainer: Trainer, found: Checkpoint) -> None:
    """Take over the tensors of a checkpoint."""
    copy_into(trainer.model, found.model)
    trainer.optimizer = Optimizer(trainer.model, trainer.config)  # forgets what it had
    trainer.optimizer.load_state(found.optimizer)
    for name in trainer.averaged:
        trainer.averaged[name].copy_(found.average[name])


def _has_stopped_early(trainer: Trainer) -> bool:
    patience = trainer.config.patience
    return bool(patience) and trainer.progress.without_gain >= patience


def _dev_sets(data: Prepared) -> list[DevSet]:
    languages = data.target_langs or ("",)
    sets = []
    for language in languages:
        pairs = [pair for pair in data.dev if not language or pair.target_lang == language]
        if pairs:
            sets.append(
                DevSet(
                    src=[pair.src for pair in pairs],
                    tgt=[pair.tgt for pair in pairs],
                    target_lang=language or data.target_lang,
                )
            )
    return sets


def _numbers(validation: Validation) -> dict[str, Any]:
    found = {"loss": validation.loss, "bleu": validation.bleu, "chrf": validation.chrf}
    return {key: round(value, 4) for key, value in found.items() if value is not None}


def _start_event(trainer: Trainer, recipe: Recipe, data: Prepared) -> dict[str, Any]:
    return {
        "kind": "start",
        "step": trainer.progress.step,
        "parameters": count_parameters(trainer.model),
        "pairs": len(data.train),
        "dev_pairs": len(data.dev),
        "data": data.report,
        "model": recipe.model.to_dict(),
        "time_s": recipe.training.time_s,
        "max_steps": recipe.training.max_steps,
        "environment": {**describe_environment(), "processes": trainer.group.size},
    }
