"""Our Transformer and Hugging Face's Marian, on the same random weights: check N3.

No download: the Marian model is made from a config. Its positions are `sinusoidal_halves`, its
norm is post, its embeddings are tied three ways, and `<pad>` starts the target.
"""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from heed.model.build import build_model
from heed.model.config import ModelConfig
from heed.model.transformer import Transformer

transformers = pytest.importorskip("transformers")

PAD, EOS, VOCAB_SIZE = 36, 0, 37


def marian(activation: str) -> Any:
    """A small Marian with every weight random, biases and norms included."""
    config = transformers.MarianConfig(
        vocab_size=VOCAB_SIZE,
        d_model=24,
        encoder_layers=3,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=40,
        decoder_ffn_dim=40,
        activation_function=activation,
        max_position_embeddings=64,
        scale_embedding=True,
        pad_token_id=PAD,
        eos_token_id=EOS,
        forced_eos_token_id=EOS,
        decoder_start_token_id=PAD,
    )
    torch.manual_seed(0)
    model = transformers.MarianMTModel(config).eval()
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embed_positions" not in name:
                parameter.add_(0.3 * torch.randn_like(parameter))
    return model


@torch.no_grad()
def ours(theirs: Any, activation: str) -> Transformer:
    """heed's model with Marian's weights, one line a name."""
    model = build_model(
        ModelConfig(
            src_vocab_size=VOCAB_SIZE,
            tgt_vocab_size=VOCAB_SIZE,
            d_model=24,
            n_heads=4,
            d_ff=40,
            n_encoder_layers=3,
            n_decoder_layers=2,
            activation=activation,
            positions="sinusoidal_halves",
            norm_eps=1e-5,
            pad_id=PAD,
            bos_id=PAD,
            eos_id=EOS,
        )
    )
    model.embed_src.tokens.weight.copy_(theirs.model.shared.weight)
    for side in ("encoder", "decoder"):
        layers = getattr(theirs.model, side).layers
        for layer, other in zip(getattr(model, side), layers, strict=True):
            copy_attention(other.self_attn, layer.self_attention)
            copy(other.self_attn_layer_norm, layer.around_self.norm)
            copy(other.fc1, layer.feed_forward.expand)
            copy(other.fc2, layer.feed_forward.contract)
            copy(other.final_layer_norm, layer.around_feed_forward.norm)
            if side == "decoder":
                copy_attention(other.encoder_attn, layer.cross_attention)
                copy(other.encoder_attn_layer_norm, layer.around_cross.norm)
    return model.eval()


def copy(source: nn.Module, target: nn.Module) -> None:
    target.load_state_dict(source.state_dict())


def copy_attention(source: Any, target: Any) -> None:
    projections = (source.q_proj, source.k_proj, source.v_proj)
    target.project_in.weight.copy_(torch.cat([part.weight for part in projections]))
    target.project_in.bias.copy_(torch.cat([part.bias for part in projections]))
    copy(source.out_proj, target.project_out)


def random_sources() -> Tensor:
    torch.manual_seed(1)
    src = torch.randint(1, PAD, (8, 11))
    for row in range(1, 8):
        src[row, 11 - row :] = PAD
    return src


@pytest.mark.parametrize("activation", ["relu", "gelu"])
@torch.no_grad()
def test_logits_equal_marian_s(activation: str) -> None:
    """Claim 103. Tolerance: float32 over three and two layers."""
    theirs = marian(activation)
    model, src = ours(theirs, activation), random_sources()
    assert (theirs.final_logits_bias == 0).all()
    tgt_in = torch.cat([torch.full((8, 1), PAD), torch.randint(1, PAD, (8, 9))], dim=1)
    expected = theirs(
        input_ids=src, attention_mask=(src != PAD).long(), decoder_input_ids=tgt_in
    ).logits
    assert 0.5 < expected.std() < 2
    assert (model.teacher_forced(src, tgt_in) - expected).abs().max() <= 1e-5


@torch.no_grad()
def test_greedy_tokens_equal_marian_s() -> None:
    """Theirs runs the whole prefix each time, ours one cached step."""
    theirs = marian("relu")
    model, src = ours(theirs, "relu"), random_sources()
    prefix = torch.full((8, 1), PAD)
    state = model.start(src)
    for _ in range(15):
        logits = theirs(
            input_ids=src, attention_mask=(src != PAD).long(), decoder_input_ids=prefix
        ).logits[:, -1]
        tokens = model.step(state, prefix[:, -1]).argmax(dim=-1)
        assert tokens.tolist() == logits.argmax(dim=-1).tolist()
        prefix = torch.cat([prefix, tokens[:, None]], dim=1)
    assert len(prefix.unique(dim=0)) > 3  # the sources were read, not ignored
