"""Panels of weights: nothing lost in float32, at most half a step in int8."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heed.engine.matrices import float_matrix, int8_matrix

shapes = st.tuples(st.integers(1, 40), st.integers(1, 40))


@given(shape=shapes, seed=st.integers(0, 9))
def test_a_float_matrix_is_the_weight_laid_out(shape: tuple[int, int], seed: int) -> None:
    weight = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    matrix = float_matrix(weight)
    np.testing.assert_array_equal(matrix.floats(), weight)
    assert matrix.panels.shape == (-(-shape[0] // 16), shape[1], 16)


@given(shape=shapes, seed=st.integers(0, 9))
def test_an_int8_is_never_off_by_more_than_half_a_step(shape: tuple[int, int], seed: int) -> None:
    weight = np.random.default_rng(seed).normal(size=shape).astype(np.float32)
    matrix = int8_matrix(weight)
    assert matrix.scales is not None
    error = np.abs(matrix.floats() - weight)
    assert (error <= 0.5001 * matrix.scales[: len(weight), None]).all()
    assert np.abs(matrix.dense()).max(axis=1).tolist() == [63] * len(weight)


def test_a_column_of_zeros_stays_zero() -> None:
    matrix = int8_matrix(np.zeros((3, 5), np.float32), np.ones(3, np.float32))
    assert not matrix.floats().any()
    assert matrix.bias is not None
    assert matrix.bias.tolist() == [1.0] * 3 + [0.0] * 13


def test_weights_of_one_matrix_have_scales_of_their_own() -> None:
    weight = np.array([[1.0, 0.5], [1000.0, -500.0]], np.float32)
    assert int8_matrix(weight).floats() == pytest.approx(weight, rel=0.02)
