"""The learning rate as a pure function of progress.

Each schedule returns a factor on the peak learning rate; `SCHEDULES` names them.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Moment:
    """The progress of a run, for a schedule.

    Attributes:
        step: number of the optimizer step about to be made, from 1.
        share: part of the budget (steps or time) already used, 0 to 1.
        warmup_steps: steps over which the rate rises.
        decay_share: last part of the budget, over which `trapezoid` falls.
        d_model: model width, for the paper's formula.
    """

    step: int
    share: float
    warmup_steps: int
    decay_share: float
    d_model: int

    @property
    def warmup(self) -> float:
        """Rises linearly from 0 to 1 over the warm-up, then stays 1."""
        return min(1.0, self.step / self.warmup_steps) if self.warmup_steps else 1.0


def paper(now: Moment) -> float:
    """d_model^-0.5 · min(step^-0.5, step · warmup_steps^-1.5).

    Source: Vaswani et al. 2017, section 5.3, equation 3.
    """
    warmup_steps = max(1, now.warmup_steps)
    return float(now.d_model**-0.5 * min(now.step**-0.5, now.step * warmup_steps**-1.5))


def inverse_sqrt(now: Moment) -> float:
    """The paper's curve with its peak at 1."""
    return now.warmup * min(1.0, math.sqrt(max(1, now.warmup_steps) / now.step))


def linear(now: Moment) -> float:
    """Fall linearly to zero at the end of the budget."""
    return now.warmup * max(0.0, 1 - now.share)


def cosine(now: Moment) -> float:
    """Fall along half a cosine to zero. Source: Loshchilov and Hutter 2017, without restarts."""
    return now.warmup * 0.5 * (1 + math.cos(math.pi * min(1.0, now.share)))


def trapezoid(now: Moment) -> float:
    """Hold the peak, then fall linearly to zero. Source: Hägele et al. 2024."""
    return now.warmup * min(1.0, max(0.0, 1 - now.share) / now.decay_share)


SCHEDULES: dict[str, Callable[[Moment], float]] = {
    "paper": paper,
    "inverse_sqrt": inverse_sqrt,
    "linear": linear,
    "cosine": cosine,
    "trapezoid": trapezoid,
}
