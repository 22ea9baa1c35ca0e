"""Rollout against products of matrices written out."""

import numpy as np
import pytest

from heed.explain.attention.maps import maps
from heed.explain.attention.rollout import rollout, rollout_of
from heed.translate.translator import Translator


def test_rollout_is_the_product_of_the_layers(translator: Translator) -> None:
    trace = translator.trace("Two men ride a bike.", "A dog runs.")
    for use in ("encoder", "decoder"):
        first, second = (
            0.5 * layer.mean(axis=0) + 0.5 * np.eye(layer.shape[1]) for layer in maps(trace, use)
        )
        found = rollout_of(trace, use)
        np.testing.assert_allclose(found[0], first, atol=1e-6)
        np.testing.assert_allclose(found[1], second @ first, atol=1e-6)
        np.testing.assert_allclose(found[1].sum(axis=1), 1, atol=1e-6)


@pytest.mark.parametrize("model", ["translator", "of_same_layer"])
def test_rollout_through_cross_attention_is_one_product_over_both_sides(
    model: str, request: pytest.FixtureRequest
) -> None:
    """Source and target positions are one row of states: each sublayer is one square matrix."""
    trace = request.getfixturevalue(model).trace("Two men ride a bike.", "A dog runs.")
    n_src, n_tgt = len(trace.source_tokens), len(trace.target_tokens)
    of = {use: [layer.mean(axis=0) for layer in maps(trace, use)] for use in ("decoder", "cross")}
    total = np.eye(n_src + n_tgt)
    memories = rollout_of(trace, "encoder")
    if model == "translator":
        memories = [memories[-1]] * len(memories)
    for to_self, to_source, found, memory in zip(
        of["decoder"], of["cross"], rollout_of(trace, "cross"), memories, strict=True
    ):
        total[:n_src, :n_src] = memory
        own, read = np.eye(n_src + n_tgt), np.eye(n_src + n_tgt)
        own[n_src:, n_src:] = (np.eye(n_tgt) + to_self) / 2
        read[n_src:, n_src:] = np.eye(n_tgt) / 2
        read[n_src:, :n_src] = to_source / 2
        total = read @ own @ total
        np.testing.assert_allclose(found, total[n_src:, :n_src], atol=1e-6)
        np.testing.assert_allclose(total.sum(axis=1), 1, atol=1e-6)


def test_only_the_heads_that_count_are_followed(translator: Translator) -> None:
    trace = translator.trace("Two men ride a bike.", "A dog runs.")
    layers = [layer[1] for layer in maps(trace, "encoder")]
    found = rollout_of(trace, "encoder", [{1: 2.0}, {1: 1.0}])
    np.testing.assert_allclose(found[-1], rollout(layers)[-1], atol=1e-6)
