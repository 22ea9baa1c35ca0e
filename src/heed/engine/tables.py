"""Positions in NumPy: what `heed.model.positions` adds to embeddings or turns queries by.

Not here: learned tables, which are weights. Tests compare every number with the model's own.
"""

import math

import numpy as np
from numpy.typing import NDArray

from heed.engine.matrices import COLUMNS, Floats
from heed.engine.network import Network
from heed.errors import DataError

_FIRST = 256


class PositionTables:
    """The tables of one side, as long as needed so far.

    Args:
        network: whose positions they are.
        side: `src` or `tgt`.

    Attributes:
        n: positions there are.
        added: to embeddings, `(n, d_model padded to a multiple of 16)`, or None.
        cosines: of rotary positions, `(n, d_k)`, or None; `sines` likewise.
    """

    def __init__(self, network: Network, side: str) -> None:
        self._config = network.config
        self._learned = network.tables.get(side)
        self.n = 0
        self.added: Floats | None = None
        self.cosines: Floats | None = None
        self.sines: Floats | None = None

    def grow(self, n: int) -> bool:
        """Make room for `n` positions; True if the tables are new.

        Raises:
            DataError: the model learned fewer.
        """
        if n <= self.n or self._config.positions == "none":
            return False
        if self._learned is not None:
            if n > len(self._learned):
                raise DataError(
                    f"a sequence has {n} positions, but this model learned only "
                    f"{len(self._learned)} (model.max_positions). Split the text, or use "
                    "sinusoidal or rotary positions."
                )
            self.n, self.added = len(self._learned), _padded(self._learned)
            return True
        self.n = max(_FIRST, 2 * n)
        if self._config.positions == "rotary":
            angles = np.tile(_angles(self.n, self._config.key_width), 2)
            self.cosines = np.cos(angles).astype(np.float32)
            self.sines = np.sin(angles).astype(np.float32)
            return True
        angles = _angles(self.n, self._config.d_model)
        waves = [np.sin(angles), np.cos(angles)]
        is_halved = self._config.positions == "sinusoidal_halves"
        table = np.concatenate(waves, axis=1) if is_halved else np.stack(waves, axis=2)
        self.added = _padded(table.reshape(self.n, -1).astype(np.float32))
        return True


def _angles(n_positions: int, width: int) -> NDArray[np.float64]:
    pairs = np.arange(0, width, 2, dtype=np.float64)
    waves = np.exp(pairs * (-math.log(10000.0) / width))
    return np.outer(np.arange(n_positions, dtype=np.float64), waves)


def _padded(table: Floats) -> Floats:
    rows, width = table.shape
    padded = np.zeros((rows, -(-width // COLUMNS) * COLUMNS), dtype=np.float32)
    padded[:, :width] = table
    return padded
