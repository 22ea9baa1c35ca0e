"""One optimizer step: gradients summed over parts, batches and processes."""

import math
from collections.abc import Iterable
from dataclasses import dataclass

import torch
from torch import Tensor

from heed.data.batch import Batch
from heed.machine.seeds import derive_seed, seed_torch
from heed.model.fast.products import rounded_products
from heed.train.parallel.shard import idle_batches
from heed.train.step.averages import average
from heed.train.step.fit_memory import in_parts, needed_parts, split
from heed.train.step.forward import losses
from heed.train.step.progress import Progress
from heed.train.step.trainer import Trainer


@dataclass(frozen=True, kw_only=True)
class StepResult:
    """The result of one optimizer step.

    Attributes:
        nll: negative log-likelihood a target token, in nats.
        gradient_norm: global norm before clipping.
        n_src_tokens: real source tokens in the step.
        n_tgt_tokens: real target tokens in the step.
        n_parts: parts that batches were computed in; more than 1 if memory ran out.
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


def train_step(trainer: Trainer, batches: Iterable[Batch]) -> StepResult:
    """One optimizer step: the gradients of its batches summed, over all processes.

    Args:
        trainer: the model and the rest of the training state.
        batches: this process's share of the step; it may be empty.
    """
    with rounded_products(is_on=trainer.rounds):
        return _step(trainer, list(batches))


def _step(trainer: Trainer, batches: list[Batch]) -> StepResult:
    group = trainer.group
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
        can_repeat=not trainer.config.shard,
    )
    n_parts *= max((needed_parts(batch, trainer.progress.at_once) for batch in batches), default=1)
    trainer.progress.splits += n_parts > 1
    if not trainer.config.shard:
        group.sum_gradients(trainer.optimizer.parameters.values())
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
        seed = derive_seed(trainer.config.seed, "dropout", trainer.progress.step, place)
        seed_torch(seed, trainer.device)
        for part in parts:
            loss, nll = batch_losses(trainer, part)
            (loss / n_tokens).backward()  # type: ignore[no-untyped-call]
            total_nll += nll
    return total_nll


def batch_losses(trainer: Trainer, part: Batch) -> tuple[Tensor, Tensor]:
    """Loss and negative log-likelihood of one batch, both summed over its tokens; see `losses`."""
    return losses(
        trainer.model,
        part,
        pad_id=trainer.special_ids["pad_id"],
        smoothing=trainer.config.label_smoothing,
        device=trainer.device,
        dtype=trainer.dtype,
    )


def _count(progress: Progress, n_src: int, n_tgt: int, n_batches: int, is_skipped: bool) -> None:
    progress.step += 1
    progress.batch += n_batches
    progress.src_tokens += n_src
    progress.tgt_tokens += n_tgt
    progress.skipped = progress.skipped + 1 if is_skipped else 0
