"""The one function of the interface; the rest are names."""

import math

import numpy as np
import pytest

from heed.model.interface import largest


@pytest.mark.parametrize("count", [1, 4, 9, 40])
def test_the_largest_come_first_and_of_equals_the_lower_id(count: int) -> None:
    scores = np.random.default_rng(count).integers(-5, 0, (6, 20)).astype(np.float32)
    values, ids = largest(scores, count)
    for row, found, chosen in zip(scores.tolist(), values.tolist(), ids.tolist(), strict=True):
        assert chosen == sorted(range(20), key=lambda i: (-row[i], i))[:count]
        assert found == [row[i] for i in chosen]


def test_a_row_with_one_possible_entry_begins_with_it() -> None:
    scores = np.full((1, 9), -math.inf, dtype=np.float32)
    scores[0, 7] = -1.0
    assert largest(scores, 3)[1][0, 0] == 7
