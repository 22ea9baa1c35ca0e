"""Names and shapes from a config alone are those of the module that torch builds from it."""

import itertools
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from tests.model.conftest import choices

from heed.model.build import build_unfilled
from heed.model.config import ModelConfig
from heed.model.families import stored_shapes, ties

CHANGES: list[dict[str, Any]] = [
    {"activation": "relu"},
    {"activation": "gelu", "bias": False},
    {"activation": "swiglu"},
    {"activation": "swiglu", "bias": False, "d_k": 6, "d_v": 5},
    {"d_k": 2},
    {"d_v": 7, "n_heads": 4},
    {"cross_from": "same"},
    {"output_projection": False},
    {"feed_forward": False},
    {"share_layers": "all"},
    {"decoder_self": "average"},
    {"decoder_self": "average", "activation": "swiglu", "bias": False},
    {"decoder_self": "average", "average_feed_forward": False},
    {"decoder_self": "average", "feed_forward": False, "share_layers": "all"},
    {"decoder_self": "ssru"},
    {"decoder_self": "ssru", "bias": False},
    {"residual": False},
    {"n_encoder_layers": 3, "n_decoder_layers": 1},
    {"n_encoder_layers": 0},
    {"max_positions": 9},
]


def found_by_torch(config: ModelConfig) -> tuple[dict[str, tuple[int, ...]], dict[str, str]]:
    """A parameter that has several names is stored under the first."""
    shapes: dict[str, Any] = {}
    aliases: dict[str, Any] = {}
    first_names: dict[Any, str] = {}
    for name, tensor in build_unfilled(config, "meta").state_dict(keep_vars=True).items():
        first = first_names.setdefault(id(tensor), name)
        if first == name:
            shapes[name] = tuple(tensor.shape)
        else:
            aliases[name] = first
    return shapes, aliases


@pytest.mark.parametrize("changes", CHANGES, ids=str)
def test_shapes_are_those_of_the_module(
    config_of: Callable[..., ModelConfig], changes: dict[str, Any]
) -> None:
    kinds = itertools.product(choices("norm"), choices("tied"), choices("positions"))
    for norm, tied, positions in kinds:
        sizes = {"src_vocab_size": 13 if tied == "three-way" else 17, "tgt_vocab_size": 13}
        config = config_of(**sizes, norm=norm, tied=tied, positions=positions, **changes)
        shapes, aliases = stored_shapes(config), ties(config)
        expected_shapes, expected_aliases = found_by_torch(config)
        assert list(shapes.items()) == list(expected_shapes.items())
        assert aliases == expected_aliases


FAMILIES_APART: list[dict[str, Any]] = [
    *(
        {"family": "rnn", "cell": cell, "attention": attention, "bidirectional": bidirectional}
        for cell in ("tanh", "lstm", "gru")
        for attention in ("none", "dot", "additive")
        for bidirectional in (False, True)
    ),
    {"family": "rnn", "n_encoder_layers": 1, "n_decoder_layers": 3},
    {"family": "rnn", "tied": "output", "src_vocab_size": 17},
    {"family": "rnn", "tied": "none", "src_vocab_size": 17},
    {"family": "conv"},
    {"family": "conv", "kernel_size": 3, "norm": "pre", "tied": "none", "bias": False},
    {"decoder_attention": "merged", "n_encoder_layers": 3, "norm": "pre"},
    {"decoder_attention": "merged", "positions": "shaw", "feed_forward": False, "norm": "none"},
    {"family": "conv", "feed_forward": False, "share_layers": "all"},
    {"family": "decoder", "feed_forward": False, "share_layers": "all", "n_layers": 3},
    {"family": "encoder", "share_layers": "all", "positions": "shaw", "max_distance": 5},
    {"attention": "favor", "n_features": 9, "n_heads": 4},
    {"family": "conv", "attention": "favor"},
    {"family": "encoder", "attention": "favor"},
    {"family": "decoder", "attention": "favor", "share_layers": "all"},
    {"family": "bag"},
    {"family": "bag", "tgt_vocab_size": 6, "n_gram_rows": 99, "d_model": 3},
    {"family": "encoder"},
    {"family": "encoder", "pooling": "mean", "tied": "none", "tgt_vocab_size": 6},
    {"family": "decoder"},
    {"family": "decoder", "tied": "none", "norm": "post", "bias": False},
    {"family": "decoder", "positions": "learned", "activation": "swiglu", "d_k": 3, "n_layers": 3},
]


@pytest.mark.parametrize("changes", FAMILIES_APART, ids=str)
def test_shapes_of_other_families_are_those_of_the_module(
    config_of: Callable[..., Any], changes: dict[str, Any]
) -> None:
    config = config_of(**changes)
    expected_shapes, expected_aliases = found_by_torch(config)
    assert list(stored_shapes(config).items()) == list(expected_shapes.items())
    assert ties(config) == expected_aliases


def test_the_largest_config_is_laid_out_at_once_and_without_torch() -> None:
    code = """
import sys, time
from heed.model.config import LIMIT, ModelConfig
from heed.model.families import stored_shapes, ties
sizes = dict.fromkeys(("src_vocab_size", "tgt_vocab_size", "d_model", "d_ff", "d_k", "d_v"), LIMIT)
config = ModelConfig(**sizes, n_encoder_layers=1000, n_decoder_layers=1000)
start = time.process_time()
shapes = stored_shapes(config)
assert len(shapes) == 1 + 1000 * 12 + 1000 * 18
assert shapes["decoder.999.cross_attention.project_in.weight"] == (3 * 4 * LIMIT, LIMIT)
assert time.process_time() - start < 1
assert "torch" not in sys.modules
"""
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
