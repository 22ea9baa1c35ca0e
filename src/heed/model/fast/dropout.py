"""Dropout with one random byte for each number, equal to `nn.Dropout` at a rate of n/256.

On a CPU nearly all the time of dropout is spent on random numbers; a byte costs an eighth of a
double.
"""

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn


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

    def forward(self, x: Tensor) -> Tensor:
        """Drop from `x` of any shape."""
        if not self.training or self.rate == 0:
            return x
        n_dropped = min(255, round(self.rate * 256))
        if x.is_cuda or n_dropped == 0:
            return F.dropout(x, self.rate)
        dropped: Tensor = _ByteDropout.apply(x, n_dropped)  # type: ignore[no-untyped-call]
        return dropped
