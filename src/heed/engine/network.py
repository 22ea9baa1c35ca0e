"""A model's weights in the order in which the engine uses them.

Names of weights are those of `heed.model`; only `Network.of` splits them and lays them out.
"""

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self, cast

import numpy as np

from heed.engine.matrices import Floats, Matrix, float_matrix, int8_matrix, pad
from heed.errors import ConfigError
from heed.model.config import AnyConfig, ModelConfig
from heed.model.families import family_of, plan, ties
from heed.model.plan import Block

EMBEDDINGS = {
    "embed_src.tokens.weight": "embed_src",
    "embed_tgt.tokens.weight": "embed_tgt",
    "output.weight": "output",
}
"""Weight → its role in the engine, in the engine's order."""

ROLES = {
    "self_attention.project_in": ("in",),
    "self_attention.project_out": ("out",),
    "cross_attention.project_in": ("query", "memory"),
    "cross_attention.project_out": ("cross_out",),
    "feed_forward.expand": ("expand",),
    "feed_forward.contract": ("contract",),
}
"""Matrix of a layer → the roles of its rows: those multiplied with target tokens, and with source
tokens."""

Norm = tuple[Floats, Floats]
"""Gain and bias, each `(d_model,)` padded to a multiple of 16."""


@dataclass(frozen=True, kw_only=True)
class Network:
    """All weights of a model.

    Attributes:
        config: the model's shape.
        matrices: by role: `embed_src`, `embed_tgt`, `output`; `encoder.0.` and `in` (queries,
            keys and values), `out`, `expand`, `contract`; `decoder.0.` and these and `query`,
            `memory` (keys and values of the source), `cross_out`. Tied ones are one object.
        norms: by role: `encoder.0.self`, `encoder.0.feed_forward`, `decoder.0.cross`, …; with
            pre-norm also `encoder` and `decoder`.
        tables: learned positions of `src` and `tgt`, `(max_positions, d_model)`; or none.
    """

    config: ModelConfig
    matrices: dict[str, Matrix]
    norms: dict[str, Norm]
    tables: dict[str, Floats]

    @classmethod
    def of(
        cls, config: ModelConfig, weights: Mapping[str, Floats], *, is_quantized: bool = False
    ) -> Self:
        """Lay out weights that come by the names of `heed.model.plan`."""
        make = int8_matrix if is_quantized else float_matrix
        tables_made = _once(make, [weights[name] for name in EMBEDDINGS])
        matrices = dict(zip(EMBEDDINGS.values(), tables_made, strict=True))
        norms: dict[str, Norm] = {}
        for product in _products(config):
            bias = weights.get(f"{product.name}.bias")
            matrices[product.role] = make(
                weights[f"{product.name}.weight"][product.rows],
                None if bias is None else bias[product.rows],
            )
        for role, name in _norms(config):
            norms[role] = (_padded(weights[f"{name}.weight"]), _padded(weights[f"{name}.bias"]))
        tables = {
            side: weights[f"embed_{side}.positions.table"]
            for side in ("src", "tgt")
            if config.positions == "learned"
        }
        return cls(config=config, matrices=matrices, norms=norms, tables=tables)

    @property
    def is_quantized(self) -> bool:
        """Whether its matrices are int8."""
        return self.matrices["output"].is_quantized


def engine_config(config: AnyConfig) -> ModelConfig:
    """The config of a model that the engine computes.

    Raises:
        ConfigError: the engine does not compute it.
    """
    if not family_of(config).runs_on_engine(config):
        raise ConfigError(
            f"heed's engine and int8 weights are for the whole Transformer with softmax attention, "
            f"but this model is: {config.summary()}. It runs with torch: --runtime torch, or auto."
        )
    return cast(ModelConfig, config)


def roles(config: ModelConfig) -> list[str]:
    """The names of `Network.matrices` in the engine's order."""
    return [*EMBEDDINGS.values(), *(product.role for product in _products(config))]


def sizes(config: ModelConfig) -> dict[str, tuple[int, int, bool]]:
    """Outputs, inputs and whether it has a bias, for each of `Network.matrices`."""
    tables = {
        EMBEDDINGS[weight.name]: (weight.shape[0], weight.shape[1], False)
        for weight in plan(config)
        if weight.name in EMBEDDINGS
    }
    products = {
        product.role: (product.rows.stop - product.rows.start, product.n_inputs, config.bias)
        for product in _products(config)
    }
    return {**tables, **products}


def tied_roles(config: ModelConfig) -> dict[str, str]:
    """For each matrix that is tied to an earlier one, the role of that one."""
    return {EMBEDDINGS[name]: EMBEDDINGS[first] for name, first in ties(config).items()}


def norm_roles(config: ModelConfig) -> list[str]:
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


def _products(config: ModelConfig) -> list[_Product]:
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


def _norms(config: ModelConfig) -> list[tuple[str, str]]:
    """Role and name of every LayerNorm: `decoder.0.cross` of `decoder.0.around_cross.norm`."""
    names = [weight.name for weight in plan(config) if weight.role == "norm"]
    return [
        (_norm_role(name.removesuffix(".weight")), name.removesuffix(".weight"))
        for name in names
        if name.endswith(".weight")
    ]


def _norm_role(name: str) -> str:
    if name.endswith("_norm"):  # behind a stack
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
