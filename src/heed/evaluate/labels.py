"""Scores of labels: accuracy and F1, with confidence intervals by resampling."""

import random
from collections import Counter
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
    n_both = Counter(one for one, other in zip(found, right, strict=True) if one == other)
    n_either = Counter(found) + Counter(right)
    scores = [2 * n_both[label] / count for label, count in n_either.items()]
    return 100 * sum(scores) / max(1, len(scores))


def interval(
    score: Callable[[Labels, Labels], float],
    found: Labels,
    right: Labels,
    *,
    resamples: int = 1000,
    seed: int = 12345,
) -> tuple[float, float]:
    """The 95 % bootstrap confidence interval of a score, corrected for the bias of resampling.

    Resampled texts have fewer different labels than the whole set, so their F1 differs on average.
    This difference is subtracted (Efron and Tibshirani 1993, "An Introduction to the Bootstrap",
    sections 10.2 and 13.3).

    Args:
        score: a function such as `accuracy`.
        found: labels found.
        right: labels that are right.
        resamples: number of resampled sets, drawn with replacement and as large as the original.
        seed: decides the draws.
    """
    draw = random.Random(seed)
    places = range(len(right))
    scores = []
    for _ in range(resamples):
        chosen = draw.choices(places, k=len(right))
        scores.append(score([found[i] for i in chosen], [right[i] for i in chosen]))
    scores.sort()
    bias = sum(scores) / resamples - score(found, right)
    ends = scores[int(0.025 * resamples)], scores[min(resamples - 1, int(0.975 * resamples))]
    low, high = (min(100.0, max(0.0, end - bias)) for end in ends)
    return low, high
