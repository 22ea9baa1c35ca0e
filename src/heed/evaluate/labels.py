"""Scores of labels: accuracy and F1, with confidence intervals by resampling."""

import random
from collections.abc import Callable, Hashable, Sequence

Labels = Sequence[Hashable]


def accuracy(found: Labels, right: Labels) -> float:
    """Share of labels that are right, in percent."""
    n_right = sum(one == other for one, other in zip(found, right, strict=True))
    return 100 * n_right / max(1, len(right))


def mean_f1(found: Labels, right: Labels) -> float:
    """F1 of each label that occurs in either list, averaged, in percent ("macro F1").

    F1 is 2 · true positives / (labels found + labels that are right).
    """
    scores = []
    for label in {*found, *right}:
        pairs = zip(found, right, strict=True)
        n_both = sum(one == label and other == label for one, other in pairs)
        n_either = sum(one == label for one in found) + sum(one == label for one in right)
        scores.append(2 * n_both / n_either)
    return 100 * sum(scores) / max(1, len(scores))


def interval(
    score: Callable[[Labels, Labels], float],
    found: Labels,
    right: Labels,
    *,
    resamples: int = 1000,
    seed: int = 12345,
) -> tuple[float, float]:
    """The middle 95 % of a score over texts drawn anew (Efron and Tibshirani 1993).

    Args:
        score: such as `accuracy`.
        found: labels found.
        right: labels that are right.
        resamples: times that as many texts are drawn, with replacement.
        seed: decides the draws.
    """
    draw = random.Random(seed)
    places = range(len(right))
    scores = []
    for _ in range(resamples):
        chosen = draw.choices(places, k=len(right))
        scores.append(score([found[i] for i in chosen], [right[i] for i in chosen]))
    scores.sort()
    return scores[int(0.025 * resamples)], scores[min(resamples - 1, int(0.975 * resamples))]
