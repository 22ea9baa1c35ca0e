"""Gradients by autograd and by small differences, every module in float64: check N1.

Tolerances: eps 1e-6, atol 1e-7, rtol 1e-5.
"""

import functools
from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd import gradcheck

from heed.model.attention import MultiHeadAttention, attend, attend_fused, attend_then_mask
from heed.model.build import build_model
from heed.model.convolutional.convolution import GatedConvolution
from heed.model.families import config_from
from heed.model.layers import RESIDUALS, DecoderLayer, EncoderLayer, FeedForward, SwiGLU
from heed.model.masks import causal_mask, padding_mask
from heed.model.positions import POSITIONS, rotary_table, rotate
from heed.model.recurrence import SSRU, AverageAttention
from heed.model.trace import recording
from heed.model.transformer import Embedding

check = functools.partial(gradcheck, eps=1e-6, atol=1e-7, rtol=1e-5)

PADDING = torch.tensor([[True, True, True], [True, False, False]])[:, None, None]
CLOSED = torch.tensor([[True, True, False], [False, False, False]])[:, None, None]
MASKS: dict[str, Tensor | None] = {
    "none": None,
    "padding": PADDING,
    "causal": causal_mask(3, 3),
    "both": PADDING & causal_mask(3, 3),
    "a closed sentence": CLOSED,
}


def numbers(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.double, requires_grad=True)


def check_module(module: nn.Module, call: Callable[..., Tensor], *inputs: Tensor) -> None:
    """Compare the gradients of the inputs and of every parameter."""
    module.double()
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    n_inputs = len(inputs)
    # gradcheck moves the parameters in place, so the module need not be told.
    assert check(lambda *both: call(*both[:n_inputs]), (*inputs, *module.parameters()))


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS.keys())
@pytest.mark.parametrize("road", ["plain", "fused"])
def test_gradients_of_attention(mask: Tensor | None, road: str) -> None:
    """Claims 52, 106."""
    torch.manual_seed(0)
    inputs = numbers(2, 2, 3, 2), numbers(2, 2, 3, 2), numbers(2, 2, 3, 4)
    if road == "plain":
        assert check(lambda q, k, v: attend(q, k, v, mask), inputs)
    else:
        assert check(lambda q, k, v: attend_fused(q, k, v, mask), inputs)


def test_gradients_of_causal_fused_attention() -> None:
    torch.manual_seed(0)
    inputs = numbers(2, 1, 3, 2), numbers(2, 1, 3, 2), numbers(2, 1, 3, 2)
    for mask in (None, PADDING):
        assert check(lambda q, k, v, m=mask: attend_fused(q, k, v, m, is_causal=True), inputs)


@pytest.mark.parametrize("mask", MASKS.values(), ids=MASKS.keys())
@pytest.mark.parametrize("use", ["self", "cross"])
def test_gradients_of_multi_head_attention(mask: Tensor | None, use: str) -> None:
    torch.manual_seed(0)
    module = MultiHeadAttention(4, 2, d_k=2, d_v=1)
    if use == "self":
        check_module(module, lambda x: module(x, mask=mask), numbers(2, 3, 4))
    else:
        inputs = numbers(2, 3, 4), numbers(2, 3, 4)
        check_module(module, lambda x, memory: module(x, memory, mask=mask), *inputs)


def test_gradients_of_multi_head_attention_on_its_other_roads() -> None:
    """Causal by flag, rotary, and recorded."""
    torch.manual_seed(0)
    cosines, sines = (table.double() for table in rotary_table(3, 2))
    module = MultiHeadAttention(4, 2, bias=False)

    def call(x: Tensor) -> Tensor:
        return module(x, is_causal=True, rotation=(cosines, sines))

    check_module(module, call, numbers(2, 3, 4))
    with recording(module):
        check_module(module, call, numbers(2, 3, 4))


@pytest.mark.parametrize("mask", [m for m in MASKS.values() if m is not None])
def test_gradients_of_attention_masked_after_the_softmax(mask: Tensor) -> None:
    torch.manual_seed(0)
    inputs = numbers(2, 2, 3, 2), numbers(2, 2, 3, 2), numbers(2, 2, 3, 4)
    assert check(lambda q, k, v: attend_then_mask(q, k, v, mask), inputs)


@pytest.mark.parametrize("is_causal", [False, True])
def test_gradients_of_windowed_attention(is_causal: bool) -> None:
    """Claim 76. Three blocks."""
    torch.manual_seed(0)
    module, mask = MultiHeadAttention(2, 1, window=2), torch.ones(2, 1, 1, 70, dtype=torch.bool)
    mask[1, ..., 5:] = False
    module.double()

    def call(*_: Tensor) -> Tensor:
        return module(x, mask=mask, is_causal=is_causal)

    x = numbers(2, 70, 2)
    assert check(call, (x, *module.parameters()), fast_mode=True)


@pytest.mark.parametrize("kind", ["post", "pre"])
def test_gradients_of_residual_connections(kind: str) -> None:
    """Claims 89, 90."""
    torch.manual_seed(0)
    around = RESIDUALS[kind](4, dropout=0.1, eps=1e-6).eval()
    check_module(around, lambda x: around(x, torch.sin), numbers(2, 3, 4))


@pytest.mark.parametrize(
    "make",
    [
        lambda: FeedForward(4, 6, activation=F.relu),
        lambda: FeedForward(4, 6, activation=F.gelu),
        lambda: FeedForward(4, 6, bias=False),
        lambda: SwiGLU(4, 3),
        lambda: SwiGLU(4, 3, bias=False),
    ],
    ids=["relu", "gelu", "relu without bias", "swiglu", "swiglu without bias"],
)
def test_gradients_of_feed_forward_networks(make: Callable[[], nn.Module]) -> None:
    """Claims 92, 93."""
    torch.manual_seed(0)
    network = make()
    check_module(network, network, numbers(2, 3, 4))


@pytest.mark.parametrize("kind", sorted(POSITIONS))
@pytest.mark.parametrize("is_scaled", [True, False])
def test_gradients_of_embeddings_and_positions(kind: str, is_scaled: bool) -> None:
    torch.manual_seed(0)
    positions = POSITIONS[kind](4, 4, 5)
    embed = Embedding(nn.Embedding(5, 4), positions, is_scaled=is_scaled, dropout=0.0)
    ids = torch.tensor([[1, 2, 1], [4, 0, 0]])
    check_module(embed, lambda: embed(ids, 1))


def test_gradients_of_rotation() -> None:
    torch.manual_seed(0)
    cosines, sines = (table.double() for table in rotary_table(3, 4))
    assert check(lambda x: rotate(x, (cosines, sines)), (numbers(2, 1, 3, 4),))


@pytest.mark.parametrize("kind", ["post", "pre"])
def test_gradients_of_layers(kind: str) -> None:
    """Claims 86, 87."""
    torch.manual_seed(0)
    residual = functools.partial(RESIDUALS[kind], 4, dropout=0.0, eps=1e-6)
    encoder = EncoderLayer(MultiHeadAttention(4, 2), SwiGLU(4, 3), residual=residual)
    check_module(encoder, lambda x: encoder(x, PADDING), numbers(2, 3, 4))
    decoder = DecoderLayer(
        MultiHeadAttention(4, 2),
        MultiHeadAttention(4, 2),
        FeedForward(4, 5, activation=F.gelu),
        residual=residual,
    )
    inputs = numbers(2, 2, 4), numbers(2, 3, 4)
    check_module(decoder, lambda x, memory: decoder(x, memory, PADDING), *inputs)


@pytest.mark.parametrize(
    ("norm", "positions", "tied", "attention"),
    [
        ("post", "sinusoidal", "three-way", "softmax"),
        ("pre", "learned", "output", "softmax"),
        ("pre", "rotary", "none", "softmax"),
        ("pre", "sinusoidal", "none", "linear"),
        ("pre", "rotary", "none", "favor"),
    ],
)
def test_gradients_of_the_whole_model(norm: str, positions: str, tied: str, attention: str) -> None:
    """Claim 106. gradcheck's fast mode: random directions instead of each number."""
    torch.manual_seed(0)
    config = config_from(
        {
            "src_vocab_size": 7,
            "tgt_vocab_size": 7,
            "d_model": 4,
            "n_heads": 2,
            "d_ff": 6,
            "n_encoder_layers": 2,
            "n_decoder_layers": 2,
            "activation": "gelu",
            "norm": norm,
            "positions": positions,
            "tied": tied,
            "attention": attention,
            "max_positions": 5,
        }
    )
    model = build_model(config).double().eval()
    src, tgt_in = torch.tensor([[4, 5, 6], [4, 0, 0]]), torch.tensor([[2, 5], [2, 6]])
    mask = padding_mask(src, 0)

    def call(*_: Tensor) -> Tensor:
        # `logits` speaks float32, too coarse for small differences; this is the same product.
        return model(src, tgt_in, mask) @ model.output.weight.T

    learned = tuple(parameter for parameter in model.parameters() if parameter.requires_grad)
    assert check(call, learned, fast_mode=True)


@pytest.mark.parametrize("is_causal", [False, True])
def test_gradients_of_gated_convolution(is_causal: bool) -> None:
    module = GatedConvolution(4, 3)
    mask = None if is_causal else PADDING
    check_module(module, lambda x: module(x, mask=mask, is_causal=is_causal), numbers(2, 3, 4))


@pytest.mark.parametrize("kind", ["average", "average, no FFN", "ssru"])
def test_gradients_of_recurrent_sublayers(kind: str) -> None:
    torch.manual_seed(0)
    network = FeedForward(3, 5, activation=F.gelu) if kind == "average" else nn.Identity()
    module = SSRU(3) if kind == "ssru" else AverageAttention(3, network)
    check_module(module, module, numbers(2, 4, 3))
