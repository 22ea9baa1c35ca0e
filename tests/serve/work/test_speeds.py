"""The speed of a model is that of its last batches."""

import pytest

from heed.serve.work.speeds import Speeds


def test_a_model_that_was_not_used_has_no_speed() -> None:
    speeds = Speeds()
    speeds.add("a", n_tokens=30, seconds=0.1)
    assert speeds.of("a") == pytest.approx(300)
    assert speeds.of("b") is None


def test_batches_count_by_their_time_and_the_last_ones_most() -> None:
    speeds = Speeds()
    speeds.add("a", n_tokens=100, seconds=1.0)
    speeds.add("a", n_tokens=100, seconds=3.0)
    assert speeds.of("a") == pytest.approx(195 / 3.95)
    for _ in range(200):
        speeds.add("a", n_tokens=700, seconds=1.0)
    assert speeds.of("a") == pytest.approx(700, rel=1e-3)
