"""From a config to a module with fresh weights.

The modules of a Transformer take plain arguments; here they get those of a config.
"""

import functools
import math
from collections.abc import Callable
from typing import Any, TypeVar

import torch
import torch.nn.functional as F
from torch import nn
from torch.overrides import TorchFunctionMode

from heed.model.attention import MultiHeadAttention
from heed.model.config import AnyConfig, LayerConfig, ModelConfig
from heed.model.convolutional.config import ConvConfig
from heed.model.convolutional.convolution import GatedConvolution
from heed.model.families import family_of, plan
from heed.model.layers import (
    RESIDUALS,
    Around,
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    SwiGLU,
    TargetReader,
)
from heed.model.linear_attention import draw_directions
from heed.model.merged import MergedDecoderLayer
from heed.model.network import TorchNetwork
from heed.model.one_stack.config import DecoderConfig, EncoderConfig, OneStackConfig
from heed.model.one_stack.decoder import DecoderOnly
from heed.model.one_stack.encoder import EncoderOnly
from heed.model.plan import decoder_plan, encoder_plan
from heed.model.positions import POSITIONS
from heed.model.recurrence import SSRU, AverageAttention
from heed.model.relative import AlibiBias, Relative, ShawVectors
from heed.model.transformer import Embedding, Transformer
from heed.model.variants import ATTENTIONS, FavorAttention

L = TypeVar("L", bound=nn.Module)

FEED_FORWARDS: dict[str, Callable[..., FeedForward | SwiGLU]] = {
    "relu": functools.partial(FeedForward, activation=F.relu),
    "gelu": functools.partial(FeedForward, activation=F.gelu),
    "swiglu": SwiGLU,
}

RELATIVES: dict[str, Callable[[LayerConfig], Relative]] = {
    "shaw": lambda config: ShawVectors(config.key_width, config.value_width, config.max_distance),
    "alibi": lambda config: AlibiBias(config.n_heads),
}
"""By `ModelConfig.positions`, the module for distances in each self-attention."""


def build_model(config: AnyConfig) -> TorchNetwork:
    """A model of this config with fresh weights from torch's global random generator."""
    model = family_of(config).build(config)
    model.config = config
    return model


def build_transformer(config: ModelConfig) -> Transformer:
    """A Transformer of this shape with fresh weights from torch's global random generator."""
    embed_src, embed_tgt, output = _embeddings(config)
    residual, last_norm = _residual(config)
    model = Transformer(
        plan=plan(config),
        embed_src=embed_src,
        embed_tgt=embed_tgt,
        encoder=_stack(
            config,
            config.n_encoder_layers,
            lambda: EncoderLayer(_self_attention(config), _feed_forward(config), residual=residual),
        ),
        decoder=_stack(
            config,
            config.n_decoder_layers,
            functools.partial(_decoder_layer, config, residual),
        ),
        encoder_norm=last_norm(),
        decoder_norm=last_norm(),
        output=output,
        pad_id=config.pad_id,
        is_same_layer=config.cross_from == "same",
    )
    gain = residual_gain(config, model.encoder, model.decoder)
    model.apply(functools.partial(initialize, residual_gain=gain))
    return model


def build_decoder(config: DecoderConfig) -> DecoderOnly:
    """A decoder-only model of this shape with fresh weights."""
    embed, layers, last_norm, output = _one_stack(config)
    model = DecoderOnly(
        plan=decoder_plan(config),
        embed=embed,
        decoder=layers,
        decoder_norm=last_norm,
        output=output,
        pad_id=config.pad_id,
        is_bidirectional=config.prefix == "bidirectional",
        window=config.window,
    )
    gain = residual_gain(config, model.decoder)
    model.apply(functools.partial(initialize, residual_gain=gain))
    return model


def build_encoder(config: EncoderConfig) -> EncoderOnly:
    """An encoder-only model of this shape with fresh weights."""
    embed, layers, last_norm, output = _one_stack(config)
    model = EncoderOnly(
        plan=encoder_plan(config),
        embed=embed,
        encoder=layers,
        encoder_norm=last_norm,
        output=output,
        pad_id=config.pad_id,
        dropout=config.dropout,
        is_pooled=config.pooling == "mean",
    )
    gain = residual_gain(config, model.encoder)
    model.apply(functools.partial(initialize, residual_gain=gain))
    return model


def build_unfilled(config: AnyConfig, device: str = "cpu") -> TorchNetwork:
    """The same model with uninitialized weights, to be loaded; on `meta` it has only their shapes.

    Draws no random number.
    """
    with _Unfilled(device):
        return build_model(config)


class _Unfilled(TorchFunctionMode):
    """Inside, parameters are allocated on `device` and not filled with random numbers.

    Not `torch.device`: under it every function of `meta` imports the compiler, for over a second.
    """

    def __init__(self, device: str) -> None:
        super().__init__()
        self.device = device

    def __torch_function__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: Any = None
    ) -> Any:
        kwargs = kwargs or {}
        if func is torch.empty:
            return func(*args, **{**kwargs, "device": self.device})
        is_filling = func in (torch.Tensor.normal_, torch.Tensor.uniform_, draw_directions)
        if is_filling or getattr(func, "__module__", "") == nn.init.__name__:
            return kwargs["tensor"] if "tensor" in kwargs else args[0]
        return func(*args, **kwargs)


def residual_gain(config: LayerConfig, *stacks: nn.ModuleList) -> float:
    """The scale of the initial matrices whose outputs are added to the residual sum.

    Without a norm after each sublayer, the outputs of N sublayers add up. The factor 1/√N gives
    their sum the initial variance of one output; N is that of the deepest stack.

    Source: Radford et al. 2019, section 2.3.
    """
    if config.norm == "post" or not config.residual:
        return 1.0
    counts = [sum(isinstance(module, Around) for module in stack.modules()) for stack in stacks]
    return 1 / math.sqrt(max(counts))


def initialize(module: nn.Module, residual_gain: float = 1.0) -> None:
    """Fill one module's own parameters: Glorot for matrices, zero for biases.

    W^Q, W^K and W^V are initialized apart, though they lie in one matrix, so that their scale is
    that of three separate layers. Source: Glorot and Bengio 2010.

    Args:
        module: any module; its children are not initialized.
        residual_gain: scales the last matrix of a sublayer.
    """
    if isinstance(module, MultiHeadAttention):
        widths = [module.n_heads * width for width in (module.d_k, module.d_k, module.d_v)]
        for block in torch.split(module.project_in.weight.detach(), widths):
            nn.init.xavier_uniform_(block)
        if isinstance(module.project_out, nn.Linear):
            nn.init.xavier_uniform_(module.project_out.weight, gain=residual_gain)
        if isinstance(module, FavorAttention):
            draw_directions(module.directions)
    elif isinstance(module, GatedConvolution):
        for block in module.project_in.weight.detach().chunk(2):
            nn.init.xavier_uniform_(block)
        nn.init.xavier_uniform_(module.project_out.weight, gain=residual_gain)
    elif isinstance(module, SSRU):
        forget, candidate = module.cell.weight.detach().chunk(2)
        nn.init.xavier_uniform_(forget)
        nn.init.xavier_uniform_(candidate, gain=residual_gain)
    elif isinstance(module, AverageAttention):
        for block in module.gate.weight.detach().chunk(2):
            nn.init.xavier_uniform_(block)
    elif isinstance(module, FeedForward | SwiGLU):
        nn.init.xavier_uniform_(module.expand.weight)
        nn.init.xavier_uniform_(module.contract.weight, gain=residual_gain)
    elif isinstance(module, nn.Linear) and module.bias is not None:
        nn.init.zeros_(module.bias)


def count_parameters(model: nn.Module) -> int:
    """Learned numbers, each shared tensor counted once."""
    return sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)


def _one_stack(
    config: OneStackConfig,
) -> tuple[Embedding, list[EncoderLayer], nn.Module, nn.Linear]:
    """Embedding, layers, last norm and output of a model with one stack."""
    tokens = _table(config, config.src_vocab_size)
    output = _output(config, tokens)
    residual, last_norm = _residual(config)
    layers = _stack(
        config,
        config.n_layers,
        lambda: EncoderLayer(_self_attention(config), _feed_forward(config), residual=residual),
    )
    return _embedding(config, tokens), layers, last_norm(), output


def _embeddings(config: ModelConfig) -> tuple[Embedding, Embedding, nn.Linear]:
    src_tokens = _table(config, config.src_vocab_size)
    is_shared = config.tied == "three-way"
    tgt_tokens = src_tokens if is_shared else _table(config, config.tgt_vocab_size)
    output = _output(config, tgt_tokens)
    return _embedding(config, src_tokens), _embedding(config, tgt_tokens), output


def _output(config: LayerConfig, tokens: nn.Embedding) -> nn.Linear:
    """The map to the target vocabulary; if tied, it shares the matrix of `tokens`."""
    output = nn.Linear(config.d_model, config.tgt_vocab_size, bias=False)
    if config.tied == "none":
        nn.init.normal_(output.weight, std=config.d_model**-0.5)
    else:
        output.weight = tokens.weight
    return output


def _table(config: LayerConfig, vocab_size: int) -> nn.Embedding:
    tokens = nn.Embedding(vocab_size, config.d_model)
    # Times √d_model this gives unit variance, the same scale as the positions added to it.
    scale = config.d_model**-0.5 if config.scale_embedding else 1.0
    nn.init.normal_(tokens.weight, std=scale)
    return tokens


def _embedding(config: LayerConfig, tokens: nn.Embedding) -> Embedding:
    sizes = config.d_model, config.key_width, config.max_positions
    options = {"is_normalized": True} if config.normalize_positions else {}
    positions = POSITIONS[config.positions](*sizes, **options)
    return Embedding(tokens, positions, is_scaled=config.scale_embedding, dropout=config.dropout)


def _decoder_layer(
    config: ModelConfig, residual: Callable[[], Around]
) -> DecoderLayer | MergedDecoderLayer:
    if config.decoder_attention == "merged":
        attention = _attention(config, relative=_relative(config))
        return MergedDecoderLayer(attention, _feed_forward(config), residual=residual)
    return DecoderLayer(
        _target_reader(config), _attention(config), _feed_forward(config), residual=residual
    )


def _stack(config: LayerConfig, n_layers: int, make: Callable[[], L]) -> list[L]:
    """Layers with weights of their own, or each with those of the first.

    Sources: Dehghani et al. 2019, "Universal Transformers"; Lan et al. 2020, "ALBERT".
    """
    layers = [make() for _ in range(n_layers)]
    if config.share_layers == "all":
        # Modules of their own, so that each has a name in the trace and a cache.
        for layer in layers[1:]:
            for name, parameter in layers[0].named_parameters():
                owner, _, key = name.rpartition(".")
                setattr(layer.get_submodule(owner), key, parameter)
    return layers


def _residual(
    config: LayerConfig,
) -> tuple[Callable[[], Around], Callable[[], nn.Module]]:
    """Makers of the connections around sublayers, and of the norm after a stack."""
    around = functools.partial(
        RESIDUALS[config.norm],
        config.d_model,
        dropout=config.dropout,
        eps=config.norm_eps,
        is_residual=config.residual,
    )
    # Pre-norm does not normalize the sum of all sublayers, so each stack ends with a norm.
    if config.norm == "pre":
        return around, functools.partial(nn.LayerNorm, config.d_model, eps=config.norm_eps)
    return around, nn.Identity


def _attention(
    config: LayerConfig, *, window: int | None = None, relative: Relative | None = None
) -> MultiHeadAttention:
    features = {"n_features": config.feature_count} if config.attention == "favor" else {}
    return ATTENTIONS[config.attention](
        config.d_model,
        config.n_heads,
        d_k=config.key_width,
        d_v=config.value_width,
        dropout=config.attention_dropout,
        bias=config.bias,
        has_output=config.output_projection,
        window=window,
        masks_after=config.mask == "after",
        relative=relative,
        **features,
    )


def _self_attention(config: LayerConfig) -> MultiHeadAttention | GatedConvolution:
    if isinstance(config, ConvConfig):
        return GatedConvolution(config.d_model, config.kernel_size, bias=config.bias)
    return _attention(config, window=config.window, relative=_relative(config))


def _relative(config: LayerConfig) -> Relative | None:
    make = RELATIVES.get(config.positions)
    return make(config) if make else None


def _target_reader(config: ModelConfig) -> TargetReader:
    if config.decoder_self == "ssru":
        return SSRU(config.d_model, bias=config.bias)
    if config.decoder_self == "average":
        network = _network(config) if config.average_feed_forward else nn.Identity()
        return AverageAttention(config.d_model, network, bias=config.bias)
    return _self_attention(config)


def _feed_forward(config: LayerConfig) -> FeedForward | SwiGLU | None:
    return _network(config) if config.feed_forward else None


def _network(config: LayerConfig) -> FeedForward | SwiGLU:
    shared: dict[str, Any] = {"dropout": config.activation_dropout, "bias": config.bias}
    return FEED_FORWARDS[config.activation](config.d_model, config.d_ff, **shared)
