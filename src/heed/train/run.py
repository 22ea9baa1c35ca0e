"""A whole run: corpus in, model folder out; stopped anywhere, the same call goes on.

Not the training step (`loop.py`), nor what a terminal shows (`heed/cli/train.py`).
The run folder holds `recipe.toml` (resolved), `asked.json` (what was set by hand), `data/`,
`metrics.jsonl`, `checkpoints/`, and at the end the model itself.
"""

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from heed.bundle import (
    CHECKPOINTS,
    CONFIG,
    Bundle,
    description_files,
    load_bundle,
    save_bundle,
    step_folders,
)
from heed.config import build_config, load_config, to_toml
from heed.data.prepare import Corpus, Prepared, prepare
from heed.decode.options import DecodeOptions
from heed.device import (
    choose_device,
    choose_dtype,
    describe_environment,
    prepare_cpu,
    seed_everything,
    set_threads,
)
from heed.errors import RunError
from heed.files import (
    lock,
    make_directory,
    parse_json,
    read_bytes,
    read_json_lines,
    to_json,
    write_atomically,
)
from heed.folders import remove_temporaries
from heed.model.build import build_model, count_parameters
from heed.train import checkpoint
from heed.train.log import METRICS_FILE, EventLog, Report, fan_out
from heed.train.loop import EpochPairs, Progress, Trainer, train
from heed.train.optimizer import Optimizer
from heed.train.recipe import Facts, Recipe, measure_gflops, merge, resolve
from heed.train.resample import ResampledPairs
from heed.train.validate import DevSet, Validation, validate
from heed.translate import Translator

RECIPE_FILE = "recipe.toml"
ASKED_FILE = "asked.json"

MAY_CHANGE = {
    ("training", "time_s"),
    ("training", "max_steps"),
    ("training", "threads"),
    ("training", "patience"),
    ("training", "checkpoint_every"),
    ("training", "checkpoint_every_s"),
    ("training", "keep_checkpoints"),
    ("decoding", "*"),
}
"""Settings that a continued run may have changed; `*` stands for a whole section."""


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
) -> Outcome:
    """Train a model from `corpus` into the folder `out`, or go on with it.

    Args:
        asked: settings made by hand, as nested dicts (see `recipe.resolve`).
        corpus: where the sentences are.
        out: the run folder; made if it is not there.
        report: hears every event.
        should_stop: asked after each step; True saves and pauses.
        where: the file the settings come from, for messages.

    Raises:
        ConfigError: a setting is unknown or impossible.
        DataError: the corpus cannot be read.
        RunError: another process works in `out`, the recipe changed, or the disk is full.
    """
    started_at = time.monotonic()
    draft = resolve(asked, where=where)
    make_directory(out)
    with lock(out):
        _check_asked(out, asked)
        remove_temporaries(out)
        prepare_cpu()
        set_threads(draft.training.threads or None)
        device = choose_device(draft.training.device)
        data = prepare(
            corpus,
            out / "data",
            config=draft.data,
            tokenizer=draft.tokenizer,
            seed=draft.training.seed,
        )
        recipe = _recipe(out, asked, data, device, where)
        trainer = make_trainer(recipe, data, device)
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


def _train(
    trainer: Trainer,
    recipe: Recipe,
    data: Prepared,
    out: Path,
    notes: list[str],
    report: Report,
    should_stop: Callable[[], bool],
) -> None:
    """Train to the end or to a pause; at the end put the model into the run folder."""
    log = EventLog(out)
    log.forget_after(trainer.progress.step)
    report = fan_out(log, report)
    for note in notes:
        report({"kind": "note", "text": note, "step": trainer.progress.step})
    report(_start_event(trainer, recipe, data))
    is_finished = trainer.progress.is_finished or train(
        trainer,
        keeper=RunKeeper(out=out, recipe=recipe, data=data, report=report),
        validate=lambda trainer: validate_trainer(trainer, data, recipe),
        report=report,
        should_stop=should_stop,
    )
    if is_finished:
        finish(out, trainer, recipe, data, report)


def make_trainer(recipe: Recipe, data: Prepared, device: torch.device) -> Trainer:
    """A fresh model and optimiser for this recipe."""
    config = recipe.training
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
        dtype=choose_dtype(config.precision, device),
        averaged=averaged,
        time_limit_s=_training_seconds(config.time_s),
    )


def _training_seconds(time_s: float | None) -> float:
    """The time given, less what the last validation and writing the model will take."""
    return float("inf") if time_s is None else max(0.5 * time_s, 0.98 * time_s - 3)


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


def validate_trainer(trainer: Trainer, data: Prepared, recipe: Recipe) -> Validation:
    """Validate the weights that would be kept now."""
    with using_weights(trainer.model, trainer.averaged):
        return validate(
            make_translator(trainer, data, recipe),
            _dev_sets(data),
            n_sentences=recipe.training.validation_sentences,
        )


@contextmanager
def using_weights(model: nn.Module, weights: Mapping[str, Tensor]) -> Iterator[None]:
    """Lend `weights` to the model inside the block; an empty mapping leaves it as it is."""
    own = {name: p.detach().clone() for name, p in model.named_parameters() if name in weights}
    try:
        _copy_into(model, weights)
        yield
    finally:
        _copy_into(model, own)


@torch.no_grad()
def _copy_into(model: nn.Module, weights: Mapping[str, Tensor]) -> None:
    parameters = dict(model.named_parameters())
    for name, value in weights.items():
        parameters[name].copy_(value)


def _recipe(
    out: Path, asked: Mapping[str, Any], data: Prepared, device: torch.device, where: str
) -> Recipe:
    """The stored recipe of a run that goes on, else one resolved for this corpus and machine."""
    path = out / RECIPE_FILE
    if path.exists():
        stored = asdict(load_config(Recipe, path))
        changed = {
            section: {
                key: value
                for key, value in asked.get(section, {}).items()
                if (section, key) in MAY_CHANGE or (section, "*") in MAY_CHANGE
            }
            for section, _ in MAY_CHANGE
        }
        recipe = build_config(Recipe, merge(stored, changed), where=str(path))
    else:
        facts = Facts(
            src_vocab_size=data.src_vocab.size,
            tgt_vocab_size=data.tgt_vocab.size,
            n_pairs=len(data.train),
            n_src_tokens=int(data.train.src_lengths.sum()),
            n_tgt_tokens=int(data.train.tgt_lengths.sum()),
            gflops=measure_gflops(device),
        )
        recipe = resolve(asked, facts, where=where)
    write_atomically(path, to_toml(recipe).encode())
    return recipe


def _check_asked(out: Path, asked: Mapping[str, Any]) -> None:
    """Refuse to go on with other settings than the run began with."""
    path = out / ASKED_FILE
    if path.exists():
        before = parse_json(read_bytes(path), path)
        for key in sorted({*_flat(before), *_flat(asked)}):
            section = key[0]
            if key in MAY_CHANGE or (section, "*") in MAY_CHANGE:
                continue
            was, now = _flat(before).get(key), _flat(asked).get(key)
            if was != now:
                raise RunError(
                    f"{out} was started with {'.'.join(key)} = {_spelled(was)}, but is now asked "
                    f"for {_spelled(now)}. Use the same settings to go on, or another --out."
                )
    write_atomically(path, to_json(asked))


def _flat(values: Mapping[str, Any]) -> dict[tuple[str, ...], Any]:
    flat: dict[tuple[str, ...], Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat.update({(key, *rest): inner for rest, inner in _flat(value).items()})
        else:
            flat[(key,)] = value
    return flat


def _spelled(value: Any) -> str:
    return "the default" if value is None else str(value)


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

    def save_best(self, trainer: Trainer, validation: Validation) -> None:
        """Keep the weights that just validated best, as a model folder of their own."""
        bundle = make_bundle(trainer, self.recipe, self.data)
        save_bundle(self.out / CHECKPOINTS / "best", bundle, numbers=_numbers(validation))


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
        decoding=decoding,
    )


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
    found = checkpoint.load_newest(out)
    if found is None:
        return False, []
    trainer.progress = Progress(**found.progress)
    _copy_into(trainer.model, found.model)
    trainer.optimizer.load_state(found.optimizer)
    for name in trainer.averaged:
        trainer.averaged[name].copy_(found.average[name])
    trainer.started_at = time.monotonic() - trainer.progress.elapsed_s
    if trainer.progress.is_finished:
        # A run given more time or steps than it has used goes on.
        trainer.progress.is_finished = trainer.share >= 1.0 or _has_stopped_early(trainer)
    is_complete = trainer.progress.is_finished and (out / CONFIG).exists()
    went_on = f"going on from step {found.step}"
    return is_complete, [*found.warnings, *([] if is_complete else [went_on])]


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
        "environment": describe_environment(),
    }
