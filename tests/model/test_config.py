"""ModelConfig: what it refuses, in which words, and before anything is allocated."""

import json
import math
import re
from dataclasses import replace
from typing import Any

import pytest

from heed.errors import ConfigError
from heed.model.config import LIMIT, PRESETS, ModelConfig
from heed.model.families import config_from

SIZES = {"src_vocab_size": 100, "tgt_vocab_size": 100}


def message(**changes: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        ModelConfig(**(SIZES | changes))
    return str(caught.value)


def test_defaults_fit_one_another_and_head_widths_follow() -> None:
    """Claim 56."""
    config = ModelConfig(src_vocab_size=100, tgt_vocab_size=100)
    assert (config.key_width, config.value_width) == (64, 64)
    config = ModelConfig(src_vocab_size=100, tgt_vocab_size=100, d_k=5, d_v=7)
    assert (config.key_width, config.value_width) == (5, 7)


@pytest.mark.parametrize("preset", sorted(PRESETS))
def test_presets_are_valid(preset: str) -> None:
    ModelConfig(src_vocab_size=100, tgt_vocab_size=100, **PRESETS[preset])


def test_base_is_the_paper_s() -> None:
    """Claims 28, 59, 85."""
    base = PRESETS["base"]
    assert (base["d_model"], base["n_heads"], base["d_ff"]) == (512, 8, 2048)
    assert (base["n_encoder_layers"], base["n_decoder_layers"], base["dropout"]) == (6, 6, 0.1)


def test_config_survives_json() -> None:
    config = ModelConfig(src_vocab_size=100, tgt_vocab_size=100, norm="pre", d_k=3, dropout=0.25)
    assert config_from(json.loads(json.dumps(config.to_dict()))) == config


def test_config_cannot_be_changed_in_place() -> None:
    config: Any = ModelConfig(src_vocab_size=100, tgt_vocab_size=100)
    with pytest.raises(AttributeError):
        config.d_model = 8


def test_overrides_are_checked_again() -> None:
    config = ModelConfig(src_vocab_size=100, tgt_vocab_size=100)
    assert replace(config, d_model=512).d_model == 512
    with pytest.raises(ConfigError, match="n_heads must divide"):
        replace(config, n_heads=6)


def test_unknown_key_is_named_with_its_nearest_neighbor() -> None:
    with pytest.raises(ConfigError) as caught:
        config_from(SIZES | {"n_head": 8})
    assert str(caught.value) == "model.n_head is not a setting; did you mean model.n_heads?"


def test_unknown_key_without_a_neighbor_is_named() -> None:
    with pytest.raises(ConfigError) as caught:
        config_from(SIZES | {"zzz": 8})
    assert str(caught.value) == "model.zzz is not a setting."


@pytest.mark.parametrize("key", ["src_vocab_size", "tgt_vocab_size"])
def test_missing_vocabulary_size_is_named(key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        config_from({name: size for name, size in SIZES.items() if name != key})
    assert str(caught.value) == f"model.{key} is missing."


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        (
            {"activation": "swish"},
            "model.activation must be one of relu, gelu, swiglu, but is 'swish'.",
        ),
        ({"norm": ["post"]}, "model.norm must be one of post, pre, none, but is ['post']."),
        (
            {"positions": None},
            "model.positions must be one of sinusoidal, sinusoidal_halves, learned, rotary, none, "
            "absolute, seed1, shaw, alibi, but is None.",
        ),
        ({"cross_from": "first"}, "model.cross_from must be one of last, same, but is 'first'."),
        (
            {"tied": True},
            "model.tied must be one of three-way, output, none, but is True.",
        ),
        ({"bias": 1}, "model.bias must be true or false, but is 1."),
        ({"scale_embedding": "yes"}, "model.scale_embedding must be true or false, but is 'yes'."),
        ({"dropout": 1.0}, "model.dropout must be a number of at least 0 and below 1, but is 1.0."),
        (
            {"dropout": -0.1},
            "model.dropout must be a number of at least 0 and below 1, but is -0.1.",
        ),
        (
            {"dropout": True},
            "model.dropout must be a number of at least 0 and below 1, but is True.",
        ),
        (
            {"attention_dropout": float("nan")},
            "model.attention_dropout must be a number of at least 0 and below 1, but is nan.",
        ),
        (
            {"activation_dropout": "0.1"},
            "model.activation_dropout must be a number of at least 0 and below 1, but is '0.1'.",
        ),
        ({"norm_eps": 0.0}, "model.norm_eps must be a number above 0 and at most 0.1, but is 0.0."),
        ({"norm_eps": 0.2}, "model.norm_eps must be a number above 0 and at most 0.1, but is 0.2."),
        ({"d_ff": 0}, f"model.d_ff must be a whole number from 1 to {LIMIT}, but is 0."),
        ({"d_model": "512"}, f"model.d_model must be a whole number from 1 to {LIMIT}, "),
        ({"d_model": 8.0}, f"model.d_model must be a whole number from 1 to {LIMIT}, but is 8.0."),
        ({"n_heads": True}, f"model.n_heads must be a whole number from 1 to {LIMIT}, but is True"),
        ({"d_k": 0}, f"model.d_k must be a whole number from 1 to {LIMIT}, but is 0."),
        ({"d_v": -1}, f"model.d_v must be a whole number from 1 to {LIMIT}, but is -1."),
        ({"pad_id": -1}, f"model.pad_id must be a whole number from 0 to {LIMIT}, but is -1."),
        (
            {"n_encoder_layers": 1001},
            "model.n_encoder_layers must be a whole number from 0 to 1000, but is 1001.",
        ),
        (
            {"d_model": 512, "n_heads": 6},
            "model.n_heads must divide model.d_model (512), but is 6. "
            "Try 1, 2, 4, 8, 16, 32, or set d_k and d_v.",
        ),
        ({"d_model": 255, "n_heads": 5}, "model.d_model must be even for sinusoidal positions."),
        (
            {"d_model": 255, "n_heads": 5, "positions": "sinusoidal_halves"},
            "model.d_model must be even for sinusoidal_halves positions.",
        ),
        (
            {"positions": "rotary", "d_k": 3},
            "model.d_k must be even for rotary positions, but is 3.",
        ),
        (
            {"positions": "absolute", "normalize_positions": True},
            "model.normalize_positions needs model.positions to be one of sinusoidal, "
            "sinusoidal_halves, seed1, but it is absolute. Set model.normalize_positions = "
            "false.",
        ),
        (
            {"positions": "shaw", "attention": "cosine"},
            "shaw positions add a vector to each key, for products of queries and keys, but "
            "model.attention is cosine. Set model.attention = softmax, or model.positions = alibi.",
        ),
        (
            {"tgt_vocab_size": 200},
            "model.tied = three-way needs one joint vocabulary, but the source has 100 pieces and "
            "the target 200. Set model.tied = output, or train a joint vocabulary.",
        ),
        ({"n_decoder_layers": 0}, "model.n_decoder_layers must be a whole number from 1 to 1000"),
        (
            {"cross_from": "same", "n_encoder_layers": 2},
            "model.cross_from = same needs an encoder layer for each decoder layer, but there "
            "are 2 and 3. Make both equal, or set model.cross_from = last.",
        ),
        (
            {"cross_from": "same", "n_encoder_layers": 4},
            "model.cross_from = same needs an encoder layer for each decoder layer, but there "
            "are 4 and 3. Make both equal,",
        ),
        (
            {"average_feed_forward": False},
            "model.average_feed_forward = false needs model.decoder_self = average, but it is "
            "attention. Leave one of the two out.",
        ),
        (
            {"decoder_self": "lstm"},
            "model.decoder_self must be one of attention, average, ssru, but is 'lstm'.",
        ),
        ({"pad_id": 100}, "model.pad_id must be below the vocabulary's size (100), but is 100."),
        (
            {"bos_id": 99, "tgt_vocab_size": 50, "tied": "output"},
            "model.bos_id must be below the vocabulary's size (50), but is 99.",
        ),
        ({"eos_id": 7, "src_vocab_size": 7, "tied": "none"}, "model.eos_id must be below the"),
    ],
)
def test_refusals_name_the_setting_the_rule_and_the_value(
    changes: dict[str, Any], words: str
) -> None:
    assert message(**changes).startswith(words)


@pytest.mark.parametrize(
    "key", ["src_vocab_size", "tgt_vocab_size", "d_model", "d_ff", "d_k", "max_positions"]
)
def test_monstrous_sizes_are_refused_before_anything_is_allocated(key: str) -> None:
    assert f"model.{key} must be a whole number from 1 to" in message(**{key: 10**15})


def test_heads_need_not_divide_the_width_when_both_head_widths_are_given() -> None:
    ModelConfig(src_vocab_size=100, tgt_vocab_size=100, d_model=64, n_heads=6, d_k=8, d_v=8)
    assert "n_heads must divide" in message(d_model=64, n_heads=6, d_k=8)


def test_heads_without_an_output_projection_must_fill_the_width() -> None:
    with pytest.raises(ConfigError, match=r"model.d_v must be model.d_model \(256\), but is"):
        ModelConfig(src_vocab_size=9, tgt_vocab_size=9, d_v=32, output_projection=False)


def test_a_window_before_and_a_mask_behind_the_softmax_contradict_each_other() -> None:
    said = message(window=8, mask="after")
    assert "model.mask = after computes the softmax of all positions, but model.window (8)" in said
    with pytest.raises(ConfigError, match=r"model.window is a setting of self-attention"):
        config_from({**SIZES, "family": "conv", "window": 8})


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"attention": "favor", "window": 8}, "model.window needs the keys of individual"),
        ({"attention": "linear", "mask": "after"}, "model.mask = after is for weights of a softm"),
        ({"attention": "linear", "attention_dropout": 0.1}, "model.attention_dropout drops indiv"),
        ({"attention": "linear", "positions": "rotary"}, "Set model.attention = favor, or model."),
        ({"attention": "linear", "positions": "shaw"}, "shaw positions add to the scores of a sof"),
        ({"attention": "favor", "positions": "alibi"}, "alibi positions add to the scores of a so"),
        ({"n_features": 8}, "model.n_features is a setting of model.attention = favor, but att"),
    ],
)
@pytest.mark.parametrize("family", ["transformer", "decoder", "encoder", "conv"])
def test_what_linear_attention_cannot_do_is_refused(
    changes: dict[str, Any], words: str, family: str
) -> None:
    with pytest.raises(ConfigError, match=re.escape(words)):
        config_from({**SIZES, "family": family, **changes})


def test_favor_has_features_for_the_width_of_a_head() -> None:
    config = ModelConfig(src_vocab_size=9, tgt_vocab_size=9, attention="favor")
    assert config.feature_count == round(64 * math.log(64)) == 266
    narrow = ModelConfig(src_vocab_size=9, tgt_vocab_size=9, attention="favor", d_k=2)
    assert narrow.feature_count == 2


def test_a_summary_says_how_heads_attend() -> None:
    config = ModelConfig(src_vocab_size=9, tgt_vocab_size=9, window=8)
    assert config.summary().endswith("heads of softmax attention within 8 positions")
    config = ModelConfig(src_vocab_size=9, tgt_vocab_size=9, mask="after")
    assert config.summary().endswith("heads of softmax attention masked after the softmax")


def test_convolutions_leave_no_place_for_another_way_to_read_the_target() -> None:
    with pytest.raises(ConfigError, match=r"so model.decoder_self cannot be ssru. Leave one"):
        config_from({**SIZES, "family": "conv", "decoder_self": "ssru"})


def test_a_summary_names_the_way_to_read_the_target() -> None:
    config = ModelConfig(src_vocab_size=9, tgt_vocab_size=9, decoder_self="ssru", residual=False)
    assert "softmax attention, SSRU in the decoder, no residual" in config.summary()


def test_a_summary_says_what_is_left_out() -> None:
    config = ModelConfig(src_vocab_size=9, tgt_vocab_size=9, norm="none", residual=False)
    assert config.summary().endswith("softmax attention, no norm, no residual connections")
    config = ModelConfig(src_vocab_size=9, tgt_vocab_size=9, positions="absolute", residual=False)
    assert config.summary().endswith("attention, absolute positions, no residual connections")
