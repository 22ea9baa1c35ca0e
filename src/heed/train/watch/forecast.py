"""Forecast the last score of a run from its scores so far: an interval, wide at first.

Curves of one family are weighted by how well they fit. No decision depends on the forecast;
`tests/train/watch/test_forecast.py` has real curves.

A score rises as `height · s^k / (s^k + half^k)` over the share `s` of the budget (Hill 1910): slow,
then fast, then ever slower, by a power law. Annealing the learning rate adds a little at the end.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

MIN_POINTS = 3
"""Two points fit any curve."""

COVERED = 0.8
"""Probability of the interval."""

STEEPNESS = np.linspace(0.5, 3.0, 11)
HALFWAY = np.geomspace(0.02, 3.0, 15)
"""The exponents, and the shares at which half the height is reached, of the curves."""

NOISE = np.array([0.4, 0.7, 1.2, 2.0])
"""Standard deviations of one score, in points. BLEU of 500 sentences jumps by 0.3 to 1.2."""

HEIGHT = (45.0, 25.0)
"""Mean and deviation of the prior of a curve's height."""

ANNEALING = (0.5, 1.5)
"""The same for the points added by a learning rate that falls to zero. With 1.5 as mean, forecasts
of eight real curves were 1.1 too high on average; with 0.5 they are 0.4 too high."""

WORST, BEST = 0.0, 100.0

HALVINGS = 30
"""Steps of bisection, which find a score to a ten-millionth of a point."""

Numbers = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Forecast:
    """The forecast of the last score.

    Attributes:
        low: nine of ten runs end above it.
        middle: half of the runs end above it.
        high: nine of ten runs end below it.
    """

    low: float
    middle: float
    high: float


def forecast(
    points: Sequence[tuple[float, float]], *, rate_factor: Callable[[float], float]
) -> Forecast | None:
    """Predict the score at the end of the budget.

    Args:
        points: share of the budget, above 0, and score, 0 to 100, oldest first.
        rate_factor: share → factor on the peak learning rate, as the schedule has it.

    Returns:
        None before there are `MIN_POINTS`.
    """
    if len(points) < MIN_POINTS:
        return None
    shares = np.array([share for share, _ in points])
    scores = np.array([score for _, score in points])
    annealed = np.array([1 - rate_factor(share) for share in (*shares, 1.0)])
    steepness, halfway = (axis.ravel()[:, None] for axis in np.meshgrid(STEEPNESS, HALFWAY))
    hills = 1 / (1 + (halfway / np.append(shares, 1.0)) ** steepness)
    features = np.stack([hills, np.broadcast_to(annealed, hills.shape)], axis=-1)
    found = [_predict(features[:, :-1], scores, features[:, -1], noise) for noise in NOISE]
    means, deviations, log_weights = (np.concatenate(column) for column in zip(*found, strict=True))
    weights = np.exp(log_weights - log_weights.max())
    low, middle, high = _quantiles(means, deviations, weights / weights.sum(), (1 - COVERED) / 2)
    return Forecast(low=low, middle=middle, high=high)


def _predict(
    features: Numbers, scores: Numbers, last: Numbers, noise: float
) -> tuple[Numbers, ...]:
    """Bayesian linear regression of height and annealing, for all curves at once.

    Args:
        features: factors of height and annealing, `(n_curves, n_points, 2)`.
        scores: `(n_points)`.
        last: features at the end of the budget, `(n_curves, 2)`.
        noise: standard deviation of one score.

    Returns:
        Mean and deviation of the last score, and the log-evidence of the curve, `(n_curves)` each.

    Source: Bishop 2006, "Pattern Recognition and Machine Learning", sections 3.3 and 3.5.
    """
    prior_mean = np.array([HEIGHT[0], ANNEALING[0]])
    prior = np.diag([HEIGHT[1] ** 2, ANNEALING[1] ** 2])
    gain = prior @ features.swapaxes(-1, -2)
    covariance = features @ gain + noise**2 * np.eye(len(scores))
    error = scores - features @ prior_mean
    solved = np.linalg.solve(covariance, error[..., None])
    mean = (last * (prior_mean + (gain @ solved)[..., 0])).sum(axis=-1)
    left = prior - gain @ np.linalg.solve(covariance, gain.swapaxes(-1, -2))
    spread = (last[:, None] @ left @ last[..., None])[:, 0, 0]
    fit = (error[:, None] @ solved)[:, 0, 0]
    log_evidence = -0.5 * (fit + np.linalg.slogdet(covariance)[1])
    return mean, np.sqrt(np.maximum(spread, 0.0) + noise**2), log_evidence


def _quantiles(
    means: Numbers, deviations: Numbers, weights: Numbers, tail: float
) -> tuple[float, float, float]:
    """The points below which a mixture of Gaussians has `tail`, half and 1 - `tail` of its mass."""
    chosen = weights > 1e-6 * weights.max()
    shares = np.array([tail, 0.5, 1 - tail])
    lower, upper = np.full(3, WORST), np.full(3, BEST)
    for _ in range(HALVINGS):
        tried = (lower + upper) / 2
        z = (tried[:, None] - means[chosen]) / (deviations[chosen] * math.sqrt(2))
        is_above = (0.5 * (1 + _erf(z)) * weights[chosen]).sum(axis=1) < shares
        lower, upper = np.where(is_above, tried, lower), np.where(is_above, upper, tried)
    low, middle, high = map(float, upper)
    return low, middle, high


def _erf(x: Numbers) -> Numbers:
    """The error function, to 1.5e-7. Source: Abramowitz and Stegun 1964, formula 7.1.26."""
    t = 1 / (1 + 0.3275911 * np.abs(x))
    coefficients = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592, 0.0)
    found: Numbers = np.sign(x) * (1 - np.polyval(coefficients, t) * np.exp(-x * x))
    return found
