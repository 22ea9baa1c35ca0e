"""The progress of a run: everything in a checkpoint that is not a tensor."""

import math
from dataclasses import dataclass


@dataclass(kw_only=True)
class Progress:
    """Where a run stands: all that a checkpoint needs besides tensors.

    Attributes:
        step: optimizer steps made.
        epoch: passes through the data completed.
        batch: batches of this epoch used.
        batch_tokens: batch size this epoch was planned with.
        step_batches: batches of one step, over all processes; fixed when the run begins, so that
            it may go on with another number of processes. 0 = not yet.
        elapsed_s: wall-clock seconds the run has used, over all its sittings.
        src_tokens: source tokens learned from, repeats counted.
        tgt_tokens: target tokens learned from, repeats counted.
        validations: validations made.
        best: score of the best validation, larger is better; None before the first.
        best_step: step of the best validation.
        without_gain: validations since the best.
        skipped: updates skipped in a row because loss or gradient was not finite.
        mends: how often training went back to the last checkpoint because of that.
        rate_scale: factor on the learning rate, halved each time.
        at_once: positions computed at once, so that memory suffices; 0 = whole batches.
        splits: steps computed in parts because they did not fit into memory.
        reserve_s: seconds set aside for the last validation and for writing, once measured.
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
    is_finished: bool = False


def training_seconds(time_s: float | None, reserve_s: float | None, ending: float = 0.0) -> float:
    """The time given, less what the last validation, writing the model and the rest will take.

    Args:
        time_s: None = no limit.
        reserve_s: what they take, None while that is not measured.
        ending: what the rest takes, in validations.
    """
    if time_s is None:
        return math.inf
    if reserve_s is None:  # four fifths of it for the validation
        reserve_s = (0.02 * time_s + 1.5) * (1 + 0.8 * ending)
    return max(0.5 * time_s, time_s - reserve_s)
