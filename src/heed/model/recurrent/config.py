"""The shape of a recurrent encoder–decoder."""

from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from heed.config import Range, check
from heed.errors import ConfigError
from heed.model.config import Id, Rate, Size, require_special_ids, require_tied

Depth = Annotated[int, Range(1, 100)]


@dataclass(frozen=True, kw_only=True)
class RecurrentConfig:
    """Every size and choice that the weights of a recurrent model depend on.

    Attributes:
        family: `rnn`.
        src_vocab_size: rows of the source embedding.
        tgt_vocab_size: rows of the target embedding and of the output layer.
        d_model: width of an embedding and of a state; both directions of the encoder share it.
        cell: `tanh` (Elman 1990), `lstm` (Hochreiter and Schmidhuber 1997) or `gru` (Cho et al.
            2014).
        n_encoder_layers: recurrent layers that read the source.
        n_decoder_layers: recurrent layers that write the target.
        bidirectional: each encoder layer also reads the source backward, with half the width.
        attention: `none` gives the encoder's last state to every decoder step; `additive` compares
            states with a small network (Bahdanau et al. 2015), `dot` with a dot product (Luong et
            al. 2015).
        residual: encoder layers above the first add their input to their output, and the output
            layer reads c + W [s; c]; without it tanh(W [s; c]), as in the papers.
        dropout: rate on embeddings, between layers and on the input of the output layer.
        tied: `three-way` shares source, target and output embedding, `output` the last two.
        pad_id: id of `<pad>`.
        bos_id: id of `<bos>`.
        eos_id: id of `<eos>`.

    Raises:
        ConfigError: a size is out of range or sizes do not fit one another.
    """

    family: Literal["rnn"] = "rnn"
    src_vocab_size: Size
    tgt_vocab_size: Size
    d_model: Size = 256
    cell: Literal["tanh", "lstm", "gru"] = "lstm"
    n_encoder_layers: Depth = 1
    n_decoder_layers: Depth = 1
    bidirectional: bool = True
    attention: Literal["none", "dot", "additive"] = "dot"
    residual: bool = True
    dropout: Rate = 0.2
    tied: Literal["three-way", "output", "none"] = "three-way"
    pad_id: Id = 0
    bos_id: Id = 2
    eos_id: Id = 3

    def __post_init__(self) -> None:
        check(self, "model")
        if self.bidirectional and self.d_model % 2:
            raise ConfigError(
                f"model.d_model must be even for a bidirectional encoder, but is {self.d_model}."
            )
        require_tied(self)
        require_special_ids(self)

    @property
    def length_limit(self) -> int | None:
        """None: a recurrent model reads and writes any number of tokens."""
        return None

    def to_dict(self) -> dict[str, Any]:
        """The config as JSON values."""
        return asdict(self)

    def summary(self) -> str:
        """The shape in words, for a model card."""
        cell = {"tanh": "tanh", "lstm": "LSTM", "gru": "GRU"}[self.cell]
        reading = "bidirectional " if self.bidirectional else ""
        attention = "no attention" if self.attention == "none" else f"{self.attention} attention"
        return (
            f"Recurrent encoder–decoder, {self.n_encoder_layers} {reading}encoder and "
            f"{self.n_decoder_layers} decoder layers of {cell} cells, width {self.d_model}, "
            f"{attention}"
        )


PRESETS: dict[str, dict[str, Any]] = {
    "tiny": {"d_model": 256, "n_encoder_layers": 1, "n_decoder_layers": 1, "dropout": 0.3},
    "small": {"d_model": 512, "n_encoder_layers": 1, "n_decoder_layers": 1, "dropout": 0.2},
    "base": {"d_model": 512, "n_encoder_layers": 2, "n_decoder_layers": 2, "dropout": 0.2},
    "big": {"d_model": 1024, "n_encoder_layers": 2, "n_decoder_layers": 2, "dropout": 0.3},
    "student": {"d_model": 256, "n_encoder_layers": 2, "n_decoder_layers": 1, "dropout": 0.2},
}
