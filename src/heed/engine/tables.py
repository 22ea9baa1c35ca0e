"""Positions in NumPy: the tables and rotations of `heed.model.positions`.

Learned tables are weights of the network. Tests compare every number with the model's own.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heed.engine.matrices import COLUMNS, Floats
from heed.engine.network import Network
from heed.errors import DataError

SIDES = ("src", "tgt")
"""Of the rows of `Network.sides`."""
_FIRST = 256


@dataclass(frozen=True, kw_only=True)
class PositionRows:
    """Tables of the first `n` positions; those that the model does not have are None.

    Attributes:
        n: number of positions.
        added: added to embeddings, including the vector of a side that has one,
            `(n, d_model padded to a multiple of 16)`.
        cosines: of rotary positions, `(n, d_k)`; `sines` likewise.
    """

    n: int = 0
    added: Floats | None = None
    cosines: Floats | None = None
    sines: Floats | None = None


class PositionTables:
    """The tables of one side, grown as needed.

    Tables never change once returned, because other threads may still use them.

    Args:
        network: the model.
        side: `src` or `tgt`.
    """

    def __init__(self, network: Network, side: str) -> None:
        self._config = network.config
        self._learned = network.tables.get(side)
        self._side = None if network.sides is None else network.sides[SIDES.index(side)]
        self._positions = PositionRows()

    def first(self, n: int) -> PositionRows:
        """At least `n` positions.

        Raises:
            DataError: the model learned fewer.
        """
        found = self._positions
        if n > found.n and (self._config.positions != "none" or self._side is not None):
            found = self._positions = self._made(n)
        return found

    def _made(self, n: int) -> PositionRows:
        if self._learned is not None:
            if n > len(self._learned):
                raise DataError(
                    f"a sequence has {n} positions, but this model learned only "
                    f"{len(self._learned)} (model.max_positions). Split the text, or use "
                    "sinusoidal or rotary positions."
                )
            return PositionRows(n=len(self._learned), added=self._added(self._learned))
        n = max(_FIRST, 2 * n)
        if self._config.positions in ("rotary", "none"):
            nothing = np.zeros((n, self._config.d_model), np.float32)
            added = None if self._side is None else self._added(nothing)
            if self._config.positions == "none":
                return PositionRows(n=n, added=added)
            angles = np.tile(wave_angles(n, self._config.key_width), 2)
            cosines, sines = (turn(angles).astype(np.float32) for turn in (np.cos, np.sin))
            return PositionRows(n=n, added=added, cosines=cosines, sines=sines)
        is_halved = self._config.positions == "sinusoidal_halves"
        table = wave_table(n, self._config.d_model, is_halved=is_halved)
        return PositionRows(n=n, added=self._added(table))

    def _added(self, table: Floats) -> Floats:
        """Rows `(n, d_model)` with the vector of the side, padded."""
        return _padded(table if self._side is None else table + self._side)


def tables_of(network: Network) -> dict[str, PositionTables]:
    """The tables of `src` and `tgt`: the same object, unless a part of them is learned."""
    src = PositionTables(network, "src")
    is_learned = bool(network.tables) or network.sides is not None
    return {"src": src, "tgt": PositionTables(network, "tgt") if is_learned else src}


def wave_table(n_positions: int, width: int, *, is_halved: bool = False) -> Floats:
    """Sine and cosine of each angle side by side, or all sines before all cosines.

    Returns:
        `(n_positions, width)`.

    Source: Vaswani et al. 2017, section 3.5.
    """
    angles = wave_angles(n_positions, width)
    waves = [np.sin(angles), np.cos(angles)]
    table = np.concatenate(waves, axis=1) if is_halved else np.stack(waves, axis=2)
    return table.reshape(n_positions, -1).astype(np.float32)


def wave_angles(n_positions: int, width: int) -> NDArray[np.float64]:
    """pos / 10000^(2i/width) for each position and pair of columns, `(n_positions, width / 2)`."""
    pairs = np.arange(0, width, 2, dtype=np.float64)
    waves = np.exp(pairs * (-math.log(10000.0) / width))
    return np.outer(np.arange(n_positions, dtype=np.float64), waves)


def _padded(table: Floats) -> Floats:
    rows, width = table.shape
    padded = np.zeros((rows, -(-width // COLUMNS) * COLUMNS), dtype=np.float32)
    padded[:, :width] = table
    return padded
