"""The shapes of Transformers with one stack: decoder-only and encoder-only."""

from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from heed.config import Range, check
from heed.errors import ConfigError
from heed.model.config import (
    LIMIT,
    Activation,
    AttentionKind,
    Id,
    MaskKind,
    Norm,
    PositionKind,
    Rate,
    Size,
    departures,
    feature_count,
    kind_of_attention,
    require_fitting_attention,
    require_fitting_widths,
    require_special_ids,
)


@dataclass(frozen=True, kw_only=True)
class OneStackConfig:
    """The sizes and choices that both kinds share.

    Attributes:
        src_vocab_size: rows of the one embedding table.
        tgt_vocab_size: rows of the output layer.
        d_model: width of a token's vector.
        attention: how a head compares queries and keys, as in `ModelConfig`.
        n_features: random features of `favor` attention, as in `ModelConfig`.
        mask: forbid positions `before` or `after` the softmax, as in `ModelConfig`.
        window: positions to each side that a position reads; none = all. The target of a
            translation reads the whole source.
        n_heads: attention heads.
        d_k: width of queries and keys in one head; none = d_model / n_heads.
        d_v: width of values in one head; none = d_model / n_heads.
        d_ff: inner width of the feed-forward network.
        n_layers: layers.
        dropout: rate on embeddings and on each sublayer.
        attention_dropout: rate on attention weights.
        activation_dropout: rate inside the feed-forward network.
        activation: of the feed-forward network.
        norm: LayerNorm after each sum (`post`), before each sublayer (`pre`), or `none`.
        residual: whether a sublayer's input is added to its output.
        feed_forward: whether layers have the feed-forward network; without it `d_ff` and
            `activation` have no effect.
        share_layers: `all` layers of a stack have the same weights, or `none`.
        output_projection: whether heads are mixed by W^O, as in `ModelConfig`.
        positions: how positions are encoded, as in `ModelConfig`.
        normalize_positions: divide each row of a sinusoidal table by its length.
        max_positions: rows of a learned table of positions.
        max_distance: the largest distance with a vector of its own, for `shaw`.
        tied: `three-way` uses the embedding table as the output matrix.
        bias: whether the linear layers add a bias.
        scale_embedding: multiply embeddings by √d_model.
        norm_eps: ε of LayerNorm.
        pad_id: id of `<pad>`.
        bos_id: id of `<bos>`.
        eos_id: id of `<eos>`.

    Raises:
        ConfigError: a size is out of range or sizes do not fit one another.
    """

    src_vocab_size: Size
    tgt_vocab_size: Size
    d_model: Size = 256
    attention: AttentionKind = "softmax"
    n_features: Annotated[int | None, Range(1, LIMIT)] = None
    mask: MaskKind = "before"
    window: Annotated[int | None, Range(1, LIMIT)] = None
    n_heads: Size = 4
    d_k: Annotated[int | None, Range(1, LIMIT)] = None
    d_v: Annotated[int | None, Range(1, LIMIT)] = None
    d_ff: Size = 1024
    n_layers: Annotated[int, Range(1, 1000)] = 6
    dropout: Rate = 0.1
    attention_dropout: Rate = 0.0
    activation_dropout: Rate = 0.0
    activation: Activation = "relu"
    norm: Norm = "pre"
    residual: bool = True
    feed_forward: bool = True
    share_layers: Literal["none", "all"] = "none"
    output_projection: bool = True
    positions: PositionKind = "sinusoidal"
    normalize_positions: bool = False
    max_positions: Size = 1024
    max_distance: Size = 16
    tied: Literal["three-way", "none"] = "three-way"
    bias: bool = True
    scale_embedding: bool = True
    norm_eps: Annotated[float, Range(0, 0.1, above_low=True)] = 1e-6
    pad_id: Id = 0
    bos_id: Id = 2
    eos_id: Id = 3

    def __post_init__(self) -> None:
        check(self, "model")
        require_fitting_widths(self)
        require_fitting_attention(self)
        require_special_ids(self)

    @property
    def key_width(self) -> int:
        """d_k, resolved."""
        return self.d_k or self.d_model // self.n_heads

    @property
    def value_width(self) -> int:
        """d_v, resolved."""
        return self.d_v or self.d_model // self.n_heads

    @property
    def feature_count(self) -> int:
        """n_features, resolved."""
        return self.n_features or feature_count(self.key_width)

    @property
    def length_limit(self) -> int | None:
        """Most tokens of a side, with its special ones; None = any number."""
        return self.max_positions if self.positions == "learned" else None

    def to_dict(self) -> dict[str, Any]:
        """The config as JSON values."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class DecoderConfig(OneStackConfig):
    """A decoder-only model: one stack reads the source and writes the target.

    Attributes:
        family: `decoder`.
        prefix: whether source tokens attend to each other in both directions (`bidirectional`,
            Raffel et al. 2020, section 3.2.1) or only to those before them (`causal`).
    """

    family: Literal["decoder"] = "decoder"
    prefix: Literal["bidirectional", "causal"] = "bidirectional"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.src_vocab_size != self.tgt_vocab_size:
            raise ConfigError(
                "model.family = decoder needs one joint vocabulary, but the source has "
                f"{self.src_vocab_size} pieces and the target {self.tgt_vocab_size}. Set "
                "tokenizer.joint = true."
            )

    def summary(self) -> str:
        """The shape in words, for a model card."""
        return (
            f"Decoder-only Transformer, {self.n_layers} layers, width {self.d_model}, "
            f"{self.n_heads} heads of {kind_of_attention(self)}{departures(self)}"
        )


@dataclass(frozen=True, kw_only=True)
class EncoderConfig(OneStackConfig):
    """An encoder-only model: one stack reads a text in both directions.

    Attributes:
        family: `encoder`.
        pooling: `none` gives a vector for each token, to predict the token; `mean` gives their
            mean, to predict the label of the text.
    """

    family: Literal["encoder"] = "encoder"
    pooling: Literal["none", "mean"] = "none"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.tied == "three-way" and self.src_vocab_size != self.tgt_vocab_size:
            raise ConfigError(
                "model.tied = three-way needs an output for each piece, but there are "
                f"{self.src_vocab_size} pieces and {self.tgt_vocab_size} outputs. Set "
                "model.tied = none."
            )

    def summary(self) -> str:
        """The shape in words, for a model card."""
        return (
            f"Encoder-only Transformer, {self.n_layers} layers, width {self.d_model}, "
            f"{self.n_heads} heads of {kind_of_attention(self)}{departures(self)}"
        )


PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {"d_model": 128, "n_heads": 4, "d_ff": 256, "n_layers": 8, "dropout": 0.3},
    "small": {"d_model": 256, "n_heads": 4, "d_ff": 1024, "n_layers": 6, "dropout": 0.1},
    "base": {"d_model": 512, "n_heads": 8, "d_ff": 2048, "n_layers": 12, "dropout": 0.1},
    "big": {"d_model": 1024, "n_heads": 16, "d_ff": 4096, "n_layers": 12, "dropout": 0.3},
    "student": {"d_model": 256, "n_heads": 4, "d_ff": 1024, "n_layers": 3, "dropout": 0.1},
}
"""With the layers of both stacks of the Transformer of the same name."""

ENCODER_PRESETS: dict[str, dict[str, Any]] = {
    name: {**sizes, "n_layers": max(1, sizes["n_layers"] // 2)} for name, sizes in PRESETS.items()
}
"""With the layers of the encoder of the Transformer of the same name."""
