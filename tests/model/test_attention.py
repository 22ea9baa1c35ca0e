"""Attention against arithmetic done by hand and against its own definition, head by head."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from heed.model.attention import MultiHeadAttention, attend, attend_fused
from heed.model.cache import KVCache
from heed.model.positions import rotary_table
from heed.model.trace import recording
from heed.model.variants import ATTENTIONS


def heads(*lengths_and_widths: tuple[int, int], seed: int = 0) -> list[Tensor]:
    torch.manual_seed(seed)
    return [torch.randn(2, 3, length, width) for length, width in lengths_and_widths]


# ---------------------------------------------------------------------------- the equation


def test_six_steps_of_attention_by_hand() -> None:
    """Claims 45, 46, 48: q, k, v → q·k → ÷√d_k → softmax → ×v → sum."""
    query = torch.tensor([[1.0, 0.0, 1.0, 0.0]])
    key = torch.tensor([[2.0, 5.0, 0.0, 7.0], [0.0, 0.0, 0.0, 1.0]])
    value = torch.tensor([[10.0, 0.0], [0.0, 20.0]])
    products = [1 * 2 + 1 * 0, 0]  # step 2: the first key matches by 2
    scores = [product / math.sqrt(4) for product in products]  # step 3: 1 and 0
    total = math.e + 1
    by_hand = [math.e / total, 1 / total]  # step 4: 0.7311 and 0.2689
    summed = [10 * by_hand[0], 20 * by_hand[1]]  # steps 5 and 6
    assert scores == [1, 0]
    context, weights = attend(query[None, None], key[None, None], value[None, None])
    assert weights.flatten().tolist() == pytest.approx(by_hand, rel=1e-6)
    assert context.flatten().tolist() == pytest.approx(summed, rel=1e-6)


def test_context_is_the_weighted_sum_of_values_one_by_one() -> None:
    """Claims 46, 49: y_5 = Σ_i w_i^5 v_i."""
    query, key, value = heads((6, 4), (6, 4), (6, 5))
    context, weights = attend(query, key, value)
    y_5 = sum(weights[0, 0, 5, i] * value[0, 0, i] for i in range(6))
    assert torch.allclose(context[0, 0, 5], torch.as_tensor(y_5), atol=1e-6)


def test_weights_of_each_position_sum_to_one_and_none_is_negative() -> None:
    """Claim 46."""
    query, key, value = heads((5, 4), (7, 4), (7, 4))
    weights = attend(query, key, value)[1]
    assert torch.allclose(weights.sum(dim=-1), torch.ones(2, 3, 5), atol=1e-6)
    assert (weights >= 0).all()


def test_a_sharp_query_fetches_the_value_of_the_nearest_key() -> None:
    """Claims 50, 51: as temperature goes to 0 the soft table becomes a lookup."""
    query, key, value = heads((5, 4), (7, 4), (7, 3))
    nearest = (query @ key.transpose(-2, -1)).argmax(dim=-1)
    looked_up = value.gather(2, nearest[..., None].expand(-1, -1, -1, 3))
    assert torch.allclose(attend(1e5 * query, key, value)[0], looked_up, atol=1e-5)


def test_soft_attention_teaches_queries_and_keys_hard_attention_does_not() -> None:
    """Claim 52."""
    query, key, value = (x.requires_grad_() for x in heads((5, 4), (7, 4), (7, 4)))
    (attend(query, key, value)[0] ** 2).sum().backward()
    assert query.grad is not None
    assert key.grad is not None
    assert query.grad.abs().min() > 0
    assert key.grad.abs().min() > 0

    query.grad = key.grad = value.grad = None
    picked = (query @ key.transpose(-2, -1)).argmax(dim=-1)
    is_picked = nn.functional.one_hot(picked, 7).float()
    ((is_picked @ value) ** 2).sum().backward()
    assert query.grad is None
    assert key.grad is None
    assert value.grad is not None
    assert (value.grad[is_picked.sum(dim=2) == 0] == 0).all()


@pytest.mark.parametrize("d_k", [4, 64, 1024])
def test_scaling_keeps_the_spread_of_scores_at_one_for_any_width(d_k: int) -> None:
    """Claims 53, 55: without √d_k the softmax of wide heads is nearly one-hot."""
    torch.manual_seed(0)
    query, key = torch.randn(1, 1, 64, d_k), torch.randn(1, 1, 64, d_k)
    scaled = attend(query, key, key)[1].log()
    unscaled = attend(math.sqrt(d_k) * query, key, key)[1].clamp(min=1e-38).log()
    # log-weights differ from scores by a constant a row, so their spread is the scores'.
    assert scaled.std(dim=-1).mean().item() == pytest.approx(1.0, abs=0.1)
    assert unscaled.std(dim=-1).mean() > 0.9 * min(math.sqrt(d_k), 20)


def test_attention_without_positions_does_not_see_order() -> None:
    """Claims 8, 70, 71: permuted in, equally permuted out; a function without weights."""
    query, key, value = heads((6, 4), (6, 4), (6, 4))
    order = torch.randperm(6)
    context = attend(query, key, value)[0]
    permuted = attend(query[:, :, order], key[:, :, order], value[:, :, order])[0]
    assert torch.allclose(permuted, context[:, :, order], atol=1e-6)


# ---------------------------------------------------------------------------- the sublayer


def by_head(module: MultiHeadAttention, x: Tensor, memory: Tensor) -> Tensor:
    """Concat(head_1 … head_h) W^O with one matrix a head, in numpy and loops."""
    n_heads, d_k, d_v = module.n_heads, module.d_k, module.d_v
    weight = module.project_in.weight.detach().double().numpy()
    bias = module.project_in.bias.detach().double().numpy()
    asks, reads = x.double().numpy(), memory.double().numpy()
    contexts = []
    for head in range(n_heads):
        q = slice(head * d_k, (head + 1) * d_k)
        k = slice((n_heads + head) * d_k, (n_heads + head + 1) * d_k)
        first = 2 * n_heads * d_k + head * d_v
        v = slice(first, first + d_v)
        query, key, value = (
            y @ weight[rows].T + bias[rows] for y, rows in ((asks, q), (reads, k), (reads, v))
        )
        scores = query @ key.swapaxes(-2, -1) / math.sqrt(d_k)
        powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
        contexts.append(powers / powers.sum(axis=-1, keepdims=True) @ value)
    joined = np.concatenate(contexts, axis=-1)
    out = module.project_out
    projected = joined @ out.weight.detach().double().numpy().T
    return torch.as_tensor(projected + out.bias.detach().double().numpy()).float()


@pytest.mark.parametrize("n_heads", [1, 2, 4])
@pytest.mark.parametrize(("d_k", "d_v"), [(None, None), (3, 5), (6, 1)])
def test_multi_head_attention_is_its_heads_one_by_one(
    n_heads: int, d_k: int | None, d_v: int | None
) -> None:
    """Claims 47, 56, 57, 58."""
    torch.manual_seed(0)
    module = MultiHeadAttention(8, n_heads, d_k=d_k, d_v=d_v)
    x, memory = torch.randn(2, 5, 8), torch.randn(2, 7, 8)
    with torch.no_grad():
        assert torch.allclose(module(x), by_head(module, x, x), atol=1e-5)
        assert torch.allclose(module(x, memory), by_head(module, x, memory), atol=1e-5)


def test_queries_come_from_x_keys_and_values_from_memory() -> None:
    """Claims 67, 99."""
    torch.manual_seed(0)
    module = MultiHeadAttention(8, 2)
    x, memory = torch.randn(2, 5, 8), torch.randn(2, 7, 8)
    key, value = module.project_memory(memory)
    assert torch.equal(module(x, memory), module.attend_heads(module.project_query(x), key, value))
    assert torch.allclose(module(x), module(x, x), atol=1e-6)


def test_512_in_8_heads_is_64_a_head() -> None:
    """Claim 59."""
    module = MultiHeadAttention(512, 8)
    assert (module.d_k, module.d_v) == (64, 64)
    assert module.project_query(torch.zeros(1, 7, 512)).shape == (1, 8, 7, 64)


def test_shapes_of_a_hundred_positions_in_eight_heads() -> None:
    """Claim 60: (b,100,512) → (b,8,100,64) → weights (b,8,100,100) → back."""
    module = MultiHeadAttention(512, 8).requires_grad_(False)
    x = torch.zeros(2, 100, 512)
    assert module.project_query(x).shape == (2, 8, 100, 64)
    assert [tensor.shape for tensor in module.project_memory(x)] == [(2, 8, 100, 64)] * 2
    with recording(module) as caught:
        assert module(x).shape == (2, 100, 512)
    assert caught["weights"].shape == (2, 8, 100, 100)


def test_heads_that_start_alike_stay_alike() -> None:
    """Claim 62: only random initialization tells heads apart."""
    torch.manual_seed(0)
    module = MultiHeadAttention(8, 2).double()
    blocks = module.project_in.weight.detach().view(3, 2, 4, 8)
    columns = module.project_out.weight.detach().view(8, 2, 4)
    blocks[:, 1], columns[:, 1] = blocks[:, 0], columns[:, 0]
    nn.init.zeros_(module.project_in.bias)
    before = blocks.clone()
    for _ in range(5):
        module.zero_grad()
        (module(torch.randn(2, 5, 8, dtype=torch.double)) ** 2).mean().backward()
        with torch.no_grad():
            for parameter in module.parameters():
                parameter -= 0.1 * parameter.grad
    assert not torch.equal(blocks, before)
    # Matrix products may sum the two blocks in another order: a few bits of float64.
    assert torch.allclose(blocks[:, 1], blocks[:, 0], atol=1e-14, rtol=0)
    assert torch.allclose(columns[:, 1], columns[:, 0], atol=1e-14, rtol=0)


def test_without_bias_there_is_none_and_zero_bias_is_the_same() -> None:
    """Claim 69."""
    torch.manual_seed(0)
    bare, biased = MultiHeadAttention(8, 2, bias=False), MultiHeadAttention(8, 2)
    assert set(dict(bare.named_parameters())) == {"project_in.weight", "project_out.weight"}
    assert biased.load_state_dict(bare.state_dict(), strict=False).unexpected_keys == []
    nn.init.zeros_(biased.project_in.bias)
    nn.init.zeros_(biased.project_out.bias)
    x, memory = torch.randn(2, 5, 8), torch.randn(2, 7, 8)
    assert torch.allclose(bare(x), biased(x), atol=1e-6)
    assert torch.allclose(bare(x, memory), biased(x, memory), atol=1e-6)


def test_projection_is_a_convolution_of_width_one() -> None:
    """Claim 101: the same matrix at every position, looking at no neighbor."""
    torch.manual_seed(0)
    module = MultiHeadAttention(8, 2)
    convolution = nn.Conv1d(8, 24, kernel_size=1)
    convolution.weight.data = module.project_in.weight.data[..., None]
    convolution.bias = module.project_in.bias
    x = torch.randn(2, 5, 8)
    assert torch.allclose(convolution(x.mT).mT, module.project_in(x), atol=1e-6)


def test_attention_dropout_acts_in_training_only() -> None:
    """Claim 68."""
    torch.manual_seed(0)
    module, x = MultiHeadAttention(8, 2, dropout=0.5), torch.randn(2, 5, 8)
    assert not torch.equal(module.train()(x), module(x))
    assert torch.equal(module.eval()(x), module(x))


@pytest.mark.parametrize("is_rotary", [False, True])
def test_extending_one_by_one_is_causal_attention(is_rotary: bool) -> None:
    """Claim 96. Tolerance: float32 sums in another order."""
    torch.manual_seed(0)
    module, cache = MultiHeadAttention(8, 2), KVCache()
    x, (cosines, sines) = torch.randn(3, 6, 8), rotary_table(6, 4)
    stepwise = torch.cat(
        [
            module.extend(
                x[:, t : t + 1],
                cache,
                (cosines[t : t + 1], sines[t : t + 1]) if is_rotary else None,
            )
            for t in range(6)
        ],
        dim=1,
    )
    whole = module(x, is_causal=True, rotation=(cosines, sines) if is_rotary else None)
    assert torch.allclose(stepwise, whole, atol=1e-5)
    assert cache.length == 6


def test_fused_attention_drops_weights_only_when_asked() -> None:
    query, key, value = heads((5, 4), (7, 4), (7, 4))
    context = attend_fused(query, key, value)
    assert torch.equal(attend_fused(query, key, value, dropout=0.0), context)
    assert not torch.allclose(attend_fused(query, key, value, dropout=0.5), context, atol=1e-2)


# ---------------------------------------------------------------------------- other similarities


def scores_by_hand(kind: str, query: Tensor, key: Tensor) -> float:
    """The score of one query and one key, from its formula."""
    width = len(query)
    if kind == "unscaled":
        return float(query @ key)
    if kind == "cosine":
        return float(math.sqrt(width) * (query @ key) / (query.norm() * key.norm()))
    return float(-(query - key).square().sum() / (2 * math.sqrt(width)))


@pytest.mark.parametrize("kind", ["unscaled", "cosine", "gaussian"])
@pytest.mark.parametrize("is_heard", [False, True])
@torch.no_grad()
def test_other_similarities_are_their_formulas(kind: str, is_heard: bool) -> None:
    """Claim 51: the weights of each pair of positions, one after the other."""
    torch.manual_seed(0)
    module = ATTENTIONS[kind](8, 2).double().eval()
    x = torch.randn(1, 5, 8, dtype=torch.double)
    query, key, value = (part[0] for part in module._heads(module.project_in(x)))
    contexts = []
    for head in range(2):
        scores = [[scores_by_hand(kind, q, k) for k in key[head]] for q in query[head]]
        contexts.append(torch.tensor(scores, dtype=torch.double).softmax(dim=-1) @ value[head])
    expected = module.project_out(torch.cat(contexts, dim=-1))
    if is_heard:
        with recording(module):
            found = module(x)[0]
    else:
        found = module(x)[0]
    assert (found - expected).abs().max() <= 1e-12


@torch.no_grad()
def test_without_the_scale_wide_heads_saturate() -> None:
    """Claim 53: of 64 keys the unscaled softmax gives nearly all weight to one."""
    torch.manual_seed(0)
    query, key, value = torch.randn(1, 1, 200, 256), torch.randn(1, 1, 64, 256), torch.ones(64, 1)
    _, scaled = attend(query, key, value)
    _, unscaled = attend(query * math.sqrt(256), key, value)
    assert scaled.max(dim=-1).values.mean() < 0.3
    assert unscaled.max(dim=-1).values.mean() > 0.8


@torch.no_grad()
def test_the_scale_turns_nearly_one_hot_weights_into_smooth_ones() -> None:
    """Claim 54: with d_k = 10 the numbers of the first seed, up to their rounding.

    Its other weights share what is left to 1.
    """
    smooth = torch.tensor([0.01, 0.1, 0.85, 0.02, 0.02])
    query = torch.zeros(1, 1, 1, 10)
    query[..., 0] = math.sqrt(10)
    key, value = torch.zeros(1, 1, 5, 10), torch.eye(5)[None, None]
    key[..., 0] = smooth.log()
    context, scaled = attend(query, key, value)
    assert torch.allclose(scaled.flatten(), smooth, atol=1e-6)
    assert torch.equal(context, scaled)
    _, unscaled = attend(query * math.sqrt(10), key, value)
    first, second, third = unscaled.flatten()[:3].tolist()
    assert 0.5e-6 < first < 2e-6
    assert 0.5e-3 < second < 2e-3
    assert third > 0.99


@torch.no_grad()
def test_without_an_output_projection_heads_are_only_joined() -> None:
    """Claim 72: W^O is a linear map behind the same heads."""
    torch.manual_seed(0)
    whole = MultiHeadAttention(8, 2).eval()
    bare = MultiHeadAttention(8, 2, has_output=False).eval()
    bare.project_in.load_state_dict(whole.project_in.state_dict())
    x = torch.randn(2, 5, 8)
    assert torch.allclose(whole.project_out(bare(x)), whole(x), atol=1e-6)
    assert [name for name, _ in bare.named_parameters()] == ["project_in.weight", "project_in.bias"]
