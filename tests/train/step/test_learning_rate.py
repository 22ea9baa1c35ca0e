"""Learning rates at points a reader can compute by hand."""

import pytest

from heed.train.step.learning_rate import SCHEDULES, Moment


def factor(name: str, *, step: int = 1, share: float = 0.0, warmup_steps: int = 0) -> float:
    now = Moment(step=step, share=share, warmup_steps=warmup_steps, decay_share=0.5, d_model=512)
    return SCHEDULES[name](now)


def test_paper_schedule_peaks_at_the_end_of_warm_up_with_the_papers_value() -> None:
    # 512^-0.5 · 4000^-0.5, the rate of the base model at step 4 000.
    peak = (512 * 4000) ** -0.5
    assert factor("paper", step=4000, warmup_steps=4000) == pytest.approx(peak)
    assert factor("paper", step=2000, warmup_steps=4000) == pytest.approx(peak / 2)
    assert factor("paper", step=16000, warmup_steps=4000) == pytest.approx(peak / 2)


@pytest.mark.parametrize("name", ["linear", "cosine", "trapezoid"])
def test_schedules_of_a_budget_end_at_zero(name: str) -> None:
    assert factor(name, step=10, share=0.0) == pytest.approx(1.0)
    assert factor(name, step=1000, share=1.0) == pytest.approx(0.0)
    assert factor(name, step=2000, share=1.5) == pytest.approx(0.0)


@pytest.mark.parametrize("name", ["linear", "cosine", "trapezoid", "inverse_sqrt"])
def test_warm_up_rises_linearly(name: str) -> None:
    assert factor(name, step=25, warmup_steps=100) == pytest.approx(0.25)


def test_midway_values() -> None:
    assert factor("linear", share=0.25) == pytest.approx(0.75)
    assert factor("cosine", share=0.5) == pytest.approx(0.5)
    assert factor("trapezoid", share=0.4) == pytest.approx(1.0)
    assert factor("trapezoid", share=0.75) == pytest.approx(0.5)
    assert factor("inverse_sqrt", step=400, warmup_steps=100) == pytest.approx(0.5)
