"""The shape of a convolutional encoder–decoder."""

from dataclasses import dataclass
from typing import Annotated, Literal

from heed.config import Range
from heed.errors import ConfigError
from heed.model.config import ModelConfig, departures


@dataclass(frozen=True, kw_only=True)
class ConvConfig(ModelConfig):
    """A Transformer whose self-attention is replaced by convolution; the rest is the same.

    Attributes:
        family: `conv`.
        kernel_size: positions that a convolution reads: as many before as after in the encoder,
            which needs an odd number; itself and those before it in the decoder.
    """

    family: Literal["conv"] = "conv"  # type: ignore[assignment]  # each family has its own word
    kernel_size: Annotated[int, Range(1, 255)] = 7

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.window is not None:
            raise ConfigError(
                "model.window is a setting of self-attention, but model.family = conv uses "
                "convolutions instead. Set model.kernel_size."
            )
        if self.kernel_size % 2 == 0:
            raise ConfigError(f"model.kernel_size must be odd, but is {self.kernel_size}.")
        if self.decoder_self != "attention":
            raise ConfigError(
                "model.family = conv uses convolutions instead of self-attention, so "
                f"model.decoder_self cannot be {self.decoder_self}. Leave one of the two out."
            )
        if self.decoder_attention == "merged":
            raise ConfigError(
                "model.decoder_attention = merged needs self-attention to merge with, which "
                "model.family = conv does not have. Set model.decoder_attention = separate."
            )
        if self.positions in ("rotary", "shaw", "alibi"):
            raise ConfigError(
                f"{self.positions} positions work inside self-attention, which "
                "model.family = conv does not have. Set model.positions = sinusoidal."
            )

    def summary(self) -> str:
        """The shape in words, for a model card."""
        return (
            f"Convolutional encoder–decoder, {self.n_encoder_layers} encoder and "
            f"{self.n_decoder_layers} decoder layers, width {self.d_model}, kernels of "
            f"{self.kernel_size}, {self.n_heads} heads of cross-attention{departures(self)}"
        )
