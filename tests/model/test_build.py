"""From config to module: counts by hand, ties that hold, first values that fit the paper."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch

from heed.model.build import build_model, build_unfilled, count_parameters
from heed.model.config import PRESETS, ModelConfig
from heed.model.positions import POSITIONS
from heed.model.transformer import Transformer

Tiny = Callable[..., Transformer]


def counted_by_hand(config: ModelConfig) -> int:
    """Every matrix and bias of the paper, one line each."""
    d, h, d_k, d_v = config.d_model, config.n_heads, config.key_width, config.value_width
    bias = int(config.bias)
    attention = 2 * h * (d + bias) * d_k + h * (d + bias) * d_v + (h * d_v + bias) * d
    n_expanded = 2 if config.activation == "swiglu" else 1
    feed_forward = n_expanded * (d + bias) * config.d_ff + (config.d_ff + bias) * d
    norm = 2 * d
    encoder = config.n_encoder_layers * (attention + feed_forward + 2 * norm)
    decoder = config.n_decoder_layers * (2 * attention + feed_forward + 3 * norm)
    final_norms = 2 * norm if config.norm == "pre" else 0
    tables = {
        "three-way": config.tgt_vocab_size,
        "output": config.src_vocab_size + config.tgt_vocab_size,
        "none": config.src_vocab_size + 2 * config.tgt_vocab_size,
    }[config.tied]
    positions = 2 * config.max_positions if config.positions == "learned" else 0
    return encoder + decoder + final_norms + (tables + positions) * d


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_presets_have_the_number_of_parameters_counted_by_hand(preset: str) -> None:
    config = ModelConfig(src_vocab_size=37_000, tgt_vocab_size=37_000, **PRESETS[preset])
    with torch.device("meta"):  # shapes without memory
        assert count_parameters(build_model(config)) == counted_by_hand(config)


@pytest.mark.parametrize(("preset", "millions"), [("base", 65), ("big", 213)])
def test_base_and_big_are_as_large_as_the_paper_says(preset: str, millions: int) -> None:
    """Claim 85. Vaswani et al. 2017, table 3, with about 37,000 pieces; to 5 %."""
    config = ModelConfig(src_vocab_size=37_000, tgt_vocab_size=37_000, **PRESETS[preset])
    assert counted_by_hand(config) / 1e6 == pytest.approx(millions, rel=0.05)
    assert (config.n_encoder_layers, config.n_decoder_layers) == (6, 6)


@pytest.mark.parametrize(
    "changes",
    [
        {"tied": "none", "src_vocab_size": 17},
        {"tied": "output", "src_vocab_size": 17, "bias": False},
        {"norm": "pre", "activation": "swiglu"},
        {"positions": "learned", "d_k": 3, "d_v": 5},
        {"n_encoder_layers": 3, "n_decoder_layers": 1, "n_heads": 3, "d_k": 2, "d_v": 7},
    ],
)
def test_variants_have_the_number_of_parameters_counted_by_hand(
    tiny: Tiny, changes: dict[str, Any]
) -> None:
    shape = {"src_vocab_size": 13, "tgt_vocab_size": 13, "d_model": 8, "n_heads": 2, "d_ff": 12}
    depth = {"n_encoder_layers": 2, "n_decoder_layers": 2, "max_positions": 64}
    config = ModelConfig(**(shape | depth | changes))
    assert count_parameters(tiny(**changes)) == counted_by_hand(config)


def tables(model: Transformer) -> list[torch.Tensor]:
    return [model.embed_src.tokens.weight, model.embed_tgt.tokens.weight, model.output.weight]


@pytest.mark.parametrize(("tied", "n_tables"), [("three-way", 1), ("output", 2), ("none", 3)])
def test_ties_share_storage_and_outlive_loading_and_moving(
    tiny: Tiny, tied: str, n_tables: int
) -> None:
    """Claims 23, 30."""
    model, other = tiny(tied=tied), tiny(tied=tied, seed=1)
    model.load_state_dict(other.state_dict())
    for moved in (model, model.double(), model.float()):
        assert len({table.data_ptr() for table in tables(moved)}) == n_tables
    for mine, theirs in zip(tables(model), tables(other), strict=True):
        assert torch.equal(mine, theirs)


def test_separate_positions_are_learned_for_source_and_target(tiny: Tiny) -> None:
    model = tiny(positions="learned")
    assert model.embed_src.positions is not model.embed_tgt.positions


SHAPES: dict[str, dict[str, Any]] = {
    **{name: {"positions": name} for name in POSITIONS},
    "pre": {"norm": "pre", "activation": "swiglu"},
    "narrow": {"d_k": 3, "d_v": 5, "bias": False},
    "output": {"tied": "output", "src_vocab_size": 17},
    "none tied": {"tied": "none", "src_vocab_size": 17},
}


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("changes", SHAPES.values(), ids=SHAPES)
def test_an_unfilled_model_is_the_same_module_without_a_number_drawn(
    config_of: Callable[..., ModelConfig], changes: dict[str, Any], device: str
) -> None:
    config = config_of(**changes)
    filled = build_model(config)
    before = torch.random.get_rng_state()
    unfilled = build_unfilled(config, device)
    assert torch.equal(torch.random.get_rng_state(), before)
    assert repr(unfilled) == repr(filled)
    parameters = dict(unfilled.named_parameters())  # a tied one under its first name only
    assert {name: weights.shape for name, weights in parameters.items()} == {
        name: weights.shape for name, weights in filled.named_parameters()
    }
    assert {weights.device.type for weights in parameters.values()} == {device}
    assert all(weights.requires_grad for weights in parameters.values())
    for ours, theirs in zip(tables(unfilled), tables(filled), strict=True):
        assert [ours is table for table in tables(unfilled)] == [
            theirs is table for table in tables(filled)
        ]


@pytest.mark.parametrize("changes", SHAPES.values(), ids=SHAPES)
def test_an_unfilled_model_computes_as_soon_as_weights_are_loaded(
    config_of: Callable[..., ModelConfig], changes: dict[str, Any]
) -> None:
    """What is not loaded, the tables of positions, holds its numbers already."""
    filled, unfilled = build_model(config_of(**changes)), build_unfilled(config_of(**changes))
    buffers = dict(unfilled.named_buffers())
    assert buffers.keys() == dict(filled.named_buffers()).keys()
    for name, buffer in filled.named_buffers():
        assert torch.equal(buffers[name], buffer), name
    unfilled.load_state_dict(filled.state_dict())
    src, tgt_in = torch.tensor([[5, 6, 4, 7]]), torch.tensor([[2, 8, 9]])
    assert torch.equal(
        unfilled.eval().teacher_forced(src, tgt_in), filled.eval().teacher_forced(src, tgt_in)
    )


def fresh(**changes: Any) -> Transformer:
    torch.manual_seed(0)
    sizes: dict[str, Any] = {"src_vocab_size": 400, "tgt_vocab_size": 400, "d_model": 64}
    return build_model(ModelConfig(**(sizes | changes)))


def test_matrices_start_within_glorot_s_bound_each_for_itself() -> None:
    """√(6 / (inputs + outputs)): W^Q, W^K and W^V count as three matrices."""
    model = fresh(d_k=8, d_v=24)
    attention = model.encoder[0].self_attention
    blocks = attention.project_in.weight.split([32, 32, 96])
    for block, width in zip(blocks, (32, 32, 96), strict=True):
        bound = math.sqrt(6 / (64 + width))
        assert 0.9 * bound < block.abs().max() <= bound
    expand = model.decoder[0].feed_forward.expand.weight
    bound = math.sqrt(6 / (64 + 1024))
    assert 0.9 * bound < expand.abs().max() <= bound


@pytest.mark.parametrize(("norm", "gain"), [("post", 1.0), ("pre", 1 / math.sqrt(12))])
def test_what_ends_a_sublayer_starts_smaller_where_nothing_norms_the_sum(
    norm: str, gain: float
) -> None:
    """Four decoder layers of three sublayers are the deeper stack of 3 + 4."""
    model = fresh(norm=norm, n_encoder_layers=3, n_decoder_layers=4)
    for layer in (model.encoder[0], model.decoder[3]):
        for weight in (layer.self_attention.project_out.weight, layer.feed_forward.contract.weight):
            bound = gain * math.sqrt(6 / sum(weight.shape))
            assert 0.9 * bound < weight.abs().max() <= bound


def test_biases_start_at_zero() -> None:
    for name, parameter in fresh(positions="none").named_parameters():
        if name.endswith("bias"):
            assert (parameter == 0).all(), name


@pytest.mark.parametrize("is_scaled", [True, False])
def test_embedded_tokens_start_with_unit_variance(is_scaled: bool) -> None:
    """Tolerance: 25,600 normal numbers."""
    embed = fresh(positions="none", scale_embedding=is_scaled, dropout=0.0).embed_src
    assert embed(torch.arange(400)[None]).std().item() == pytest.approx(1.0, abs=0.03)


def test_the_seed_decides_every_weight() -> None:
    first, second = fresh().state_dict(), fresh().state_dict()
    assert all(torch.equal(first[name], second[name]) for name in first)


def test_every_field_of_the_config_reaches_the_model(tiny: Tiny) -> None:
    """A parameter that changes nothing is removed."""
    unused = {"bos_id", "eos_id", "family"}  # the network itself does not use them
    changes: dict[str, Any] = {
        "src_vocab_size": (17, {"tied": "none"}),
        "tgt_vocab_size": (17, {"tied": "none"}),
        "d_model": (16, {}),
        "n_heads": (4, {}),
        "d_k": (6, {}),
        "d_v": (6, {}),
        "d_ff": (20, {}),
        "n_encoder_layers": (1, {}),
        "n_decoder_layers": (1, {}),
        "dropout": (0.5, {}),
        "attention_dropout": (0.5, {}),
        "activation_dropout": (0.5, {}),
        "activation": ("gelu", {}),
        "norm": ("pre", {}),
        "attention": ("cosine", {}),
        "n_features": (9, {"attention": "favor"}),
        "mask": ("after", {}),
        "window": (1, {}),
        "decoder_self": ("ssru", {}),
        "average_feed_forward": (False, {"decoder_self": "average"}),
        "residual": (False, {}),
        "output_projection": (False, {}),
        "feed_forward": (False, {}),
        "decoder_attention": ("merged", {}),
        "share_layers": ("all", {}),
        "positions": ("none", {}),
        "normalize_positions": (True, {}),
        "max_positions": (32, {"positions": "learned"}),
        "max_distance": (3, {"positions": "shaw"}),
        "cross_from": ("same", {}),
        "tied": ("none", {}),
        "bias": (False, {}),
        "scale_embedding": (False, {}),
        "norm_eps": (0.1, {}),
        "pad_id": (4, {}),
    }
    assert {field.name for field in dataclasses.fields(ModelConfig)} == set(changes) | unused
    src, tgt_in = torch.tensor([[5, 6, 4, 7]]), torch.tensor([[2, 8, 9]])
    for name, (value, beside) in changes.items():
        outputs = []
        for settings in (beside, {**beside, name: value}):
            model = tiny(**settings).train("dropout" in name)
            torch.manual_seed(0)
            outputs.append((model.teacher_forced(src, tgt_in), count_parameters(model)))
        (before, count), (after, new_count) = outputs
        assert count != new_count or not torch.equal(before, after), name
