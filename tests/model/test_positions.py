"""Positions: the closed form, and what the seeds ask of any way to mark order."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from heed.errors import DataError
from heed.model.positions import (
    POSITIONS,
    AbsolutePositions,
    LearnedPositions,
    RotaryPositions,
    Seed1Positions,
    SinusoidalHalvesPositions,
    SinusoidalPositions,
    rotary_table,
    rotate,
    seed1_table,
    sinusoidal_halves_table,
    sinusoidal_table,
)

KINDS = sorted(POSITIONS)


def closed_form(position: int, column: int, d_model: int) -> float:
    """The paper's two formulas, one number at a time, in Python's own arithmetic."""
    angle = position / 10000 ** (2 * (column // 2) / d_model)
    return math.cos(angle) if column % 2 else math.sin(angle)


@pytest.mark.parametrize("d_model", [2, 16, 512])
def test_sinusoidal_table_is_the_closed_form(d_model: int) -> None:
    """Claims 31, 32. Tolerance: one float32 rounding of numbers up to 1."""
    table = sinusoidal_table(5000, d_model)
    for position in (0, 1, 2, 4, 17, 100, 999, 4999):
        for column in {0, 1, d_model // 2, d_model - 2, d_model - 1}:
            expected = closed_form(position, column, d_model)
            assert table[position, column].item() == pytest.approx(expected, abs=1e-6)


def test_sinusoidal_table_is_the_exponential_form_of_the_seed() -> None:
    """Claim 32: exp(arange(0, d, 2) · (−ln 10000 / d)), here in numpy's float64."""
    divisors = np.exp(np.arange(0, 64, 2) * (-math.log(10000.0) / 64))
    angles = np.arange(5000)[:, None] * divisors
    table = sinusoidal_table(5000, 64).numpy()
    assert np.abs(table[:, 0::2] - np.sin(angles)).max() < 1e-6
    assert np.abs(table[:, 1::2] - np.cos(angles)).max() < 1e-6


def test_first_row_alternates_zero_and_one() -> None:
    """Claim 132."""
    assert sinusoidal_table(1, 6)[0].tolist() == [0, 1, 0, 1, 0, 1]


def seed_one(n_positions: int, d_model: int, *, is_normalized: bool = False) -> np.ndarray:
    """The code of one of the seeds, its two commented-out lines as an option."""
    table = np.array(
        [
            [pos / np.power(10000, 2 * i / d_model) for i in range(d_model)]
            if pos != 0
            else np.zeros(d_model)
            for pos in range(n_positions)
        ]
    )
    table[1:, 0::2] = np.sin(table[1:, 0::2])
    table[1:, 1::2] = np.cos(table[1:, 1::2])
    if is_normalized:
        table = table / (np.sqrt(np.sum(table**2, axis=1, keepdims=True)) + 1e-8)
    return table


@pytest.mark.parametrize("d_model", [1, 5, 16, 64])
def test_seed1_is_the_code_of_the_seed(d_model: int) -> None:
    """Claim 132. Tolerance: one float32 rounding."""
    table = seed1_table(300, d_model).numpy()
    assert table == pytest.approx(seed_one(300, d_model), abs=1e-6)


def test_seed_one_gave_sine_and_cosine_of_a_pair_different_frequencies() -> None:
    """Claim 132: exponent 2j/d for every column j, and zeros in row 0; the paper differs."""
    paper, seed = (make(100, 16).numpy() for make in (sinusoidal_table, seed1_table))
    assert (seed[0] == 0).all()
    assert np.abs(paper - seed).max() > 0.5
    # sin² + cos² of one angle is 1: true of each pair of the paper, of none but luck in the seed's.
    assert paper[:, 0::2] ** 2 + paper[:, 1::2] ** 2 == pytest.approx(1.0, abs=1e-6)
    assert np.abs(seed[1:, 0::2] ** 2 + seed[1:, 1::2] ** 2 - 1).max() > 0.5


def test_normalized_rows_are_those_of_the_seeds_commented_lines() -> None:
    """Claim 40. Tolerance: one float32 rounding."""
    table = Seed1Positions(16, 4, 64, is_normalized=True).table.numpy()
    assert table == pytest.approx(seed_one(256, 16, is_normalized=True), abs=1e-6)


@pytest.mark.parametrize("kind", [SinusoidalPositions, SinusoidalHalvesPositions])
def test_normalized_waves_are_the_same_waves_smaller(kind: type[SinusoidalPositions]) -> None:
    """Claim 40: every row of the paper's table has the length √(d/2) already."""
    plain, normal = kind(16, 4, 64), kind(16, 4, 64, is_normalized=True)
    x = torch.zeros(1, 300, 16)
    assert torch.allclose(normal(x).norm(dim=-1), torch.ones(1, 300), atol=1e-6)
    assert torch.allclose(normal(x), plain(x) / math.sqrt(8), atol=1e-6)


def test_absolute_positions_are_the_numbers_themselves() -> None:
    """Claim 34: 0, 1, 2 … as one coordinate; not bounded, as claim 37 asks for."""
    added = AbsolutePositions(8, 4, 64)(torch.zeros(1, 1000, 8))[0]
    assert added[:, 0].tolist() == list(range(1000))
    assert (added[:, 1:] == 0).all()
    assert added.max() > sinusoidal_table(1000, 8).max()


def test_a_layer_norm_does_not_hide_absolute_positions() -> None:
    """Claim 34: the same number in every feature would be taken off with their mean."""
    torch.manual_seed(0)
    x = torch.randn(8).expand(1, 5, 8)
    normed = torch.nn.functional.layer_norm(AbsolutePositions(8, 4, 64)(x), [8])[0]
    assert torch.cdist(normed, normed).fill_diagonal_(1.0).min() > 0.01
    everywhere = x + torch.arange(5.0)[:, None]
    hidden = torch.nn.functional.layer_norm(everywhere, [8])
    assert torch.allclose(hidden, hidden[:, :1].expand_as(hidden), atol=1e-5)


def test_waves_get_longer_with_the_dimension() -> None:
    """Claim 39: a table of 100 positions and 16 numbers changes its sign less and less often."""
    signs = sinusoidal_table(100, 16).sign()[1:]
    n_changes = (signs[1:] != signs[:-1]).sum(dim=0).tolist()
    for of_one_kind in (n_changes[0::2], n_changes[1::2]):
        assert of_one_kind == sorted(of_one_kind, reverse=True)
    assert n_changes[0] == 31  # 98 / π
    assert n_changes[-2:] == [0, 0]


def test_city_has_index_four_and_five_behind_bos() -> None:
    """Claims 41, 43, 131."""
    words = ["New", "York", "is", "a", "city"]
    assert words.index("city") == 4
    assert ["<bos>", *words].index("city") == 5
    row = sinusoidal_table(6, 512)[4]
    assert row[:2].tolist() == pytest.approx([math.sin(4), math.cos(4)])
    assert row[-1].item() == pytest.approx(math.cos(4 / 10000 ** (510 / 512)))


def test_halves_hold_the_same_numbers_with_sines_first() -> None:
    table, halves = sinusoidal_table(50, 12), sinusoidal_halves_table(50, 12)
    assert torch.equal(halves, torch.cat([table[:, 0::2], table[:, 1::2]], dim=1))


def test_every_position_is_unique() -> None:
    """Claim 35. Neighbors lie 2·sin(½) = 0.96 apart in the first pair alone."""
    table = sinusoidal_table(2000, 32).double()
    distances = torch.cdist(table, table).fill_diagonal_(math.inf)
    assert distances.min() > 0.5


def test_values_stay_within_one_at_any_length() -> None:
    """Claim 37."""
    assert sinusoidal_table(20000, 16).abs().max() <= 1


def test_shifting_is_a_rotation_that_does_not_depend_on_the_position() -> None:
    """Claim 36: PE(p + k) = R_k PE(p). Tolerance: float32 tables."""
    d_model, shift = 16, 7
    frequencies = [10000 ** (-2 * pair / d_model) for pair in range(d_model // 2)]
    rotation = torch.block_diag(
        *(
            torch.tensor(
                [
                    [math.cos(shift * w), math.sin(shift * w)],
                    [-math.sin(shift * w), math.cos(shift * w)],
                ]
            )
            for w in frequencies
        )
    )
    table = sinusoidal_table(1000, d_model)
    assert torch.allclose(table[shift:], table[:-shift] @ rotation.T, atol=1e-6, rtol=0)


def test_tables_are_deterministic_and_a_longer_one_begins_with_the_shorter() -> None:
    """Claims 38, 42: positions depend on the place only, neither on input nor on length."""
    for make in (sinusoidal_table, sinusoidal_halves_table):
        assert torch.equal(make(30, 8), make(30, 8))
        assert torch.equal(make(60, 8)[:30], make(30, 8))


def test_positions_do_not_depend_on_the_input() -> None:
    """Claim 42. Powers of two keep the subtraction exact to the last bits."""
    torch.manual_seed(0)
    positions = SinusoidalPositions(8, 4, 64)
    zeros, ones = torch.zeros(2, 5, 8), torch.ones(2, 5, 8)
    added = positions(zeros)
    assert torch.equal(added[0], added[1])
    assert torch.allclose(positions(ones) - ones, added, atol=1e-6, rtol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_offset_continues_where_the_prefix_ended(kind: str) -> None:
    torch.manual_seed(0)
    positions = POSITIONS[kind](8, 4, 64)
    x = torch.randn(2, 7, 8)
    assert torch.equal(positions(x)[:, 4:], positions(x[:, 4:], 4))
    whole, rest = positions.rotation(7), positions.rotation(3, 4)
    if whole is None:
        assert rest is None
    else:
        assert rest is not None
        assert all(torch.equal(a[4:], b) for a, b in zip(whole, rest, strict=True))


@pytest.mark.parametrize("kind", ["sinusoidal", "sinusoidal_halves", "rotary", "absolute", "seed1"])
def test_tables_grow_with_the_sentence(kind: str) -> None:
    """Claim 37: nothing is trained, so nothing ends at a length."""
    positions: Any = POSITIONS[kind](8, 4, 64)
    x = torch.zeros(1, 1, 8)
    if kind == "rotary":
        got = torch.cat(positions.rotation(1, 1000))
        expected = torch.cat([table[1000:] for table in rotary_table(1001, 4)])
    else:
        got, expected = positions(x, 1000)[0], positions.make_table(1001, 8)[1000:]
    assert torch.equal(got, expected)


@pytest.mark.parametrize("kind", ["sinusoidal", "rotary"])
def test_a_table_grown_while_translating_can_still_train(kind: str) -> None:
    """Tensors made under inference_mode may not be saved for a backward pass."""
    positions = POSITIONS[kind](4, 4, 64)
    with torch.inference_mode():
        positions(torch.zeros(1, 300, 4))
        positions.rotation(300)
    x = torch.randn(1, 1, 5, 4, requires_grad=True)
    rotation = positions.rotation(5)
    turned = x if rotation is None else rotate(x, rotation)
    (positions(turned[0]) ** 2).sum().backward()
    assert x.grad is not None


@pytest.mark.parametrize("kind", KINDS)
def test_only_learned_positions_are_stored_with_the_weights(kind: str) -> None:
    names = set(POSITIONS[kind](8, 4, 64).state_dict())
    assert names == ({"table"} if kind == "learned" else set())


def test_no_positions_leaves_embeddings_and_queries_alone() -> None:
    """Claim 44."""
    x = torch.randn(2, 3, 8)
    positions = POSITIONS["none"](8, 4, 64)
    assert positions(x) is x
    assert positions.rotation(3) is None


def test_learned_positions_add_their_rows() -> None:
    """Claim 33."""
    torch.manual_seed(0)
    positions = LearnedPositions(8, 4, 5)
    assert torch.equal(positions(torch.zeros(1, 5, 8))[0], positions.table)
    positions(torch.zeros(1, 5, 8)).sum().backward()
    assert positions.table.grad is not None


def test_learned_positions_say_that_they_end() -> None:
    positions = LearnedPositions(8, 4, 5)
    with pytest.raises(DataError) as caught:
        positions(torch.zeros(1, 2, 8), 4)
    assert str(caught.value) == (
        "a sequence has 6 positions, but this model learned only 5 (model.max_positions). "
        "Split the text, or use sinusoidal or rotary positions."
    )


def rotated(x: Tensor, position: int) -> Tensor:
    cosines, sines = rotary_table(200, x.numel())
    turned = rotate(x[None, None, None], (cosines[position : position + 1], sines[position]))
    return turned.flatten()


def test_rotation_is_multiplication_by_a_unit_complex_number() -> None:
    """Pair i is (x_i, x_{i+d/2}), turned by e^{i·pos·θ}: Su et al. 2021, equation 12."""
    torch.manual_seed(0)
    x, position = torch.randn(8), 37
    angles = position * 10000.0 ** (-torch.arange(4, dtype=torch.float64) / 4)
    numbers = torch.complex(x[:4].double(), x[4:].double()) * torch.polar(
        torch.ones(4, dtype=torch.float64), angles
    )
    expected = torch.cat([numbers.real, numbers.imag]).float()
    assert torch.allclose(rotated(x, position), expected, atol=1e-6)


def test_rotary_products_depend_on_the_distance_only() -> None:
    """Claim 36. Tolerance: float32 sums of eight products."""
    torch.manual_seed(1)
    query, key = torch.randn(8), torch.randn(8)
    products = [torch.dot(rotated(query, p + 5), rotated(key, p)).item() for p in (0, 1, 60, 150)]
    assert products == pytest.approx([products[0]] * 4, abs=1e-5)
    other = torch.dot(rotated(query, 6), rotated(key, 0)).item()
    assert abs(other - products[0]) > 1e-3


def test_rotation_keeps_lengths_and_position_zero() -> None:
    torch.manual_seed(2)
    x = torch.randn(8)
    assert torch.equal(rotated(x, 0), x)
    assert rotated(x, 123).norm().item() == pytest.approx(x.norm().item(), rel=1e-6)


def test_rotary_positions_hand_out_the_table() -> None:
    cosines, sines = RotaryPositions(8, 4, 64).rotation(3, 2)
    assert torch.equal(cosines, rotary_table(5, 4)[0][2:])
    assert torch.equal(sines, rotary_table(5, 4)[1][2:])
