"""Forecasts on the curves of finished runs: honest intervals, wide at first, narrow at the end."""

import pytest

from heed.train.step.learning_rate import Moment, trapezoid
from heed.train.watch.forecast import Forecast, forecast

# Share of the budget and score at each validation, from `metrics.jsonl` of finished runs.
CURVES = {
    "Multi30k en-de, small, 60 min, BLEU": [
        (0.09, 18.0), (0.20, 25.2), (0.29, 31.0), (0.39, 32.3), (0.49, 35.0),
        (0.60, 37.4), (0.70, 37.7), (0.80, 38.1), (0.89, 38.8), (1.0, 39.2),
    ],
    "Multi30k en-de, small, 60 min, chrF": [
        (0.09, 44.6), (0.20, 48.2), (0.29, 53.7), (0.39, 54.7), (0.49, 58.0),
        (0.60, 60.0), (0.70, 60.3), (0.80, 61.0), (0.89, 61.8), (1.0, 61.7),
    ],
    "Tatoeba zh-en, small, 30 min, BLEU": [
        (0.10, 2.8), (0.20, 7.4), (0.29, 10.6), (0.38, 13.3), (0.47, 15.6),
        (0.60, 15.8), (0.67, 19.5), (0.79, 19.8), (0.87, 20.9), (0.97, 21.3),
    ],
    "Tatoeba zh-en, small, 30 min, chrF": [
        (0.10, 14.5), (0.20, 23.9), (0.29, 28.2), (0.38, 29.7), (0.47, 33.2),
        (0.60, 32.8), (0.67, 36.1), (0.79, 37.7), (0.87, 37.8), (0.97, 38.6),
    ],
    "Tatoeba de-en, tiny, 20 min, BLEU": [
        (0.09, 0.4), (0.2, 6.2), (0.29, 10.8), (0.4, 16.0), (0.49, 19.3),
        (0.58, 20.5), (0.7, 23.3), (0.78, 24.6), (0.88, 26.9), (0.99, 27.1),
    ],
    "Tatoeba de-en, tiny, 20 min, chrF": [
        (0.09, 9.8), (0.2, 20.5), (0.29, 24.9), (0.4, 31.3), (0.49, 35.0),
        (0.58, 36.9), (0.7, 39.8), (0.78, 41.1), (0.88, 43.5), (0.99, 43.4),
    ],
}  # fmt: skip


def annealing(share: float) -> float:
    return trapezoid(Moment(step=1, share=share, warmup_steps=0, decay_share=0.5, d_model=1))


def forecasts(name: str) -> list[Forecast]:
    """One before each validation from the fourth on."""
    points = CURVES[name]
    found = [forecast(points[:n], rate_factor=annealing) for n in range(3, len(points))]
    return [one for one in found if one is not None]


def test_two_points_say_nothing() -> None:
    assert forecast([(0.1, 10.0), (0.2, 15.0)], rate_factor=annealing) is None


def test_eight_in_ten_intervals_hold_the_last_score() -> None:
    held = [
        one.low <= CURVES[name][-1][1] <= one.high for name in CURVES for one in forecasts(name)
    ]
    assert len(held) >= 35
    assert sum(held) / len(held) >= 0.8


@pytest.mark.parametrize("name", CURVES)
def test_the_interval_narrows_and_the_middle_comes_close(name: str) -> None:
    first, *_, last = found = forecasts(name)
    final = CURVES[name][-1][1]
    assert all(one.low < one.middle < one.high for one in found)
    assert first.high - first.low > 1.5 * (last.high - last.low)
    assert last.high - last.low < 5
    assert abs(last.middle - final) < 2
    halfway = found[len(found) // 2]
    assert abs(halfway.middle - final) < 5


def test_no_score_above_a_hundred_is_expected() -> None:
    expected = forecast([(0.1, 90.0), (0.2, 97.0), (0.3, 98.5)], rate_factor=annealing)
    assert expected is not None
    assert 95 < expected.middle <= expected.high <= 100


def test_a_flat_curve_is_expected_to_stay() -> None:
    points = [(share / 10, 30.0) for share in range(2, 10)]
    expected = forecast(points, rate_factor=lambda share: 1.0)
    assert expected is not None
    assert expected.low < 30.5
    assert expected.high < 34
