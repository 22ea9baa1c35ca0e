"""Weight matrices as the engine multiplies them: panels of sixteen columns, float32 or int8.

Not here: which matrices a model has (`network.py`), nor the products themselves (`engine/*.cpp`,
`fallback.py`). int8 is symmetric, with one scale for each output column.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ints = NDArray[np.int8]

COLUMNS = 16
"""Output columns of a panel."""
GROUP = 4
"""Inputs that an instruction takes together when they are bytes."""


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """W and b of x W^T + b.

    Attributes:
        n: outputs.
        k: inputs.
        panels: int8 `(n_panels, n_groups, 16, 4)` or float32 `(n_panels, k, 16)`, padded with 0.
        scales: what an int8 of each column counts, float32 `(16 * n_panels,)`; None for float32.
        bias: float32 `(16 * n_panels,)`, or None.
    """

    n: int
    k: int
    panels: Floats | Ints
    scales: Floats | None = None
    bias: Floats | None = None

    @property
    def is_quantized(self) -> bool:
        """Whether it holds int8."""
        return self.scales is not None

    def dense(self) -> Floats | Ints:
        """The numbers in their usual order, `(n, k)`; int8 without their scales."""
        if self.is_quantized:
            return self.panels.transpose(0, 2, 1, 3).reshape(-1, self.panels.shape[1] * GROUP)[
                : self.n, : self.k
            ]
        return self.panels.transpose(0, 2, 1).reshape(-1, self.k)[: self.n]

    def floats(self) -> Floats:
        """What the matrix means, `(n, k)`."""
        dense = self.dense().astype(np.float32)
        return dense if self.scales is None else dense * self.scales[: self.n, None]


def float_matrix(weight: Floats, bias: Floats | None = None) -> Matrix:
    """Lay out `weight` `(n, k)` and `bias` `(n,)` as they are."""
    n, k = weight.shape
    padded = np.zeros((-(-n // COLUMNS) * COLUMNS, k), dtype=np.float32)
    padded[:n] = weight
    panels = np.ascontiguousarray(padded.reshape(-1, COLUMNS, k).transpose(0, 2, 1))
    return Matrix(n=n, k=k, panels=panels, bias=pad(bias))


def int8_matrix(weight: Floats, bias: Floats | None = None) -> Matrix:
    """Round `weight` `(n, k)` to int8: each output's largest magnitude becomes ±127.

    Source: symmetric quantization per channel, Krishnamoorthi 2018, section 2.2.
    """
    n, k = weight.shape
    most = np.abs(weight).max(axis=1, initial=0.0)
    scales = (most / np.float32(127.0)).astype(np.float32)
    safe = np.where(most > 0, most, np.float32(1.0))
    ints = np.rint(weight * (np.float32(127.0) / safe)[:, None]).astype(np.int8)
    n_panels, n_groups = -(-n // COLUMNS), -(-k // GROUP)
    padded = np.zeros((n_panels * COLUMNS, n_groups * GROUP), dtype=np.int8)
    padded[:n, :k] = ints
    panels = padded.reshape(n_panels, COLUMNS, n_groups, GROUP).transpose(0, 2, 1, 3)
    return Matrix(n=n, k=k, panels=np.ascontiguousarray(panels), scales=pad(scales), bias=pad(bias))


def pad(vector: Floats | None) -> Floats | None:
    """A vector with zeros up to a multiple of 16."""
    if vector is None:
        return None
    padded = np.zeros(-(-len(vector) // COLUMNS) * COLUMNS, dtype=np.float32)
    padded[: len(vector)] = vector
    return padded
