"""Float32 matrix products for training: faster on AMD processors with AVX-512, and in bfloat16.

torch multiplies float32 matrices with MKL, which uses only AVX2 on AMD processors. oneDNN, the
other library inside torch, uses AVX-512 and is as exact. If the processor multiplies bfloat16
several times as fast, factors are rounded to it, but only inside `rounded_products`:
by `heed.model.fast.tiles`, or else by oneDNN if the processor has AMX.
oneDNN compiles code for every shape and keeps it, a quarter of a megabyte each, so `linear` cuts
the rows of a batch into pieces of a few sizes. Attention stays with MKL, because oneDNN is slower
for many small products. On all other processors this is `F.linear`. See decisions 0013 and 0014.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from heed.machine.cpu import has_bfloat16_tiles, has_faster_onednn
from heed.model.fast import tiles

SMALLEST = 64
"""Rows of the smallest piece; smaller products are not faster."""

_may_round: ContextVar[bool] = ContextVar("_may_round", default=False)


@contextmanager
def rounded_products(*, is_on: bool = True) -> Iterator[None]:
    """Let products, also those of gradients, round their factors to bfloat16 inside the block.

    Sums and results stay float32. On a GPU factors are rounded to TF32, which has three bits more.
    Only for some processors (`machine.cpu.has_bfloat16_products`) and GPUs.

    Args:
        is_on: False = as if there were no block.
    """
    token = _may_round.set(is_on or _may_round.get())
    of_gpu: Any = torch.backends.cuda.matmul
    before = getattr(of_gpu, "fp32_precision", None)  # since torch 2.9
    if before is not None and is_on:
        of_gpu.fp32_precision = "tf32"
    try:
        yield
    finally:
        _may_round.reset(token)
        if before is not None:
            of_gpu.fp32_precision = before


def is_rounding() -> bool:
    """Whether products may round their factors here: see `rounded_products`."""
    return _may_round.get()


def _uses_onednn() -> bool:
    return has_faster_onednn() or (is_rounding() and has_bfloat16_tiles())


@contextmanager
def faster_products(n_rows: int = 0) -> Iterator[None]:
    """Let oneDNN compute the float32 products inside the block, where that is faster.

    Args:
        n_rows: rows of these products that differ from batch to batch. MKL computes them unless
            they are a multiple of `SMALLEST`, so that oneDNN compiles few shapes.
    """
    if n_rows % SMALLEST or not _uses_onednn():
        yield
        return
    setting: Any = torch.backends.mkldnn.matmul  # type: ignore[attr-defined]
    # "bf16" only permits bfloat16: without AMX oneDNN computes in float32. torch has no other
    # switch from MKL to oneDNN.
    before, setting.fp32_precision = setting.fp32_precision, "bf16"
    try:
        yield
    finally:
        setting.fp32_precision = before


def pieces(n_rows: int) -> Iterator[slice]:
    """Cut rows into pieces of 2^k rows, the longest first, and a rest of fewer than `SMALLEST`."""
    end = 0
    while (left := n_rows - end) > 0:
        start, end = end, end + (left if left < SMALLEST else 1 << (left.bit_length() - 1))
        yield slice(start, end)


def _in_pieces(n_rows: int, multiply: Callable[[slice], object]) -> None:
    """Call `multiply` for each piece of rows. The switch is slow, so it is set only twice."""
    with faster_products():
        for rows in pieces(n_rows - n_rows % SMALLEST):
            multiply(rows)
    if rest := n_rows % SMALLEST:
        multiply(slice(n_rows - rest, n_rows))


class _Linear(torch.autograd.Function):
    """`F.linear` and its gradients, in pieces of rows."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        ctx.save_for_backward(x, weight)
        y = x.new_empty(x.size(0), weight.size(0))
        by = weight.t()
        _in_pieces(x.size(0), lambda rows: torch.mm(x[rows], by, out=y[rows]))
        return y if bias is None else y.add_(bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        of_x, of_weight, of_bias = ctx.needs_input_grad
        grad_x = torch.empty_like(x) if of_x else None
        grad_weight = torch.empty_like(weight) if of_weight else None

        def multiply(rows: slice) -> None:
            if grad_x is not None:
                torch.mm(grad[rows], weight, out=grad_x[rows])
            if grad_weight is not None:
                grad_weight.addmm_(grad[rows].t(), x[rows], beta=min(rows.start, 1))

        _in_pieces(x.size(0), multiply)
        return grad_x, grad_weight, grad.sum(0) if of_bias else None


class _LinearInTiles(torch.autograd.Function):
    """The same in bfloat16, followed by max(0, x) if it clamps."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, clamps: bool) -> Tensor:
        y = tiles.linear(x, weight, bias, clamps=clamps)
        ctx.save_for_backward(x, weight, y if clamps else None)
        return y

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        x, weight, clamped = ctx.saved_tensors
        needs = ctx.needs_input_grad[:3]
        found = tiles.linear_gradients(x, weight, grad, clamped=clamped, needs=needs)
        return *found, None


def linear(
    x: Tensor, weight: Tensor, bias: Tensor | None = None, *, clamps: bool = False
) -> Tensor:
    """x W^T + b, equal to `F.linear`, or max(0, x W^T + b).

    Args:
        x: `(…, n_in)`.
        weight: `(n_out, n_in)`.
        bias: `(n_out,)`.
        clamps: whether negative results become 0.

    Returns:
        `(…, n_out)`.
    """
    rows = x.flatten(0, -2) if _can_be_faster(x) else None
    if rows is not None and is_rounding() and tiles.fit_linear(rows, weight):
        found: Tensor = _LinearInTiles.apply(rows, weight, bias, clamps)  # type: ignore[no-untyped-call]
        return found.view(*x.shape[:-1], weight.size(0))
    if rows is None or not _uses_onednn():
        y = F.linear(x, weight, bias)
    else:
        y = _Linear.apply(rows, weight, bias)  # type: ignore[no-untyped-call]
        y = y.view(*x.shape[:-1], weight.size(0))
    return F.relu(y) if clamps else y


class Linear(nn.Linear):
    """`nn.Linear`, through `linear`."""

    def forward(self, x: Tensor, *, clamps: bool = False) -> Tensor:
        """Map `x`, `(…, n_in)`; negative results become 0 if it clamps."""
        return linear(x, self.weight, self.bias, clamps=clamps)


def _can_be_faster(x: Tensor) -> bool:
    return (
        (is_rounding() or _uses_onednn())
        and torch.is_grad_enabled()
        and x.dtype == torch.float32
        and x.device.type == "cpu"
        and x.dim() > 1
        and x.numel() >= SMALLEST * x.size(-1) > 0
        and not torch.is_autocast_enabled("cpu")
    )
