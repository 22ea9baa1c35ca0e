"""Our Transformer and torch's own, on the same weights: check N2.

Not here: the layouts of trained models elsewhere (`test_marian.py`).
Tolerances: 1e-5 in float32, 1e-12 in float64, over numbers of size one to four.
"""

import random
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from heed.model.attention import MultiHeadAttention
from heed.model.build import build_model
from heed.model.config import ModelConfig
from heed.model.layers import DecoderLayer, EncoderLayer
from heed.model.masks import padding_mask
from heed.model.transformer import Transformer


def copy_linear(source: nn.Linear, weight: Tensor, bias: Tensor) -> None:
    weight.copy_(source.weight)
    bias.copy_(source.bias) if source.bias is not None else bias.zero_()


def copy_attention(source: MultiHeadAttention, target: nn.MultiheadAttention) -> None:
    copy_linear(source.project_in, target.in_proj_weight, target.in_proj_bias)
    copy_linear(source.project_out, target.out_proj.weight, target.out_proj.bias)


def copy_rest(source: EncoderLayer | DecoderLayer, target: Any, norms: list[nn.LayerNorm]) -> None:
    copy_attention(source.self_attention, target.self_attn)
    for linear, other in (
        (source.feed_forward.expand, target.linear1),
        (source.feed_forward.contract, target.linear2),
    ):
        copy_linear(linear, other.weight, other.bias)
    for number, norm in enumerate(norms, start=1):
        target.get_submodule(f"norm{number}").load_state_dict(norm.state_dict())


@torch.no_grad()
def torch_twin(model: Transformer, config: ModelConfig) -> nn.Transformer:
    """torch.nn.Transformer with copies of the weights."""
    shape: dict[str, Any] = {
        "d_model": config.d_model,
        "nhead": config.n_heads,
        "dim_feedforward": config.d_ff,
        "dropout": 0.0,
        "activation": config.activation,
        "layer_norm_eps": config.norm_eps,
        "norm_first": config.norm == "pre",
        "batch_first": True,
    }
    is_pre = config.norm == "pre"
    encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(**shape),
        config.n_encoder_layers,
        norm=nn.LayerNorm(config.d_model, eps=config.norm_eps) if is_pre else None,
        enable_nested_tensor=False,
    )
    decoder = nn.TransformerDecoder(
        nn.TransformerDecoderLayer(**shape),
        config.n_decoder_layers,
        norm=nn.LayerNorm(config.d_model, eps=config.norm_eps) if is_pre else None,
    )
    # Before the copying, for its constructor draws all weights anew.
    twin = nn.Transformer(
        d_model=config.d_model,
        nhead=config.n_heads,
        custom_encoder=encoder,
        custom_decoder=decoder,
        batch_first=True,
    )
    for ours, theirs in zip(model.encoder, encoder.layers, strict=True):
        copy_rest(ours, theirs, [ours.around_self.norm, ours.around_feed_forward.norm])
    for ours, theirs in zip(model.decoder, decoder.layers, strict=True):
        arounds = (ours.around_self, ours.around_cross, ours.around_feed_forward)
        copy_rest(ours, theirs, [around.norm for around in arounds])
        copy_attention(ours.cross_attention, theirs.multihead_attn)
    if is_pre:
        assert encoder.norm is not None
        assert decoder.norm is not None
        encoder.norm.load_state_dict(model.encoder_norm.state_dict())
        decoder.norm.load_state_dict(model.decoder_norm.state_dict())
    return twin.eval()


def random_case(seed: int) -> tuple[ModelConfig, Transformer, Tensor, Tensor]:
    draw = random.Random(seed)
    n_heads = draw.choice([1, 2, 3, 4])
    config = ModelConfig(
        src_vocab_size=20,
        tgt_vocab_size=20,
        d_model=n_heads * draw.choice([2, 4, 8, 16]),
        n_heads=n_heads,
        d_ff=draw.randint(1, 70),
        n_encoder_layers=draw.randint(1, 3),
        n_decoder_layers=draw.randint(1, 3),
        dropout=0.0,
        activation=draw.choice(["relu", "gelu"]),
        norm="pre" if seed % 2 else "post",
        bias=draw.random() < 0.8,
        norm_eps=draw.choice([1e-6, 1e-5]),
    )
    torch.manual_seed(seed)
    model = build_model(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    batch, src_len, tgt_len = draw.randint(1, 5), draw.randint(1, 20), draw.randint(1, 20)
    src = torch.randint(4, 20, (batch, src_len))
    for row in src[1:]:  # the first stays whole, others end in padding
        row[draw.randint(1, src_len) :] = 0
    return config, model, src, torch.randint(4, 20, (batch, tgt_len))


@pytest.mark.parametrize("seed", range(50))
def test_encoder_decoder_and_whole_equal_torch_s_on_the_same_weights(seed: int) -> None:
    """Claims 80, 85–88: pre- and post-norm, ReLU and GELU, masks, fifty random shapes."""
    config, model, src, tgt_in = random_case(seed)
    twin = torch_twin(model, config)
    mask = padding_mask(src, 0)
    is_padding = src == 0
    is_future = torch.ones(tgt_in.size(1), tgt_in.size(1), dtype=torch.bool).triu(1)
    for dtype, tolerance in ((torch.float32, 1e-5), (torch.float64, 1e-12)):
        model, twin = model.to(dtype), twin.to(dtype)
        x, y = model.embed_src(src), model.embed_tgt(tgt_in)
        memory = model.encode(src, mask)[-1]
        their_memory = twin.encoder(x, src_key_padding_mask=is_padding)
        is_real = ~is_padding  # what stands at padded positions is nobody's business
        assert (memory - their_memory)[is_real].abs().max() <= tolerance
        their_states = twin.decoder(
            y, memory, tgt_mask=is_future, memory_key_padding_mask=is_padding
        )
        states = model.decode(tgt_in, [memory] * config.n_decoder_layers, mask)
        assert (states - their_states).abs().max() <= tolerance
        whole = twin(
            x,
            y,
            tgt_mask=is_future,
            src_key_padding_mask=is_padding,
            memory_key_padding_mask=is_padding,
        )
        assert (model(src, tgt_in, mask) - whole).abs().max() <= tolerance


@pytest.mark.parametrize("prefix", ["bidirectional", "causal"])
@pytest.mark.parametrize("norm", ["post", "pre"])
@torch.no_grad()
def test_a_decoder_only_model_is_torchs_encoder_with_a_mask(
    tiny: Any, norm: str, prefix: str
) -> None:
    """Claim 124: one stack reads [source; target]; the mask is written out place by place."""
    model = tiny(family="decoder", norm=norm, prefix=prefix).double()
    layer = nn.TransformerEncoderLayer(
        8, 2, 12, 0.0, layer_norm_eps=1e-6, batch_first=True, norm_first=norm == "pre"
    )
    last = nn.LayerNorm(8, eps=1e-6) if norm == "pre" else None
    twin = nn.TransformerEncoder(layer, 2, norm=last, enable_nested_tensor=False).double()
    for ours, theirs in zip(model.decoder, twin.layers, strict=True):
        copy_rest(ours, theirs, [ours.around_self.norm, ours.around_feed_forward.norm])
    if twin.norm is not None:
        twin.norm.load_state_dict(model.decoder_norm.state_dict())
    src, tgt_in = torch.tensor([[5, 6, 7], [8, 9, 0]]), torch.tensor([[2, 5, 9, 4], [2, 8, 4, 7]])
    x = torch.cat([model.embed(src) + model.sides[0], model.embed(tgt_in) + model.sides[1]], dim=1)
    is_closed = torch.tensor(
        [
            [prefix == "causal" and k > q if k < 3 and q < 3 else k > q for k in range(7)]
            for q in range(7)
        ]
    )
    is_padding = torch.cat([src == 0, torch.zeros(2, 4, dtype=torch.bool)], dim=1)
    expected = twin.eval()(x, mask=is_closed, src_key_padding_mask=is_padding)[:, 3:]
    found = model(src, tgt_in, padding_mask(src, 0))
    assert (found - expected).abs().max() <= 1e-12


@pytest.mark.parametrize("seed", range(4))
def test_gradients_equal_torch_s_on_the_same_weights(seed: int) -> None:
    """Claim 106. Tolerance: float64, sums of some hundred terms."""
    config, model, src, tgt_in = random_case(seed)
    model, mask = model.double(), padding_mask(src, 0)
    twin = torch_twin(model, config).double()
    x, y = model.embed_src(src).detach(), model.embed_tgt(tgt_in).detach()
    is_future = torch.ones(tgt_in.size(1), tgt_in.size(1), dtype=torch.bool).triu(1)
    is_padding = src == 0
    theirs = twin(
        x,
        y,
        tgt_mask=is_future,
        src_key_padding_mask=is_padding,
        memory_key_padding_mask=is_padding,
    )
    (theirs**3).sum().backward()
    (model(src, tgt_in, mask) ** 3).sum().backward()
    for ours, other in zip(model.decoder, twin.decoder.layers, strict=True):
        pairs = [
            (ours.self_attention.project_in, other.self_attn.in_proj_weight),
            (ours.cross_attention.project_in, other.multihead_attn.in_proj_weight),
            (ours.feed_forward.expand, other.linear1.weight),
        ]
        for linear, weight in pairs:
            assert torch.allclose(linear.weight.grad, weight.grad, rtol=1e-9, atol=1e-9)
    for ours, other in zip(model.encoder, twin.encoder.layers, strict=True):
        gradient = ours.self_attention.project_in.weight.grad
        assert torch.allclose(gradient, other.self_attn.in_proj_weight.grad, rtol=1e-9, atol=1e-9)
