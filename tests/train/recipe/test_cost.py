"""The operations by which a recipe is chosen are those that torch counts in the model itself."""

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from heed.model.build import build_model
from heed.model.families import FAMILIES
from heed.train.recipe.asked import Asked
from heed.train.recipe.choose import choose
from heed.train.recipe.cost import Facts, countable, weights_met

FACTS = Facts(
    src_vocab_size=13,
    tgt_vocab_size=13,
    n_pairs=29_000,
    n_src_tokens=400_000,
    n_tgt_tokens=400_000,
    gflops=100.0,
)


def multiplications(model: Any, src_len: int, tgt_len: int) -> float:
    """Of a forward pass; without oneDNN, whose LSTM torch does not count."""
    src, tgt = torch.full((1, src_len), 5), torch.full((1, tgt_len), 5)
    with (
        torch.backends.mkldnn.flags(enabled=False, allow_tf32=None),
        FlopCounterMode(display=False) as counter,
    ):
        model.logits(model(src, tgt))
    return counter.get_total_flops() / 2  # a multiplication and an addition


def counted_by_torch(model: Any) -> tuple[float, float]:
    """Multiplications of a source token and of a target token, without attention's own products.

    Those are proportional to the square of a length, or to the product of both.
    """
    found = {(s, t): multiplications(model, s, t) for s in (1, 2, 3) for t in (1, 2, 3)}
    both = found[2, 2] - found[2, 1] - found[1, 2] + found[1, 1]
    src_squared = (found[3, 1] - 2 * found[2, 1] + found[1, 1]) / 2
    tgt_squared = (found[1, 3] - 2 * found[1, 2] + found[1, 1]) / 2
    of_src = found[2, 1] - found[1, 1] - 3 * src_squared - both
    of_tgt = found[1, 2] - found[1, 1] - 3 * tgt_squared - both
    return of_src, of_tgt


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"d_k": 3, "d_v": 9},
        {"d_v": 1, "activation": "swiglu"},
        {"output_projection": False, "d_k": 7},
        {"feed_forward": False, "share_layers": "all"},
        {"decoder_self": "average", "d_k": 2},
        {"decoder_self": "ssru"},
        {"decoder_attention": "merged", "d_v": 6},
        {"family": "conv", "d_k": 3},
        {"family": "decoder", "d_k": 3, "d_v": 7},
        *(
            {"family": "rnn", "cell": cell, "attention": attention, "bidirectional": bidirectional}
            for cell, attention in (("lstm", "dot"), ("gru", "additive"), ("tanh", "none"))
            for bidirectional in (False, True)
        ),
        {"family": "rnn"},
    ],
    ids=str,
)
def test_the_operations_of_a_token_are_those_that_torch_counts(
    config_of: Callable[..., Any], settings: dict[str, Any]
) -> None:
    config = config_of(**settings)
    family = FAMILIES[config.family]
    sizes = {key: value for key, value in config.to_dict().items() if key in family.presets["tiny"]}
    counted = countable({"family": family.name, **sizes}, settings, FACTS)
    assert weights_met(counted, FACTS) == counted_by_torch(build_model(config))
    assert {field.name for field in dataclasses.fields(config)} >= counted.keys()


def test_settings_of_the_user_count_and_wrong_ones_do_not() -> None:
    usual, wide, *wrong = (
        choose(Asked({"model": model}), FACTS, "tiny")["training"]["batch_tokens"]
        for model in ({}, {"d_k": 256, "d_v": 256}, {"d_k": -1}, {"d_v": "many"}, {"d_k": 10**9})
    )
    assert wide < usual
    assert wrong == [usual] * 3


@pytest.mark.parametrize("model", [{"d_model": 33}, {"d_model": 33, "bidirectional": "perhaps"}])
def test_a_width_that_does_not_fit_is_not_reported_here(model: dict[str, Any]) -> None:
    chosen = choose(Asked({"model": {"family": "rnn", **model}}), FACTS, "tiny")
    assert chosen["model"]["d_model"] == 33
