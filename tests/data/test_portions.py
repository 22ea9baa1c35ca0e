"""Which pairs are read where not all can be."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heed.data import portions
from heed.data.portions import random_portions


@given(st.lists(st.integers(0, 50), max_size=40), st.integers(0, 500), st.integers(0, 2**63 - 1))
def test_pairs_are_read_once_each_as_long_as_they_are_affordable(
    costs: list[int], limit: int, seed: int
) -> None:
    prices = np.array(costs, np.int64)
    read = [number for numbers in random_portions(prices, limit, seed=seed) for number in numbers]
    assert len(read) == len({*read})
    assert prices[read].sum() <= limit
    left = prices[~np.isin(np.arange(len(costs)), read)]
    left = left[left <= limit]  # a pair that alone costs more ends nothing
    assert not len(left) or prices[read].sum() + left.max() > limit


def test_order_and_portions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portions, "PAIRS_AT_ONCE", 3)
    ones = np.ones(10, np.int64)
    found = list(random_portions(ones, 8, seed=1))
    assert [len(numbers) for numbers in found] == [3, 3, 2]
    assert found == list(random_portions(ones, 8, seed=1))
    assert found != list(random_portions(ones, 8, seed=2))
