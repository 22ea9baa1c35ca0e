"""Back to the last checkpoint with half the learning rate, after steps that were not finite.

`train_step.py` skips an update whose loss or gradient is not finite. The weights come from disk, so
this costs no memory, and a run that is killed and resumed rolls back in the same way.
"""

from collections.abc import Callable, Iterable
from typing import Any

from torch import Tensor, nn

from heed.errors import RunError
from heed.train.step.progress import Progress

MAX_SKIPPED = 5
"""Updates skipped in a row, because a number was not finite, after which training goes back. A few
corrupt pairs cause one now and then; weights that are too large cause one at every step."""

MAX_MENDS = 10
"""Most rollbacks, each of which halves the rates: to a thousandth in all."""


def roll_back(progress: Progress, restore: Callable[[], int]) -> dict[str, Any]:
    """Restore weights that made a step, and halve the rates; data and clock continue.

    Args:
        progress: the progress of the run; changed.
        restore: loads the last checkpoint and returns its step.

    Returns:
        The event to report.

    Raises:
        RunError: it was tried too often.
    """
    if progress.mends >= MAX_MENDS:
        raise RunError(
            f"training diverged: {_why(progress)}, up to step {progress.step}, though the rates "
            f"were halved {MAX_MENDS} times. The last checkpoint is intact. Lower "
            "training.learning_rate and training.matrix_learning_rate, and start a new run."
        )
    skipped, step = progress.skipped, restore()
    why = f"{skipped} updates in a row were skipped" if skipped else "weights are not finite"
    progress.skipped = 0
    progress.mends += 1
    progress.rate_scale /= 2
    return {
        "kind": "mend",
        "step": progress.step,
        "restored_step": step,
        "rate_scale": progress.rate_scale,
        "text": f"{why}: back to the weights of step {step}, "
        f"with learning rates at {progress.rate_scale:.2%} of the schedule's",
    }


def _why(progress: Progress) -> str:
    """What is not finite, in words."""
    if not progress.skipped:
        return "weights were not finite"
    return f"loss or gradient was not finite in {progress.skipped} steps in a row"


def is_sound(model: nn.Module, progress: Progress) -> bool:
    """Whether a state may be saved: its last step was made, and all its weights are finite."""
    return not progress.skipped and are_finite(model.parameters())


def are_finite(tensors: Iterable[Tensor]) -> bool:
    """Whether no number in them is infinite or NaN."""
    return all(bool(tensor.isfinite().all()) for tensor in tensors)
