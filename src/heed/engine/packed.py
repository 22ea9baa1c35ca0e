"""An int8 network as named arrays in the layout that the engine multiplies, without conversion.

Shapes and types follow from the model's config, so a file is checked before it is used.
"""

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heed.bundle.bundle import Bundle, save_int8
from heed.engine.matrices import COLUMNS, GROUP, MOST_INT, Matrix
from heed.engine.network import (
    EngineConfig,
    Network,
    engine_config,
    norm_roles,
    roles,
    sizes,
    stacks_of,
    tables_of,
    tied_roles,
)
from heed.errors import FormatError

Arrays = dict[str, NDArray[Any]]


def save_rounded(bundle: Bundle, target: Path | None = None) -> tuple[Path, Network]:
    """Round the weights of a bundle to int8 and save them; see `heed.bundle.bundle.save_int8`.

    Returns:
        The folder, and the network that is in it now.

    Raises:
        ConfigError: the engine cannot compute such a model.
    """
    config = engine_config(bundle.config, "It runs with torch, in float32: use it as it is.")
    network = Network.of(config, bundle.weights, is_quantized=True)
    return save_int8(bundle, to_arrays(network), target), network


def to_arrays(network: Network) -> Arrays:
    """All arrays of an int8 network by name; a tied matrix under its first role."""
    arrays: Arrays = {}
    for role in _stored(network.config):
        matrix = network.matrices[role]
        assert matrix.scales is not None
        arrays |= {f"{role}.ints": matrix.panels, f"{role}.scales": matrix.scales}
        if matrix.bias is not None:
            arrays[f"{role}.bias"] = matrix.bias
    for role, (gain, bias) in network.norms.items():
        arrays |= {f"{role}.norm.gain": gain, f"{role}.norm.bias": bias}
    if network.sides is not None:
        arrays["sides"] = network.sides
    stored = set(_stored_tables(network.config).values())
    return arrays | {f"{side}.positions": network.tables[side] for side in sorted(stored)}


def expected(config: EngineConfig) -> dict[str, tuple[np.dtype[Any], tuple[int, ...]]]:
    """Type and shape of every array that such a model must have."""
    ints, floats = np.dtype(np.int8), np.dtype(np.float32)
    found: dict[str, tuple[np.dtype[Any], tuple[int, ...]]] = {}
    by_role = sizes(config)
    for role in _stored(config):
        n, k, has_bias = by_role[role]
        n_panels, n_groups = -(-n // COLUMNS), -(-k // GROUP)
        found[f"{role}.ints"] = ints, (n_panels, n_groups, COLUMNS, GROUP)
        found[f"{role}.scales"] = floats, (n_panels * COLUMNS,)
        if has_bias:
            found[f"{role}.bias"] = floats, (n_panels * COLUMNS,)
    width = -(-config.d_model // COLUMNS) * COLUMNS
    for role in norm_roles(config):
        found |= {f"{role}.norm.{part}": (floats, (width,)) for part in ("gain", "bias")}
    if stacks_of(config).is_one_stack:
        found["sides"] = floats, (2, config.d_model)
    table = (config.max_positions, config.d_model)
    return found | {f"{s}.positions": (floats, table) for s in _stored_tables(config).values()}


def from_arrays(
    config: EngineConfig, arrays: Mapping[str, NDArray[Any]], where: str | PathLike[str]
) -> Network:
    """The network of arrays as `to_arrays` gives them; they are not copied.

    Args:
        config: the model's shape.
        arrays: finite numbers.
        where: the name of their file in errors.

    Raises:
        FormatError: an array is missing, unknown, or of another type or shape, or an int8 is larger
            than the engine's sums can hold.
    """
    wanted = expected(config)
    for name in wanted.keys() ^ arrays.keys():
        what = "lacks" if name in wanted else "holds"
        raise FormatError(f"{where} {what} {name}; the model's config does not match.")
    for name, (dtype, shape) in wanted.items():
        array = arrays[name]
        if array.dtype != dtype or array.shape != shape:
            raise FormatError(
                f"{where}: {name} must be {dtype} of the shape {list(shape)} by the model's "
                f"config, but is {array.dtype} {list(array.shape)}."
            )
        if dtype == np.int8 and max(int(array.max()), -int(array.min())) > MOST_INT:
            raise FormatError(
                f"{where}: {name} has numbers beyond ±{MOST_INT}; older versions of heed rounded "
                "to ±127. Round the float32 model again: heed quantize."
            )
    by_role = sizes(config)
    stored = {
        role: Matrix(
            n=by_role[role][0],
            k=by_role[role][1],
            panels=arrays[f"{role}.ints"],
            scales=arrays[f"{role}.scales"],
            bias=arrays.get(f"{role}.bias"),
        )
        for role in _stored(config)
    }
    firsts = tied_roles(config)
    return Network(
        config=config,
        matrices={role: stored[firsts.get(role, role)] for role in roles(config)},
        norms={
            role: (arrays[f"{role}.norm.gain"], arrays[f"{role}.norm.bias"])
            for role in norm_roles(config)
        },
        tables={
            side: arrays[f"{stored}.positions"] for side, stored in _stored_tables(config).items()
        },
        sides=arrays.get("sides"),
    )


def _stored(config: EngineConfig) -> list[str]:
    tied = tied_roles(config)
    return [role for role in roles(config) if role not in tied]


def _stored_tables(config: EngineConfig) -> dict[str, str]:
    """For each side with learned positions, the first side that has the same table."""
    firsts: dict[str, str] = {}
    return {side: firsts.setdefault(name, side) for side, name in tables_of(config).items()}
