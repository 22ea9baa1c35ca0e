"""The state of a training run between two steps: model, optimizer, clock and counters."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from heed.data.batch import Batch, IdPairs, collate
from heed.model.network import TorchNetwork
from heed.train.parallel.distributed import Group
from heed.train.parallel.shard import collected
from heed.train.step.averages import copy_into
from heed.train.step.config import TrainConfig
from heed.train.step.learning_rate import SCHEDULES, Moment
from heed.train.step.optimizer import Optimizer
from heed.train.step.progress import Progress, training_seconds
from heed.train.step.validate import Validation


class EpochPairs(IdPairs, Protocol):
    """Training pairs of one epoch, with their lengths (`<eos>` counted)."""

    src_lengths: np.ndarray[Any, Any]
    tgt_lengths: np.ndarray[Any, Any]


class Keeper(Protocol):
    """Keeps checkpoints; `run/artifacts.py` implements it."""

    def save(self, trainer: "Trainer", optimizer: dict[str, Tensor]) -> None:
        """Save a checkpoint."""
        ...

    def save_best(self, trainer: "Trainer", validation: Validation) -> bool:
        """Save the weights with the best validation so far, unless better ones are there."""
        ...

    def restore(self, trainer: "Trainer") -> int:
        """Load the last checkpoint, or the initial weights; returns its step."""
        ...


@dataclass(kw_only=True)
class Trainer:
    """A model being trained.

    Attributes:
        model: the model, on its device.
        config: settings of training.
        optimizer: updates the model.
        pairs: epoch number → that epoch's pairs.
        progress: of the run.
        special_ids: `pad_id`, `bos_id`, `eos_id`.
        averaged: exponential average of the weights, by name; empty without one.
        device: where the model computes.
        dtype: the type it computes in.
        rounds: whether a step rounds the factors of float32 products to bfloat16.
        group: the processes that train this model together.
        started_at: `time.monotonic()` at which `elapsed_s` was zero.
        time_limit_s: seconds until the budget is used up.
        clock_s: `elapsed_s` as the leader had it at the last `tick`: the same in all processes.
        write_s: seconds it took to write the weights as the best ones.
        validation_s: seconds the last validation took.
        beyond_s: the part of them that scored pairs which the work after training does not read.
        validated_s: `clock_s` when it ended, or at this start of the run.
        began_s: `clock_s` before the first step of this start of the run.
        began_step: steps made before that.
        ending: time that the task needs after training, in validations.
        collate: lays pairs out as a batch.
        unfilled: device → a model with uninitialized weights, if `model` is sharded.
    """

    model: TorchNetwork
    config: TrainConfig
    optimizer: Optimizer
    pairs: Callable[[int], EpochPairs]
    special_ids: dict[str, int]
    device: torch.device
    dtype: torch.dtype = torch.float32
    rounds: bool = False
    group: Group = field(default_factory=Group)
    progress: Progress = field(default_factory=Progress)
    averaged: dict[str, Tensor] = field(default_factory=dict)
    started_at: float = field(default_factory=time.monotonic)
    time_limit_s: float = math.inf
    clock_s: float = 0.0
    write_s: float = 0.5
    validation_s: float = 0.0
    beyond_s: float = 0.0
    validated_s: float = 0.0
    began_s: float = 0.0
    began_step: int = 0
    ending: float = 0.0
    collate: Callable[..., Batch] = collate
    unfilled: Callable[[str], TorchNetwork] | None = None

    def tick(self) -> None:
        """Read the clock; all processes use the leader's, so that they decide the same."""
        self.clock_s = self.group.agree(self.elapsed_s)

    @property
    def share(self) -> float:
        """Part of the budget used up to the last `tick`, 0 to 1; the larger of time and steps."""
        of_time = self.clock_s / self.time_limit_s
        of_steps = self.progress.step / self.config.max_steps if self.config.max_steps else 0.0
        return min(1.0, max(of_time, of_steps))

    @property
    def elapsed_s(self) -> float:
        """Wall-clock seconds used so far, over all starts."""
        return time.monotonic() - self.started_at

    @property
    def left_s(self) -> float | None:
        """Seconds until the run will be finished, as of the last `tick`; None while unknown."""
        time_s, max_steps = self.config.time_s, self.config.max_steps
        of_time = math.inf if time_s is None else max(0.0, time_s - self.clock_s)
        # Reading the corpus takes no part in this: with it, the first steps would seem slow.
        made, seconds = self.progress.step - self.began_step, self.clock_s - self.began_s
        of_steps = math.inf
        if max_steps and made > 0:
            of_steps = max(0, max_steps - self.progress.step) * seconds / made
        left_s = min(of_time, of_steps)
        return left_s if math.isfinite(left_s) else None

    def set_aside(self) -> None:
        """Leave time for one more validation like the last, and for writing the model."""
        progress, time_s = self.progress, self.config.time_s
        if time_s is None or progress.is_finished:
            return  # remaining time must not restart a finished run
        n_validations = 2 if self.config.average_checkpoints > 1 else 1  # of the mean
        # Still to write: the best weights, a checkpoint (three times as much) and the model.
        ending_s = self.ending * (self.validation_s - self.beyond_s)
        progress.reserve_s = 1.1 * (n_validations * self.validation_s + ending_s) + 6 * self.write_s
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
        """The trainer with whole tensors, for the leader; all processes must call this."""
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
        """The weights of the result: the average if there is one."""
        return self.averaged or {
            name: parameter.detach() for name, parameter in self.model.named_parameters()
        }


Validate = Callable[[Trainer], Validation]
