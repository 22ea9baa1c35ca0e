"""Layers against their formulas, written out once more with plain tensors."""

import functools
import math
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from heed.model.attention import MultiHeadAttention
from heed.model.layers import (
    RESIDUALS,
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    NoNorm,
    PostNorm,
    PreNorm,
    SwiGLU,
)
from heed.model.masks import causal_mask

EPS = 1e-6


def layer_norm(x: Tensor, gain: Tensor, shift: Tensor) -> Tensor:
    """(x − mean) / √(variance + ε) · γ + β, the variance divided by n."""
    mean = x.mean(dim=-1, keepdim=True)
    variance = ((x - mean) ** 2).mean(dim=-1, keepdim=True)
    return (x - mean) / torch.sqrt(variance + EPS) * gain + shift


def shaken(module: torch.nn.Module) -> torch.nn.Module:
    """Move every parameter off its first value, so that a forgotten one shows."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return module.eval()


def test_post_norm_is_the_norm_of_the_sum() -> None:
    """Claims 88, 90: LayerNorm(x + Sublayer(x))."""
    torch.manual_seed(0)
    around = shaken(PostNorm(6, dropout=0.1, eps=EPS))
    x = 5 * torch.randn(2, 3, 6) + 1
    expected = layer_norm(x + x.sin(), around.norm.weight, around.norm.bias)
    assert torch.allclose(around(x, torch.sin), expected, atol=1e-5)


def test_without_a_norm_the_input_is_added() -> None:
    """Claim 91."""
    x = torch.randn(2, 3, 6)
    around = NoNorm(6, dropout=0.1, eps=EPS).eval()
    assert torch.equal(around(x, torch.sin), x + x.sin())
    assert not list(around.parameters())


@pytest.mark.parametrize("kind", RESIDUALS)
def test_without_a_residual_connection_only_the_sublayer_remains(kind: str) -> None:
    """Claim 91: where the sublayer gives zero, nothing of the input is left."""
    x = torch.randn(2, 3, 6)
    around = RESIDUALS[kind](6, dropout=0.1, eps=EPS, is_residual=False).eval()
    assert torch.equal(around(x, torch.zeros_like), torch.zeros_like(x))
    connected = RESIDUALS[kind](6, dropout=0.1, eps=EPS).eval()
    assert connected(x, torch.zeros_like).abs().max() > 0.5


def test_pre_norm_adds_to_what_came_in() -> None:
    """Claims 88, 90: x + Sublayer(LayerNorm(x))."""
    torch.manual_seed(0)
    around = shaken(PreNorm(6, dropout=0.1, eps=EPS))
    x = 5 * torch.randn(2, 3, 6) + 1
    expected = x + layer_norm(x, around.norm.weight, around.norm.bias).sin()
    assert torch.allclose(around(x, torch.sin), expected, atol=1e-5)


@pytest.mark.parametrize("kind", ["post", "pre"])
def test_norms_start_with_gain_one_and_shift_zero(kind: str) -> None:
    """Claim 90."""
    norm = RESIDUALS[kind](6, dropout=0.0, eps=EPS).norm
    assert (norm.weight == 1).all()
    assert (norm.bias == 0).all()
    assert norm.eps == EPS


def test_gradients_take_the_shortcut() -> None:
    """Claim 89: where the sublayer passes nothing back, pre-norm still passes all."""
    x = torch.randn(2, 3, 6, requires_grad=True)
    PreNorm(6, dropout=0.0, eps=EPS)(x, torch.zeros_like).sum().backward()
    assert x.grad is not None
    assert (x.grad == 1).all()


@pytest.mark.parametrize("kind", ["post", "pre"])
def test_dropout_sits_on_the_sublayer_and_spares_the_shortcut(kind: str) -> None:
    """Claim 68."""
    torch.manual_seed(0)
    around = RESIDUALS[kind](6, dropout=0.5, eps=EPS).train()
    x = torch.randn(2, 3, 6)
    assert not torch.equal(around(x, torch.exp), around(x, torch.exp))
    assert torch.equal(around(x, torch.zeros_like), around(x, torch.zeros_like))


ACTIVATIONS: list[tuple[Callable[[Tensor], Tensor], Callable[[Tensor], Tensor]]] = [
    (F.relu, lambda x: x.clamp(min=0)),
    (F.gelu, lambda x: x * 0.5 * (1 + torch.erf(x / math.sqrt(2)))),
]


@pytest.mark.parametrize(("activation", "formula"), ACTIVATIONS)
def test_feed_forward_is_two_matrices_around_a_bend(
    activation: Callable[[Tensor], Tensor], formula: Callable[[Tensor], Tensor]
) -> None:
    """Claims 92, 93: max(0, x W_1 + b_1) W_2 + b_2, or GELU in place of the max."""
    torch.manual_seed(0)
    network = shaken(FeedForward(4, 9, activation=activation))
    x, w_1, w_2 = torch.randn(2, 3, 4), network.expand.weight.T, network.contract.weight.T
    expected = formula(x @ w_1 + network.expand.bias) @ w_2 + network.contract.bias
    assert torch.allclose(network(x), expected, atol=1e-5)


def test_a_feed_forward_network_looks_up_in_a_table_that_no_sentence_changes() -> None:
    """Claim 94: Σ_i max(0, x · k_i) v_i, keys and values being weights (Geva et al. 2021)."""
    torch.manual_seed(0)
    network, x = FeedForward(4, 6, bias=False).double(), torch.randn(2, 3, 4).double()
    keys, values = network.expand.weight, network.contract.weight.T
    found = sum(
        (x @ key).clamp(min=0)[..., None] * value for key, value in zip(keys, values, strict=True)
    )
    assert (network(x) - found).abs().max() <= 1e-12


def test_swiglu_gates_each_inner_feature() -> None:
    torch.manual_seed(0)
    network = shaken(SwiGLU(4, 9))
    x, (w, v) = torch.randn(2, 3, 4), network.expand.weight.split(9)
    b, c = network.expand.bias.split(9)
    gate = x @ w.T + b
    inner = gate * torch.sigmoid(gate) * (x @ v.T + c)
    expected = inner @ network.contract.weight.T + network.contract.bias
    assert torch.allclose(network(x), expected, atol=1e-5)


@pytest.mark.parametrize("make", [FeedForward, SwiGLU])
def test_feed_forward_is_the_same_network_at_every_position(
    make: type[FeedForward] | type[SwiGLU],
) -> None:
    """Claim 92: alone or in a row, permuted or not. Tolerance: sums in another order."""
    torch.manual_seed(0)
    network, x = shaken(make(4, 9)), torch.randn(2, 5, 4)
    order = torch.randperm(5)
    assert torch.allclose(network(x[:, order]), network(x)[:, order], atol=1e-6)
    assert torch.allclose(network(x[:, 2]), network(x)[:, 2], atol=1e-6)


@pytest.mark.parametrize("make", [FeedForward, SwiGLU])
def test_feed_forward_options_change_what_they_say(
    make: type[FeedForward] | type[SwiGLU],
) -> None:
    torch.manual_seed(0)
    network, x = make(4, 9, dropout=0.5, bias=False), torch.randn(2, 5, 4)
    assert network.expand.bias is None
    assert network.contract.bias is None
    assert not torch.equal(network.train()(x), network(x))
    assert torch.equal(network.eval()(x), network(x))


def layer_parts(
    kind: str,
) -> tuple[Callable[[], MultiHeadAttention], FeedForward, functools.partial]:  # type: ignore[type-arg]
    residual = functools.partial(RESIDUALS[kind], 8, dropout=0.0, eps=EPS)
    return lambda: MultiHeadAttention(8, 2), FeedForward(8, 12), residual


@pytest.mark.parametrize("kind", ["post", "pre"])
def test_encoder_layer_is_attention_then_feed_forward(kind: str) -> None:
    """Claim 86."""
    torch.manual_seed(0)
    attention, network, residual = layer_parts(kind)
    layer = shaken(EncoderLayer(attention(), network, residual=residual))
    x, mask = torch.randn(2, 5, 8), torch.rand(2, 1, 1, 5) > 0.3
    one, two = layer.around_self.norm, layer.around_feed_forward.norm
    if kind == "post":
        y = one(x + layer.self_attention(x, mask=mask))
        expected = two(y + layer.feed_forward(y))
    else:
        y = x + layer.self_attention(one(x), mask=mask)
        expected = y + layer.feed_forward(two(y))
    assert torch.allclose(layer(x, mask), expected, atol=1e-6)


@pytest.mark.parametrize("kind", ["post", "pre"])
def test_a_layer_without_a_feed_forward_network_ends_with_its_attention(kind: str) -> None:
    """Claim 93: the ablation. Beside the softmax and the norm nothing is left that bends."""
    torch.manual_seed(0)
    attention, _, residual = layer_parts(kind)
    layer = shaken(EncoderLayer(attention(), None, residual=residual))
    x = torch.randn(2, 5, 8)
    norm = layer.around_self.norm
    expected = norm(x + layer.self_attention(x))
    if kind == "pre":
        expected = x + layer.self_attention(norm(x))
    assert torch.equal(layer(x), expected)
    assert not [name for name, _ in layer.named_parameters() if "feed_forward" in name]
    decoder = shaken(DecoderLayer(attention(), attention(), None, residual=residual))
    assert decoder(x, x).shape == x.shape
    assert not [name for name, _ in decoder.named_parameters() if "feed_forward" in name]


@pytest.mark.parametrize("kind", ["post", "pre"])
def test_decoder_layer_is_masked_self_then_cross_then_feed_forward(kind: str) -> None:
    """Claims 67, 87, 99: the decoder asks, the encoder's memory answers, never normed anew."""
    torch.manual_seed(0)
    attention, network, residual = layer_parts(kind)
    layer = shaken(DecoderLayer(attention(), attention(), network, residual=residual))
    x, memory = torch.randn(2, 5, 8), torch.randn(2, 3, 8)
    mask = torch.tensor([[True, True, False], [True, True, True]])[:, None, None]
    causal = causal_mask(5, 5)
    one, two, three = (
        around.norm for around in (layer.around_self, layer.around_cross, layer.around_feed_forward)
    )
    if kind == "post":
        y = one(x + layer.self_attention(x, mask=causal))
        y = two(y + layer.cross_attention(y, memory, mask=mask))
        expected = three(y + layer.feed_forward(y))
    else:
        y = x + layer.self_attention(one(x), mask=causal)
        y = y + layer.cross_attention(two(y), memory, mask=mask)
        expected = y + layer.feed_forward(three(y))
    assert torch.allclose(layer(x, memory, mask), expected, atol=1e-5)


def gradients_through(depth: int, kind: str, *, is_residual: bool) -> list[float]:
    """Norm of the gradient of a stack's output, a unit vector's worth, at the input of each layer.

    The first is that of the whole stack's input.
    """
    torch.manual_seed(0)
    inputs = [torch.randn(1, 4, 16, requires_grad=True)]
    for _ in range(depth):
        sublayer = FeedForward(16, 32)
        around = RESIDUALS[kind](16, dropout=0.0, eps=EPS, is_residual=is_residual)
        inputs.append(around(inputs[-1], sublayer))
    direction = torch.randn_like(inputs[-1])
    total = (inputs[-1] * direction / direction.norm()).sum()
    return [float(grad.norm()) for grad in torch.autograd.grad(total, inputs[:-1])]


def test_gradients_vanish_without_residual_connections_and_grow_without_norms() -> None:
    """Claim 91: forty sublayers with torch's own first weights, and one for comparison."""
    (shallow,) = gradients_through(1, "pre", is_residual=True)
    assert gradients_through(40, "none", is_residual=False)[0] < 1e-12 * shallow
    assert 0.1 * shallow < gradients_through(40, "pre", is_residual=True)[0] < 10 * shallow
    without, with_norm = (
        gradients_through(200, kind, is_residual=True)[0] for kind in ("none", "pre")
    )
    assert without > 10 * with_norm


def test_each_layer_s_gradient_in_the_four_combinations_of_norm_and_residual_connection() -> None:
    """Claim 91: forty layers; the gradient of each, relative to that of the last.

    Measured at layers 0, 16 and 32: with both 1.31, 1.26, 1.03; with residual connections alone
    1.99, 1.57, 1.02; with norms alone 3e-4, 0.07, 0.44; with neither 0, 2e-15, 4e-5.
    """
    relative = {
        (kind, is_residual): [gradient / gradients[-1] for gradient in gradients]
        for kind in ("pre", "none")
        for is_residual in (True, False)
        for gradients in [gradients_through(40, kind, is_residual=is_residual)]
    }
    assert all(0.9 < gradient < 1.5 for gradient in relative["pre", True])
    assert relative["none", True][0] > 1.3 * relative["pre", True][0]
    norms_alone, neither = relative["pre", False], relative["none", False]
    assert norms_alone[0] < 1e-2
    assert neither[8] < 1e-15
    for eighth in range(0, 32, 8):  # the deeper, the smaller
        assert norms_alone[eighth] < norms_alone[eighth + 8]
        assert neither[eighth] < 1e-3 * neither[eighth + 8]
