"""Attributions equal finite differences, add up where they promise to, and equal brute force."""

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.explain.causes.conftest import LINES

from heed.errors import UsageError
from heed.explain.causes.attribution import (
    METHODS,
    SOURCE_VECTORS,
    TARGET_VECTORS,
    deletion,
    erasure,
    gradient_times_input,
    integrated_gradients,
    masking,
    rank_correlation,
)
from heed.explain.causes.effects import effect_on
from heed.explain.causes.pair import Pair
from heed.explain.causes.parts import source_readings
from heed.model.trace import editing, recording
from heed.translate.translator import Translator

TranslatorOf = Callable[..., Translator]

SMOOTH: dict[str, dict[str, Any]] = {
    "post": {"activation": "gelu"},
    "pre": {"activation": "swiglu", "norm": "pre", "positions": "rotary"},
    "conv": {"family": "conv", "activation": "gelu"},
    "decoder": {"family": "decoder", "activation": "gelu"},
    "rnn": {"family": "rnn"},
}
"""Models whose log-probs have a gradient everywhere."""


@pytest.fixture(params=SMOOTH)
def pair(request: pytest.FixtureRequest, translator_of: TranslatorOf) -> Pair:
    translator = translator_of(dtype=torch.float64, **SMOOTH[request.param])
    return Pair.of(translator, LINES[0], "Two dog")


def scores(pair: Pair) -> Any:
    """Log-probs of the expected tokens in float64, which the model's logits are not."""
    output = pair.network.output
    with torch.no_grad(), recording(pair.network, "states") as caught:
        pair.log_probs()
        logits = torch.nn.functional.linear(caught["states"], output.weight, output.bias)
        return pair.of_expected(logits.log_softmax(dim=-1))[0].numpy()


@pytest.mark.parametrize("names", [SOURCE_VECTORS, TARGET_VECTORS])
def test_gradient_times_input_is_the_slope_along_a_token_vector(
    pair: Pair, names: tuple[str, ...]
) -> None:
    found = gradient_times_input(pair)
    by_token = found.source if names == SOURCE_VECTORS else found.target
    name = next(name for name in names if name in pair.shapes)
    for token in range(by_token.shape[1]):
        ends = []
        for step in (1e-5, -1e-5):

            def longer(vectors: torch.Tensor, token: int = token, step: float = step) -> Any:
                factors = torch.ones(vectors.size(1), 1).to(vectors)
                factors[token] += step
                return vectors * factors

            with editing(pair.network, {name: longer}):
                ends.append(scores(pair))
        np.testing.assert_allclose(by_token[:, token], (ends[0] - ends[1]) / 2e-5, atol=1e-5)


def test_integrated_gradients_add_up_to_the_difference(pair: Pair) -> None:
    """Sundararajan et al. 2017, proposition 1: completeness."""
    # The way to this model's sentence is steep; that of the others needs few points.
    is_steep = getattr(pair.network.config, "activation", "") == "swiglu"
    found = integrated_gradients(pair, n_points=400 if is_steep else 60)
    assert found.gap < 1e-3
    empty = replace(pair.without_words(), tgt_ids=pair.tgt_ids)
    # float32 in the results bounds the rest.
    np.testing.assert_allclose(found.source_sums, scores(pair) - scores(empty), atol=1e-5)
    assert found.source[:, -1].tolist() == pytest.approx([0.0] * len(found.expected_tokens))


@pytest.mark.parametrize("n_points", [0, 1.5])
def test_the_number_of_points_is_a_whole_number_from_1(pair: Pair, n_points: Any) -> None:
    with pytest.raises(UsageError, match="n_points must be a whole number from 1, but is"):
        integrated_gradients(pair, n_points=n_points)


def test_no_token_adds_to_an_earlier_one(pair: Pair) -> None:
    for method in (gradient_times_input, integrated_gradients, erasure):
        assert np.triu(method(pair).target, k=1).tolist() == np.zeros((6, 6)).tolist()


def test_erasure_is_brute_force(pair: Pair) -> None:
    found, before = erasure(pair), scores(pair)
    for i in range(len(pair.src_ids)):
        ids = [pair.tgt_vocab.unk_id if i == j else id for j, id in enumerate(pair.src_ids)]
        np.testing.assert_allclose(
            found.source[:, i], before - scores(replace(pair, src_ids=ids)), atol=1e-5
        )
    assert found.target[:, 0].tolist() == [0] * 6
    first = replace(pair, tgt_ids=[pair.tgt_vocab.unk_id, *pair.tgt_ids[1:]])
    np.testing.assert_allclose(found.target[1:, 1], (before - scores(first))[1:], atol=1e-5)


def test_deletion_is_brute_force(pair: Pair) -> None:
    found, before = deletion(pair), scores(pair)
    for i in range(len(pair.src_ids)):
        ids = pair.src_ids[:i] + pair.src_ids[i + 1 :]
        np.testing.assert_allclose(
            found.source[:, i], before - scores(replace(pair, src_ids=ids)), atol=1e-5
        )


def test_masking_is_what_is_lost_when_nothing_reads_a_position(translator_of: TranslatorOf) -> None:
    pair = Pair.of(translator_of(), LINES[0], LINES[1])
    found = masking(pair)
    for i in (0, 2):
        one = effect_on(pair, source_readings(pair, i))
        np.testing.assert_allclose(found.source[:, i], one.before - one.after, atol=1e-5)
    with pytest.raises(UsageError, match="only where softmax attention reads them"):
        masking(Pair.of(translator_of(family="rnn"), LINES[0], LINES[1]))


def test_methods_explain_the_same_tokens(translator_of: TranslatorOf) -> None:
    translator = translator_of(decoder_attention="merged")
    pair = Pair.of(translator, LINES[1], max_length=8)
    trace = translator.trace(LINES[1], max_length=8)
    for method in METHODS.values():
        found = method(pair)
        assert found.source_tokens == trace.source_tokens
        assert found.target_tokens == trace.target_tokens
        assert found.expected_tokens == trace.expected_tokens
        assert found.source.shape == (len(trace.expected_tokens), len(trace.source_tokens))


@given(st.permutations(range(7)), st.permutations(range(7)))
def test_rank_correlation_is_spearmans(one: list[int], other: list[int]) -> None:
    expected = 1 - 6 * sum((a - b) ** 2 for a, b in zip(one, other, strict=True)) / (7 * 48)
    rows = np.array(one) * 0.5 - 3, np.exp(np.array(other))
    assert rank_correlation(*rows) == pytest.approx(expected)


def test_equal_numbers_have_the_mean_of_their_ranks() -> None:
    # Ranks 0.5, 0.5, 2 and 0, 1, 2.
    found = rank_correlation(np.array([5.0, 5.0, 9.0]), np.array([1.0, 2.0, 3.0]))
    assert found == pytest.approx(1.5 / math.sqrt(1.5 * 2))
    assert math.isnan(rank_correlation(np.ones(3), np.array([1.0, 2.0, 3.0])))
