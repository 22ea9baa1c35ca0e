"""The whole model: shapes, wiring, and what flows where."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from heed.model.attention import MultiHeadAttention
from heed.model.build import build_model, count_parameters
from heed.model.config import ModelConfig
from heed.model.trace import recording
from heed.model.transformer import Transformer

Tiny = Callable[..., Transformer]

SRC = torch.tensor([[5, 6, 7, 8]])
TGT_IN = torch.tensor([[2, 9, 10]])


def shapes_of(model: Transformer, src: Tensor, tgt_in: Tensor) -> dict[str, tuple[int, ...]]:
    """What every module put out, seen through hooks."""
    seen: dict[str, tuple[int, ...]] = {}

    def keep(name: str) -> Callable[[nn.Module, object, object], None]:
        def hook(_: nn.Module, __: object, output: object) -> None:
            if isinstance(output, Tensor):
                seen[name] = tuple(output.shape)

        return hook

    handles = [
        module.register_forward_hook(keep(name)) for name, module in model.named_modules() if name
    ]
    with torch.no_grad():
        seen["logits"] = tuple(model.teacher_forced(src, tgt_in).shape)
    for handle in handles:
        handle.remove()
    return seen


def test_shapes_of_seven_words_in_the_paper_s_width() -> None:
    """Claims 22, 28, 29, 59, 100, 103: X is [1,7,512] all the way, then 7 × 10,000 scores."""
    model = build_model(
        ModelConfig(
            src_vocab_size=50,
            tgt_vocab_size=10_000,
            tied="none",
            d_model=512,
            n_heads=8,
            d_ff=64,
            n_encoder_layers=2,
            n_decoder_layers=2,
        )
    ).eval()
    seen = shapes_of(model, torch.arange(5, 12)[None], torch.arange(5, 12)[None])
    assert seen["embed_src"] == seen["embed_tgt"] == (1, 7, 512)
    for part in ("encoder.0", "encoder.1", "decoder.0", "decoder.1"):
        assert seen[part] == (1, 7, 512)
        assert seen[f"{part}.self_attention"] == (1, 7, 512)
        assert seen[f"{part}.feed_forward"] == (1, 7, 512)
    assert seen["encoder.0.self_attention.project_in"] == (1, 7, 3 * 8 * 64)
    assert seen["logits"] == (1, 7, 10_000)


def test_probabilities_of_each_position_sum_to_one(tiny: Tiny) -> None:
    """Claim 104."""
    probabilities = tiny().teacher_forced(SRC, TGT_IN).softmax(dim=-1)
    assert torch.allclose(probabilities.sum(dim=-1), torch.ones(1, 3), atol=1e-6)


def test_embedding_is_scaled_and_positions_are_added(tiny: Tiny) -> None:
    """Claims 24, 42: table row · √d_model + position row."""
    for is_scaled in (True, False):
        embed = tiny(scale_embedding=is_scaled).embed_src
        rows = embed.tokens.weight[SRC[0]] * (math.sqrt(8) if is_scaled else 1.0)
        assert torch.allclose(embed(SRC)[0], rows + embed.positions.table[:4], atol=1e-6)
        assert torch.allclose(embed(SRC[:, 2:], 2), embed(SRC)[:, 2:], atol=1e-6)


def test_each_encoder_layer_reads_the_one_before(tiny: Tiny) -> None:
    """Claim 29: only the first gets embeddings."""
    model = tiny(n_encoder_layers=3)
    inputs, outputs = [], []
    for layer in model.encoder:
        layer.register_forward_pre_hook(lambda _, args: inputs.append(args[0]))
        layer.register_forward_hook(lambda _, __, output: outputs.append(output))
    memories = model.encode(SRC)
    assert torch.equal(inputs[0], model.embed_src(SRC))
    assert inputs[1] is outputs[0]
    assert inputs[2] is outputs[1]
    assert memories[0] is outputs[2]


def memories_read(model: Transformer) -> tuple[list[Tensor], list[Tensor]]:
    """What each decoder layer was given, and what each encoder layer gave."""
    read, outputs = [], []
    for layer in model.decoder:
        layer.register_forward_pre_hook(lambda _, args: read.append(args[1]))
    for layer in model.encoder:
        layer.register_forward_hook(lambda _, __, output: outputs.append(output))
    model(SRC, TGT_IN)
    return read, outputs


def test_every_decoder_layer_reads_the_last_encoder_layer(tiny: Tiny) -> None:
    """Claims 98, 133: the default."""
    read, outputs = memories_read(tiny(n_encoder_layers=2, n_decoder_layers=3))
    assert len(read) == 3
    assert all(memory is outputs[-1] for memory in read)


def test_decoder_layers_can_read_the_encoder_layer_of_their_own_height(tiny: Tiny) -> None:
    """Claims 97, 133: a different model with the same weights."""
    model = tiny(cross_from="same")
    read, outputs = memories_read(model)
    assert all(memory is output for memory, output in zip(read, outputs, strict=True))
    other = tiny(cross_from="last")
    other.load_state_dict(model.state_dict())
    assert not torch.allclose(model(SRC, TGT_IN), other(SRC, TGT_IN), atol=1e-3)


def test_pre_norm_stacks_end_with_a_norm_and_post_norm_stacks_do_not(tiny: Tiny) -> None:
    pre, post = tiny(norm="pre"), tiny(norm="post")
    assert isinstance(pre.encoder_norm, nn.LayerNorm)
    assert isinstance(pre.decoder_norm, nn.LayerNorm)
    assert isinstance(post.encoder_norm, nn.Identity)
    assert isinstance(post.decoder_norm, nn.Identity)
    assert not list(post.encoder_norm.parameters())


@pytest.mark.parametrize("cross_from", ["last", "same"])
def test_a_pre_norm_memory_is_normed_whichever_layer_it_comes_from(
    tiny: Tiny, cross_from: str
) -> None:
    """Claim 133."""
    model = tiny(norm="pre", cross_from=cross_from)
    read, outputs = memories_read(model)
    if cross_from == "last":
        outputs = [outputs[-1]] * 2
    for memory, output in zip(read, outputs, strict=True):
        assert torch.equal(memory, model.encoder_norm(output))


def test_layers_do_not_share_weights() -> None:
    """Claim 85: twelve layers, each with storage and first values of its own."""
    model = build_model(
        ModelConfig(
            src_vocab_size=9,
            tgt_vocab_size=9,
            d_model=8,
            n_heads=2,
            d_ff=12,
            n_encoder_layers=6,
            n_decoder_layers=6,
        )
    )
    assert (len(model.encoder), len(model.decoder)) == (6, 6)
    attentions = [m for m in model.modules() if isinstance(m, MultiHeadAttention)]
    assert len(attentions) == 6 + 2 * 6
    layers = [*model.encoder, *model.decoder]
    pointers = [p.data_ptr() for layer in layers for p in layer.parameters()]
    assert len(set(pointers)) == len(pointers)
    matrices = [module.project_in.weight for module in attentions]
    assert not any(
        torch.equal(matrix, other) for i, matrix in enumerate(matrices) for other in matrices[:i]
    )


def test_shared_layers_are_one_layer_s_weights() -> None:
    """Claim 85, the option: each stack has the weights of one layer, and computes as with copies.

    The gradient of a shared weight is the sum of the gradients of the copies. Tolerance: float64.
    """
    sizes: dict[str, Any] = {"src_vocab_size": 13, "tgt_vocab_size": 13, "d_model": 8, "n_heads": 2}
    sizes |= {"d_ff": 12, "n_encoder_layers": 3, "n_decoder_layers": 4, "dropout": 0.0}
    torch.manual_seed(0)
    shared = build_model(ModelConfig(**sizes, share_layers="all")).double()
    apart = build_model(ModelConfig(**sizes)).double()
    apart.load_state_dict(shared.state_dict())
    of_layers = [p for stack in (apart.encoder, apart.decoder) for p in stack[0].parameters()]
    n_elsewhere = sum(p.numel() for name, p in apart.named_parameters() if "coder." not in name)
    assert count_parameters(shared) == n_elsewhere + sum(p.numel() for p in of_layers)
    for model in (shared, apart):
        (model.teacher_forced(SRC, TGT_IN) ** 2).sum().backward()
    assert torch.equal(shared.teacher_forced(SRC, TGT_IN), apart.teacher_forced(SRC, TGT_IN))
    for name, parameter in shared.named_parameters():
        stack, number, rest = [*name.split(".", 2), "", ""][:3]
        names = [name]
        if stack in ("encoder", "decoder"):
            assert number == "0"
            names = [f"{stack}.{i}.{rest}" for i in range(len(getattr(apart, stack)))]
        gradients = [apart.get_parameter(each).grad for each in names]
        total = sum(gradient for gradient in gradients if gradient is not None)
        assert parameter.grad is not None
        assert torch.allclose(parameter.grad, torch.as_tensor(total), atol=1e-9)


def test_shared_layers_are_traced_one_by_one(tiny: Tiny) -> None:
    model = tiny(share_layers="all")
    with recording(model, "cross_attention.weights") as seen:
        model.teacher_forced(SRC, TGT_IN)
    assert list(seen) == [f"decoder.{i}.cross_attention.weights" for i in range(2)]
    first, second = seen.values()
    assert not torch.equal(first, second)


def test_no_encoder_layer_at_all_leaves_the_embeddings_as_memory(tiny: Tiny) -> None:
    model = tiny(n_encoder_layers=0)
    assert torch.equal(model.encode(SRC)[1], model.embed_src(SRC))
    assert model.teacher_forced(SRC, TGT_IN).shape == (1, 3, 13)


def test_output_layer_maps_states_back_to_the_embedding_s_rows(tiny: Tiny) -> None:
    """Claim 30: a score is the product of a state and a token's vector."""
    model = tiny()
    states = model(SRC, TGT_IN)
    expected = states @ model.embed_tgt.tokens.weight.T
    assert torch.allclose(model.logits(states), expected, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_logits_are_float32_whatever_the_weights_are(tiny: Tiny, dtype: torch.dtype) -> None:
    model = tiny().to(dtype)
    assert model.teacher_forced(SRC, TGT_IN).dtype == torch.float32
    assert model.step(model.start(SRC), torch.tensor([2])).dtype == torch.float32


@pytest.mark.parametrize("option", ["dropout", "attention_dropout", "activation_dropout"])
def test_each_dropout_acts_in_training_and_never_in_eval(tiny: Tiny, option: str) -> None:
    """Claim 68."""
    rates = {"dropout": 0.0, "attention_dropout": 0.0, "activation_dropout": 0.0}
    model, bare = tiny(**(rates | {option: 0.5})), tiny(**rates)
    assert torch.equal(model(SRC, TGT_IN), bare(SRC, TGT_IN))
    assert torch.equal(bare.train()(SRC, TGT_IN), bare(SRC, TGT_IN))
    assert not torch.equal(model.train()(SRC, TGT_IN), model(SRC, TGT_IN))


def test_every_parameter_takes_part(tiny: Tiny) -> None:
    """Claim 106: the loss reaches every weight of every kind of model."""
    for changes in (
        {},
        {"norm": "pre", "positions": "learned", "activation": "swiglu", "tied": "none"},
        {"cross_from": "same", "positions": "rotary", "activation": "gelu", "tied": "output"},
    ):
        model = tiny(**changes)
        (model.teacher_forced(SRC, TGT_IN) ** 2).sum().backward()
        for name, parameter in model.named_parameters():
            assert parameter.grad is not None, name
            assert parameter.grad.abs().sum() > 0, name


def test_state_counts_its_positions_and_its_memory(tiny: Tiny) -> None:
    model = tiny(n_decoder_layers=3)
    state = model.start(torch.tensor([[5, 6, 7], [5, 0, 0]]), beam_size=2)
    for length in range(1, 4):
        model.step(state, torch.full((4,), 5))
        assert state.position == length
        assert [cache.length for cache in state.caches] == [length] * 3
    # One memory a source, not one a beam.
    assert {key.size(0) for key, _ in state.memory_heads} == {2}
