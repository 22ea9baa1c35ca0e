"""The state of a training run between two steps: model, optimizer, clock and counters."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from heed.data.batch import IdPairs
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

    model: TorchNetwork
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
    unfilled: Callable[[str], TorchNetwork] | None = None

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
