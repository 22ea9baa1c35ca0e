"""The few largest entries of each row, with ties decided by id.

Not what a search asks a model for at every step: that is `Next.top`, which a model answers in its
own fast way, and for which this is the plain definition. Read on in `score.py`.
"""

import numpy as np

from heed.model.interface import Floats, Ids


def top(scores: Floats, count: int) -> tuple[Floats, Ids]:
    """Find the `count` largest entries of each row, largest first, the lower id first among equals.

    Args:
        scores: log-probs, `(rows, width)`.
        count: how many; fewer come back if the rows are shorter.

    Returns:
        The values and their ids, both `(rows, count)`.
    """
    ids = np.argsort(-scores, axis=1, kind="stable")[:, :count]
    return np.take_along_axis(scores, ids, axis=1), ids
