"""The progress of a run: everything in a checkpoint that is not a tensor."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from heed.errors import RunError


@dataclass(kw_only=True)
class Progress:
    """The progress of a run: all values of a checkpoint except tensors.

    Attributes:
        step: optimizer steps made.
        epoch: passes through the data completed.
        batch: batches of this epoch used.
        batch_tokens: batch size with which this epoch was planned.
        step_batches: batches of one step, over all processes; fixed when the run begins, so that
            it may continue with another number of processes. 0 = not yet.
        elapsed_s: wall-clock seconds that the run has used, over all its starts.
        src_tokens: source tokens learned from, repeats counted.
        tgt_tokens: target tokens learned from, repeats counted.
        validations: validations made.
        best: score of the best validation, larger is better; None before the first.
        best_step: step of the best validation.
        without_gain: validations since the best.
        skipped: updates skipped in a row because loss or gradient was not finite.
        mends: number of rollbacks to the last checkpoint because of that.
        rate_scale: factor on the learning rate, halved at each rollback.
        at_once: positions computed at once, so that memory suffices; 0 = whole batches.
        splits: steps computed in parts because they did not fit into memory.
        reserve_s: seconds set aside for the last validation and for writing, once measured.
        time_s: the time budget when this was saved; None = no limit, or saved by an older heed.
        max_steps: the limit of steps when this was saved; None = the same.
        is_finished: the budget is used up or training stopped early.
    """

    step: int = 0
    epoch: int = 0
    batch: int = 0
    batch_tokens: int = 0
    step_batches: int = 0
    elapsed_s: float = 0.0
    src_tokens: int = 0
    tgt_tokens: int = 0
    validations: int = 0
    best: float | None = None
    best_step: int = 0
    without_gain: int = 0
    skipped: int = 0
    mends: int = 0
    rate_scale: float = 1.0
    at_once: int = 0
    splits: int = 0
    reserve_s: float | None = None
    time_s: float | None = None
    max_steps: int | None = None
    is_finished: bool = False

    @classmethod
    def from_checkpoint(cls, values: Mapping[str, Any], folder: Path) -> "Progress":
        """The progress that a checkpoint holds.

        Args:
            values: what was saved; an older heed saved fewer values.
            folder: the checkpoint, for errors.

        Raises:
            RunError: a newer heed saved it.
        """
        if unknown := sorted(values.keys() - {field.name for field in fields(cls)}):
            raise RunError(
                f"{folder} was saved by a newer heed: this one does not know {', '.join(unknown)}. "
                "Continue with the heed that saved it, or a newer one."
            )
        return cls(**values)


def training_seconds(time_s: float | None, reserve_s: float | None, ending: float = 0.0) -> float:
    """The time budget, less the time for the last validation, writing the model and the rest.

    Args:
        time_s: None = no limit.
        reserve_s: time for validation and writing; None = not measured yet.
        ending: time for the rest, in validations.
    """
    if time_s is None:
        return math.inf
    if reserve_s is None:  # four fifths of it for the validation
        reserve_s = (0.02 * time_s + 1.5) * (1 + 0.8 * ending)
    return max(0.5 * time_s, time_s - reserve_s)
