"""A model's weights in the order in which the engine uses them.

Names of weights are those of `heed.model`; only `Network.of` splits them and lays them out.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self, cast

import numpy as np

from heed.engine.matrices import Floats, Matrix, float_matrix, int8_matrix, pad
from heed.errors import ConfigError
from heed.model.config import AnyConfig, ModelConfig
from heed.model.families import family_of, plan, ties
from heed.model.one_stack.config import DecoderConfig
from heed.model.plan import Block

EngineConfig = ModelConfig | DecoderConfig

ROLES = {
    "self_attention.project_in": ("in",),
    "self_attention.project_out": ("out",),
    "self_attention.cell": ("cell",),
    "self_attention.gate": ("gate",),
    "self_attention.feed_forward.expand": ("average_expand",),
    "self_attention.feed_forward.contract": ("average_contract",),
    "cross_attention.project_in": ("query", "memory"),
    "cross_attention.project_out": ("cross_out",),
    "feed_forward.expand": ("expand",),
    "feed_forward.contract": ("contract",),
}
"""Matrix of a layer → the roles of its rows: those multiplied with target tokens, and with source
tokens."""

Norm = tuple[Floats, Floats]
"""Gain and bias, each `(d_model,)` padded to a multiple of 16."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Stacks:
    """The structure of a family, for the engine.

    Attributes:
        n_encoder_layers: depth of the encoder; 0 with one stack.
        n_decoder_layers: depth of the decoder.
        is_one_stack: the decoder reads the source too, and has no cross-attention.
        is_causal: a source token attends to no later one.
        is_same_layer: decoder layer i reads encoder layer i, not the last one.
        target_reading: `decoder_self`, or `average_feed_forward` if the mean passes through one.
        embeddings: role → weight of the embeddings and the output, in the engine's order.
        tables: side → weight of its learned positions, if the model has them.
    """

    n_encoder_layers: int
    n_decoder_layers: int
    is_one_stack: bool
    is_causal: bool
    is_same_layer: bool
    target_reading: str
    embeddings: Mapping[str, str]
    tables: Mapping[str, str]


def _transformer_stacks(config: ModelConfig) -> Stacks:
    return Stacks(
        n_encoder_layers=config.n_encoder_layers,
        n_decoder_layers=config.n_decoder_layers,
        is_one_stack=False,
        is_causal=False,
        is_same_layer=config.cross_from == "same",
        target_reading=(
            "average_feed_forward"
            if config.decoder_self == "average" and config.average_feed_forward
            else config.decoder_self
        ),
        embeddings={
            "embed_src": "embed_src.tokens.weight",
            "embed_tgt": "embed_tgt.tokens.weight",
            "output": "output.weight",
        },
        tables={"src": "embed_src.positions.table", "tgt": "embed_tgt.positions.table"},
    )


def _decoder_stacks(config: DecoderConfig) -> Stacks:
    return Stacks(
        n_encoder_layers=0,
        n_decoder_layers=config.n_layers,
        is_one_stack=True,
        is_causal=config.prefix == "causal",
        is_same_layer=False,
        target_reading="attention",
        embeddings={
            "embed_src": "embed.tokens.weight",
            "embed_tgt": "embed.tokens.weight",
            "output": "output.weight",
        },
        tables={"src": "embed.positions.table", "tgt": "embed.positions.table"},
    )


STACKS: dict[str, Callable[[Any], Stacks]] = {
    "transformer": _transformer_stacks,
    "decoder": _decoder_stacks,
}
"""By the name of a family that the engine computes."""


def stacks_of(config: EngineConfig) -> Stacks:
    """The structure of this model's family."""
    return STACKS[config.family](config)


@dataclass(frozen=True, kw_only=True)
class Network:
    """All weights of a model.

    Attributes:
        config: the model's shape.
        matrices: by role: `embed_src`, `embed_tgt`, `output`; `encoder.0.` and `in` (queries,
            keys and values), `out`, `expand`, `contract`; `decoder.0.` and these and `query`,
            `memory` (keys and values of the source), `cross_out`; instead of a recurrent decoder's
            `in` and `out`, `cell`, or `gate` with or without `average_expand` and
            `average_contract`. Tied ones are one object.
        norms: by role: `encoder.0.self`, `encoder.0.feed_forward`, `decoder.0.cross`, …; with
            pre-norm also `encoder` and `decoder`.
        tables: learned positions of `src` and `tgt`, `(max_positions, d_model)`; or none. With one
            stack they are one object.
        sides: with one stack, the vectors that distinguish source and target, `(2, d_model)`.
    """

    config: EngineConfig
    matrices: dict[str, Matrix]
    norms: dict[str, Norm]
    tables: dict[str, Floats]
    sides: Floats | None = None

    @classmethod
    def of(
        cls, config: EngineConfig, weights: Mapping[str, Floats], *, is_quantized: bool = False
    ) -> Self:
        """Lay out weights that come by the names of `heed.model.plan`."""
        make = int8_matrix if is_quantized else float_matrix
        embeddings = stacks_of(config).embeddings
        tables_made = _once(make, [weights[name] for name in embeddings.values()])
        matrices = dict(zip(embeddings, tables_made, strict=True))
        norms: dict[str, Norm] = {}
        for product in _products(config):
            bias = weights.get(f"{product.name}.bias")
            matrices[product.role] = make(
                weights[f"{product.name}.weight"][product.rows],
                None if bias is None else bias[product.rows],
            )
        for role, name in _norms(config):
            norms[role] = (_padded(weights[f"{name}.weight"]), _padded(weights[f"{name}.bias"]))
        tables = {side: weights[name] for side, name in tables_of(config).items()}
        sides = weights["sides"] if stacks_of(config).is_one_stack else None
        return cls(config=config, matrices=matrices, norms=norms, tables=tables, sides=sides)

    def weights(self) -> dict[str, Floats]:
        """All weights by the names of `heed.model.plan`; int8 ones are dequantized.

        Tied weights come under each of their names.
        """
        config, width = self.config, self.config.d_model
        embeddings = stacks_of(config).embeddings
        found = {name: self.matrices[role].floats() for role, name in embeddings.items()}
        rows: dict[str, list[Floats]] = {}
        for product in _products(config):
            matrix = self.matrices[product.role]
            rows.setdefault(f"{product.name}.weight", []).append(matrix.floats())
            if matrix.bias is not None:
                rows.setdefault(f"{product.name}.bias", []).append(matrix.bias[: matrix.n])
        found |= {name: np.concatenate(parts) for name, parts in rows.items()}
        for role, name in _norms(config):
            gain, bias = self.norms[role]
            found |= {f"{name}.weight": gain[:width], f"{name}.bias": bias[:width]}
        found |= {name: self.tables[side] for side, name in tables_of(config).items()}
        return found if self.sides is None else found | {"sides": self.sides}

    @property
    def stacks(self) -> Stacks:
        """The structure of the model's family."""
        return stacks_of(self.config)

    @property
    def is_quantized(self) -> bool:
        """Whether its matrices are int8."""
        return self.matrices["output"].is_quantized


def engine_config(
    config: AnyConfig,
    remedy: str = "It runs with torch: leave out --runtime engine and --dtype int8.",
) -> EngineConfig:
    """The config of a model that the engine computes.

    Args:
        config: of the model.
        remedy: the end of the error, which depends on the command.

    Raises:
        ConfigError: the engine cannot compute it.
    """
    if not family_of(config).runs_on_engine(config):
        raise ConfigError(
            "heed's engine and int8 weights are for Transformers, encoder–decoder or decoder-only, "
            "with softmax attention and every part of the paper's layer, but this model is: "
            f"{config.summary()}. {remedy}"
        )
    return cast(EngineConfig, config)


def roles(config: EngineConfig) -> list[str]:
    """The names of `Network.matrices` in the engine's order."""
    return [*stacks_of(config).embeddings, *(product.role for product in _products(config))]


def tables_of(config: EngineConfig) -> dict[str, str]:
    """Side → weight of its learned positions; empty if the model has none."""
    return dict(stacks_of(config).tables) if config.positions == "learned" else {}


def sizes(config: EngineConfig) -> dict[str, tuple[int, int, bool]]:
    """Outputs, inputs and whether it has a bias, for each of `Network.matrices`."""
    shapes = {weight.name: weight.shape for weight in plan(config)}
    tables = {
        role: (shapes[name][0], shapes[name][1], False)
        for role, name in stacks_of(config).embeddings.items()
    }
    products = {
        product.role: (product.rows.stop - product.rows.start, product.n_inputs, config.bias)
        for product in _products(config)
    }
    return {**tables, **products}


def tied_roles(config: EngineConfig) -> dict[str, str]:
    """For each matrix that is tied to an earlier one, the role of that one."""
    stored_as = ties(config)
    embeddings = stacks_of(config).embeddings
    firsts: dict[str, str] = {}
    found = {
        role: firsts.setdefault(stored_as.get(name, name), role)
        for role, name in embeddings.items()
    }
    return {role: first for role, first in found.items() if role != first}


def norm_roles(config: EngineConfig) -> list[str]:
    """The names of `Network.norms` in the engine's order."""
    return [role for role, _ in _norms(config)]


@dataclass(frozen=True, slots=True)
class _Product:
    """Rows of a weight that the engine multiplies at once.

    Attributes:
        role: their key in `Network.matrices`.
        name: the weight and its bias, without `.weight` and `.bias`.
        rows: the range of its rows.
        n_inputs: columns.
    """

    role: str
    name: str
    rows: slice
    n_inputs: int


def _products(config: EngineConfig) -> list[_Product]:
    """The products of every layer; those with source and with target tokens are separate."""
    products = []
    for weight in plan(config):
        if weight.role != "matrix":
            continue
        name = weight.name.removesuffix(".weight")
        stack, layer, sublayer = name.split(".", 2)
        start = 0
        for part, blocks in enumerate(_met_together(weight.blocks)):
            rows = slice(start, start + sum(block.n_rows for block in blocks))
            role = f"{stack}.{layer}.{ROLES[sublayer][part]}"
            products.append(_Product(role, name, rows, weight.shape[1]))
            start = rows.stop
    return products


def _met_together(blocks: Sequence[Block]) -> list[list[Block]]:
    grouped = itertools.groupby(blocks, key=lambda block: block.met_by)
    return [list(group) for _, group in grouped]


def _norms(config: EngineConfig) -> list[tuple[str, str]]:
    """Role and name of every LayerNorm: `decoder.0.cross` of `decoder.0.around_cross.norm`."""
    names = [weight.name for weight in plan(config) if weight.role == "norm"]
    return [
        (_norm_role(name.removesuffix(".weight")), name.removesuffix(".weight"))
        for name in names
        if name.endswith(".weight")
    ]


def _norm_role(name: str) -> str:
    if name.endswith("_norm"):  # after a stack
        return name.removesuffix("_norm")
    return name.removesuffix(".norm").replace("around_", "")


def _once(make: Callable[[Floats], Matrix], weights: list[Floats]) -> list[Matrix]:
    """Lay out each weight, tied ones once."""
    made: list[tuple[Floats, Matrix]] = []
    for weight in weights:
        equal = (matrix for other, matrix in made if other is weight or _is_equal(other, weight))
        made.append((weight, next(equal, None) or make(weight)))
    return [matrix for _, matrix in made]


def _is_equal(one: Floats, other: Floats) -> bool:
    return one.shape == other.shape and np.shares_memory(one, other)


def _padded(vector: Floats) -> Floats:
    padded = pad(vector)
    assert padded is not None
    return padded


def relative_errors(network: Network, weights: Mapping[str, Floats]) -> dict[str, float]:
    """The rounding error of each matrix: its root mean square over that of the weight."""
    exact = Network.of(network.config, weights)
    errors = {}
    for role, matrix in exact.matrices.items():
        weight = matrix.floats()
        error = network.matrices[role].floats() - weight
        size = float(np.square(weight, dtype=np.float64).mean()) or 1.0
        errors[role] = float(np.square(error, dtype=np.float64).mean() / size) ** 0.5
    return errors
