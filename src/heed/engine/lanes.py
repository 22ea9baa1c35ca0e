"""The arithmetic of `engine/lanes.h` and `engine/kernels.inc` in NumPy: sixteen columns at a time.

The same operations in the same order give the same bits.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heed.engine.matrices import COLUMNS, Floats, Matrix, rounded

_ONE, _HALF = np.float32(1.0), np.float32(0.5)


def lane_sum(x: Floats) -> Floats:
    """Sum over the last axis, a multiple of 16, in the engine's order."""
    lanes = np.zeros((*x.shape[:-1], COLUMNS), np.float32)
    for start in range(0, x.shape[-1], COLUMNS):
        lanes += x[..., start : start + COLUMNS]
    for half in (8, 4, 2, 1):
        lanes = lanes[..., :half] + lanes[..., half : 2 * half]
    total: Floats = lanes[..., 0]
    return total


def to_bfloat16(x: Floats) -> Floats:
    """Rounded to bfloat16, with eight significant bits (half to even), but still float32."""
    bits = np.ascontiguousarray(x).view(np.uint32)
    nearest = bits + (np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1)))
    result: Floats = (nearest & np.uint32(0xFFFF0000)).view(np.float32)
    return result


def exponential(x: Floats) -> Floats:
    """e^x, x up to 88, as the engine computes it: Cody and Waite's reduction, then a polynomial."""
    x = np.maximum(x, np.float32(-87.0))
    n = np.rint(x * np.float32(1.44269504))
    r = x - n * np.float32(0.693359375) - n * np.float32(-2.12194440e-4)
    square = r * r
    low = r * np.float32(1.6667114e-1) + np.float32(4.999923e-1)
    high = r * np.float32(8.312521e-3) + np.float32(4.1890156e-2)
    p = (high * square + low) * square + (r + _ONE)
    result: Floats = np.ldexp(p, n.astype(np.int32))
    return result


def relu(x: Floats) -> Floats:
    """max(x, 0)."""
    result: Floats = np.maximum(x, np.float32(0.0))
    return result


def gelu(x: Floats) -> Floats:
    """x Φ(x), with erf by Abramowitz and Stegun, 7.1.26."""
    z = np.abs(x) * np.float32(0.70710678)
    t = _ONE / (_ONE + np.float32(0.3275911) * z)
    p = np.full_like(t, np.float32(1.061405429))
    for coefficient in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        p = p * t + np.float32(coefficient)
    erf = _ONE - p * t * exponential(np.float32(0.0) - z * z)
    result: Floats = _HALF * x * (_ONE + np.copysign(erf, x))
    return result


def swiglu(x: Floats) -> Floats:
    """Swish of the first half times the second."""
    gate, inner = np.split(x, 2, axis=-1)
    silu: Floats = gate / _one_and_power(gate)
    return silu * inner


def sigmoid(x: Floats) -> Floats:
    """1 / (1 + e^-x)."""
    result: Floats = _ONE / _one_and_power(x)
    return result


def _one_and_power(x: Floats) -> Floats:
    """1 + e^-x."""
    power = np.minimum(np.float32(0.0) - x, np.float32(88.0))
    result: Floats = _ONE + exponential(power)
    return result


ACTIVATIONS: dict[str, Callable[[Floats], Floats]] = {"relu": relu, "gelu": gelu, "swiglu": swiglu}


def normalize(x: Floats, gain: Floats, bias: Floats, eps: float) -> Floats:
    """LayerNorm of rows `(rows, d_model)`."""
    width = x.shape[-1]
    mean = lane_sum(_padded(x)) / np.float32(width)
    deviation = x - mean[:, None]
    squares = _padded(deviation)
    variance = lane_sum(squares * squares) / np.float32(width)
    scale = _ONE / np.sqrt(variance + np.float32(eps))
    result: Floats = deviation * scale[:, None] * gain[:width] + bias[:width]
    return result


def attend(query: Floats, key: Floats, value: Floats) -> tuple[Floats, Floats]:
    """The context and the weights of some queries.

    Args:
        query: `(rows, n_heads, d_k)`.
        key: `(rows or 1, n_keys, n_heads, d_k)`.
        value: `(rows or 1, n_keys, n_heads, d_v)`.

    Returns:
        `(rows, n_heads * d_v)` and `(rows, n_heads, n_keys)`.
    """
    n_keys, d_k = key.shape[1], key.shape[3]
    dots = lane_sum(_padded(query[:, None] * key)).transpose(0, 2, 1)
    scores = dots * (_ONE / np.sqrt(np.float32(d_k)))
    weights = exponential(scores - scores.max(axis=-1, keepdims=True))
    weights = weights * (_ONE / lane_sum(_padded(weights)))[:, :, None]
    context = np.zeros((*query.shape[:2], value.shape[3]), np.float32)
    for t in range(n_keys):
        context += weights[:, :, t, None] * value[:, t]
    return context.reshape(len(query), -1), weights


def multiply(x: Floats, matrix: Matrix, dense: NDArray[Any]) -> Floats:
    """x W^T + b of rows `(rows, k)`; int8 rounds each row by its largest magnitude.

    Args:
        x: `(rows, k)`.
        matrix: scales and bias.
        dense: its entries, `(n, k)`: float32, or the integers as float64.
    """
    if matrix.scales is None:
        product: Floats = x @ dense.T
    else:
        ints, scales = rounded(x)
        # In float64 each of these sums is exact: below 2^53.
        sums = ints.astype(np.float64) @ dense.T
        product = sums.astype(np.float32) * (scales[:, None] * matrix.scales[: matrix.n])
    if matrix.bias is not None:
        product += matrix.bias[: matrix.n]
    return product


def log_softmax(x: Floats) -> Floats:
    """Log-probs of rows of logits."""
    most = x.max(axis=1, keepdims=True)
    padded = _padded(x, fill=-np.inf)
    total = lane_sum(exponential(padded - most))[:, None]
    log_probs: Floats = x - (most + np.log(total.astype(np.float64)).astype(np.float32))
    return log_probs


def _padded(x: Floats, fill: float = 0.0) -> Floats:
    """Pad the last axis with zeros to a multiple of 16."""
    missing = -x.shape[-1] % COLUMNS
    return np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, missing)], constant_values=fill)
