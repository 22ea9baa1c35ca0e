"""The training step and what surrounds it: batches, clock, validation, checkpoints, stopping.

Not here: where batches come from (`heed/data/batch.py`), how good values for the knobs are chosen
(`recipe.py`), or what a whole run prepares and leaves behind (`run.py`).
The loop prints nothing; it hands events to `report` (see `log.py`).
"""

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from heed.data.batch import Batch, IdPairs, Indices, collate, pad_share, plan_epoch
from heed.device import autocast, derive_seed
from heed.errors import RunError
from heed.model.transformer import Transformer
from heed.train.config import TrainConfig
from heed.train.log import Report
from heed.train.loss import output_cross_entropy
from heed.train.optimizer import Optimizer
from heed.train.schedule import SCHEDULES, Moment
from heed.train.validate import Validation

MAX_SKIPPED = 20
"""Updates in a row that may be skipped because a number was not finite."""


class EpochPairs(IdPairs, Protocol):
    """Training pairs of one epoch, with their lengths (`<eos>` counted)."""

    src_lengths: np.ndarray[Any, Any]
    tgt_lengths: np.ndarray[Any, Any]


@dataclass(kw_only=True)
class Progress:
    """Where a run stands: all that a checkpoint needs besides tensors.

    Attributes:
        step: optimiser steps made.
        epoch: passes through the data completed.
        batch: batches of this epoch used.
        batch_tokens: batch size this epoch was planned with.
        elapsed_s: wall-clock seconds the run has used, over all its sittings.
        src_tokens: source tokens learnt from, repeats counted.
        tgt_tokens: target tokens learnt from, repeats counted.
        validations: validations made.
        best: score of the best validation, larger is better; None before the first.
        best_step: step of the best validation.
        without_gain: validations since the best.
        skipped: updates skipped because loss or gradient was not finite.
        is_finished: the budget is used up or training stopped early.
    """

    step: int = 0
    epoch: int = 0
    batch: int = 0
    batch_tokens: int = 0
    elapsed_s: float = 0.0
    src_tokens: int = 0
    tgt_tokens: int = 0
    validations: int = 0
    best: float | None = None
    best_step: int = 0
    without_gain: int = 0
    skipped: int = 0
    is_finished: bool = False


class Keeper(Protocol):
    """Who keeps checkpoints; `run.py` has the real one."""

    def save(self, trainer: "Trainer") -> None:
        """Keep everything needed to go on from here."""
        ...

    def save_best(self, trainer: "Trainer", validation: Validation) -> None:
        """Keep the weights that just validated best."""
        ...


@dataclass(kw_only=True)
class Trainer:
    """A model being trained.

    Attributes:
        model: the model, on its device.
        config: the knobs.
        optimizer: updates the model.
        pairs: epoch number → that epoch's pairs.
        progress: where the run stands.
        special_ids: `pad_id`, `bos_id`, `eos_id`.
        averaged: exponential average of the weights, by name; empty without one.
        device: where the model computes.
        dtype: what it computes in.
        started_at: `time.monotonic()` at which `elapsed_s` was zero.
    """

    model: Transformer
    config: TrainConfig
    optimizer: Optimizer
    pairs: Callable[[int], EpochPairs]
    special_ids: dict[str, int]
    device: torch.device
    dtype: torch.dtype = torch.float32
    progress: Progress = field(default_factory=Progress)
    averaged: dict[str, Tensor] = field(default_factory=dict)
    started_at: float = field(default_factory=time.monotonic)
    time_limit_s: float = math.inf

    @property
    def share(self) -> float:
        """Part of the budget used, 0 to 1; the larger of time and steps."""
        of_time = self.elapsed_s / self.time_limit_s
        of_steps = self.progress.step / self.config.max_steps if self.config.max_steps else 0.0
        return min(1.0, max(of_time, of_steps))

    @property
    def elapsed_s(self) -> float:
        """Wall-clock seconds used so far, earlier sittings included."""
        return time.monotonic() - self.started_at

    def learning_rate_factor(self) -> float:
        """The schedule's factor for the next step."""
        now = Moment(
            step=self.progress.step + 1,
            share=self.share,
            warmup_steps=self.config.warmup_steps,
            decay_share=self.config.decay_share,
            d_model=self.model.output.in_features,
        )
        return SCHEDULES[self.config.schedule](now)

    def weights(self) -> dict[str, Tensor]:
        """The weights to use and to keep as the result: the average if there is one."""
        return self.averaged or {
            name: parameter.detach() for name, parameter in self.model.named_parameters()
        }


@dataclass(frozen=True, kw_only=True)
class StepResult:
    """What one optimiser step did.

    Attributes:
        nll: negative log-likelihood a target token, in nats.
        gradient_norm: global norm before clipping.
        n_src_tokens: real source tokens in the step.
        n_tgt_tokens: real target tokens in the step.
        is_skipped: nothing was updated, because a number was not finite.
    """

    nll: float
    gradient_norm: float
    n_src_tokens: int
    n_tgt_tokens: int
    is_skipped: bool


def train(
    trainer: Trainer,
    *,
    keeper: Keeper,
    validate: Callable[[Trainer], Validation],
    report: Report,
    should_stop: Callable[[], bool],
) -> bool:
    """Train until the budget is used up.

    Returns:
        True when the run is finished; False when `should_stop` asked for a pause, in which case
        the last checkpoint holds the very next batch.
    """
    trainer.model.train()
    progress, config = trainer.progress, trainer.config
    next_save_s = trainer.elapsed_s + config.checkpoint_every_s
    while not progress.is_finished:
        for indices in _rest_of_epoch(trainer, report):
            result = train_step(trainer, _batches(trainer, indices))
            report(_step_event(trainer, result))
            is_validated = _is_validation_due(trainer)
            if is_validated:
                _validate(trainer, keeper, validate, report)
            if trainer.share >= 1.0:
                progress.is_finished = True
            is_paused = should_stop()
            if config.checkpoint_every is None:
                is_save_due = trainer.elapsed_s >= next_save_s
            else:
                is_save_due = progress.step % config.checkpoint_every == 0
            if is_save_due or is_paused or progress.is_finished:
                if progress.is_finished and not is_validated:
                    _validate(trainer, keeper, validate, report)
                progress.elapsed_s = trainer.elapsed_s
                keeper.save(trainer)
                next_save_s = trainer.elapsed_s + config.checkpoint_every_s
            if is_paused or progress.is_finished:
                break
        else:
            progress.epoch += 1
            progress.batch = 0
            continue
        return progress.is_finished
    return True


def train_step(trainer: Trainer, batches: Iterable[Batch]) -> StepResult:
    """One optimiser step over one batch, or over several whose gradients are summed."""
    config, model = trainer.config, trainer.model
    # Dropout depends on seed and step alone, so a resumed run needs no random state.
    torch.manual_seed(derive_seed(config.seed, "dropout", trainer.progress.step))
    batches = list(batches)
    n_tokens = sum(batch.n_tgt_tokens for batch in batches)
    total_nll = torch.zeros((), dtype=torch.float64, device=trainer.device)
    for batch in batches:
        batch = batch.to(trainer.device)
        is_real = batch.tgt_out != trainer.special_ids["pad_id"]
        with autocast(trainer.device, trainer.dtype):
            states = model(batch.src, batch.tgt_in, batch.src_mask)
        loss, nll = output_cross_entropy(
            states[is_real],
            model.output.weight,
            batch.tgt_out[is_real],
            smoothing=config.label_smoothing,
        )
        (loss / n_tokens).backward()  # type: ignore[no-untyped-call]
        total_nll += nll
    norm = trainer.optimizer.clip()
    is_skipped = not bool(torch.isfinite(norm + total_nll))
    if is_skipped:
        trainer.optimizer.zero_grad()
    else:
        trainer.optimizer.step(trainer.learning_rate_factor())
        _average(trainer)
    n_src = sum(batch.n_src_tokens for batch in batches)
    _count(trainer.progress, n_src, n_tokens, len(batches), is_skipped)
    return StepResult(
        nll=total_nll.item() / n_tokens,
        gradient_norm=norm.item(),
        n_src_tokens=n_src,
        n_tgt_tokens=n_tokens,
        is_skipped=is_skipped,
    )


def _count(progress: Progress, n_src: int, n_tgt: int, n_batches: int, is_skipped: bool) -> None:
    progress.step += 1
    progress.batch += n_batches
    progress.src_tokens += n_src
    progress.tgt_tokens += n_tgt
    progress.skipped = progress.skipped + 1 if is_skipped else 0
    if progress.skipped >= MAX_SKIPPED:
        raise RunError(
            f"training broke down: loss or gradient was not a finite number in {MAX_SKIPPED} steps "
            f"in a row, up to step {progress.step}. The last checkpoint is sound. Lower "
            "training.learning_rate and training.matrix_learning_rate, and start a new run."
        )


def _average(trainer: Trainer) -> None:
    """Move the exponential average of the weights; young averages move faster."""
    if not trainer.averaged:
        return
    step = trainer.progress.step + 1
    decay = min(trainer.config.ema_decay, step / (step + 9))
    parameters = dict(trainer.model.named_parameters())
    with torch.no_grad():
        torch._foreach_lerp_(  # one call for all tensors; no public spelling exists
            list(trainer.averaged.values()),
            [parameters[name].detach() for name in trainer.averaged],
            1 - decay,
        )


def _rest_of_epoch(trainer: Trainer, report: Report) -> Iterable[list[Indices]]:
    """The steps of this epoch that are still to be made, each a list of batches."""
    progress, config = trainer.progress, trainer.config
    if progress.batch == 0:
        progress.batch_tokens = _batch_tokens(trainer)
    pairs = trainer.pairs(progress.epoch)
    plan = plan_epoch(
        pairs.src_lengths,
        pairs.tgt_lengths,
        max_tokens=progress.batch_tokens,
        seed=config.seed,
        epoch=progress.epoch,
    )
    report(
        {
            "kind": "epoch",
            "epoch": progress.epoch,
            "batches": len(plan),
            "batch_tokens": progress.batch_tokens,
            "pad_share": pad_share(plan, pairs.src_lengths, pairs.tgt_lengths),
        }
    )
    for start in range(progress.batch, len(plan), config.accumulate):
        yield plan[start : start + config.accumulate]


def _batch_tokens(trainer: Trainer) -> int:
    """Batch size of an epoch that begins now: grows over the first third of the run."""
    last = trainer.config.batch_tokens
    first = trainer.config.first_batch_tokens or last
    return round(first + (last - first) * min(1.0, 3 * trainer.share))


def _batches(trainer: Trainer, step: list[Indices]) -> Iterable[Batch]:
    pairs = trainer.pairs(trainer.progress.epoch)
    return [collate(pairs, indices, **trainer.special_ids) for indices in step]


def _is_validation_due(trainer: Trainer) -> bool:
    config, progress = trainer.config, trainer.progress
    if config.validate_every:
        return progress.step % config.validate_every == 0
    if not config.validations:
        return False
    return trainer.share * config.validations >= progress.validations + 1


def _validate(
    trainer: Trainer,
    keeper: Keeper,
    validate: Callable[[Trainer], Validation],
    report: Report,
) -> None:
    progress, config = trainer.progress, trainer.config
    validation = validate(trainer)
    trainer.model.train()
    score = validation.score(config.metric)
    progress.validations += 1
    if not config.validate_every and config.validations:
        # A slow validation may outlast the time to the next one: those in between are dropped.
        progress.validations = max(
            progress.validations, math.floor(trainer.share * config.validations)
        )
    is_best = progress.best is None or score > progress.best
    if is_best:
        progress.best, progress.best_step, progress.without_gain = score, progress.step, 0
        keeper.save_best(trainer, validation)
    else:
        progress.without_gain += 1
        if config.patience and progress.without_gain >= config.patience:
            progress.is_finished = True
    report(
        {
            "kind": "validation",
            "step": progress.step,
            "elapsed_s": trainer.elapsed_s,
            "is_best": is_best,
            **asdict(validation),
        }
    )


def _step_event(trainer: Trainer, result: StepResult) -> dict[str, Any]:
    return {
        "kind": "step",
        "step": trainer.progress.step,
        "epoch": trainer.progress.epoch,
        "share": trainer.share,
        "elapsed_s": trainer.elapsed_s,
        "rate_factor": trainer.learning_rate_factor(),
        **asdict(result),
    }
