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

from heed.bundle import save_bundle
from heed.config import build_config, load_config, to_toml
from heed.data.prepare import Corpus, Prepared, prepare
from heed.device import (
    choose_device,
    choose_dtype,
    describe_environment,
    prepare_cpu,
    seed_everything,
    set_threads,
)
from heed.errors import RunError
from heed.files import lock, make_directory, parse_json, read_bytes, to_json, write_atomically
from heed.model.build import build_model, count_parameters
from heed.train import checkpoint
from heed.train.log import EventLog, Report, fan_out
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
        prepare_cpu()
        n_threads = set_threads(draft.training.threads or None)
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
        if was_finished:
            return Outcome(
                is_finished=True,
                was_finished=True,
                progress=trainer.progress,
                validation=best_validation(out),
            )
        trainer.started_at = started_at - trainer.progress.elapsed_s
        log = EventLog(out)
        log.forget_after(trainer.progress.step)
        report = fan_out(log, report)
        for note in notes:
            report({"kind": "note", "text": note, "step": trainer.progress.step})
        report(_start_event(trainer, recipe, data, n_threads))
        keeper = RunKeeper(out, recipe, data, report)
        is_finished = train(
            trainer,
            keeper=keeper,
            validate=lambda trainer: validate_trainer(trainer, data, recipe),
            report=report,
            should_stop=should_stop,
        )
        if is_finished:
            finish(out, trainer, recipe, data, report)
        return Outcome(
            is_finished=is_finished,
            was_finished=False,
            progress=trainer.progress,
            validation=best_validation(out),
        )


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
        """Keep everything needed to go on from here."""
        checkpoint.save(
            self.out,
            trainer.progress.step,
            model={name: p.detach() for name, p in trainer.model.named_parameters()},
            optimizer=trainer.optimizer.state(),
            averages=trainer.averaged,
            progress=asdict(trainer.progress),
            keep=max(self.recipe.training.keep_checkpoints, self.recipe.training.average_checkpoints),
        )
        self.report({"kind": "checkpoint", "step": trainer.progress.step})

    def save_best(self, trainer: Trainer, validation: Validation) -> None:
        """Keep the weights that just validated best, as a model folder of their own."""
        save_model(self.out / "checkpoints" / "best", trainer, self.recipe, self.data, validation)
