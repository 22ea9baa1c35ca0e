"""The shape of a model: every size and choice that its weights depend on.

Field names are the paper's. `build.py` turns a config into modules.
"""

import math
from dataclasses import asdict, dataclass
from typing import Annotated, Any, Literal, Protocol

from heed.config import Range, check
from heed.errors import ConfigError

LIMIT = 1 << 20
"""No width, length or vocabulary beyond a million: checked before anything is allocated."""

Size = Annotated[int, Range(1, LIMIT)]
Depth = Annotated[int, Range(0, 1000)]
Id = Annotated[int, Range(0, LIMIT)]
Rate = Annotated[float, Range(0, 1, below_high=True)]
AttentionKind = Literal["softmax", "unscaled", "cosine", "gaussian", "linear", "favor"]
LINEAR = ("linear", "favor")
"""Kinds of attention without a softmax."""
MaskKind = Literal["before", "after"]
TargetReading = Literal["attention", "average", "ssru"]
Activation = Literal["relu", "gelu", "swiglu"]
Norm = Literal["post", "pre", "none"]
PositionKind = Literal[
    "sinusoidal",
    "sinusoidal_halves",
    "learned",
    "rotary",
    "none",
    "absolute",
    "seed1",
    "shaw",
    "alibi",
]
ENGINE_POSITIONS = ("sinusoidal", "sinusoidal_halves", "learned", "rotary", "none")
"""Kinds of positions that `heed.engine` computes."""
NORMALIZABLE = ("sinusoidal", "sinusoidal_halves", "seed1")
"""Kinds of positions whose rows may be normalized."""


class AnyConfig(Protocol):
    """What the config of every family has; each is a frozen dataclass.

    Attributes:
        family: name of its row in `heed.model.families.FAMILIES`.
        src_vocab_size: rows of the source embedding.
        tgt_vocab_size: rows of the target embedding and of the output layer.
        d_model: width of a token's vector and of a decoder state.
        pad_id: id of `<pad>`.
        bos_id: id of `<bos>`.
        eos_id: id of `<eos>`.
        length_limit: most tokens of a side, with its special ones; None = any number.
    """

    # Properties, because a frozen dataclass cannot be assigned to; described above.
    @property
    def family(self) -> str: ...  # noqa: D102
    @property
    def src_vocab_size(self) -> int: ...  # noqa: D102
    @property
    def tgt_vocab_size(self) -> int: ...  # noqa: D102
    @property
    def d_model(self) -> int: ...  # noqa: D102
    @property
    def pad_id(self) -> int: ...  # noqa: D102
    @property
    def bos_id(self) -> int: ...  # noqa: D102
    @property
    def eos_id(self) -> int: ...  # noqa: D102
    @property
    def length_limit(self) -> int | None: ...  # noqa: D102

    def summary(self) -> str:
        """The shape in words, for a model card."""
        ...

    def to_dict(self) -> dict[str, Any]:
        """The config as JSON values."""
        ...


@dataclass(frozen=True, kw_only=True)
class LayerConfig:
    """The sizes and choices that all Transformers have, however their layers are stacked.

    Attributes:
        src_vocab_size: rows of the source embedding.
        tgt_vocab_size: rows of the target embedding and of the output layer.
        d_model: width of every position's vector.
        attention: how a head compares queries and keys: `softmax`, the paper's equation 1; the same
            `unscaled`; by `cosine`; `gaussian`, by their distance; `linear`, without a softmax;
            `favor`, which approximates the softmax. Formulas in `variants.py`.
        n_features: random features of `favor` attention; None = d_k ln d_k, rounded, and not fewer
            than d_k.
        mask: forbid positions `before` the softmax, or `after` it: their weights become 0 and the
            others are divided by their sum.
        window: positions to each side that a position reads in self-attention, besides its own;
            None = all.
        n_heads: attention heads a sublayer.
        d_k: width of a query or key in one head; None = `d_model // n_heads`.
        d_v: width of a value in one head; None = `d_model // n_heads`.
        d_ff: inner width of the feed-forward network.
        dropout: rate on embeddings and on every sublayer's output, 0 ≤ p < 1.
        attention_dropout: rate on attention weights.
        activation_dropout: rate inside the feed-forward network.
        activation: `relu` (the paper), `gelu`, or `swiglu` (Shazeer 2020).
        norm: `post` = LayerNorm(x + Sublayer(x)), the paper; `pre` = x + Sublayer(LayerNorm(x));
            `none` = x + Sublayer(x).
        residual: whether a sublayer's input is added to its output.
        feed_forward: whether layers have the feed-forward network; without it `d_ff` and
            `activation` have no effect.
        share_layers: `all` layers of a stack have the same weights, or `none`.
        output_projection: whether heads are mixed by W^O; without it `n_heads * d_v` must be
            `d_model`.
        positions: `sinusoidal` interleaves sine and cosine as the paper, `sinusoidal_halves` puts
            all sines first (Marian), `learned`, `rotary` (Su et al. 2021), or `none`. For
            comparison: `absolute` adds the position's number to the first feature, `seed1` has
            another exponent. `shaw` (Shaw et al. 2018) and `alibi` (Press et al. 2022) add to the
            scores of self-attention. Formulas in `positions.py` and `relative.py`.
        normalize_positions: divide each row of a sinusoidal table by its length.
        max_positions: rows of a learned table; the other kinds have no limit.
        max_distance: the largest distance with a vector of its own, for `shaw`.
        tied: `three-way` shares source, target and output embedding, `output` the last two.
        bias: whether the linear layers add a bias.
        scale_embedding: multiply embeddings by √d_model (section 3.4).
        norm_eps: ε of LayerNorm.
        pad_id: id of `<pad>`.
        bos_id: id of `<bos>`.
        eos_id: id of `<eos>`.

    Raises:
        ConfigError: a size is out of range or sizes do not fit one another.
    """

    family: str
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
    dropout: Rate = 0.1
    attention_dropout: Rate = 0.0
    activation_dropout: Rate = 0.0
    activation: Activation = "relu"
    norm: Norm = "post"
    residual: bool = True
    feed_forward: bool = True
    share_layers: Literal["none", "all"] = "none"
    output_projection: bool = True
    positions: PositionKind = "sinusoidal"
    normalize_positions: bool = False
    max_positions: Size = 1024
    max_distance: Size = 16
    tied: Literal["three-way", "output", "none"] = "three-way"
    bias: bool = True
    scale_embedding: bool = True
    norm_eps: Annotated[float, Range(0, 0.1, above_low=True)] = 1e-6
    pad_id: Id = 0
    bos_id: Id = 2
    eos_id: Id = 3

    def __post_init__(self) -> None:
        check(self, "model")
        _require_fitting_widths(self)
        _require_fitting_attention(self)
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
        """n_features, resolved: by default d_k ln d_k, and at least d_k.

        Source: Choromanski et al. 2021, theorem 4: this number, up to a factor, keeps the error of
            `favor` attention small.
        """
        d_k = self.key_width
        return self.n_features or max(d_k, round(d_k * math.log(d_k)))

    @property
    def length_limit(self) -> int | None:
        """Most tokens of a side, with its special ones; None = any number."""
        return self.max_positions if self.positions == "learned" else None

    def to_dict(self) -> dict[str, Any]:
        """The config as JSON values."""
        return asdict(self)


@dataclass(frozen=True, kw_only=True)
class ModelConfig(LayerConfig):
    """An encoder–decoder Transformer.

    Attributes:
        family: `transformer`.
        n_encoder_layers: encoder depth.
        n_decoder_layers: decoder depth; need not equal the encoder's.
        decoder_self: how a decoder position reads the target before it: `attention`; `average`, the
            gated mean of all positions so far (Zhang et al. 2018); `ssru`, a gated sum (Kim et al.
            2019). Formulas in `recurrence.py`. A step of the last two takes the same time and
            memory at any length. Positions that work inside attention (`rotary`, `shaw`, `alibi`)
            have no effect there.
        average_feed_forward: whether `average` maps the mean by a feed-forward network of width
            d_ff, as in the paper.
        decoder_attention: `separate` sublayers read the target and the source, or a `merged` one
            reads both in one softmax (He et al. 2018).
        cross_from: decoder layers read the `last` encoder layer (the paper) or the `same` one.

    Raises:
        ConfigError: a size is out of range or sizes do not fit one another.
    """

    family: Literal["transformer"] = "transformer"
    n_encoder_layers: Depth = 3
    n_decoder_layers: Annotated[int, Range(1, 1000)] = 3
    decoder_self: TargetReading = "attention"
    average_feed_forward: bool = True
    decoder_attention: Literal["separate", "merged"] = "separate"
    cross_from: Literal["last", "same"] = "last"

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.average_feed_forward and self.decoder_self != "average":
            raise ConfigError(
                "model.average_feed_forward = false needs model.decoder_self = average, but it is "
                f"{self.decoder_self}. Leave one of the two out."
            )
        require_tied(self)
        if self.decoder_attention == "merged":
            self._require_mergeable()
        # An encoder layer above the last decoder layer would not be read, and would learn nothing.
        if self.cross_from == "same" and self.n_encoder_layers != self.n_decoder_layers:
            raise ConfigError(
                "model.cross_from = same needs an encoder layer for each decoder layer, but there "
                f"are {self.n_encoder_layers} and {self.n_decoder_layers}. Make both equal, or set "
                "model.cross_from = last."
            )

    def summary(self) -> str:
        """The shape in words, for a model card."""
        return (
            f"Transformer, {self.n_encoder_layers} encoder and {self.n_decoder_layers} decoder "
            f"layers, width {self.d_model}, {self.n_heads} heads of {kind_of_attention(self)}"
            f"{self._target_reading()}{departures(self)}"
        )

    def _target_reading(self) -> str:
        if self.decoder_attention == "merged":
            return ", merged in the decoder"
        if self.decoder_self == "attention":
            return ""
        name = {"average": "averages", "ssru": "SSRU"}[self.decoder_self]
        return f", {name} in the decoder"

    def _require_mergeable(self) -> None:
        if self.positions == "rotary":
            raise ConfigError(
                "rotary positions rotate a query once for all its keys, but "
                "model.decoder_attention = merged also has keys of the source, whose positions "
                "are counted separately. Set model.positions = sinusoidal, shaw or alibi."
            )
        if self.decoder_self != "attention":
            raise ConfigError(
                "model.decoder_attention = merged has one softmax over source and target, but "
                f"model.decoder_self is {self.decoder_self}. Leave one of the two out."
            )
        if self.attention in LINEAR:
            raise ConfigError(
                "model.decoder_attention = merged has one softmax over source and target, but "
                f"model.attention is {self.attention}. Set model.decoder_attention = separate."
            )
        if self.window is not None:
            raise ConfigError(
                "model.decoder_attention = merged reads the whole source, but model.window is "
                f"{self.window}. Leave model.window out."
            )


def _require_fitting_widths(config: LayerConfig) -> None:
    """Refuse heads and positions that do not fit the model's width.

    Raises:
        ConfigError: `n_heads`, `d_model` or `d_k` is of the wrong size.
    """
    if config.d_model % config.n_heads and not (config.d_k and config.d_v):
        divisors = [n for n in (1, 2, 4, 8, 16, 32) if config.d_model % n == 0]
        raise ConfigError(
            f"model.n_heads must divide model.d_model ({config.d_model}), but is "
            f"{config.n_heads}. Try {', '.join(map(str, divisors))}, or set d_k and d_v."
        )
    width = config.n_heads * config.value_width
    if not config.output_projection and width != config.d_model:
        raise ConfigError(
            "without model.output_projection, model.n_heads * model.d_v must be model.d_model "
            f"({config.d_model}), but is {width}. Leave model.d_v out."
        )
    if config.positions.startswith("sinusoidal") and config.d_model % 2:
        raise ConfigError(f"model.d_model must be even for {config.positions} positions.")
    if config.positions == "rotary" and config.key_width % 2:
        raise ConfigError(
            f"model.d_k must be even for rotary positions, but is {config.key_width}."
        )
    if config.normalize_positions and config.positions not in NORMALIZABLE:
        raise ConfigError(
            "model.normalize_positions needs model.positions to be one of "
            f"{', '.join(NORMALIZABLE)}, but it is {config.positions}. Set "
            "model.normalize_positions = false."
        )


def _require_fitting_attention(config: LayerConfig) -> None:
    """Refuse settings of attention that do not go together.

    Raises:
        ConfigError: names the settings.
    """
    if config.window and config.mask == "after":
        raise ConfigError(
            "model.mask = after computes the softmax of all positions, but model.window "
            f"({config.window}) leaves out most of them. Set model.mask = before, or leave "
            "model.window out."
        )
    if config.attention in LINEAR:
        _require_fitting_linear(config)
    if config.positions == "shaw" and config.attention not in ("softmax", "unscaled"):
        raise ConfigError(
            "shaw positions add a vector to each key, for products of queries and keys, but "
            f"model.attention is {config.attention}. Set model.attention = softmax, or "
            "model.positions = alibi."
        )
    if config.n_features is not None and config.attention != "favor":
        raise ConfigError(
            "model.n_features is a setting of model.attention = favor, but attention is "
            f"{config.attention}. Leave it out."
        )


def _require_fitting_linear(config: LayerConfig) -> None:
    """Refuse settings that need the weights of a softmax."""
    kind = f"model.attention = {config.attention}"
    if config.mask == "after":
        raise ConfigError(
            f"model.mask = after is for weights of a softmax, but {kind} has none. Set model.mask "
            "= before."
        )
    if config.window is not None:
        raise ConfigError(
            f"model.window needs the keys of individual positions, but {kind} keeps only their "
            "sum. Leave model.window out, or set model.attention = softmax."
        )
    if config.attention_dropout:
        raise ConfigError(
            f"model.attention_dropout drops individual weights, but {kind} computes none. Set "
            "model.attention_dropout = 0."
        )
    if config.positions in ("shaw", "alibi"):
        raise ConfigError(
            f"{config.positions} positions add to the scores of a softmax, but {kind} has none. "
            "Set model.positions = sinusoidal."
        )
    if config.attention == "linear" and config.positions == "rotary":
        raise ConfigError(
            f"rotary positions need products of queries and keys, which {kind} does not compute. "
            "Set model.attention = favor, or model.positions = sinusoidal."
        )


def kind_of_attention(config: LayerConfig) -> str:
    """How heads attend, for the summary of a model."""
    words = f"{config.attention} attention"
    if config.mask == "after":
        words += " masked after the softmax"
    return words if config.window is None else f"{words} within {config.window} positions"


def departures(config: LayerConfig) -> str:
    """Unusual positions, and the parts of the paper's layer that are left out, for a summary."""
    parts = {
        "norm": config.norm == "none",
        "residual connections": not config.residual,
        "output projections": not config.output_projection,
        "feed-forward networks": not config.feed_forward,
    }
    found = [f"no {part}" for part, is_missing in parts.items() if is_missing]
    if config.positions not in ENGINE_POSITIONS:
        found = [f"{config.positions} positions", *found]
    if config.normalize_positions:
        found = ["normalized positions", *found]
    if config.share_layers == "all":
        found.append("the layers of a stack share their weights")
    return "".join(f", {words}" for words in found)


def require_tied(config: Any) -> None:
    """Refuse to share embeddings between two vocabularies.

    Raises:
        ConfigError: `tied` is `three-way`, but the sides differ.
    """
    if config.tied == "three-way" and config.src_vocab_size != config.tgt_vocab_size:
        raise ConfigError(
            "model.tied = three-way needs one joint vocabulary, but the source has "
            f"{config.src_vocab_size} pieces and the target {config.tgt_vocab_size}. "
            "Set model.tied = output, or train a joint vocabulary."
        )


def require_special_ids(config: Any) -> None:
    """Refuse special ids beyond the vocabulary.

    Raises:
        ConfigError: names the first one.
    """
    n_pieces = min(config.src_vocab_size, config.tgt_vocab_size)
    for name in ("pad_id", "bos_id", "eos_id"):
        if getattr(config, name) >= n_pieces:
            raise ConfigError(
                f"model.{name} must be below the vocabulary's size ({n_pieces}), but is "
                f"{getattr(config, name)}."
            )


PRESETS: dict[str, dict[str, Any]] = {
    # Wu et al. 2021, "Good for Misconceived Reasons", table 1: Transformer-Tiny for Multi30k.
    "tiny": {
        "d_model": 128,
        "n_heads": 4,
        "d_ff": 256,
        "n_encoder_layers": 4,
        "n_decoder_layers": 4,
        "dropout": 0.3,
    },
    "small": {
        "d_model": 256,
        "n_heads": 4,
        "d_ff": 1024,
        "n_encoder_layers": 3,
        "n_decoder_layers": 3,
        "dropout": 0.1,
    },
    # Vaswani et al. 2017, table 3.
    "base": {
        "d_model": 512,
        "n_heads": 8,
        "d_ff": 2048,
        "n_encoder_layers": 6,
        "n_decoder_layers": 6,
        "dropout": 0.1,
    },
    "big": {
        "d_model": 1024,
        "n_heads": 16,
        "d_ff": 4096,
        "n_encoder_layers": 6,
        "n_decoder_layers": 6,
        "dropout": 0.3,
    },
    # Kasai et al. 2021, "Deep Encoder, Shallow Decoder": an encoder reads all words at once, while
    # the layers of a decoder run again for every word. Six encoder layers, as in Marian's "tiny"
    # students (Bogoychev et al. 2020), would be no faster on one core than the 3 + 3 of `small`.
    "student": {
        "d_model": 256,
        "n_heads": 4,
        "d_ff": 1024,
        "n_encoder_layers": 4,
        "n_decoder_layers": 1,
        "dropout": 0.1,
    },
}
