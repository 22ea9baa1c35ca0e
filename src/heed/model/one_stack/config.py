"""The shapes of Transformers with one stack: decoder-only and encoder-only."""

from dataclasses import dataclass
from typing import Annotated, Any, Literal

from heed.config import Range
from heed.errors import ConfigError
from heed.model.config import LayerConfig, Norm, departures, kind_of_attention


@dataclass(frozen=True, kw_only=True)
class OneStackConfig(LayerConfig):
    """The sizes and choices that both kinds share.

    Attributes:
        window: positions to each side that a position reads, besides its own; None = all. The
            target of a translation reads the whole source.
        n_layers: layers.
        norm: LayerNorm after each sum (`post`), before each sublayer (`pre`), or `none`.
        tied: `three-way` uses the embedding table as the output matrix.
    """

    n_layers: Annotated[int, Range(1, 1000)] = 6
    norm: Norm = "pre"
    tied: Literal["three-way", "none"] = "three-way"


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
