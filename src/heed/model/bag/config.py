"""The shape of a bag of n-grams."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal

from heed.config import Range, check
from heed.errors import ConfigError
from heed.model.config import Id, Rate, Size, require_special_ids
from heed.model.plan import Block, Weight


@dataclass(frozen=True, kw_only=True)
class BagConfig:
    """A text as the set of its n-grams, which a linear layer labels.

    Attributes:
        family: `bag`.
        src_vocab_size: pieces of the vocabulary; no weight depends on it.
        tgt_vocab_size: rows of the output layer.
        d_model: width of a text's vector: the width of an n-gram's vector plus 1.
        n_gram: pieces of the longest n-gram; all shorter ones are used too.
        n_gram_rows: rows of the table; n-grams are spread over them by a hash.
        dropout: rate on the vector of a text.
        pad_id: id of `<pad>`.
        bos_id: id of `<bos>`.
        eos_id: id of `<eos>`.

    Raises:
        ConfigError: a size is out of range.
    """

    family: Literal["bag"] = "bag"
    src_vocab_size: Size
    tgt_vocab_size: Size
    d_model: Annotated[int, Range(2, 4096)] = 4
    n_gram: Annotated[int, Range(1, 8)] = 3
    n_gram_rows: Size = 1 << 20
    dropout: Rate = 0.0
    pad_id: Id = 0
    bos_id: Id = 2
    eos_id: Id = 3

    def __post_init__(self) -> None:
        check(self, "model")
        require_special_ids(self)
        if self.n_gram_rows * self.d_model > MAX_NUMBERS:
            raise ConfigError(
                f"model.n_gram_rows times model.d_model must be {MAX_NUMBERS:,} at most, but is "
                f"{self.n_gram_rows * self.d_model:,}. Lower one of them."
            )

    @property
    def length_limit(self) -> None:
        """No limit."""
        return None

    def to_dict(self) -> dict[str, Any]:
        """The config as JSON values."""
        return asdict(self)

    def summary(self) -> str:
        """The shape in words, for a model card."""
        return f"Bag of n-grams of up to {self.n_gram} pieces, width {self.d_model}"


MAX_NUMBERS = 1 << 28
"""Most numbers of the table: 1 GB."""


def bag_plan(config: BagConfig) -> list[Weight]:
    """Every weight of this model in the order of its `state_dict`."""
    return list(_weights(config))


def _weights(config: BagConfig) -> Iterator[Weight]:
    width, n_outputs = config.d_model, config.tgt_vocab_size
    yield Weight("row_weights", (config.n_gram_rows,), "fixed", "src")
    yield Weight("n_grams.weight", (config.n_gram_rows, width - 1), "n_grams", "src")
    outputs = (Block("", n_outputs, "tgt"),)
    yield Weight("output.weight", (n_outputs, width), "output", "src", outputs)


PRESETS: dict[str, dict[str, Any]] = {
    name: {"d_model": 4, "dropout": 0.0} for name in ("tiny", "small", "base", "big", "student")
}
"""One size, whatever the corpus: the width follows from the number of labels."""
