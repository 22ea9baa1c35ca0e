"""The training step and what surrounds it: batches, clock, validation, checkpoints, stopping.

Not here: where batches come from (`heed/data/batch.py`), how good values for the knobs are chosen
(`recipe/recipe.py`), or what a whole run prepares and leaves behind (`run/run.py`).
The loop prints nothing; it hands events to `report` (see `events.py`).
"""

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from heed.data.batch import Batch, IdPairs, Indices, ahead, collate, pad_share, plan_epoch
from heed.machine.memory import spare_memory
from heed.machine.seeds import derive_seed
from heed.model.transformer import Transformer
from heed.train.parallel.distributed import Group
from heed.train.parallel.shard import collected, idle_batches, rows_of
from heed.train.step.averages import average, copy_into
from heed.train.step.config import TrainConfig
from heed.train.step.events import Report
from heed.train.step.fit_memory import (
    PEAK,
    PEAK_RECOMPUTING,
    in_parts,
    needed_parts,
    positions_that_fit,
    split,
)
from heed.train.step.forward import compiler_explained, losses
from heed.train.step.learning_rate import SCHEDULES, Moment
from heed.train.step.optimizer import Optimizer
from heed.train.step.progress import Progress, training_seconds
from heed.train.step.rollback import MAX_SKIPPED, is_sound, mend
from heed.train.step.validate import Validation

VALIDATION_SHARE = 0.2
"""Part of the time given that validations may take, the last one not counted."""


class EpochPairs(IdPairs, Protocol):
    """Training pairs of one epoch, with their lengths (`<eos>` counted)."""

    src_lengths: np.ndarray[Any, Any]
    tgt_lengths: np.ndarray[Any, Any]


class Keeper(Protocol):
    """Who keeps checkpoints; `run/run.py` has the real one."""

    def save(self, trainer: "Trainer", optimizer: dict[str, Tensor]) -> None:
        """Keep everything needed to go on from here."""
        ...

    def save_best(self, trainer: "Trainer", validation: Validation) -> None:
        """Keep the weights that just validated best."""
        ...

    def restore(self, trainer: "Trainer") -> int:
        """Give back what was kept last, or the first weights; returns the step it is of."""
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
        group: the processes that train this model together.
        started_at: `time.monotonic()` at which `elapsed_s` was zero.
        time_limit_s: seconds until the budget is used up.
        clock_s: `elapsed_s` as the leader had it at the last `tick`: the same in all processes.
        write_s: seconds it took to write the weights as the best ones.
        validation_s: seconds the last validation took.
        validated_s: `clock_s` when it ended, or when this sitting began.
        unfilled: device → a model whose weights hold nothing yet, if `model` is shared out.
    """

    model: Transformer
    config: TrainConfig
    optimizer: Optimizer
    pairs: Callable[[int], EpochPairs]
    special_ids: dict[str, int]
    device: torch.device
    dtype: torch.dtype = torch.float32
    group: Group = field(default_factory=Group)
    progress: Progress = field(default_factory=Progress)
    averaged: dict[str, Tensor] = field(default_factory=dict)
    started_at: float = field(default_factory=time.monotonic)
    time_limit_s: float = math.inf
    clock_s: float = 0.0
    write_s: float = 0.5
    validation_s: float = 0.0
    validated_s: float = 0.0
    unfilled: Callable[[str], Transformer] | None = None

    def tick(self) -> None:
        """Look at the clock, all processes at the leader's: what is decided by it must be one."""
        self.clock_s = self.group.agree(self.elapsed_s)

    @property
    def share(self) -> float:
        """Part of the budget used up to the last `tick`, 0 to 1; the larger of time and steps."""
        of_time = self.clock_s / self.time_limit_s
        of_steps = self.progress.step / self.config.max_steps if self.config.max_steps else 0.0
        return min(1.0, max(of_time, of_steps))

    @property
    def elapsed_s(self) -> float:
        """Wall-clock seconds used so far, earlier sittings included."""
        return time.monotonic() - self.started_at

    @property
    def left_s(self) -> float | None:
        """Seconds until the run will be finished, as of the last `tick`; None while unknown."""
        time_s, max_steps = self.config.time_s, self.config.max_steps
        of_time = math.inf if time_s is None else max(0.0, time_s - self.clock_s)
        step = self.progress.step
        of_steps = self.clock_s * (max_steps - step) / step if max_steps and step else math.inf
        left_s = min(of_time, of_steps)
        return left_s if math.isfinite(left_s) else None

    def set_aside(self) -> None:
        """Leave time for one more validation like the last, and for writing the model."""
        progress, time_s = self.progress, self.config.time_s
        if time_s is None or progress.is_finished:
            return  # what a finished run had left must not bring it to life again
        n_validations = 2 if self.config.average_checkpoints > 1 else 1  # the mean's own
        # To be written are the best weights, a checkpoint (three times as much) and the model.
        progress.reserve_s = 1.1 * n_validations * self.validation_s + 6 * self.write_s
        self.time_limit_s = training_seconds(time_s, progress.reserve_s)

    def learning_rate_factor(self) -> float:
        """The schedule's factor for the next step."""
        now = Moment(
            step=self.progress.step + 1,
            share=self.share,
            warmup_steps=self.config.warmup_steps,
            decay_share=self.config.decay_share,
            d_model=self.model.output.in_features,
        )
        return SCHEDULES[self.config.schedule](now) * self.progress.rate_scale

    def whole(self) -> "Trainer":
        """Itself, or with whole tensors, for the leader to use and to keep; all must ask."""
        if self.unfilled is None:
            return self
        model = self.unfilled("cpu" if self.group.is_leader else "meta")
        copy_into(model, {name: collected(p) for name, p in self.model.named_parameters()})
        return replace(
            self,
            model=model.to(self.device) if self.group.is_leader else model,
            averaged={name: collected(mean) for name, mean in self.averaged.items()},
            unfilled=None,
        )

    def weights(self) -> dict[str, Tensor]:
        """The weights to use and to keep as the result: the average if there is one."""
        return self.averaged or {
            name: parameter.detach() for name, parameter in self.model.named_parameters()
        }


Validate = Callable[[Trainer], Validation]


@dataclass(frozen=True, kw_only=True)
class StepResult:
    """What one optimiser step did.

    Attributes:
        nll: negative log-likelihood a target token, in nats.
        gradient_norm: global norm before clipping.
        n_src_tokens: real source tokens in the step.
        n_tgt_tokens: real target tokens in the step.
        n_parts: parts that batches were computed in; more than 1 when memory did not suffice.
        is_skipped: nothing was updated, because a number was not finite.
        pairs: numbers of the training pairs of a skipped step, those of this process.
    """

    nll: float
    gradient_norm: float
    n_src_tokens: int
    n_tgt_tokens: int
    n_parts: int
    is_skipped: bool
    pairs: tuple[int, ...] = ()


def train(
    trainer: Trainer,
    *,
    keeper: Keeper,
    validate: Validate,
    report: Report,
    should_stop: Callable[[], bool],
    before_step: Callable[[], None] = lambda: None,
) -> bool:
    """Train until the budget is used up; of several processes only the leader keeps and validates.

    Returns:
        True when the run is finished; False when `should_stop` asked for a pause, in which case
        the last checkpoint holds the very next batch.
    """
    trainer.model.train()
    progress, config, group = trainer.progress, trainer.config, trainer.group
    progress.step_batches = progress.step_batches or config.accumulate * group.size
    trainer.tick()
    saved, trainer.validated_s = (progress.step, trainer.clock_s), trainer.clock_s
    if config.parent and progress.step == 0:
        # The parent is the first to be the best: what comes of it may be worse.
        _validate(trainer, keeper, validate, report)
        progress.validations = 0
    if progress.step and trainer.share >= 1.0:  # its limit was lowered to what is done already
        progress.is_finished = True
        _validate(trainer, keeper, validate, report)
        _save(trainer, keeper)
    while not progress.is_finished:
        for batches in ahead(partial(_batches, trainer), _rest_of_epoch(trainer, report)):
            before_step()
            began_at = time.monotonic()
            result = train_step(trainer, batches)
            report(_step_event(trainer, result, time.monotonic() - began_at))
            if progress.skipped >= MAX_SKIPPED:
                report(mend(progress, lambda: keeper.restore(trainer)))
            is_validated = _is_validation_due(trainer)
            if is_validated:
                _validate(trainer, keeper, validate, report)
            if trainer.share >= 1.0:
                progress.is_finished = True
            is_paused = group.any(should_stop())
            if progress.is_finished and not is_validated:
                _validate(trainer, keeper, validate, report)
            if _is_save_due(trainer, *saved) or is_paused or progress.is_finished:
                can_go_on = is_sound(trainer.model, progress)
                if progress.is_finished and not can_go_on:
                    report(mend(progress, lambda: keeper.restore(trainer)))
                # What is not sound is not kept: the run goes on from the checkpoint before.
                if can_go_on or progress.is_finished:
                    _save(trainer, keeper)
                    saved = (progress.step, trainer.clock_s)
            if is_paused or progress.is_finished:
                break
        else:
            progress.epoch += 1
            progress.batch = 0
            continue
        return progress.is_finished
    return True


def train_step(trainer: Trainer, batches: Iterable[Batch]) -> StepResult:
    """One optimiser step: the gradients of its batches summed, over all processes.

    Args:
        trainer: the model and all around it.
        batches: this process's share of the step; it may be empty.
    """
    group = trainer.group
    batches = list(batches)
    n_src, n_tokens, n_batches = map(
        int,
        group.sum(
            sum(batch.n_src_tokens for batch in batches),
            sum(batch.n_tgt_tokens for batch in batches),
            len(batches),
        ),
    )
    total_nll, n_parts = in_parts(
        lambda n_parts: _add_gradients(trainer, batches, n_tokens, n_parts),
        undo=trainer.optimizer.zero_grad,
        max_parts=max((len(batch.src) for batch in batches), default=1),
        is_together=trainer.config.shard,
    )
    n_parts *= max((needed_parts(batch, trainer.progress.at_once) for batch in batches), default=1)
    trainer.progress.splits += n_parts > 1
    if not trainer.config.shard:
        group.sum_gradients(trainer.model.parameters())
    norm = trainer.optimizer.clip()
    (nll_sum,) = group.sum(total_nll.item())
    is_skipped = not math.isfinite(norm.item() + nll_sum)
    trainer.tick()
    if is_skipped:
        trainer.optimizer.zero_grad()
    else:
        trainer.optimizer.step(trainer.learning_rate_factor(), trainer.progress.step)
        step, decay = trainer.progress.step + 1, trainer.config.ema_decay
        average(trainer.averaged, trainer.model, step, decay)
    _count(trainer.progress, n_src, n_tokens, n_batches, is_skipped)
    return StepResult(
        nll=nll_sum / n_tokens,
        gradient_norm=norm.item(),
        n_src_tokens=n_src,
        n_tgt_tokens=n_tokens,
        n_parts=n_parts,
        is_skipped=is_skipped,
        pairs=tuple(int(i) for batch in batches for i in batch.indices) if is_skipped else (),
    )


def _add_gradients(trainer: Trainer, batches: list[Batch], n_tokens: int, n_parts: int) -> Tensor:
    """Add this process's gradients of a step's mean loss; returns the summed log-likelihood."""
    total_nll = torch.zeros((), dtype=torch.float64, device=trainer.device)
    shares = [
        split(batch, n_parts * needed_parts(batch, trainer.progress.at_once)) for batch in batches
    ]
    if trainer.config.shard:
        shares.append(idle_batches(trainer.special_ids, sum(map(len, shares)), trainer.group))
    for place, parts in zip(trainer.group.places(), shares, strict=False):
        # Dropout depends on seed, step and place within the step alone: a resumed run needs no
        # random state, and which process computes a batch makes no difference.
        torch.manual_seed(derive_seed(trainer.config.seed, "dropout", trainer.progress.step, place))
        for part in parts:
            with compiler_explained():
                loss, nll = _losses(trainer, part)
                (loss / n_tokens).backward()  # type: ignore[no-untyped-call]
            total_nll += nll
    return total_nll


def _losses(trainer: Trainer, part: Batch) -> tuple[Tensor, Tensor]:
    return losses(
        trainer.model,
        part,
        pad_id=trainer.special_ids["pad_id"],
        smoothing=trainer.config.label_smoothing,
        is_packed=trainer.config.packed,
        device=trainer.device,
        dtype=trainer.dtype,
    )


def _count(progress: Progress, n_src: int, n_tgt: int, n_batches: int, is_skipped: bool) -> None:
    progress.step += 1
    progress.batch += n_batches
    progress.src_tokens += n_src
    progress.tgt_tokens += n_tgt
    progress.skipped = progress.skipped + 1 if is_skipped else 0


def _is_save_due(trainer: Trainer, saved_step: int, saved_s: float) -> bool:
    every = trainer.config.checkpoint_every
    if every is None:
        return trainer.clock_s >= saved_s + trainer.config.checkpoint_every_s
    return trainer.progress.step // every > saved_step // every


def _save(trainer: Trainer, keeper: Keeper) -> None:
    trainer.progress.elapsed_s = trainer.elapsed_s
    whole, optimizer = trainer.whole(), trainer.optimizer.state()
    if trainer.group.is_leader:
        keeper.save(whole, optimizer)


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
            "steps": math.ceil(len(plan) / progress.step_batches),
            "batch_tokens": progress.batch_tokens,
            "pad_share": pad_share(plan, pairs.src_lengths, pairs.tgt_lengths),
        }
    )
    if progress.step == 0:
        progress.at_once = _positions_at_once(trainer, pairs, plan)
    for start in range(progress.batch, len(plan), progress.step_batches):
        yield plan[start : start + progress.step_batches]


def _positions_at_once(trainer: Trainer, pairs: EpochPairs, plan: list[Indices]) -> int:
    """How much fits into memory; the leader's word counts, so that all draw the same dropout."""
    model, config = trainer.model, trainer.config
    longest = max(
        (indices for indices in plan if len(indices) > 1),
        key=lambda indices: pairs.src_lengths[indices].max(),
        default=None,
    )
    at_once = 0
    if longest is not None:
        model.is_recomputing = model.is_compiled = False
        at_once = positions_that_fit(
            lambda part: _losses(trainer, part),
            collate(pairs, longest, **trainer.special_ids),
            most=2 * config.batch_tokens,
            spare_bytes=spare_memory(trainer.device),
            weights_bytes=sum(rows_of(p)[0].nbytes for p in model.parameters()),
            peak=PEAK_RECOMPUTING if config.recompute else PEAK,
        )
        model.is_recomputing, model.is_compiled = config.recompute, config.compile
    return int(trainer.group.agree(at_once))


def _batch_tokens(trainer: Trainer) -> int:
    """Batch size of an epoch that begins now: grows over the first third of the run."""
    last = trainer.config.batch_tokens
    first = trainer.config.first_batch_tokens or last
    return round(first + (last - first) * min(1.0, 3 * trainer.share))


def _batches(trainer: Trainer, step: list[Indices]) -> Iterable[Batch]:
    """This process's share of a step."""
    pairs = trainer.pairs(trainer.progress.epoch)
    return [collate(pairs, indices, **trainer.special_ids) for indices in trainer.group.share(step)]


def _is_validation_due(trainer: Trainer) -> bool:
    config, progress = trainer.config, trainer.progress
    if config.validate_every:
        return progress.step % config.validate_every == 0
    if not config.validations:
        return False
    if config.time_s is not None:
        # On a slow machine, or in a short run, some are left out. Before the first one, as much
        # time is given as if it took a hundredth of all.
        pause_s = (1 / VALIDATION_SHARE - 1) * (trainer.validation_s or 0.01 * config.time_s)
        is_early = trainer.clock_s - trainer.validated_s < pause_s
        if is_early or trainer.time_limit_s - trainer.clock_s < pause_s:
            return False  # at the end comes the last one anyway
    return trainer.share * config.validations >= progress.validations + 1


def _validate(trainer: Trainer, keeper: Keeper, validate: Validate, report: Report) -> None:
    progress, config, group = trainer.progress, trainer.config, trainer.group
    before_s, whole = trainer.clock_s, trainer.whole()
    validation = validate(whole) if group.is_leader else None
    trainer.model.train()
    group.wait()
    score = group.agree(validation.score(config.metric) if validation else 0.0)
    trainer.tick()
    trainer.validation_s = trainer.clock_s - before_s
    progress.validations += 1
    if not config.validate_every and config.validations:
        # A slow validation may outlast the time to the next one: those in between are dropped.
        progress.validations = max(
            progress.validations, math.floor(trainer.share * config.validations)
        )
    # A model that has burst has no score: not even the first of its kind is the best.
    is_best = math.isfinite(score) and (progress.best is None or score > progress.best)
    if is_best:
        progress.best, progress.best_step, progress.without_gain = score, progress.step, 0
        if validation:
            keeper.save_best(whole, validation)
        trainer.tick()
        trainer.write_s = trainer.clock_s - before_s - trainer.validation_s
    else:
        progress.without_gain += 1
        if config.patience and progress.without_gain >= config.patience:
            progress.is_finished = True
    trainer.validated_s = trainer.clock_s
    trainer.set_aside()
    if validation:
        report(
            {
                "kind": "validation",
                "step": progress.step,
                "elapsed_s": trainer.elapsed_s,
                "is_best": is_best,
                **asdict(validation),
            }
        )


def _step_event(trainer: Trainer, result: StepResult, seconds: float) -> dict[str, Any]:
    return {
        "kind": "step",
        "step": trainer.progress.step,
        "epoch": trainer.progress.epoch,
        "share": trainer.share,
        "elapsed_s": trainer.elapsed_s,
        "left_s": trainer.left_s,
        "seconds": seconds,
        "rate_factor": trainer.learning_rate_factor(),
        **asdict(result),
    }
