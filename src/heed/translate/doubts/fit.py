"""Logistic regression by Newton's method: small, exact, the same on every machine's numpy.

With knots it is additive: the sum of a piecewise linear function of each feature, which bends at
the feature's knots (Hastie and Tibshirani 1986, "Generalized Additive Models").
"""

import numpy as np
from numpy.typing import NDArray

from heed.bundle.doubts import Fit

ROUNDS = 30
PENALTY = 2.0
"""Of squared weights of standardized features: a prior of so many pairs."""

BENDS = (0.2, 0.5, 0.8)
"""Shares of the rows below the knots of a feature."""

N_FOLDS = 5
"""Fits of `unseen`, each without a share of the rows."""

Numbers = NDArray[np.float64]
Knots = tuple[tuple[float, ...], ...]


def knots_of(features: Numbers) -> Knots:
    """The knots, at which the functions may bend, a row for each of `BENDS`.

    Args:
        features: `(n, n_features)`.
    """
    return tuple(tuple(row) for row in np.quantile(features, BENDS, axis=0).tolist())


def fit(features: Numbers, is_so: NDArray[np.bool_], knots: Knots = ()) -> Fit:
    """Weights that predict a yes or no from features.

    Args:
        features: `(n, n_features)`.
        is_so: the true answers, `(n,)`.
        knots: from `knots_of`; none = a linear sum.
    """
    features = _bent(features, knots)
    means, scales = features.mean(axis=0), features.std(axis=0)
    scales[scales < 1e-9] = np.inf  # a constant feature is ignored
    rows = np.column_stack([(features - means) / scales, np.ones(len(features))])
    penalties = np.append(np.full(features.shape[1], PENALTY), 1e-3)
    weights = np.zeros(rows.shape[1])
    for _ in range(ROUNDS):
        chances = logistic(rows @ weights)
        gradient = rows.T @ (chances - is_so) + penalties * weights
        curvature = (rows * (chances * (1 - chances))[:, None]).T @ rows + np.diag(penalties)
        step = np.linalg.solve(curvature, gradient)
        weights -= step
        if np.abs(step).max() < 1e-9:
            break
    own = weights[:-1] / scales
    return Fit(weights=tuple(own.tolist()), bias=float(weights[-1] - own @ means), knots=knots)


def _bent(features: Numbers, knots: Knots) -> Numbers:
    """Features, followed by their excess over each row of knots, 0 if below."""
    more = [np.maximum(features - np.array(row), 0.0) for row in knots]
    return np.concatenate([features, *more], axis=1) if more else features


def sums(fitted: Fit, features: Numbers) -> Numbers:
    """The weighted sums of features, `(n,)`; those of a row do not depend on the other rows."""
    # A product of matrices may sum in another order if there are more rows.
    if not fitted.knots:
        # Weights fitted by an earlier version are for the first features only.
        features = features[:, : len(fitted.weights)]
    features = _bent(features, fitted.knots)
    found: Numbers = np.add.reduce(features.T * np.array(fitted.weights)[:, None], axis=0)
    return found + fitted.bias


def chances(fitted: Fit, features: Numbers) -> Numbers:
    """The probabilities of features, `(n,)`."""
    return logistic(sums(fitted, features))


def unseen(
    features: Numbers,
    is_so: NDArray[np.bool_],
    *,
    knots: Knots = (),
    groups: NDArray[np.int64] | None = None,
) -> Numbers:
    """Sums of each row by weights that were fitted without it, `(n,)`.

    Args:
        features: `(n, n_features)`.
        is_so: the true answers, `(n,)`.
        knots: from `knots_of`.
        groups: rows of the same group are left out together, `(n,)`; None = each alone.
    """
    found = np.zeros(len(features))
    fold = (np.arange(len(features)) if groups is None else groups) % N_FOLDS
    for number in range(N_FOLDS):
        is_out = fold == number
        found[is_out] = sums(fit(features[~is_out], is_so[~is_out], knots), features[is_out])
    return found


def calibration_error(probabilities: Numbers, is_so: NDArray[np.bool_], n_bins: int = 10) -> float:
    """Expected calibration error over bins of equal size.

    Source: Naeini, Cooper and Hauskrecht 2015, "Obtaining Well Calibrated Probabilities Using
        Bayesian Binning", section 3, with bins of equal mass (Nguyen and O'Connor 2015).
    """
    order = np.argsort(probabilities, kind="stable")
    error = 0.0
    for places in np.array_split(order, n_bins):
        if len(places):
            error += abs(probabilities[places].mean() - is_so[places].mean()) * len(places)
    return error / len(probabilities)


def logistic(values: Numbers) -> Numbers:
    """Sums as probabilities, `(n,)`."""
    found: Numbers = 1 / (1 + np.exp(-np.clip(values, -500, 500)))
    return found
