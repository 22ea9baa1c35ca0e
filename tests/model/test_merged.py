"""One attention to source and target against its equation, and its place in a model."""

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from heed.errors import ConfigError
from heed.model.attention import MultiHeadAttention
from heed.model.config import ModelConfig
from heed.model.convolutional.config import ConvConfig
from heed.model.layers import RESIDUALS, FeedForward
from heed.model.masks import padding_mask
from heed.model.merged import MergedDecoderLayer
from heed.model.positions import RelativePositions
from heed.model.relative import AlibiBias, alibi_slopes
from heed.model.trace import recording
from heed.model.transformer import Transformer

SRC = torch.tensor([[5, 6, 7, 8], [9, 5, 0, 0]])
TGT_IN = torch.tensor([[2, 5, 9], [2, 8, 4]])


def layer_of(attention: MultiHeadAttention) -> MergedDecoderLayer:
    residual = functools.partial(RESIDUALS["post"], 8, dropout=0.0, eps=1e-6)
    return MergedDecoderLayer(attention, FeedForward(8, 12), residual=residual).double().eval()


def read(
    attention: MultiHeadAttention, x: np.ndarray, memory: np.ndarray, slopes: list[float]
) -> np.ndarray:
    """Mixed attention with loops: He et al. 2018, section 3.2, for one sentence."""
    weight = attention.project_in.weight.detach().numpy()
    bias = attention.project_in.bias.detach().numpy()
    heads = []
    for head, slope in enumerate(slopes):
        rows = [slice(8 * part + 4 * head, 8 * part + 4 * head + 4) for part in range(3)]
        context = np.zeros((len(x), 4))
        for i in range(len(x)):
            seen = np.concatenate([memory, x[: i + 1]])
            query, keys, values = (
                states @ weight[part].T + bias[part]
                for states, part in zip((x[i], seen, seen), rows, strict=True)
            )
            far = np.array([0] * len(memory) + [i - j for j in range(i + 1)])
            scores = np.exp(keys @ query / math.sqrt(4) - slope * far)
            context[i] = scores / scores.sum() @ values
        heads.append(context)
    out = attention.project_out
    joined = np.concatenate(heads, axis=1)
    result: np.ndarray = joined @ out.weight.detach().numpy().T + out.bias.detach().numpy()
    return result


@pytest.mark.parametrize("is_alibi", [False, True])
@torch.no_grad()
def test_source_and_target_share_one_softmax(is_alibi: bool) -> None:
    """Claim 75. Tolerance: float64."""
    torch.manual_seed(0)
    relative = AlibiBias(2) if is_alibi else None
    layer = layer_of(MultiHeadAttention(8, 2, relative=relative))
    x, memory = torch.randn(1, 5, 8).double(), torch.randn(1, 6, 8).double()
    far = RelativePositions(8, 4, 64).distances(5, 5) if is_alibi else None
    slopes = alibi_slopes(2) if is_alibi else [0.0, 0.0]
    expected = torch.from_numpy(
        read(layer.joint_attention, x[0].numpy(), memory[0].numpy(), slopes)
    )
    y = layer.around_joint.norm(x[0] + expected)
    y = layer.around_feed_forward.norm(y + layer.feed_forward(y))
    for heard in (False, True):  # fused and plain
        if heard:
            with recording(layer) as seen:
                layer(x, memory, distances=far)
            assert (seen["out"] - y).abs().max() <= 1e-12
            assert seen["joint_attention.weights"].sum(dim=-1) == pytest.approx(1.0)
            assert seen["joint_attention.key"].size(2) == 5 + 6
        else:
            assert (layer(x, memory, distances=far)[0] - y).abs().max() <= 1e-12


def test_gradients_of_the_layer() -> None:
    torch.manual_seed(0)
    layer = layer_of(MultiHeadAttention(8, 2))
    x, memory = (torch.randn(2, n, 8, dtype=torch.double, requires_grad=True) for n in (2, 3))
    mask = torch.tensor([[True, True, True], [True, False, False]])[:, None, None]

    def call(x: Tensor, memory: Tensor, *_: Tensor) -> Tensor:
        refined: Tensor = layer(x, memory, mask)
        return refined

    inputs = (x, memory, *layer.parameters())
    assert torch.autograd.gradcheck(call, inputs, eps=1e-6, atol=1e-7, rtol=1e-5, fast_mode=True)


@torch.no_grad()
def test_what_is_shown_of_the_source_is_its_part_of_the_weights(
    tiny: Callable[..., Transformer],
) -> None:
    """They sum to less than 1: the rest went to the target."""
    model = tiny(decoder_attention="merged")
    found = model.source_attention(SRC, TGT_IN)
    with recording(model, "joint_attention.weights") as seen:
        model(SRC, TGT_IN, padding_mask(SRC, 0))
    assert len(found) == len(seen) == 2
    for weights, whole in zip(found, seen.values(), strict=True):
        assert weights.shape == (2, 2, 3, 4)
        assert torch.equal(weights, whole[..., :4])
        assert (weights[1, :, :, 2:] == 0).all()
        assert (weights.sum(dim=-1) < 1).all()
        assert (whole[..., 4:].triu(1) == 0).all()


def test_it_has_one_attention_less_than_two_sublayers(tiny: Callable[..., Transformer]) -> None:
    merged, separate = tiny(decoder_attention="merged"), tiny()
    names = {name.split(".")[2] for name, _ in merged.named_parameters() if "decoder." in name}
    assert names == {"joint_attention", "feed_forward", "around_joint", "around_feed_forward"}
    n_each = sum(p.numel() for p in separate.decoder[0].cross_attention.parameters())
    n_norm = sum(p.numel() for p in separate.decoder[0].around_cross.parameters())
    difference = sum(p.numel() for p in separate.parameters()) - sum(
        p.numel() for p in merged.parameters()
    )
    assert difference == 2 * (n_each + n_norm)


@pytest.mark.parametrize(
    ("config", "changes", "words"),
    [
        (ModelConfig, {"positions": "rotary"}, "rotary positions rotate a query once for all"),
        (
            ModelConfig,
            {"decoder_self": "ssru"},
            "source and target, but model.decoder_self is ssru",
        ),
        (ModelConfig, {"attention": "linear"}, "but model.attention is linear. Set model.decod"),
        (ModelConfig, {"window": 4}, "merged reads the whole source, but model.window is 4"),
        (ConvConfig, {}, "merged needs self-attention to merge with, which model.family = conv"),
    ],
)
def test_what_cannot_be_merged_is_refused(
    config: type[ModelConfig], changes: dict[str, Any], words: str
) -> None:
    with pytest.raises(ConfigError, match=words):
        config(src_vocab_size=9, tgt_vocab_size=9, decoder_attention="merged", **changes)
