"""Weight matrices as the engine multiplies them: panels of sixteen columns, float32 or int8.

int8 is symmetric, with one scale for each output column.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Ints = NDArray[np.int8]
ShortIds = NDArray[np.int32]

COLUMNS = 16
"""Output columns of a panel."""
GROUP = 4
"""Bytes that an instruction multiplies and adds together."""
LEAST = np.float32(1e-30)
"""Rows without a larger number round to zeros: `MOST_INT` divided by it might be infinite."""
MOST_INT = 63
"""The largest rounded weight or input: AVX2 adds four products in 16 bits."""


@dataclass(frozen=True, kw_only=True)
class Matrix:
    """W and b of x W^T + b.

    Attributes:
        n: outputs.
        k: inputs.
        panels: int8 `(n_panels, n_groups, 16, 4)` or float32 `(n_panels, k, 16)`, padded with 0.
        scales: the value of one int8 unit in each column, float32 `(16 * n_panels,)`; None for
            float32.
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
        """The entries in the usual order, `(n, k)`; int8 without their scales."""
        if self.is_quantized:
            return self.panels.transpose(0, 2, 1, 3).reshape(-1, self.panels.shape[1] * GROUP)[
                : self.n, : self.k
            ]
        return self.panels.transpose(0, 2, 1).reshape(-1, self.k)[: self.n]

    def floats(self) -> Floats:
        """The matrix as float32, `(n, k)`."""
        dense = self.dense().astype(np.float32)
        return dense if self.scales is None else dense * self.scales[: self.n, None]


def float_matrix(weight: Floats, bias: Floats | None = None) -> Matrix:
    """Lay out `weight` `(n, k)` and `bias` `(n,)` without rounding."""
    return _laid_out(weight.astype(np.float32, copy=False), None, bias)


def int8_matrix(weight: Floats, bias: Floats | None = None) -> Matrix:
    """Round `weight` `(n, k)` to int8, each output separately; see `rounded`."""
    ints, scales = rounded(weight)
    return _laid_out(ints.astype(np.int8), scales, bias)


def rounded(rows: Floats) -> tuple[Floats, Floats]:
    """Round rows `(n, k)` to whole numbers, the largest of each row to ±63.

    Returns:
        The rounded numbers, still float32, `(n, k)`, and the value of 1 in each row, `(n,)`.

    Source: symmetric quantization per channel, Krishnamoorthi 2018, section 2.2.
    """
    most = np.abs(rows).max(axis=1, initial=0.0)
    safe = np.where(most > LEAST, most, np.float32(1.0))
    ints: Floats = np.rint(rows * (np.float32(MOST_INT) / safe)[:, None])
    return ints, (most / np.float32(MOST_INT)).astype(np.float32)


def take(matrix: Matrix, ids: ShortIds) -> Matrix:
    """Some output columns, in this order."""
    return _laid_out(*_columns(matrix, ids))


def with_mean(matrix: Matrix, ids: ShortIds, others: ShortIds) -> Matrix:
    """Some output columns, then the mean of some others."""
    few, scales, bias = _columns(matrix, ids)
    many, their_scales, their_bias = _columns(matrix, others)
    floats = many if their_scales is None else many * their_scales[:, None]
    # Not with @: its order of additions depends on the machine.
    mean = floats.sum(axis=0, keepdims=True, dtype=np.float32) / np.float32(max(len(others), 1))
    last = int8_matrix(mean) if matrix.is_quantized else float_matrix(mean)
    if scales is not None and last.scales is not None:
        scales = np.append(scales, last.scales[:1])
    if bias is not None and their_bias is not None:
        bias = np.append(bias, their_bias.mean() if len(others) else np.float32(0.0))
    return _laid_out(np.concatenate([few, last.dense()]), scales, bias)


def _columns(matrix: Matrix, ids: ShortIds) -> tuple[Floats | Ints, Floats | None, Floats | None]:
    """Numbers `(n_ids, k)`, scales and biases `(n_ids,)` of some output columns."""
    found = matrix.panels[ids // COLUMNS, :, ids % COLUMNS]
    return (
        found.reshape(len(ids), math.prod(found.shape[1:]))[:, : matrix.k],
        None if matrix.scales is None else matrix.scales[ids],
        None if matrix.bias is None else matrix.bias[ids],
    )


def _laid_out(dense: Floats | Ints, scales: Floats | None, bias: Floats | None = None) -> Matrix:
    """Lay out rounded entries `(n, k)` in the usual order, with the scale of each column."""
    n, k = dense.shape
    group = 1 if scales is None else GROUP
    n_panels, n_groups = -(-n // COLUMNS), -(-k // group)
    padded = np.zeros((n_panels * COLUMNS, n_groups * group), dense.dtype)
    padded[:n, :k] = dense
    panels = padded.reshape(n_panels, COLUMNS, n_groups, group).transpose(0, 2, 1, 3)
    if scales is None:
        panels = panels[..., 0]
    return Matrix(n=n, k=k, panels=np.ascontiguousarray(panels), scales=pad(scales), bias=pad(bias))


def pad(vector: Floats | None) -> Floats | None:
    """A vector padded with zeros to a multiple of 16."""
    if vector is None:
        return None
    padded = np.zeros(-(-len(vector) // COLUMNS) * COLUMNS, dtype=np.float32)
    padded[: len(vector)] = vector
    return padded
