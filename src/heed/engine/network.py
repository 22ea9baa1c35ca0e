"""A model's weights in the order in which the engine goes through them.

Not here: the arithmetic (`native.py`, `fallback.py`) or files (`packed.py`). Names of weights are
those of `heed.model`; `Network.of` is the one place where they are cut up and laid out.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from heed.engine.matrices import Floats, Matrix, float_matrix, int8_matrix, pad
from heed.model.config import ModelConfig

Norm = tuple[Floats, Floats]
"""Gain and bias, each `(d_model,)` padded to a multiple of 16."""


@dataclass(frozen=True, kw_only=True)
class Network:
    """All weights of a model.

    Attributes:
        config: the model's shape.
        matrices: by role: `embed_src`, `embed_tgt`, `output`; `encoder.0.` and `in` (queries,
            keys and values), `out`, `expand`, `contract`; `decoder.0.` and these and `query`,
            `memory` (keys and values of the source), `cross_out`. Equal ones are one object.
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
        """Lay out weights that come by their names in `Transformer.state_dict`."""
        make = int8_matrix if is_quantized else float_matrix
        embeddings = ("embed_src.tokens.weight", "embed_tgt.tokens.weight", "output.weight")
        matrices = dict(
            zip(
                ("embed_src", "embed_tgt", "output"),
                _once(make, [weights[name] for name in embeddings]),
                strict=True,
            )
        )
        norms: dict[str, Norm] = {}
        for role, name, parts in _products(config):
            bias = weights.get(f"{name}.bias")
            matrices[role] = make(
                weights[f"{name}.weight"][parts], None if bias is None else bias[parts]
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


def roles(config: ModelConfig) -> list[str]:
    """The names of `Network.matrices` in the engine's order."""
    return ["embed_src", "embed_tgt", "output", *(role for role, _, _ in _products(config))]


def sizes(config: ModelConfig) -> dict[str, tuple[int, int, bool]]:
    """Outputs, inputs and whether there is a bias, of each of `Network.matrices`."""
    d_model, keys = config.d_model, config.n_heads * config.key_width
    values = config.n_heads * config.value_width
    inner = config.d_ff * (2 if config.activation == "swiglu" else 1)
    by_name = {
        "in": (2 * keys + values, d_model),
        "out": (d_model, values),
        "query": (keys, d_model),
        "memory": (keys + values, d_model),
        "cross_out": (d_model, values),
        "expand": (inner, d_model),
        "contract": (d_model, config.d_ff),
    }
    found = {
        "embed_src": (config.src_vocab_size, d_model, False),
        "embed_tgt": (config.tgt_vocab_size, d_model, False),
        "output": (config.tgt_vocab_size, d_model, False),
    }
    for role, _, _ in _products(config):
        found[role] = (*by_name[role.rpartition(".")[2]], config.bias)
    return found


def norm_roles(config: ModelConfig) -> list[str]:
    """The names of `Network.norms` in the engine's order."""
    return [role for role, _ in _norms(config)]


def _products(config: ModelConfig) -> list[tuple[str, str, slice]]:
    """Role, name of the weight, and which of its rows, of every layer's matrices."""
    whole, width = slice(None), config.n_heads * config.key_width
    self_attention = [("in", "self_attention.project_in", whole)]
    self_attention += [("out", "self_attention.project_out", whole)]
    cross_attention = [
        ("query", "cross_attention.project_in", slice(width)),
        ("memory", "cross_attention.project_in", slice(width, None)),
        ("cross_out", "cross_attention.project_out", whole),
    ]
    feed_forward = [("expand", "feed_forward.expand", whole)]
    feed_forward += [("contract", "feed_forward.contract", whole)]
    stacks = {
        "encoder": (config.n_encoder_layers, [*self_attention, *feed_forward]),
        "decoder": (config.n_decoder_layers, [*self_attention, *cross_attention, *feed_forward]),
    }
    return [
        (f"{stack}.{layer}.{role}", f"{stack}.{layer}.{name}", parts)
        for stack, (depth, products) in stacks.items()
        for layer in range(depth)
        for role, name, parts in products
    ]


def _norms(config: ModelConfig) -> list[tuple[str, str]]:
    """Role and name of every LayerNorm."""
    stacks = {
        "encoder": (config.n_encoder_layers, ("self", "feed_forward")),
        "decoder": (config.n_decoder_layers, ("self", "cross", "feed_forward")),
    }
    found = [
        (f"{stack}.{layer}.{role}", f"{stack}.{layer}.around_{role}.norm")
        for stack, (depth, norms) in stacks.items()
        for layer in range(depth)
        for role in norms
    ]
    if config.norm == "pre":
        found += [(stack, f"{stack}_norm") for stack in stacks]
    return found


def _once(make: Callable[[Floats], Matrix], weights: list[Floats]) -> list[Matrix]:
    """Lay out each weight; tied ones, which are equal, once."""
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
    """How far each matrix is from its weight: root mean square of the error over the weight's."""
    exact = Network.of(network.config, weights)
    errors = {}
    for role, matrix in exact.matrices.items():
        weight = matrix.floats()
        error = network.matrices[role].floats() - weight
        size = float(np.square(weight, dtype=np.float64).mean()) or 1.0
        errors[role] = float(np.square(error, dtype=np.float64).mean() / size) ** 0.5
    return errors
