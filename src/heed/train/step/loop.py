"""The training loop: epochs, validation, checkpoints, and when to stop.

It prints nothing; it hands events to `report` (see `events.py`). One step is in `train_step.py`.
"""

import math
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from functools import partial
from typing import Any

from heed.data.batch import Batch, Indices, ahead, pad_share, plan_epoch
from heed.machine.memory import spare_memory
from heed.train.parallel.shard import rows_of
from heed.train.step.control import Paused, Request
from heed.train.step.events import Report
from heed.train.step.fit_memory import PEAK, PEAK_RECOMPUTING, positions_that_fit
from heed.train.step.rollback import MAX_SKIPPED, are_finite, is_sound, roll_back
from heed.train.step.train_step import StepResult, batch_losses, train_step
from heed.train.step.trainer import EpochPairs, Keeper, Trainer, Validate

VALIDATION_SHARE = 0.2
"""Largest share of the time budget for validations, except the last one."""

FIRST_VALIDATION_S = 6.0
"""What the first one is assumed to take, but no more than a tenth of the time given: a model that
has learned little translates every sentence to the longest length."""


def train(
    trainer: Trainer,
    *,
    keeper: Keeper,
    validate: Validate,
    report: Report,
    requests: Callable[[], Request],
    before_step: Callable[[], None] = lambda: None,
) -> bool:
    """Train until the budget is used up; of several processes only the leader keeps and validates.

    Returns:
        True if the run is finished; False after a request to stop: then the last checkpoint
        continues with the next batch. After a skipped step the request waits for a sound state.
    """
    trainer.model.train()
    progress, config, group = trainer.progress, trainer.config, trainer.group
    progress.step_batches = progress.step_batches or config.accumulate * group.size
    trainer.tick()
    saved, trainer.validated_s = (progress.step, trainer.clock_s), trainer.clock_s
    _begin(trainer, keeper, validate, report)
    request: int = Request.NONE
    while not progress.is_finished:
        if _paused_before_epoch(trainer, keeper, report, saved[0]):
            return False
        for batches in ahead(partial(_batches, trainer), _rest_of_epoch(trainer, report)):
            before_step()
            began_at = time.monotonic()
            result = train_step(trainer, batches)
            report(_step_event(trainer, result, time.monotonic() - began_at))
            if progress.skipped >= MAX_SKIPPED:
                report(roll_back(progress, lambda: keeper.restore(trainer)))
            is_validated = _is_validation_due(trainer)
            if is_validated:
                _validate(trainer, keeper, validate, report)
            if trainer.share >= 1.0:
                progress.is_finished = True
            request = max(request, int(group.most(requests())))
            if progress.is_finished and not is_validated:
                _validate(trainer, keeper, validate, report)
            if request or _is_save_due(trainer, *saved) or progress.is_finished:
                if not is_sound(trainer.model, progress):
                    # Saving waits while steps are skipped, which soon ends in any case. Steps that
                    # do not read an infinite weight could go well for ever.
                    if progress.skipped and not progress.is_finished:
                        continue
                    report(roll_back(progress, lambda: keeper.restore(trainer)))
                    if progress.is_finished and progress.best is None:
                        _validate(trainer, keeper, validate, report)
                _save(trainer, keeper)
                saved = (progress.step, trainer.clock_s)
                if request == Request.STOP or progress.is_finished:
                    break
                request = Request.NONE
        else:
            progress.epoch += 1
            progress.batch = 0
            continue
        return progress.is_finished
    return True


def _begin(trainer: Trainer, keeper: Keeper, validate: Validate, report: Report) -> None:
    """What a run needs before its first step of this start."""
    progress = trainer.progress
    if trainer.config.parent and progress.step == 0:
        # The parent is the first best model: training may make it worse.
        _validate(trainer, keeper, validate, report)
        progress.validations = 0
    if progress.step and trainer.share >= 1.0:  # its limit was lowered to the steps already made
        progress.is_finished = True
        _validate(trainer, keeper, validate, report)
        _save(trainer, keeper)
    trainer.began_s, trainer.began_step = trainer.clock_s, progress.step


def _paused_before_epoch(trainer: Trainer, keeper: Keeper, report: Report, saved_step: int) -> bool:
    """Prepare the pairs of an epoch; after a request to stop, save instead and return True."""
    progress = trainer.progress
    try:
        trainer.pairs(progress.epoch)
    except Paused:
        if progress.step > saved_step:
            if not is_sound(trainer.model, progress):
                report(roll_back(progress, lambda: keeper.restore(trainer)))
            _save(trainer, keeper)
        return True
    if progress.step == trainer.began_step:
        # What was prepared before the first step of this start says nothing about the duration of
        # steps, and a model that has learned nothing since needs no validation.
        trainer.tick()
        trainer.began_s = trainer.validated_s = trainer.clock_s
    if progress.step == 0:
        _skip_validations(trainer)
    return False


def _is_save_due(trainer: Trainer, saved_step: int, saved_s: float) -> bool:
    every = trainer.config.checkpoint_every
    if every is None:
        return trainer.clock_s >= saved_s + trainer.config.checkpoint_every_s
    return trainer.progress.step // every > saved_step // every


def _save(trainer: Trainer, keeper: Keeper) -> None:
    progress, config = trainer.progress, trainer.config
    progress.elapsed_s = trainer.elapsed_s
    progress.time_s, progress.max_steps = config.time_s, config.max_steps
    whole, optimizer = trainer.whole(), trainer.optimizer.state()
    if trainer.group.is_leader:
        keeper.save(whole, optimizer)


def _rest_of_epoch(trainer: Trainer, report: Report) -> Iterable[list[Indices]]:
    """The remaining steps of this epoch, each a list of batches."""
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
            "step": progress.step,
            "epoch": progress.epoch,
            "batch": progress.batch,
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
    """The number of positions that fit into memory; the leader's, so that dropout is the same."""
    model, config = trainer.model, trainer.config
    longest = max(
        (indices for indices in plan if len(indices) > 1),
        key=lambda indices: pairs.src_lengths[indices].max(),
        default=None,
    )
    at_once = 0
    if longest is not None:
        model.is_recomputing = False
        at_once = positions_that_fit(
            lambda part: batch_losses(trainer, part),
            trainer.collate(pairs, longest, **trainer.special_ids),
            most=2 * config.batch_tokens,
            spare_bytes=spare_memory(trainer.device),
            weights_bytes=sum(rows_of(p)[0].nbytes for p in model.parameters()),
            peak=PEAK_RECOMPUTING if config.recompute else PEAK,
        )
        model.is_recomputing = config.recompute
    return int(trainer.group.agree(at_once))


def _batch_tokens(trainer: Trainer) -> int:
    """Batch size of an epoch that begins now: grows over the first third of the run."""
    last = trainer.config.batch_tokens
    first = trainer.config.first_batch_tokens or last
    return round(first + (last - first) * min(1.0, 3 * trainer.share))


def _batches(trainer: Trainer, step: list[Indices]) -> Iterable[Batch]:
    """This process's share of a step."""
    pairs = trainer.pairs(trainer.progress.epoch)
    shares = trainer.group.share(step)
    return [trainer.collate(pairs, indices, **trainer.special_ids) for indices in shares]


def _is_validation_due(trainer: Trainer) -> bool:
    config, progress = trainer.config, trainer.progress
    if config.validate_every:
        return progress.step % config.validate_every == 0
    if not config.validations:
        return False
    if config.time_s is not None:
        # On a slow machine, or in a short run, some validations are skipped.
        first_s = min(FIRST_VALIDATION_S, 0.1 * config.time_s)
        pause_s = (1 / VALIDATION_SHARE - 1) * (trainer.validation_s or first_s)
        is_early = trainer.clock_s - trainer.validated_s < pause_s
        if is_early or trainer.time_limit_s - trainer.clock_s < pause_s:
            return False  # the last validation comes at the end anyway
    return trainer.share * config.validations >= progress.validations + 1


def _validate(trainer: Trainer, keeper: Keeper, validate: Validate, report: Report) -> None:
    progress, config, group = trainer.progress, trainer.config, trainer.group
    before_s, whole = trainer.clock_s, trainer.whole()
    validation = validate(whole) if group.is_leader else None
    trainer.model.train()
    group.wait()
    score = validation.score(config.metric) if validation else 0.0
    if validation and not are_finite(whole.weights().values()):
        score = -math.inf  # no development sentence reads the weight that is not
    score = group.agree(score)
    trainer.tick()
    trainer.validation_s = trainer.clock_s - before_s
    trainer.beyond_s = group.agree(validation.beyond_s if validation else 0.0)
    progress.validations += 1
    _skip_validations(trainer)
    # A model that is not finite has no score, and is never the best.
    best = -math.inf if progress.best is None else progress.best
    is_best = math.isfinite(score) and score >= best  # if equal, the later, which learned more
    progress.without_gain = 0 if is_best and score > best else progress.without_gain + 1
    if is_best:
        progress.best, progress.best_step = score, progress.step
        is_best = bool(group.agree(validation is not None and keeper.save_best(whole, validation)))
        trainer.tick()
        if is_best:
            trainer.write_s = trainer.clock_s - before_s - trainer.validation_s
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


def _skip_validations(trainer: Trainer) -> None:
    """Count those whose place in the budget a slow validation or preparation has passed."""
    progress, config = trainer.progress, trainer.config
    if not config.validate_every:
        passed = math.floor(trainer.share * config.validations)
        progress.validations = max(progress.validations, passed)


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
