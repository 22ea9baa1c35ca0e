"""Rotary positions in two passes over queries or keys in training, instead of six each way."""

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class _Rotation(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
        ctx.save_for_backward(cosines, sines)
        return _rotated(x, cosines, sines, 1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        cosines, sines = ctx.saved_tensors
        # A rotation is orthogonal: its transpose rotates by the negative angles.
        return _rotated(grad, cosines, sines, -1), None, None


def _rotated(x: Tensor, cosines: Tensor, sines: Tensor, sign: int) -> Tensor:
    """x cos + sign (-second, first) sin, for heads that are adjacent in memory."""
    _, n_heads, _, width = x.shape
    # All heads of a position are one row: torch needs long rows to be fast.
    rows = x.transpose(1, 2)
    rotated = rows.flatten(2) * cosines.repeat(1, n_heads)
    halves = rotated.view(*rotated.shape[:2], n_heads, 2, width // 2)
    first, second = rows.chunk(2, dim=-1)
    by = sines[:, None, : width // 2]
    halves[:, :, :, 0].addcmul_(second, by, value=-sign)
    halves[:, :, :, 1].addcmul_(first, by, value=sign)
    return rotated.view(*rotated.shape[:2], n_heads, width).transpose(1, 2)


def rotate_fused(x: Tensor, cosines: Tensor, sines: Tensor) -> Tensor:
    """As `positions.rotate`.

    Args:
        x: `(batch, n_heads, length, d_k)`.
        cosines: `(length, d_k)`; both halves are the same.
        sines: `(length, d_k)`.

    Returns:
        The same shape, `(batch, n_heads, length, d_k)`.
    """
    rotated: Tensor = _Rotation.apply(x, cosines, sines)  # type: ignore[no-untyped-call]
    return rotated


def can_fuse(x: Tensor) -> bool:
    """Whether `rotate_fused` applies: in training on a CPU, where passes over memory are slow."""
    return x.requires_grad and x.device.type == "cpu" and torch.is_grad_enabled()
