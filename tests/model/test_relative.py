"""Distances inside self-attention against the papers' equations, a pair of positions at a time."""

import math

import numpy as np
import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

from heed.model.attention import MultiHeadAttention, attend, attend_fused
from heed.model.cache import KVCache
from heed.model.masks import causal_mask
from heed.model.positions import RelativePositions
from heed.model.relative import (
    AlibiBias,
    Relative,
    ShawVectors,
    alibi_slopes,
    for_all_keys,
)
from heed.model.trace import recording

D_K, D_V = 3, 4


def distances(n_queries: int, n_keys: int, offset: int = 0) -> Tensor:
    found = RelativePositions(8, 4, 64).distances(n_queries, n_keys, offset)
    assert found is not None
    return found


def softmax(scores: np.ndarray) -> np.ndarray:
    grown = np.exp(scores - scores.max())
    return grown / grown.sum()


def shaw(
    query: np.ndarray,
    key: np.ndarray,
    value: np.ndarray,
    vectors: tuple[np.ndarray, np.ndarray],
    *,
    is_causal: bool = False,
) -> np.ndarray:
    """Shaw et al. 2018, equations 3 to 5 of one head, with loops."""
    most = len(vectors[0]) // 2
    context = np.zeros((len(query), value.shape[1]))
    for i in range(len(query)):
        keys = range(i + 1 if is_causal else len(key))
        rows = [max(-most, min(most, j - i)) + most for j in keys]
        scores = [
            query[i] @ (key[j] + vectors[0][row]) / math.sqrt(query.shape[1])
            for j, row in zip(keys, rows, strict=True)
        ]
        for weight, j, row in zip(softmax(np.array(scores)), keys, rows, strict=True):
            context[i] += weight * (value[j] + vectors[1][row])
    return context


def alibi(
    query: np.ndarray, key: np.ndarray, value: np.ndarray, slope: float, *, is_causal: bool
) -> np.ndarray:
    """Press et al. 2022: softmax(q_i K^T / √d_k - m |i - j|) V of one head, with loops."""
    context = np.zeros((len(query), value.shape[1]))
    for i in range(len(query)):
        keys = list(range(i + 1 if is_causal else len(key)))
        scores = [query[i] @ key[j] / math.sqrt(query.shape[1]) - slope * abs(i - j) for j in keys]
        context[i] = softmax(np.array(scores)) @ value[keys]
    return context


def module_of(kind: str, **options: object) -> MultiHeadAttention:
    relative: Relative = ShawVectors(D_K, D_V, 2) if kind == "shaw" else AlibiBias(3)
    torch.manual_seed(0)
    module = MultiHeadAttention(8, 3, d_k=D_K, d_v=D_V, relative=relative, **options)
    return module.double().eval()


@pytest.mark.parametrize("kind", ["shaw", "alibi"])
@pytest.mark.parametrize("is_causal", [False, True])
@torch.no_grad()
def test_the_sublayer_is_the_paper_s_equation_in_each_head(kind: str, is_causal: bool) -> None:
    """Claim 36: what counts is the distance. Tolerance: float64."""
    module, x = module_of(kind), torch.randn(1, 7, 8).double()
    whole = module(x, is_causal=is_causal, distances=distances(7, 7))
    with recording(module) as seen:
        module(x, is_causal=is_causal, distances=distances(7, 7))
    heads = []
    for head in range(3):
        query, key, value = (seen[name][0, head].numpy() for name in ("query", "key", "value"))
        if isinstance(module.relative, ShawVectors):
            vectors = module.relative.keys.numpy(), module.relative.values.numpy()
            heads.append(shaw(query, key, value, vectors, is_causal=is_causal))
        else:
            slope = (2 ** (-4.0), 2 ** (-8.0), 2 ** (-2.0))[head]
            heads.append(alibi(query, key, value, slope, is_causal=is_causal))
    expected = module.project_out(torch.from_numpy(np.concatenate(heads, axis=1)))
    assert (whole[0] - expected).abs().max() <= 1e-12
    assert (seen["out"] - whole).abs().max() <= 1e-12


def test_slopes_are_a_geometric_series_down_to_one_in_256() -> None:
    """Press et al. 2022, section 3: for eight heads 1/2, 1/4 … 1/256."""
    assert alibi_slopes(8) == [2.0**-n for n in range(1, 9)]
    assert alibi_slopes(1) == [1 / 256]
    assert alibi_slopes(16)[:3] == pytest.approx([2**-0.5, 2**-1, 2**-1.5])
    # Twelve heads: eight as above, and every other one of those of sixteen.
    assert alibi_slopes(12) == pytest.approx(alibi_slopes(8) + alibi_slopes(16)[0:8:2])


@pytest.mark.parametrize("is_causal", [False, True])
@pytest.mark.parametrize("is_masked", [False, True])
def test_fused_and_plain_are_equal_with_a_bias(is_causal: bool, is_masked: bool) -> None:
    torch.manual_seed(0)
    query, key, value = (torch.randn(2, 3, 5, n) for n in (4, 4, 6))
    bias = torch.randn(1, 3, 5, 5)
    mask = torch.tensor([[True, True, True, False, False], [False] * 5])[:, None, None]
    plain_mask = fused_mask = mask if is_masked else None
    if is_causal:
        plain_mask = causal_mask(5, 5) if plain_mask is None else plain_mask & causal_mask(5, 5)
    context, weights = attend(query, key, value, plain_mask, bias=bias)
    fused = attend_fused(query, key, value, fused_mask, bias=bias, is_causal=is_causal)
    assert (fused - context).abs().max() <= 1e-5
    scores = query @ key.mT / 2 + bias
    if plain_mask is not None:
        scores = scores.masked_fill(~plain_mask, -math.inf)
    expected = scores.softmax(dim=-1).nan_to_num(0.0)
    assert (weights - expected).abs().max() <= 1e-6


def test_gradients_of_a_bias_are_equal_and_right() -> None:
    torch.manual_seed(0)
    inputs = [torch.randn(2, 2, 3, n, dtype=torch.double, requires_grad=True) for n in (2, 2, 4)]
    bias = torch.randn(2, 2, 3, 3, dtype=torch.double, requires_grad=True)
    mask = torch.tensor([[True, True, False], [False] * 3])[:, None, None]

    def plain(*tensors: Tensor) -> Tensor:
        return attend(*tensors[:3], mask, bias=tensors[3])[0]

    def fused(*tensors: Tensor) -> Tensor:
        return attend_fused(*tensors[:3], mask, bias=tensors[3])

    for road in (plain, fused):
        assert gradcheck(road, (*inputs, bias), eps=1e-6, atol=1e-7, rtol=1e-5)


@pytest.mark.parametrize("kind", ["shaw", "alibi"])
def test_gradients_of_the_sublayer(kind: str) -> None:
    module = module_of(kind)
    x = torch.randn(2, 4, 8, dtype=torch.double, requires_grad=True)
    mask = torch.tensor([[True] * 4, [True, True, False, False]])[:, None, None]

    def call(x: Tensor, *_: Tensor) -> Tensor:
        attended: Tensor = module(x, mask=mask, distances=distances(4, 4))
        return attended

    assert gradcheck(call, (x, *module.parameters()), eps=1e-6, atol=1e-7, rtol=1e-5)


@pytest.mark.parametrize("kind", ["shaw", "alibi"])
@torch.no_grad()
def test_one_position_at_a_time_gives_what_one_pass_gives(kind: str) -> None:
    """Claim 96: the newest position knows how far each earlier one is. Tolerance: float64."""
    module, x, cache = module_of(kind), torch.randn(2, 9, 8).double(), KVCache()
    whole = module(x, is_causal=True, distances=distances(9, 9))
    for t in range(9):
        newest = module.extend(x[:, t : t + 1], cache, distances=distances(1, t + 1, t))
        assert (newest[:, 0] - whole[:, t]).abs().max() <= 1e-12


@pytest.mark.parametrize("kind", ["shaw", "alibi"])
@pytest.mark.parametrize("is_causal", [False, True])
@torch.no_grad()
def test_blocks_of_a_window_have_the_distances_of_the_whole(kind: str, is_causal: bool) -> None:
    """Only a long sequence is cut into blocks, and none that is traced. Tolerance: float64."""
    module, x = module_of(kind, window=3), torch.randn(2, 150, 8).double()
    mask = torch.ones(2, 1, 1, 150, dtype=torch.bool)
    mask[1, ..., 90:] = False
    given = {"mask": mask, "is_causal": is_causal, "distances": distances(150, 150)}
    blocks = module(x, **given)
    with recording(module) as seen:
        module(x, **given)
    assert seen["weights"].shape == (2, 3, 150, 150)
    assert (blocks - seen["out"]).abs().max() <= 1e-12
    if is_causal:
        cache = module.new_cache()
        for t in range(60):
            newest = module.extend(x[:, t : t + 1], cache, distances=distances(1, t + 1, t))
            assert (newest[:, 0] - blocks[:, t]).abs().max() <= 1e-12


@pytest.mark.parametrize("kind", ["shaw", "alibi"])
@torch.no_grad()
def test_masks_behind_the_softmax_leave_what_distances_add(kind: str) -> None:
    """Claim 78. Tolerance: float64."""
    before, after = module_of(kind), module_of(kind, masks_after=True)
    x = torch.randn(2, 6, 8).double()
    for module in (before, after):
        module.load_state_dict(before.state_dict())
    one, other = (
        module(x, is_causal=True, distances=distances(6, 6)) for module in (before, after)
    )
    assert (one - other).abs().max() <= 1e-12


def test_distances_are_positions_of_keys_less_those_of_queries() -> None:
    assert distances(2, 4, 1).tolist() == [[-1, 0, 1, 2], [-2, -1, 0, 1]]
    far = distances(1, 2000, 1500)[0]
    assert far.tolist() == list(range(-1500, 500))


@torch.no_grad()
def test_keys_without_a_distance_are_those_in_front() -> None:
    """As of a memory: neither penalty nor vector."""
    torch.manual_seed(0)
    query, key, value = (torch.randn(1, 3, n, 4).double() for n in (2, 5, 5))
    vectors = ShawVectors(4, 4, 3).double()
    of_keys = distances(2, 2)
    bias = for_all_keys(vectors.bias(query, of_keys), 5)
    assert (bias[..., :3] == 0).all()
    weights = attend(query, key, value, bias=bias)[1]
    near = weights[..., 3:]
    expected = torch.einsum("bhqk,qkd->bhqd", near, vectors.values[of_keys + 3])
    assert torch.allclose(vectors.context(near, of_keys), expected)
    penalties = for_all_keys(AlibiBias(3).bias(query, of_keys), 5)
    assert (penalties[..., :3] == 0).all()
    assert penalties[0, 0, :, 3:].tolist() == [[0, -(2.0**-4)], [-(2.0**-4), 0]]


def test_shaw_s_vectors_end_at_the_largest_distance() -> None:
    """Beyond it all distances are one: a model reads sentences of any length."""
    torch.manual_seed(0)
    vectors, query = ShawVectors(4, 4, 2), torch.randn(1, 1, 1, 4)
    bias = vectors.bias(query, distances(1, 9, 4))[0, 0, 0]
    assert (bias[:3] == bias[0]).all()
    assert (bias[6:] == bias[8]).all()
    assert len(set(bias.tolist())) == 5


def test_dropout_on_weights_also_drops_shaw_s_values() -> None:
    """Claim 68."""
    module, x = module_of("shaw", dropout=0.5).train(), torch.randn(1, 6, 8).double()
    first, second = (module(x, distances=distances(6, 6)) for _ in range(2))
    assert not torch.equal(first, second)
    torch.manual_seed(0)
    weights = attend(x[None], x[None], x[None], dropout=0.5)[1]
    plain = attend(x[None], x[None], x[None])[1]
    assert (weights == 0).any()
    assert torch.allclose(weights[weights > 0], 2 * plain[weights > 0])


@torch.no_grad()
def test_trace_names_what_distances_add() -> None:
    module, x = module_of("shaw"), torch.randn(1, 4, 8).double()
    with recording(module) as seen:
        module(x, is_causal=True, distances=distances(4, 4))
    assert torch.equal(seen["biased"], seen["scores"] + seen["bias"])
    total = seen["context"] + seen["relative"]
    assert torch.equal(seen["joined"], total.transpose(1, 2).flatten(2))
