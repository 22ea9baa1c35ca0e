"""Maps of a trace against their definitions."""

import math

import numpy as np
import pytest

from heed.errors import UsageError
from heed.explain.attention.maps import (
    entropy,
    maps,
    mean_of_heads,
    softmax,
    sublayers,
    tokens,
    without_columns,
)
from heed.explain.attention.rollout import rollout_of
from heed.translate.translator import Translator

LINE, OTHER = "Two men ride a bike in the snow.", "A dog runs."


def test_the_three_uses_have_their_rows_and_columns(translator: Translator) -> None:
    """Claim 67."""
    trace = translator.trace(LINE, OTHER)
    for use in ("encoder", "decoder", "cross"):
        rows, columns = tokens(trace, use)
        found = maps(trace, use)
        assert len(found) == 2
        for weights in found:
            assert weights.shape == (2, len(rows), len(columns))
            np.testing.assert_allclose(weights.sum(axis=-1), 1.0, atol=1e-6)
    assert sublayers(trace, "cross") == ["decoder.0.cross_attention", "decoder.1.cross_attention"]


def test_masked_cells_are_minus_infinity_and_then_exactly_0(translator: Translator) -> None:
    trace = translator.trace(LINE, OTHER)
    masked, weights = maps(trace, "decoder", "masked"), maps(trace, "decoder")
    for before, after in zip(masked, weights, strict=True):
        future = np.triu(np.ones(after.shape[1:], bool), k=1)
        assert np.isneginf(before[:, future]).all()
        assert (after[:, future] == 0).all()
        np.testing.assert_allclose(softmax(before), after, atol=1e-6)


def test_stages_follow_from_each_other(translator: Translator) -> None:
    """Claims 45 and 46: products, divided by √d_k, behind a softmax."""
    trace = translator.trace(LINE, OTHER)
    for products, scores, masked, weights in zip(
        *(maps(trace, "encoder", stage) for stage in ("products", "scores", "masked", "weights")),
        strict=True,
    ):
        np.testing.assert_allclose(scores, products / math.sqrt(8), atol=1e-6)
        np.testing.assert_array_equal(masked, scores)  # nothing is masked
        np.testing.assert_allclose(softmax(scores), weights, atol=1e-6)


def test_entropy_of_known_rows() -> None:
    rows = np.array([[1, 0, 0, 0], [0.25] * 4, [0.5, 0.5, 0, 0], [0.5, 0.25, 0.25, 0]], np.float32)
    np.testing.assert_allclose(entropy(rows), [0, 2, 1, 1.5], atol=1e-6)


def test_columns_left_out_leave_rows_of_sum_1() -> None:
    rows = np.array([[0.2, 0.3, 0.5], [0, 1, 0]], np.float32)
    expected = [[0.2 / 0.7, 0, 0.5 / 0.7], [0, 0, 0]]
    np.testing.assert_allclose(without_columns(rows, [1]), expected, atol=1e-6)
    assert rows[0, 1] == np.float32(0.3)


def test_heads_count_as_much_as_they_are_given() -> None:
    heads = np.array([[[1, 0]], [[0, 1]], [[0.5, 0.5]]], np.float32)
    np.testing.assert_allclose(mean_of_heads(heads), [[0.5, 0.5]])
    np.testing.assert_allclose(mean_of_heads(heads, {0: 3, 1: 1}), [[0.75, 0.25]])


def test_what_is_not_there_is_refused(translator: Translator) -> None:
    trace = translator.trace(OTHER, OTHER)
    with pytest.raises(
        UsageError, match="use must be one of encoder, decoder, cross, joint, but is 'x'"
    ):
        maps(trace, "x")
    with pytest.raises(UsageError, match="This model has no joint attention; it has: "):
        maps(trace, "joint")
    with pytest.raises(UsageError, match="Rollout needs self-attention"):
        rollout_of(trace, "joint")
    with pytest.raises(UsageError, match="stage must be one of products, .*, but is 'x'"):
        maps(trace, "cross", "x")
    with pytest.raises(UsageError, match="head must lie between 0 and 1, but is 2"):
        mean_of_heads(maps(trace, "cross")[0], {2: 1.0})
    with pytest.raises(UsageError, match="one must be larger than 0"):
        mean_of_heads(maps(trace, "cross")[0], {1: 0.0})
