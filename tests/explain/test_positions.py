"""Tables of positions against closed forms, and against what the modules of torch add."""

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tests.random_bundle import bundle

from heed.bundle.bundle import load_bundle, save_bundle
from heed.engine.packed import save_rounded
from heed.errors import ConfigError, DataError
from heed.explain.positions import (
    chosen,
    model_positions,
    position_table,
    similarity,
    tokens_with,
    written_out,
)
from heed.model import positions
from heed.model.relative import AlibiBias
from heed.text.vocab import Vocab, train_vocab


@pytest.fixture(scope="module")
def vocab() -> Vocab:
    return train_vocab(["New York is a city", "纽约是一座城市"] * 9, size=330, kind="bpe")


def test_the_table_of_the_paper_is_its_formula_number_by_number() -> None:
    """Claims 39 and 41: 100 positions of 16 numbers, each as the formula gives it."""
    table = position_table("sinusoidal", 100, 16)
    assert table.values.shape == (100, 16)
    for position in (0, 1, 5, 63, 99):
        for term in written_out(table, position):
            i = term.dimension // 2
            angle = position / 10000 ** (2 * i / 16)
            value = math.cos(angle) if term.dimension % 2 else math.sin(angle)
            assert term.value == pytest.approx(value, abs=1e-6)
            assert term.wave is not None
            assert term.wave.pair == i
            assert term.wave.wavelength == pytest.approx(2 * math.pi * 10000 ** (2 * i / 16))
            name = "cos" if term.dimension % 2 else "sin"
            assert term.formula == f"{name}({position} / 10000^({2 * i}/16))"


@pytest.mark.parametrize(
    ("kind", "make"),
    [
        ("sinusoidal", positions.sinusoidal_table),
        ("sinusoidal_halves", positions.sinusoidal_halves_table),
        ("absolute", positions.absolute_table),
        ("seed1", positions.seed1_table),
    ],
)
@pytest.mark.parametrize("is_normalized", [False, True])
def test_each_kind_is_the_table_that_its_module_adds(
    kind: str, make: Callable[[int, int], torch.Tensor], is_normalized: bool
) -> None:
    """Claims 40 and 42: the table depends on no input."""
    expected = make(70, 12)
    expected = positions.normalized(expected) if is_normalized else expected
    found = position_table(kind, 70, 12, is_normalized=is_normalized)
    np.testing.assert_allclose(found.values, expected, atol=1e-6)


@pytest.mark.parametrize("kind", ["sinusoidal", "sinusoidal_halves", "rotary", "seed1"])
def test_the_waves_of_the_columns_give_the_table(kind: str) -> None:
    table = position_table(kind, 40, 8)
    rows = np.arange(40)[:, None]
    exponents = np.array([wave.exponent for wave in table.waves])
    angles = rows / 10000**exponents
    is_sine = np.array([wave.function == "sin" for wave in table.waves])
    expected = np.where(is_sine, np.sin(angles), np.cos(angles))
    if kind == "seed1":
        expected[0] = 0
    np.testing.assert_allclose(table.values, expected, atol=1e-5)


def test_rotary_rows_are_cosines_then_sines_of_the_angles_that_queries_turn_by() -> None:
    cosines, sines = positions.rotary_table(30, 8)
    table = position_table("rotary", 30, 8)
    np.testing.assert_allclose(table.values[:, :4], cosines[:, :4], atol=1e-6)
    np.testing.assert_allclose(table.values[:, 4:], sines[:, :4], atol=1e-6)


@pytest.mark.parametrize("kind", ["sinusoidal", "sinusoidal_halves", "rotary"])
def test_products_of_positions_show_their_distance_and_nothing_else(kind: str) -> None:
    """Claims 36 and 42: PE(p)·PE(p+k) = Σᵢ cos(k / 10000^(2i/d)), whatever p is."""
    found = similarity(position_table(kind, 50, 16))
    waves = np.array([10000 ** (-2 * i / 16) for i in range(8)])
    for k in (0, 1, 7, 49):
        expected = np.cos(k * waves).sum()
        np.testing.assert_allclose(np.diagonal(found, k), expected, atol=1e-4)


def test_alibi_is_what_is_added_to_the_scores() -> None:
    table = position_table("alibi", 6, 4)
    places = torch.arange(6)
    bias = AlibiBias(4).bias(torch.zeros(1), places - places[:, None])[0]
    np.testing.assert_allclose(table.values.T, bias[:, 0], atol=1e-7)
    np.testing.assert_allclose(similarity(table), bias.mean(dim=0), atol=1e-7)


def test_the_city_of_the_sentence_has_index_4_and_5_behind_bos() -> None:
    """Claims 41 and 131."""
    words = ["New", "York", "is", "a", "city"]
    assert tokens_with("city", words) == [4]
    assert tokens_with("city", ["<bos>", *words]) == [5]
    assert tokens_with("city", ["▁New", "▁York", "▁is", "▁a", "▁city"]) == [4]
    with pytest.raises(DataError, match="'town' must be one of the tokens, which are New York"):
        tokens_with("town", words)


def test_chosen_places_are_listed_with_their_formulas() -> None:
    """Claim 43."""
    table = position_table("sinusoidal", 10, 512)
    found = chosen(table, [(4, 0), (4, 511), (0, 1)])
    assert [place[:2] for place in found] == [(4, 0), (4, 511), (0, 1)]
    assert found[0][2] == pytest.approx(math.sin(4), abs=1e-6)
    assert found[1][3] == "cos(4 / 10000^(510/512))"
    with pytest.raises(DataError, match="position must be from 0 to 9, but is 10."):
        chosen(table, [(10, 0)])
    with pytest.raises(DataError, match="dimension must be from 0 to 511, but is 512."):
        chosen(table, [(0, 512)])


@pytest.mark.parametrize("kind", ["sinusoidal", "rotary", "learned", "shaw", "alibi", "seed1"])
def test_a_model_has_the_table_of_its_kind(
    kind: str, vocab: Vocab, config_of: Callable[..., Any]
) -> None:
    model = bundle(vocab, config_of, positions=kind, max_positions=9, max_distance=3)
    model.decoding["max_source_tokens"] = 64
    found = model_positions(model)
    assert (found.kind, found.trained_len) == (kind, 64)
    config: Any = model.config
    if kind == "learned":
        assert np.array_equal(found.values, model.weights["embed_src.positions.table"])
        target = model_positions(model, 4, side="target")
        assert np.array_equal(target.values, model.weights["embed_tgt.positions.table"][:4])
    elif kind == "shaw":
        name = "encoder.1.self_attention.relative.keys"
        assert np.array_equal(model_positions(model, layer=1).values, model.weights[name])
        assert found.positions == range(-3, 4)
        with pytest.raises(ConfigError, match="has no layer 7."):
            model_positions(model, layer=7)
    else:
        width = {"rotary": config.key_width, "alibi": config.n_heads}.get(kind, config.d_model)
        expected = position_table(kind, 128, width)
        assert np.array_equal(found.values, expected.values)


def test_a_side_without_a_table_of_its_own_has_none(
    vocab: Vocab, config_of: Callable[..., Any]
) -> None:
    model = bundle(vocab, config_of, positions="shaw", decoder_self="average")
    assert model_positions(model).values.shape[0]
    with pytest.raises(ConfigError, match="has no layer 0 with positions on the target side"):
        model_positions(model, side="target")
    model = bundle(vocab, config_of, positions="shaw", decoder_attention="merged")
    name = "decoder.0.joint_attention.relative.keys"
    assert np.array_equal(model_positions(model, side="target").values, model.weights[name])


def test_rounded_weights_keep_a_learned_table(
    vocab: Vocab, config_of: Callable[..., Any], tmp_path: Path
) -> None:
    sizes = {"d_model": 16, "n_heads": 2, "positions": "learned", "max_positions": 9}
    model = bundle(vocab, config_of, **sizes)
    save_bundle(tmp_path / "model", model)
    save_rounded(load_bundle(tmp_path / "model"), tmp_path / "int8")
    found = model_positions(load_bundle(tmp_path / "int8", prefer_int8=True), side="target")
    assert np.array_equal(found.values, model.weights["embed_tgt.positions.table"])
    assert found.name == "int8"
    assert written_out(found, 2)[0].formula.startswith("table[2][0] = ")


def test_what_has_no_table_says_so(vocab: Vocab, config_of: Callable[..., Any]) -> None:
    for changes in ({"positions": "none"}, {"family": "rnn"}):
        with pytest.raises(ConfigError, match=r"this model \(.*\) has no table of positions."):
            model_positions(bundle(vocab, config_of, **changes))
    with pytest.raises(ConfigError, match="positions must be one of sinusoidal, .*'waves'"):
        position_table("waves", 4, 4)
    with pytest.raises(ConfigError, match="learned positions are weights: name the model"):
        position_table("learned", 4, 4)
    with pytest.raises(ConfigError, match="a model without positions has no table of them."):
        position_table("none", 4, 4)
    with pytest.raises(ConfigError, match="must have rows and columns, but has 0 and 4."):
        position_table("sinusoidal", 0, 4)
    with pytest.raises(ConfigError, match="must have an even number of columns, not 5."):
        position_table("rotary", 4, 5)


@pytest.mark.parametrize("family", ["conv", "decoder", "encoder"])
def test_every_family_with_positions_has_a_table(
    family: str, vocab: Vocab, config_of: Callable[..., Any]
) -> None:
    model = bundle(vocab, config_of, family=family, positions="learned", max_positions=7)
    for side in ("source", "target"):
        assert model_positions(model, side=side).values.shape == (7, model.config.d_model)
