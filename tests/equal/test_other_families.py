"""Encoder-only and convolutional models beside torch's modules; gradients; what must not matter.

Not here: the recurrent family (`test_recurrent.py`), decoder-only models beside torch
(`test_torch.py`), and padding, the future and caches of models that write (`test_invariance.py`).
Tolerances: float64 rounding, 1e-12; of gradients eps 1e-6, atol 1e-7, rtol 1e-5.
"""

import functools
from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from tests.equal.test_torch import copy_rest
from torch import Tensor, nn
from torch.autograd import gradcheck

from heed.model.masks import padding_mask

Tiny = Callable[..., Any]

SRC = torch.tensor([[5, 6, 7, 8], [9, 5, 6, 0], [7, 0, 0, 0]])
TGT_IN = torch.tensor([[2, 5, 9], [2, 8, 4], [2, 6, 6]])
IS_REAL = SRC != 0
ENCODERS: dict[str, dict[str, Any]] = {
    "hidden words": {"family": "encoder"},
    "hidden words, pre-norm": {"family": "encoder", "norm": "pre", "positions": "rotary"},
    "labels": {"family": "encoder", "pooling": "mean", "tgt_vocab_size": 9, "tied": "none"},
}
each_encoder = pytest.mark.parametrize("changes", ENCODERS.values(), ids=ENCODERS.keys())


def read(model: Any, src: Tensor) -> Tensor:
    """The states of an encoder, one a token or one a text."""
    found: Tensor = model(src, src[:, :0], padding_mask(src, 0))
    return found


@pytest.mark.parametrize("pooling", ["none", "mean"])
@pytest.mark.parametrize("norm", ["post", "pre"])
@torch.no_grad()
def test_an_encoder_is_torchs_with_a_padding_mask(tiny: Tiny, norm: str, pooling: str) -> None:
    """Claims 123, 127: every token reads both sides; a text is the mean of its tokens."""
    model = tiny(family="encoder", norm=norm, pooling=pooling).double()
    layer = nn.TransformerEncoderLayer(
        8, 2, 12, 0.0, layer_norm_eps=1e-6, batch_first=True, norm_first=norm == "pre"
    )
    last = nn.LayerNorm(8, eps=1e-6) if norm == "pre" else None
    twin = nn.TransformerEncoder(layer, 2, norm=last, enable_nested_tensor=False).double()
    for ours, theirs in zip(model.encoder, twin.layers, strict=True):
        copy_rest(ours, theirs, [ours.around_self.norm, ours.around_feed_forward.norm])
    if twin.norm is not None:
        twin.norm.load_state_dict(model.encoder_norm.state_dict())
    states = twin.eval()(model.embed(SRC), src_key_padding_mask=~IS_REAL)
    found = read(model, SRC)
    if pooling == "mean":
        for row, length in enumerate((4, 3, 1)):
            assert (found[row] - states[row, :length].mean(dim=0)).abs().max() <= 1e-12
    else:
        assert (found - states)[IS_REAL].abs().max() <= 1e-12


@pytest.mark.parametrize("norm", ["post", "pre"])
@torch.no_grad()
def test_a_convolutional_encoder_is_torchs_conv1d_between_linear_maps(
    tiny: Tiny, norm: str
) -> None:
    """Claims 101, 126: one sentence at a time, without padding."""
    model = tiny(family="conv", norm=norm, kernel_size=3).double()
    memories = model.encode(SRC, padding_mask(SRC, 0))
    for row, length in enumerate((4, 3, 1)):
        x = model.embed_src(SRC[row : row + 1, :length])
        for layer in model.encoder:
            conv = layer.self_attention
            depthwise = nn.Conv1d(8, 8, 3, padding=1, groups=8, bias=False).double()
            depthwise.weight.copy_(conv.kernel[:, None])
            around, network = layer.around_self.norm, layer.around_feed_forward.norm
            value, gate = conv.project_in(around(x) if norm == "pre" else x).chunk(2, dim=-1)
            x = x + conv.project_out(depthwise((value * gate.sigmoid()).mT).mT)
            x = around(x) if norm == "post" else x
            expand, contract = layer.feed_forward.expand, layer.feed_forward.contract
            x = x + contract(F.relu(expand(network(x) if norm == "pre" else x)))
            x = network(x) if norm == "post" else x
        expected = model.encoder_norm(x)
        assert (memories[-1][row, :length] - expected[0]).abs().max() <= 1e-12


@pytest.mark.parametrize(
    "changes",
    [
        {"family": "decoder"},
        {"family": "decoder", "norm": "post", "prefix": "causal", "tied": "none"},
        {"family": "conv", "kernel_size": 3},
        {"family": "conv", "kernel_size": 3, "norm": "pre", "bias": False},
        *ENCODERS.values(),
    ],
    ids=str,
)
def test_gradients_of_the_whole_model(tiny: Tiny, changes: dict[str, Any]) -> None:
    """Claim 106. gradcheck's fast mode; GELU, as a ReLU has a corner."""
    model = tiny(**{"activation": "gelu", **changes}).double()
    mask = padding_mask(SRC, 0)

    def call(*_: Tensor) -> Tensor:
        # `logits` speaks float32, too coarse for small differences; this is the same product.
        states = model(SRC, TGT_IN, mask)
        is_per_token = states.shape[:-1] == IS_REAL.shape
        return (states[IS_REAL] if is_per_token else states) @ model.output.weight.T

    check = functools.partial(gradcheck, eps=1e-6, atol=1e-7, rtol=1e-5, fast_mode=True)
    assert check(call, tuple(model.parameters()))


@each_encoder
@torch.no_grad()
def test_padding_and_other_texts_change_no_state_of_an_encoder(
    tiny: Tiny, changes: dict[str, Any]
) -> None:
    """Claim 80."""
    model = tiny(**changes).double()
    together, other = read(model, SRC), torch.where(IS_REAL, SRC, torch.full_like(SRC, 0))
    wider = read(model, F.pad(other, (0, 3)))
    for row, length in enumerate((4, 3, 1)):
        (alone,) = read(model, SRC[row : row + 1, :length])
        for found in (together, wider):
            same = found[row] if alone.dim() == 1 else found[row, :length]
            assert (same - alone).abs().max() <= 1e-12


@each_encoder
@torch.no_grad()
def test_every_token_of_an_encoder_sees_every_other_one(
    tiny: Tiny, changes: dict[str, Any]
) -> None:
    """Claim 123: from both sides."""
    model = tiny(**changes).double()
    src = torch.tensor([[5, 6, 7, 8, 9]])
    before = read(model, src)
    for place in range(5):
        other = src.clone()
        other[0, place] = 11
        moved = (read(model, other) - before).abs().amax(dim=-1)
        assert (moved > 1e-6).all()


@torch.no_grad()
def test_an_encoder_reads_a_text_of_nothing(tiny: Tiny) -> None:
    """Claim 134."""
    model = tiny(**ENCODERS["labels"])
    empty = torch.zeros(1, 2, dtype=torch.long)
    assert read(model, empty).isfinite().all()
    assert read(model, empty[:, :0]).isfinite().all()
