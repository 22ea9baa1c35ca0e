import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.decode.conftest import make_choice

from heed.decode.options import DecodeOptions
from heed.explain.decoding.filters import entropy, removed_by, stages

FILTERS = st.fixed_dictionaries(
    {
        "temperature": st.sampled_from([0.1, 0.7, 1.0, 2.0]),
        "top_k": st.sampled_from([0, 1, 5, 400]),
        "top_p": st.sampled_from([0.0, 0.3, 0.9, 1.0]),
        "min_p": st.sampled_from([0.0, 0.05, 0.5]),
    }
)


def by_hand(scores: np.ndarray, options: dict[str, Any]) -> list[np.ndarray]:
    """Each filter applied to one row in float64, token by token."""
    order = sorted(range(len(scores)), key=lambda i: (-scores[i], i))
    chances = np.exp((scores - scores.max()) / options["temperature"])
    found = [chances.copy()]
    if options["top_k"]:
        for token in order[options["top_k"] :]:
            chances[token] = 0.0
    found.append(chances.copy())
    total, so_far = chances.sum(), 0.0
    for token in order:
        share = chances[token] / total
        if so_far > options["top_p"] and options["top_p"] < 1.0:
            chances[token] = 0.0
        so_far += share
    found.append(chances.copy())
    chances[chances < options["min_p"] * chances.max()] = 0.0
    found.append(chances.copy())
    return [each / each.sum() for each in found]


@given(seed=st.integers(0, 10_000), options=FILTERS, vocab_size=st.sampled_from([3, 40, 600]))
@settings(max_examples=150)
def test_each_filter_is_what_its_definition_says(
    seed: int, options: dict[str, Any], vocab_size: int
) -> None:
    """Claims 116 and 117."""
    logits = np.random.default_rng(seed).standard_normal((1, vocab_size)) * 3
    log_probs = logits - np.log(np.exp(logits).sum())
    found = stages(make_choice(log_probs, forbidden=[0]), DecodeOptions(sample=True, **options))
    assert [stage.name for stage in found[2:]] == ["temperature", "top_k", "top_p", "min_p"]
    np.testing.assert_allclose(found[0].probabilities, np.exp(log_probs), rtol=2e-5)
    scores = log_probs[0].astype(np.float32).astype(np.float64)
    scores[0] = -math.inf
    for stage, expected in zip(found[2:], by_hand(scores, options), strict=True):
        np.testing.assert_allclose(stage.probabilities[0], expected, rtol=1e-4, atol=1e-7)


def test_before_the_filters_stands_the_softmax_of_the_logits() -> None:
    logits = np.array([[2.0, 1.0, 0.0, -1.0]])
    softmax = np.exp(logits) / np.exp(logits).sum()
    [model, constraints, *_] = stages(make_choice(np.log(softmax)), DecodeOptions())
    np.testing.assert_allclose(model.probabilities, softmax, rtol=1e-6)
    np.testing.assert_allclose(constraints.probabilities, softmax, rtol=1e-6)
    assert model.n_allowed.tolist() == [4]


def test_the_filter_that_removed_a_token_is_named() -> None:
    choice = make_choice(np.log([[0.1, 0.5, 0.3, 0.06, 0.04]]), forbidden=[0])
    options = DecodeOptions(sample=True, top_k=3, top_p=0.6, min_p=0.7)
    found = stages(choice, options)
    assert [removed_by(found, 0, token) for token in range(5)] == [
        "constraints", "", "min_p", "top_p", "top_k"
    ]  # fmt: skip


def test_entropy_is_that_of_a_coin_and_of_a_certain_token() -> None:
    rows = np.array([[0.5, 0.5, 0.0], [1.0, 0.0, 0.0], [1 / 3] * 3])
    assert entropy(rows) == pytest.approx([1.0, 0.0, math.log2(3)])
