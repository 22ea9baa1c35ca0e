"""Dropout of a sublayer's output and the residual sum around it: one pass over memory each way.

If the compiled library has no kernels for this processor, a random byte for each number decides
whether it is dropped, and the mask is kept: an eighth of the time of a random double each. Both
equal `nn.Dropout` at a rate of n/256, but drop other numbers.
"""

from ctypes import Structure, addressof, c_char_p, c_int32, c_int64, c_uint64, c_void_p
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from heed.machine.compiled import check, function
from heed.model.fast.kernels import has_training_kernels

_DROPOUT = "heed_dropout", (c_void_p, c_char_p, c_void_p)


class _Arguments(Structure):
    _fields_ = (
        ("x", c_void_p),
        ("residual", c_void_p),
        ("n", c_int64),
        ("seed", c_uint64),
        ("n_dropped", c_int32),
        ("n_threads", c_int32),
    )


def drop(
    x: Tensor, residual: Tensor | None, seed: int, n_dropped: int, *, kernels: str = ""
) -> Tensor:
    """residual + x ⊙ mask · 256 / (256 - n_dropped); the mask is a hash of seed and position.

    Args:
        x: float32 on a CPU, of any shape but not empty.
        residual: of the same shape; None = zeros.
        seed: 0 ≤ seed < 2^63.
        n_dropped: of 256 numbers, 0 to 255.
        kernels: the instruction set, `avx2`, `avx512` or `neon`; "" = the best here.

    Returns:
        The shape of `x`.

    Raises:
        HeedError: this processor lacks the instruction set.
    """
    x = x.contiguous()
    residual = None if residual is None else residual.contiguous()
    out = torch.empty_like(x)
    address = None if residual is None else residual.data_ptr()
    sizes = x.numel(), seed, n_dropped, torch.get_num_threads()
    arguments = _Arguments(x.data_ptr(), address, *sizes)
    check(function(*_DROPOUT)(addressof(arguments), kernels.encode(), out.data_ptr()))
    return out


class _Dropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, residual: Tensor | None, n_dropped: int) -> Tensor:
        # From torch's generator, so that its seed applies here too.
        ctx.how = int(torch.empty((), dtype=torch.int64).random_()), n_dropped
        return drop(x, residual, *ctx.how)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor | None, None]:
        return drop(grad, None, *ctx.how), grad if ctx.needs_input_grad[1] else None, None


class _ByteDropout(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, n_dropped: int) -> Tensor:
        n_words = x.numel() // 8 + 1
        words = torch.empty(n_words, dtype=torch.int64, device=x.device).random_(-(2**63), None)
        is_kept = words.view(torch.uint8)[: x.numel()].view(x.shape) >= n_dropped
        scaled = is_kept.to(x.dtype).mul_(256 / (256 - n_dropped))
        ctx.save_for_backward(scaled)
        return x * scaled

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, None]:
        (scaled,) = ctx.saved_tensors
        return grads[0] * scaled, None


class Dropout(nn.Module):
    """Zero a share of the numbers in training and scale the rest up; nothing otherwise.

    Args:
        rate: share dropped, 0 ≤ rate < 1; on a CPU rounded to the nearest 1/256.

    Source: Srivastava et al. 2014.
    """

    def __init__(self, rate: float) -> None:
        super().__init__()
        self.rate = rate

    def forward(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
        """Drop numbers of `x`, of any shape, and add `residual`, of the same shape, if given."""
        if self._is_one_pass(x):
            found: Tensor = _Dropout.apply(x, residual, self._n_dropped)  # type: ignore[no-untyped-call]
            return found
        dropped = self._dropped(x)
        return dropped if residual is None else residual + dropped

    @property
    def _n_dropped(self) -> int:
        """How many of 256 numbers are dropped."""
        return min(255, round(self.rate * 256)) if self.training else 0

    def _is_one_pass(self, x: Tensor) -> bool:
        return (
            self._n_dropped > 0
            and x.device.type == "cpu"
            and x.dtype == torch.float32
            and x.numel() > 0
            and has_training_kernels()
        )

    def _dropped(self, x: Tensor) -> Tensor:
        if not self.training or self.rate == 0:
            return x
        if x.is_cuda or self._n_dropped == 0:
            return F.dropout(x, self.rate)
        dropped: Tensor = _ByteDropout.apply(x, self._n_dropped)  # type: ignore[no-untyped-call]
        return dropped
