"""Regressions find what made the numbers, and calibration is measured as one would by hand."""

import numpy as np
import pytest

from heed.bundle.doubts import Fit
from heed.translate.doubts.fit import calibration_error, chances, fit, knots_of, sums, unseen


def drawn(n: int = 20_000) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    features = random.normal(size=(n, 3)) * [1.0, 10.0, 1.0] + [0.0, 5.0, 0.0]
    true = 2.0 * features[:, 0] - 0.1 * features[:, 1] + 0.5
    return features, random.random(n) < 1 / (1 + np.exp(-true))


def test_the_weights_that_made_the_numbers_are_found() -> None:
    found = fit(*drawn())
    # Within about three standard errors of 20,000 draws.
    assert found.weights == pytest.approx((2.0, -0.1, 0.0), abs=0.1)
    assert found.bias == pytest.approx(0.5, abs=0.1)


def test_what_was_not_seen_is_calibrated() -> None:
    features, is_so = drawn(4000)
    held_out = 1 / (1 + np.exp(-unseen(features, is_so)))
    assert calibration_error(held_out, is_so) < 0.05
    assert (held_out.round() == is_so).mean() > 0.7


def test_a_constant_feature_and_a_clear_case_have_weights() -> None:
    features = np.column_stack([np.ones(40), np.arange(40.0)])
    found = fit(features, np.arange(40) >= 20)
    assert found.weights[0] == 0.0
    assert chances(found, features)[[0, -1]] == pytest.approx([0, 1], abs=0.1)


def test_the_sum_of_a_row_does_not_depend_on_others() -> None:
    features = np.random.default_rng(1).normal(size=(257, 24))
    fitted = Fit(weights=tuple(np.random.default_rng(2).normal(size=24).tolist()), bias=0.1)
    together = sums(fitted, features)
    alone = [sums(fitted, features[row : row + 1])[0] for row in range(len(features))]
    assert together.tolist() == alone


def test_the_calibration_error_of_two_bins_by_hand() -> None:
    probabilities = np.array([0.1, 0.3, 0.8, 0.9])
    is_so = np.array([False, True, True, True])
    # Means 0.2 and 0.85, shares 0.5 and 1.
    assert calibration_error(probabilities, is_so, 2) == pytest.approx((0.3 + 0.15) / 2)


def test_with_knots_the_sum_bends() -> None:
    features = np.random.default_rng(0).uniform(-3, 3, size=(4000, 1))
    is_so = np.abs(features[:, 0]) > 1.5  # which no straight line tells apart
    straight, bent = fit(features, is_so), fit(features, is_so, knots_of(features))
    assert ((sums(straight, features) > 0) == is_so).mean() < 0.7
    assert ((sums(bent, features) > 0) == is_so).mean() > 0.95
    assert (sums(bent, features[:1]) == sums(bent, features)[:1]).all()


def test_features_of_later_versions_do_not_count() -> None:
    older = Fit(weights=(1.0, 2.0), bias=0.5)
    assert sums(older, np.array([[3.0, 4.0, 99.0]])) == pytest.approx([11.5])


def test_rows_of_a_group_are_left_out_together() -> None:
    random = np.random.default_rng(0)
    group = np.arange(200) // 2
    # Both rows of a group are equal, and what is so was drawn for the group.
    features, is_so = random.normal(size=(100, 20))[group], (random.random(100) < 0.5)[group]
    together = (unseen(features, is_so, groups=group) > 0) == is_so
    alone = (unseen(features, is_so) > 0) == is_so
    assert together.mean() < 0.6 < alone.mean()
