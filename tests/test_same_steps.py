"""benchmarks/same_steps.py: what is said of two states of the source."""

from types import ModuleType
from typing import Any

import pytest


@pytest.fixture
def same_steps(scripts: dict[str, ModuleType]) -> Any:
    return scripts["same_steps"]


def record(rate: float, **changes: Any) -> dict[str, Any]:
    return {"losses": ["0x1p+1"], "weights": "a", "answers": "b", "tokens_per_s": rate, **changes}


def test_equal_bits_and_the_ratio_of_each_turn_are_told(same_steps: Any) -> None:
    said = same_steps.report([record(1000), record(1100)], [record(1010), record(1100)])
    assert said.splitlines() == [
        "losses: the same bits",
        "weights: the same bits",
        "answers: the same bits",
        "tokens/s: 1,050 before, 1,055 after, ratio 1.005 (1.000 – 1.010)",
    ]


def test_one_turn_that_differs_is_enough(same_steps: Any) -> None:
    said = same_steps.report([record(1000)] * 2, [record(1000), record(1000, weights="c")])
    assert "weights: they differ" in said
    assert "losses: the same bits" in said
