"""Linear attention against the papers' formulas in NumPy, and its forms against one another."""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.autograd import gradcheck
from torch.utils.flop_counter import FlopCounterMode

from heed.model.attention import attend
from heed.model.linear_attention import (
    BLOCK,
    Features,
    RunningSums,
    advance,
    attend_causally,
    draw_directions,
    elu_features,
    favor_features,
    read,
    readable,
    summed,
    weights_of,
)
from heed.model.masks import both, causal_mask, prefix_mask
from heed.model.trace import recording
from heed.model.transformer import Transformer
from heed.model.variants import ATTENTIONS, LinearAttention
from heed.model.window import blocks_of

Tiny = Callable[..., Transformer]
Array = NDArray[np.float64]

WIDTH, N_FEATURES = 4, 9
LENGTHS = [1, 5, BLOCK, BLOCK + 1, 3 * BLOCK - 7]


@functools.cache
def directions(n_features: int = N_FEATURES, d_k: int = WIDTH) -> Tensor:
    torch.manual_seed(1)
    return draw_directions(torch.empty(n_features, d_k, dtype=torch.double))


def features(kind: str, x: Tensor) -> Features:
    return elu_features(x) if kind == "linear" else favor_features(x, directions().to(x))


def phi(kind: str, x: Array) -> Array:
    """The papers' formulas for one vector."""
    if kind == "linear":
        return np.where(x > 0, x + 1, np.exp(np.minimum(x, 0)))
    x = x / len(x) ** 0.25
    return np.exp(directions().numpy() @ x - x @ x / 2) / math.sqrt(N_FEATURES)


def by_hand(kind: str, query: Tensor, key: Tensor, value: Tensor, mask: Tensor) -> Tensor:
    """Σ_j sim(q_i, k_j) v_j / Σ_j sim(q_i, k_j), a pair at a time."""
    found = np.zeros((*query.shape[:3], value.size(3)))
    q, k, v = (x.double().numpy() for x in (query, key, value))
    allowed = mask.expand(*query.shape[:3], key.size(2)).numpy()
    for row, head in np.ndindex(*query.shape[:2]):
        asked = np.array([phi(kind, x) for x in q[row, head]])
        offered = np.array([phi(kind, x) for x in k[row, head]])
        similarity = asked @ offered.T * allowed[row, head]
        total = similarity.sum(axis=1, keepdims=True)
        found[row, head] = similarity @ v[row, head] / np.where(total == 0, 1, total)
    return torch.from_numpy(found)


def heads(length: int, dtype: torch.dtype = torch.double) -> tuple[Tensor, Tensor, Tensor]:
    torch.manual_seed(length)
    query, key = (torch.randn(2, 3, length, WIDTH, dtype=dtype) for _ in range(2))
    return query, key, torch.randn(2, 3, length, 5, dtype=dtype)


def padding(*lengths: int) -> Tensor:
    return (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None])[:, None, None]


each_kind = pytest.mark.parametrize("kind", ["linear", "favor"])


# ---------------------------------------------------------------------------- the formulas


@each_kind
@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("n_prefix", [None, 0, 3])
def test_sums_equal_the_formula_pair_by_pair(kind: str, length: int, n_prefix: int | None) -> None:
    """Claim 73. In both directions, causally, and behind a prefix; tolerance: float64."""
    query, key, value = heads(length)
    for keys in (torch.ones(2, 1, 1, length, dtype=torch.bool), padding(length, length // 2)):
        asked, offered = features(kind, query).values, readable(features(kind, key), keys)
        allowed = keys
        if n_prefix is None:
            found = read(asked, summed(offered, value))
        else:
            allowed = keys & prefix_mask(length, min(n_prefix, length))
            found, _ = attend_causally(asked, offered, value, min(n_prefix, length))
        expected = by_hand(kind, query, key, value, allowed)
        assert (found - expected).abs().max() <= 1e-10
        assert (weights_of(asked, offered, allowed) @ value - expected).abs().max() <= 1e-10


@each_kind
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.float64, 1e-10)])
def test_one_position_at_a_time_equals_all_at_once(
    kind: str, dtype: torch.dtype, tolerance: float
) -> None:
    """Claim 73: recurrent = parallel, over three blocks."""
    query, key, value = heads(LENGTHS[-1], dtype)
    asked, offered = features(kind, query).values, features(kind, key)
    whole, _ = attend_causally(asked, offered, value)
    sums, sizes = None, set()
    for t in range(LENGTHS[-1]):
        here = slice(t, t + 1)
        one = Features(
            offered.values[:, :, here],
            None if offered.log_scale is None else offered.log_scale[:, :, here],
        )
        context, sums = advance(asked[:, :, here], one, value[:, :, here], sums)
        assert (context[:, :, 0] - whole[:, :, t]).abs().max() <= tolerance
        sizes.add(sums.values.numel())
    assert len(sizes) == 1  # constant memory


@each_kind
def test_a_later_key_changes_nothing_before_it(kind: str) -> None:
    """Not even a bit, and not even a giant: every block scales by its own past."""
    query, key, value = heads(100, torch.float32)
    other = key.clone()
    other[:, :, 70:] *= 50
    pair = [
        attend_causally(features(kind, query).values, features(kind, k), value)[0]
        for k in (key, other)
    ]
    assert torch.equal(pair[0][:, :, :70], pair[1][:, :, :70])
    assert not torch.equal(pair[0], pair[1])
    assert pair[1].isfinite().all()


@each_kind
def test_rows_that_may_read_nothing_give_zero_and_finite_gradients(kind: str) -> None:
    """Claim 134."""
    query, key, value = (x.requires_grad_() for x in heads(6))
    mask = padding(6, 1).clone()
    mask[1] = False
    for is_causal in (False, True):
        asked, offered = features(kind, query).values, readable(features(kind, key), mask)
        road, _ = attend_causally(asked, offered, value)
        context = road if is_causal else read(asked, summed(offered, value))
        assert (context[1] == 0).all()
        (context**2).sum().backward()
        assert all(x.grad is not None and x.grad.isfinite().all() for x in (query, key, value))
        assert (value.grad[1] == 0).all()
    nothing = features(kind, key[:, :, :0])
    assert (read(asked, summed(nothing, value[:, :, :0])) == 0).all()


@each_kind
@pytest.mark.parametrize("size", [1e2, 1e4])
def test_extreme_queries_and_keys_stay_finite(kind: str, size: float) -> None:
    query, key, value = heads(10, torch.float32)
    asked, offered = features(kind, size * query).values, features(kind, size * key)
    for context in (
        read(asked, summed(offered, value)),
        attend_causally(asked, offered, value)[0],
    ):
        assert context.isfinite().all()


def test_elu_features_keep_their_precision_far_below_zero() -> None:
    """F.elu(x) + 1 is 0 there."""
    x = torch.tensor([-30.0, -17.5, 0.0, 2.0])
    expected = [math.exp(-30), math.exp(-17.5), 1.0, 3.0]
    assert elu_features(x).values.tolist() == pytest.approx(expected, rel=1e-6)


@each_kind
@pytest.mark.parametrize("n_prefix", [None, 0, 2])
def test_gradients_are_right(kind: str, n_prefix: int | None) -> None:
    """In float64, across a border of blocks; scales are constants that cancel."""
    torch.manual_seed(0)
    length = 4 if n_prefix is None else BLOCK + 3
    inputs = [torch.randn(2, 1, length, 2, dtype=torch.double, requires_grad=True) for _ in "qkv"]
    mask, ways = padding(length, 2), directions(5, 2)

    def call(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        of = (
            elu_features if kind == "linear" else functools.partial(favor_features, directions=ways)
        )
        asked, offered = of(query).values, readable(of(key), mask)
        if n_prefix is None:
            return read(asked, summed(offered, value))
        return attend_causally(asked, offered, value, n_prefix)[0]

    assert gradcheck(call, inputs, eps=1e-6, atol=1e-7, rtol=1e-5, fast_mode=length > 10)


# ---------------------------------------------------------------------------- random features


def test_directions_are_orthogonal_and_as_long_as_normal_vectors() -> None:
    drawn = directions(4000, 8)
    for block in torch.split(drawn, 8):
        products = block @ block.T
        assert (products - products.diagonal().diag()).abs().max() <= 1e-10
    assert drawn.square().sum(dim=1).mean().item() == pytest.approx(8, rel=0.05)
    assert drawn.mean(dim=0).abs().max() < 0.1
    assert draw_directions(torch.empty(3, 5)).isfinite().all()  # fewer than one block


def test_favor_products_are_unbiased() -> None:
    """Claim 73: the mean of φ(q)·φ(k) over many features is exp(q·k / √d_k)."""
    torch.manual_seed(0)
    query, key = 0.5 * torch.randn(2, 1, 1, 6, 8, dtype=torch.double)
    many = directions(80_000, 8)
    asked, offered = favor_features(query, many), favor_features(key, many)
    assert asked.log_scale is not None
    assert offered.log_scale is not None
    scales = (asked.log_scale + offered.log_scale.mT).exp()
    estimates = asked.values @ offered.values.mT * scales / 80_000
    assert torch.allclose(estimates, (query @ key.mT / math.sqrt(8)).exp(), rtol=0.03)


def test_favor_comes_nearer_to_the_softmax_with_more_features() -> None:
    """Claim 73: the error falls with the square root of their number. Medians of 15 draws.

    The variance of an estimate grows as exp(|q + k|² / √d_k): queries and keys are not large.
    """
    torch.manual_seed(0)
    query, key, value = torch.randn(3, 1, 2, 40, 16, dtype=torch.double)
    query, key = query / 2, key / 2
    exact = attend(query, key, value)[0]
    errors = []
    for n_features in (16, 256, 4096):
        found = []
        for seed in range(15):
            torch.manual_seed(seed)
            drawn = draw_directions(torch.empty(n_features, 16, dtype=torch.double))
            asked, offered = favor_features(query, drawn).values, favor_features(key, drawn)
            found.append((read(asked, summed(offered, value)) - exact).square().mean().sqrt())
        errors.append(float(torch.stack(found).median()))
    for more, fewer in zip(errors[1:], errors, strict=False):
        assert 2.5 < fewer / more < 6.5  # √16 = 4
    assert errors[-1] < 0.1 * exact.square().mean().sqrt()


@pytest.mark.parametrize("n_features", [8, 32])
def test_orthogonal_directions_are_better_than_independent_ones(n_features: int) -> None:
    """Claim 73: mean squared errors over 400 draws of exp(q·k / √d_k)."""
    torch.manual_seed(0)
    query, key = 0.5 * torch.randn(2, 1, 1, 10, 8, dtype=torch.double)
    exact, errors = (query @ key.mT / math.sqrt(8)).exp(), [0.0, 0.0]
    for _ in range(400):
        drawn = [
            draw_directions(torch.empty(n_features, 8, dtype=torch.double)),
            torch.randn(n_features, 8, dtype=torch.double),
        ]
        for number, each in enumerate(drawn):
            asked, offered = favor_features(query, each), favor_features(key, each)
            assert asked.log_scale is not None
            assert offered.log_scale is not None
            scales = (asked.log_scale + offered.log_scale.mT).exp()
            found = asked.values @ offered.values.mT * scales / n_features
            errors[number] += float((found / exact - 1).square().mean())
    assert errors[0] < 0.9 * errors[1]


# ---------------------------------------------------------------------------- the sublayer


def module(kind: str) -> LinearAttention:
    torch.manual_seed(0)
    options = {"n_features": 6} if kind == "favor" else {}
    made: Any = ATTENTIONS[kind](8, 2, d_k=3, d_v=5, **options).double().eval()
    if kind == "favor":
        draw_directions(made.directions)
    return made


@each_kind
@torch.no_grad()
def test_weights_of_the_trace_are_those_of_the_fast_form(kind: str) -> None:
    """What a listener gets explains the output. Tolerance: float64."""
    attention, x, memory = module(kind), *torch.randn(2, 2, 7, 8, dtype=torch.double)
    mask = padding(7, 4)
    calls: list[tuple[Callable[[], Tensor], Tensor]] = [
        (lambda: attention(x, mask=mask), mask),
        (lambda: attention(x, memory, mask=mask), mask),
        (lambda: attention(x, mask=mask, is_causal=True), mask & causal_mask(7, 7)),
        (lambda: attention(x, is_causal=True, n_prefix=3), prefix_mask(7, 3)),
    ]
    for call, allowed in calls:
        fast = call()
        with recording(attention) as caught:
            assert (call() - fast).abs().max() <= 1e-12
        weights = caught["weights"]
        assert (weights.masked_select(~allowed) == 0).all()
        assert (weights.sum(dim=-1) - 1).abs().max() <= 1e-12
        joined = (weights @ caught["value"]).transpose(1, 2).flatten(2)
        assert (attention.project_out(joined) - fast).abs().max() <= 1e-12


@each_kind
@torch.no_grad()
def test_a_prepared_memory_is_as_large_for_any_length(kind: str) -> None:
    attention, x = module(kind), torch.randn(2, 3, 8, dtype=torch.double)
    sizes = set()
    for length in (5, 50):
        memory, mask = torch.randn(2, length, 8, dtype=torch.double), padding(length, 2)
        heads = attention.prepare_memory(memory, mask)
        sizes.add(sum(part.numel() for part in heads))
        expected = attention(x, memory, mask=mask)
        assert (attention.attend_memory(x, heads, mask) - expected).abs().max() <= 1e-12
    assert len(sizes) == 1


@each_kind
@torch.no_grad()
def test_a_decoder_keeps_as_much_after_a_hundred_tokens_as_after_one(tiny: Tiny, kind: str) -> None:
    model, src = tiny(attention=kind), torch.tensor([[5, 6, 7], [8, 0, 0]])
    state, sizes = model.start(src, beam_size=2), set()
    for _ in range(100):
        model.step(state, torch.tensor([5, 6, 7, 8]))
        assert all(isinstance(cache, RunningSums) for cache in state.caches)
        caches: list[Any] = state.caches
        sizes.add(sum(cache.sums.values.numel() for cache in caches))
    assert len(sizes) == 1


@each_kind
@pytest.mark.parametrize("prefix", [None, "bidirectional", "causal"])
@torch.no_grad()
def test_long_decoding_equals_one_forced_pass(tiny: Tiny, kind: str, prefix: str | None) -> None:
    """Claim 96: over several blocks, with sources of two lengths; logits are float32."""
    torch.manual_seed(0)
    family = {"family": "decoder", "prefix": prefix} if prefix else {}
    src = torch.randint(4, 13, (2, 70))
    src[1, 40:] = 0
    tgt_in = torch.randint(4, 13, (2, 150))
    model = tiny(attention=kind, **family).double()
    forced = model.teacher_forced(src, tgt_in)
    alone = model.teacher_forced(src[1:, :40], tgt_in[1:])
    assert (forced[1] - alone[0]).abs().max() <= 1e-6
    for n_at_once in (0, 80):
        state = model.start(src)
        model.extend(state, tgt_in[:, :n_at_once])
        for position in range(n_at_once, 150):
            logits = model.step(state, tgt_in[:, position])
            assert (logits - forced[:, position]).abs().max() <= 1e-6


def test_half_precision_sums_in_float32() -> None:
    """A thousand ones in bfloat16 would stop at 256."""
    ones = torch.ones(1, 1, 1000, WIDTH, dtype=torch.bfloat16)
    sums = summed(elu_features(ones), ones)
    assert sums.values.dtype == torch.float32
    assert sums.values[..., -1].tolist() == [[[2000.0] * WIDTH]]
    attention = LinearAttention(8, 2)
    x = torch.randn(2, 9, 8)
    expected = attention(x, is_causal=True)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found = attention(x, is_causal=True)
    assert found.dtype == torch.bfloat16
    assert (found - expected).abs().max() < 0.05
    assert attention.bfloat16()(x.bfloat16(), is_causal=True).dtype == torch.bfloat16


@pytest.mark.parametrize("length", [3, 8])
def test_a_prefix_is_read_in_both_directions(length: int) -> None:
    mask = prefix_mask(length, 3)
    expected = causal_mask(length, length) | (torch.arange(length) < 3) & (
        torch.arange(length)[:, None] < 3
    )
    assert torch.equal(mask, expected)
    attention = ATTENTIONS["softmax"](8, 2)
    x, keys = torch.randn(2, length, 8), padding(length, length - 1)
    expected = attention(x, mask=both(keys, mask))
    assert torch.equal(attention(x, mask=keys, is_causal=True, n_prefix=3), expected)


# ---------------------------------------------------------------------------- what it costs


def operations(kind: str, n_queries: int, n_keys: int, width: int = WIDTH) -> int:
    """Floating-point operations of one reading, counted by torch."""
    torch.manual_seed(0)
    query, key = torch.randn(1, 1, n_queries, width), torch.randn(1, 1, n_keys, width)
    with FlopCounterMode(display=False) as counter:
        if kind == "softmax":
            attend(query, key, key)
        elif kind == "window":
            attend(*blocks_of(query, key, key, 32))
        else:
            asked = features(kind, query).values
            read(asked, summed(features(kind, key), key))
            attend_causally(asked, features(kind, key[:, :, :n_queries]), key[:, :, :n_queries])
    return counter.get_total_flops()


def test_attention_costs_queries_times_keys_times_width() -> None:
    """Claim 74: O(MND); O(N²D) of a sequence over itself."""
    once = operations("softmax", 64, 64)
    assert once == 2 * 2 * 64 * 64 * WIDTH  # q·k and weights·v, multiply and add
    assert operations("softmax", 128, 64) == operations("softmax", 64, 128) == 2 * once
    assert operations("softmax", 64, 64, 2 * WIDTH) == 2 * once
    assert operations("softmax", 128, 128) == 4 * once


@pytest.mark.parametrize("kind", ["linear", "favor", "window"])
def test_other_attention_costs_operations_in_proportion_to_the_length(kind: str) -> None:
    """Claim 74: O(N)."""
    counts = [operations(kind, length, length) for length in (1024, 2048, 4096)]
    assert counts[1] / counts[0] == pytest.approx(2, rel=0.01)
    assert counts[2] / counts[1] == pytest.approx(2, rel=0.01)
