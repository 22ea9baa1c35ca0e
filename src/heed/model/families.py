"""The families of models in one table: the config, weights, builder and sizes of each.

A new family is a new row. Nothing here imports torch until a model is built.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from difflib import get_close_matches
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from heed.errors import ConfigError
from heed.model.bag.config import PRESETS as BAG_PRESETS
from heed.model.bag.config import BagConfig, bag_plan
from heed.model.config import ENGINE_POSITIONS, PRESETS, AnyConfig, LayerConfig, ModelConfig
from heed.model.convolutional.config import ConvConfig
from heed.model.one_stack.config import ENCODER_PRESETS, DecoderConfig, EncoderConfig
from heed.model.one_stack.config import PRESETS as DECODER_PRESETS
from heed.model.plan import Shape, Weight, decoder_plan, encoder_plan, transformer_plan
from heed.model.recurrent.config import PRESETS as RECURRENT_PRESETS
from heed.model.recurrent.config import RecurrentConfig
from heed.model.recurrent.plan import recurrent_plan

if TYPE_CHECKING:
    from heed.model.network import TorchNetwork

Stored = TypeVar("Stored")
Layers = TypeVar("Layers", bound=LayerConfig)

DEFAULT = "transformer"
"""The family of a config that names none, as those of heed 0.1."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Family:
    """One kind of model.

    Attributes:
        name: its key in `FAMILIES`, and `family` in its configs.
        config: the dataclass of its settings, an `AnyConfig`.
        plan: every weight of a config, in the order of the model's `state_dict`.
        build: a model with fresh weights.
        presets: settings by the names of sizes; each family has those of `heed.model.config`.
        outline: a config with as many operations for a token as one of some settings, which may
            lack others; takes the settings and the sizes of both vocabularies.
        runs_on_engine: whether `heed.engine` can run a model of this config; it then translates
            without torch.
        usual: settings for training that differ from the defaults of `config`; the argument is
            whether both sides share one vocabulary.
        matrix_rate: factor on Muon's usual learning rate.
        counts_texts: whether its first weights are counted from the training texts
            (`TorchNetwork.counted`); other families start from embeddings.
        marks_words: whether it reads `<bos>` in front of each word of a text.
    """

    name: str
    config: type[Any]
    plan: Callable[[Any], list[Weight]]
    build: "Callable[[Any], TorchNetwork]"
    presets: Mapping[str, Mapping[str, Any]]
    outline: Callable[[Mapping[str, Any], int, int], AnyConfig]
    runs_on_engine: Callable[[Any], bool] = lambda config: False
    usual: Callable[[bool], Mapping[str, Any]] = lambda is_joint: {}
    matrix_rate: float = 1.0
    counts_texts: bool = False
    marks_words: bool = False


def family_of(config: AnyConfig) -> Family:
    """The row of this config."""
    return FAMILIES[config.family]


def family_named(name: object) -> Family:
    """The row of this name.

    Raises:
        ConfigError: there is none.
    """
    if not isinstance(name, str) or name not in FAMILIES:
        raise ConfigError(f"model.family must be one of {', '.join(FAMILIES)}, but is {name!r}.")
    return FAMILIES[name]


def plan(config: AnyConfig) -> list[Weight]:
    """Every weight of this model in the order of its `state_dict`, tied ones too."""
    return family_of(config).plan(config)


def stored_shapes(config: AnyConfig) -> dict[str, Shape]:
    """The shape of each tensor in a file; a tied one is stored under its first name only."""
    return {weight.name: weight.shape for weight in plan(config) if weight.tied_to is None}


def ties(config: AnyConfig) -> dict[str, str]:
    """For each further name of a tied tensor, the name it is stored under."""
    return {weight.name: weight.tied_to for weight in plan(config) if weight.tied_to}


def with_all_names(weights: Mapping[str, Stored], config: AnyConfig) -> dict[str, Stored]:
    """Stored weights by name; tied ones under each of their names."""
    return {**weights, **{name: weights[first] for name, first in ties(config).items()}}


def config_from(values: Mapping[str, Any]) -> AnyConfig:
    """Read a config from JSON or TOML values.

    Raises:
        ConfigError: an unknown family, an unknown or missing key, or a value of the wrong type.
    """
    cls = family_named(values.get("family", DEFAULT)).config
    known = {field.name: field for field in fields(cls)}
    for key in values:
        if key not in known:
            near = get_close_matches(key, known, n=1)
            hint = f"; did you mean model.{near[0]}?" if near else "."
            raise ConfigError(f"model.{key} is not a setting{hint}")
    for key in ("src_vocab_size", "tgt_vocab_size"):
        if key not in values:
            raise ConfigError(f"model.{key} is missing.")
    config: AnyConfig = cls(**values)
    return config


def _build_transformer(config: ModelConfig) -> "TorchNetwork":
    from heed.model.build import build_transformer

    return build_transformer(config)


def _is_for_engine(config: ModelConfig | DecoderConfig) -> bool:
    is_whole = config.norm != "none" and config.residual and config.output_projection
    is_whole = is_whole and config.feed_forward and config.share_layers == "none"
    are_known = config.positions in ENGINE_POSITIONS and not config.normalize_positions
    is_usual = config.attention == "softmax" and config.mask == "before" and config.window is None
    if isinstance(config, ModelConfig):  # a decoder-only model does not have the setting
        is_usual = is_usual and config.decoder_attention == "separate"
    return is_usual and is_whole and are_known


def _usual_transformer(is_joint: bool) -> Mapping[str, Any]:
    # With Muon and a short warm-up, models with post-norm of these depths hardly learn to read the
    # source.
    return {"norm": "pre"} if is_joint else {"norm": "pre", "tied": "output"}


OF_LAYERS = ("activation", "feed_forward", "share_layers", "output_projection")
"""Settings that decide which matrices a layer has, besides the sizes."""
OF_STACKS = (
    *("d_model", "d_ff", "n_encoder_layers", "n_decoder_layers", *OF_LAYERS),
    *("decoder_attention", "decoder_self", "average_feed_forward"),
)
OF_ONE_STACK = ("d_model", "d_ff", "n_layers", *OF_LAYERS)


def _outline(
    kind: type[Layers],
    keys: Iterable[str],
    sizes: Mapping[str, Any],
    src_vocab_size: int,
    tgt_vocab_size: int,
) -> Layers:
    """A config of this kind that has these `keys` of `sizes`.

    Positions and ties do not change the number of operations for a token, nor do heads: one stands
    for all.
    """
    n_heads = sizes.get("n_heads", 1)
    widths = {key: sizes[key] for key in ("d_k", "d_v") if type(sizes.get(key)) is int}
    settings: dict[str, Any] = {
        "src_vocab_size": src_vocab_size,
        "tgt_vocab_size": tgt_vocab_size,
        "n_heads": 1,
        **{key: n_heads * width for key, width in widths.items()},
        "positions": "none",
        "tied": "none",
        **{key: sizes[key] for key in keys if key in sizes},
    }
    return kind(**settings)


def _build_decoder(config: DecoderConfig) -> "TorchNetwork":
    from heed.model.build import build_decoder

    return build_decoder(config)


def _outline_decoder(
    sizes: Mapping[str, Any], src_vocab_size: int, tgt_vocab_size: int
) -> DecoderConfig:
    n_pieces = max(src_vocab_size, tgt_vocab_size)  # equal, or the config is refused
    return _outline(DecoderConfig, OF_ONE_STACK, sizes, n_pieces, n_pieces)


def _build_encoder(config: EncoderConfig) -> "TorchNetwork":
    from heed.model.build import build_encoder

    return build_encoder(config)


def _build_bag(config: BagConfig) -> "TorchNetwork":
    from heed.model.bag.network import BagOfNGrams

    return BagOfNGrams(
        plan=bag_plan(config),
        n_rows=config.n_gram_rows,
        width=config.d_model,
        n_outputs=config.tgt_vocab_size,
        n_gram=config.n_gram,
        pad_id=config.pad_id,
        bos_id=config.bos_id,
        eos_id=config.eos_id,
        dropout=config.dropout,
    )


def _outline_bag(sizes: Mapping[str, Any], src_vocab_size: int, tgt_vocab_size: int) -> BagConfig:
    return BagConfig(
        src_vocab_size=src_vocab_size, tgt_vocab_size=tgt_vocab_size, d_model=sizes["d_model"]
    )


def _build_recurrent(config: RecurrentConfig) -> "TorchNetwork":
    from heed.model.recurrent.network import Recurrent

    return Recurrent(config)


def _outline_recurrent(
    sizes: Mapping[str, Any], src_vocab_size: int, tgt_vocab_size: int
) -> RecurrentConfig:
    keys = ("d_model", "cell", "n_encoder_layers", "n_decoder_layers", "attention", "bidirectional")
    known = {key: sizes[key] for key in keys if key in sizes}
    # An odd width does not fit the default, which is reported where the config is made.
    known.setdefault("bidirectional", sizes["d_model"] % 2 == 0)
    return RecurrentConfig(
        src_vocab_size=src_vocab_size, tgt_vocab_size=tgt_vocab_size, tied="none", **known
    )


FAMILIES: dict[str, Family] = {
    family.name: family
    for family in (
        Family(
            name=DEFAULT,
            config=ModelConfig,
            plan=transformer_plan,
            build=_build_transformer,
            runs_on_engine=_is_for_engine,
            presets=PRESETS,
            usual=_usual_transformer,
            outline=partial(_outline, ModelConfig, OF_STACKS),
        ),
        Family(
            name="decoder",
            config=DecoderConfig,
            plan=decoder_plan,
            build=_build_decoder,
            runs_on_engine=_is_for_engine,
            presets=DECODER_PRESETS,
            outline=_outline_decoder,
        ),
        Family(
            name="encoder",
            config=EncoderConfig,
            plan=encoder_plan,
            build=_build_encoder,
            presets=ENCODER_PRESETS,
            outline=partial(_outline, EncoderConfig, OF_ONE_STACK),
        ),
        Family(
            name="conv",
            config=ConvConfig,
            plan=transformer_plan,
            build=_build_transformer,
            presets=PRESETS,
            usual=_usual_transformer,
            outline=partial(_outline, ConvConfig, OF_STACKS),
        ),
        Family(
            name="rnn",
            config=RecurrentConfig,
            plan=recurrent_plan,
            build=_build_recurrent,
            presets=RECURRENT_PRESETS,
            usual=lambda is_joint: {} if is_joint else {"tied": "output"},
            outline=_outline_recurrent,
            # Multi30k, development loss after 400 steps with LSTM cells and dot attention, times 1,
            # 4 and 8: 3.50, 3.13, 3.12 as in the papers; with residual 2.63 and 2.62 (4 and 8).
            matrix_rate=4.0,
        ),
        Family(
            name="bag",
            config=BagConfig,
            plan=bag_plan,
            build=_build_bag,
            presets=BAG_PRESETS,
            outline=_outline_bag,
            counts_texts=True,
            marks_words=True,
        ),
    )
}
