"""Attention by the equation and by the fused kernel: one answer, and at the edges none is NaN.

Tolerance where none is named: 1e-5, float32 sums in another order.
"""

import math
import random

import pytest
import torch
from torch import Tensor

from heed.model.attention import MultiHeadAttention, attend, attend_fused, attend_then_mask
from heed.model.masks import both, causal_mask


def random_case(seed: int) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Queries, keys and values of a random shape, and a mask of a random kind."""
    draw = random.Random(seed)
    torch.manual_seed(seed)
    batch, n_heads = draw.randint(1, 3), draw.randint(1, 3)
    q_len, k_len = draw.randint(1, 40), draw.randint(1, 40)
    d_k, d_v = draw.randint(1, 20), draw.randint(1, 20)
    query = torch.randn(batch, n_heads, q_len, d_k)
    key, value = torch.randn(batch, n_heads, k_len, d_k), torch.randn(batch, n_heads, k_len, d_v)
    shapes = [(batch, 1, 1, k_len), (batch, 1, q_len, k_len), (q_len, k_len), query.shape[:3]]
    kind = seed % 5
    if kind == 4:
        return query, key, value, None
    shape = (*shapes[3], k_len) if kind == 3 else shapes[kind]
    return query, key, value, torch.rand(shape) > 0.3


@pytest.mark.parametrize("seed", range(40))
def test_fused_equals_plain_for_any_shape_and_mask(seed: int) -> None:
    """Claims 45, 46, 56."""
    query, key, value, mask = random_case(seed)
    for is_causal in (False, True):
        allowed = mask
        if is_causal:
            allowed = both(mask, causal_mask(query.size(2), key.size(2)))
        context, weights = attend(query, key, value, allowed)
        fused = attend_fused(query, key, value, mask, is_causal=is_causal)
        assert (fused - context).abs().max() <= 1e-5
        sums = weights.sum(dim=-1)
        is_open = sums > 0  # a row may be closed altogether
        assert (sums[is_open] - 1).abs().max() <= 1e-6 if is_open.any() else True
        assert not context.isnan().any()
        if allowed is not None:
            assert (weights[~allowed.expand_as(weights)] == 0).all()


def test_causal_with_more_keys_than_queries_means_the_last_queries() -> None:
    """The kernel's own `is_causal` would count from the first key; with and without a mask."""
    torch.manual_seed(0)
    query, key = torch.randn(2, 1, 3, 4), torch.randn(2, 1, 7, 4)
    whole = attend(torch.cat([key[:, :, :4], query], dim=2), key, key, causal_mask(7, 7))[0]
    padding = torch.ones(2, 1, 1, 7, dtype=torch.bool)
    for mask in (None, padding):
        last = attend_fused(query, key, key, mask, is_causal=True)
        assert (last - whole[:, :, 4:]).abs().max() <= 1e-5


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("is_causal", [False, True])
def test_a_row_that_may_read_nothing_gives_zero_and_zero_gradients(
    dtype: torch.dtype, is_causal: bool
) -> None:
    """Claims 79, 134: neither uniform (−1e9) nor NaN (−∞)."""
    torch.manual_seed(0)
    shapes = ((2, 2, 4, 3), (2, 2, 4, 3), (2, 2, 4, 5))
    mask = torch.ones(2, 1, 4, 4, dtype=torch.bool)
    mask[0, :, 1] = False  # one query of the first sentence
    mask[1] = False  # the whole second sentence
    allowed = both(mask, causal_mask(4, 4)) if is_causal else mask
    grads = []
    for road in ("plain", "fused"):
        torch.manual_seed(1)
        inputs = [torch.randn(shape, dtype=dtype, requires_grad=True) for shape in shapes]
        if road == "plain":
            context, weights = attend(*inputs, allowed)
            assert (weights[0, :, 1] == 0).all()
            assert (weights[1] == 0).all()
        else:
            context = attend_fused(*inputs, mask, is_causal=is_causal)
        assert (context[0, :, 1] == 0).all()
        assert (context[1] == 0).all()
        assert not context.isnan().any()
        (context**2).sum().backward()
        grads.append([x.grad for x in inputs])
        for x in inputs:
            assert x.grad is not None
            assert not x.grad.isnan().any()
            assert (x.grad[1] == 0).all()
            assert x.grad[0].abs().sum() > 0
    tolerance = 1e-5 if dtype == torch.float32 else 1e-12
    for plain, fused in zip(*grads, strict=True):
        assert (plain - fused).abs().max() <= tolerance


def test_minus_a_billion_would_have_read_everywhere_alike() -> None:
    """Claims 79, 134: what the first seed's mask does where nothing may be read."""
    torch.manual_seed(0)
    query, key = torch.randn(1, 1, 2, 3), torch.randn(1, 1, 5, 3)
    mask = torch.tensor([[True, True, False, False, False], [False] * 5])
    scores = (query @ key.mT / math.sqrt(3)).masked_fill(~mask, -1e9).softmax(dim=-1)
    weights = attend(query, key, key, mask)[1]
    assert torch.allclose(scores[..., 0, :], weights[..., 0, :], atol=1e-6)
    assert torch.allclose(scores[..., 1, :], torch.tensor(0.2))
    assert (weights[..., 1, :] == 0).all()


def test_masking_before_the_softmax_equals_renormalizing_after_it() -> None:
    """Claims 77, 78, while the logits are moderate. Tolerance: float64."""
    torch.manual_seed(0)
    query, key = torch.randn(2, 2, 6, 4).double(), torch.randn(2, 2, 6, 4).double()
    mask = causal_mask(6, 6)
    by_hand = (query @ key.mT / 2).softmax(dim=-1) * mask
    by_hand = by_hand / by_hand.sum(dim=-1, keepdim=True)
    for road in (attend, attend_then_mask):
        context, weights = road(query, key, key, mask)
        assert (weights - by_hand).abs().max() <= 1e-12
        assert (context - by_hand @ key).abs().max() <= 1e-12


def test_masking_before_the_softmax_survives_a_giant_in_the_future() -> None:
    """Claim 78: renormalizing afterwards has nothing left to divide; masking before has."""
    query, key = torch.ones(1, 1, 2, 1), torch.tensor([[[[1.0], [1e4]]]])
    mask = causal_mask(2, 2)
    after = (query @ key.mT).softmax(dim=-1) * mask
    assert (after / after.sum(dim=-1, keepdim=True))[0, 0, 0].isnan().all()
    assert attend_then_mask(query, key, key, mask)[1][0, 0].tolist() == [[0, 0], [0, 1]]
    context, weights = attend(query, key, key, mask)
    assert weights[0, 0].tolist() == [[1, 0], [0, 1]]
    assert torch.equal(attend_fused(query, key, key, mask), context)
    assert torch.equal(attend_fused(query, key, key, is_causal=True), context)


@pytest.mark.parametrize(("gap", "is_equal"), [(80.0, True), (120.0, False)])
def test_both_masks_agree_until_a_forbidden_score_is_about_104_larger(
    gap: float, is_equal: bool
) -> None:
    """Claim 78: exp(-104) is the smallest float32. Tolerance: the few bits that exp(-80) has."""
    query, key = torch.ones(1, 1, 1, 1), torch.tensor([[[[0.0], [0.5], [gap]]]])
    value, mask = torch.eye(3), torch.tensor([[True, True, False]])
    before, after = (road(query, key, value, mask)[1] for road in (attend, attend_then_mask))
    assert torch.allclose(before, after, atol=1e-3) == is_equal
    if not is_equal:
        assert (after == 0).all()


def test_masked_after_the_softmax_a_row_that_may_read_nothing_gives_zero() -> None:
    """Claims 79, 134: and zero gradients."""
    torch.manual_seed(0)
    inputs = [torch.randn(1, 2, 4, 3, requires_grad=True) for _ in range(3)]
    mask = torch.ones(1, 1, 4, 4, dtype=torch.bool)
    mask[0, :, 1] = False
    context, weights = attend_then_mask(*inputs, mask)
    assert (weights[:, :, 1] == 0).all()
    (context[:, :, 1] ** 2).sum().backward()
    assert all(x.grad is not None and (x.grad == 0).all() for x in inputs)


@pytest.mark.parametrize("is_causal", [False, True])
@torch.no_grad()
def test_a_module_masks_before_or_after_with_equal_results(is_causal: bool) -> None:
    """Claims 77, 78. Tolerance: float64."""
    torch.manual_seed(0)
    before = MultiHeadAttention(8, 2).double()
    after = MultiHeadAttention(8, 2, masks_after=True).double()
    after.load_state_dict(before.state_dict())
    x, mask = torch.randn(2, 5, 8, dtype=torch.double), torch.ones(2, 1, 1, 5, dtype=torch.bool)
    mask[1, ..., 3:] = False
    for allowed in (None, mask):
        expected = before(x, mask=allowed, is_causal=is_causal)
        assert (after(x, mask=allowed, is_causal=is_causal) - expected).abs().max() <= 1e-12


@torch.no_grad()
def test_masked_after_the_softmax_weights_are_dropped_in_training_only() -> None:
    torch.manual_seed(0)
    module, x = MultiHeadAttention(8, 2, masks_after=True, dropout=0.5), torch.randn(2, 5, 8)
    assert not torch.equal(module.train()(x, is_causal=True), module(x, is_causal=True))
    assert torch.equal(module.eval()(x, is_causal=True), module(x, is_causal=True))


@pytest.mark.parametrize("size", [1e2, 1e4, 1e8])
@pytest.mark.parametrize("is_causal", [False, True])
def test_extreme_logits_stay_finite_and_sum_to_one(size: float, is_causal: bool) -> None:
    torch.manual_seed(0)
    query, key = size * torch.randn(2, 2, 6, 4), size * torch.randn(2, 2, 6, 4)
    value = torch.randn(2, 2, 6, 4)
    context, weights = attend(query, key, value, causal_mask(6, 6) if is_causal else None)
    assert (weights.sum(dim=-1) - 1).abs().max() <= 1e-6
    fused = attend_fused(query, key, value, is_causal=is_causal)
    assert fused.isfinite().all()
    # Scores of 1e16 round by 1e9, so two near-equal ones may swap; here none are near.
    assert (fused - context).abs().max() <= 1e-4


@pytest.mark.parametrize("is_masked", [False, True])
def test_nothing_to_read_gives_zero(is_masked: bool) -> None:
    """A source of no tokens: claim 134."""
    query = torch.randn(2, 2, 3, 4, requires_grad=True)
    nothing = torch.zeros(2, 2, 0, 4)
    mask = torch.ones(2, 1, 1, 0, dtype=torch.bool) if is_masked else None
    for context in (
        attend(query, nothing, nothing, mask)[0],
        attend_fused(query, nothing, nothing, mask),
    ):
        assert context.shape == (2, 2, 3, 4)
        assert (context == 0).all()


def test_attention_backward_by_hand() -> None:
    """Claims 52, 106: dV = WᵀdY, dS = W ⊙ (dW − Σ W⊙dW), dQ = dS K/√d, dK = dSᵀ Q/√d."""
    torch.manual_seed(0)
    query, key, value = (torch.randn(1, 2, n, 4, dtype=torch.double) for n in (3, 5, 5))
    inputs = [x.requires_grad_() for x in (query, key, value)]
    mask = torch.rand(3, 5) > 0.3
    context, weights = attend(*inputs, mask)
    d_context = torch.randn_like(context)
    context.backward(d_context)
    with torch.no_grad():
        d_weights = d_context @ value.mT
        d_scores = weights * (d_weights - (weights * d_weights).sum(dim=-1, keepdim=True))
        expected = [d_scores @ key / 2, d_scores.mT @ query / 2, weights.mT @ d_context]
    for x, gradient in zip(inputs, expected, strict=True):
        assert x.grad is not None
        assert (x.grad - gradient).abs().max() <= 1e-12
