"""Recurrent sublayers in the place of the decoder's self-attention.

Attention reads all earlier target tokens for each new one. These two keep one vector instead, so a
step of decoding takes the same time and memory at any length. In training all positions are
computed together.
"""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable

from heed.model.cache import RunningState
from heed.model.fast.products import Linear
from heed.model.positions import Rotation
from heed.model.trace import see


def running_mean(x: Tensor) -> Tensor:
    """ḡ_j = (1/j) Σ_{k ≤ j} x_k, the mean of each position and those before it.

    Args:
        x: `(batch, length, d_model)`.

    Returns:
        `(batch, length, d_model)`.

    Source: Zhang et al. 2018, "Accelerating Neural Transformer via an Average Attention Network",
        equation 1.
    """
    # A sum of many bfloat16 numbers would stop growing.
    sums = x.cumsum(dim=1, dtype=torch.promote_types(x.dtype, torch.float32))
    counts = torch.arange(1, x.size(1) + 1, device=x.device, dtype=sums.dtype)
    return (sums / counts[:, None]).to(x.dtype)


def gated_sum(forget: Tensor, candidate: Tensor) -> Tensor:
    """c_t = f_t ⊙ c_{t-1} + (1 - f_t) ⊙ z_t, with c_0 = 0.

    Args:
        forget: f, between 0 and 1, `(batch, length, d_model)`.
        candidate: z, `(batch, length, d_model)`.

    Returns:
        c, `(batch, length, d_model)`.

    Source: Kim et al. 2019, "From Research to Production and Back: Ludicrously Fast Neural Machine
        Translation", section 3.1.
    """
    summed: Tensor = _GatedSum.apply(forget, candidate)  # type: ignore[no-untyped-call]
    return summed


class _GatedSum(torch.autograd.Function):
    """One loop over the positions forward and one backward, with whole tensors in between.

    On one core, 64 x 32 x 256, both take 2.6 ms. Autograd through the same loop takes 11.2 ms, and
    log2(length) passes over whole tensors (Hillis and Steele 1986) take 12.8 ms.
    """

    @staticmethod
    def forward(ctx: Any, forget: Tensor, candidate: Tensor) -> Tensor:
        summed = (1 - forget) * candidate
        for t in range(1, forget.size(1)):
            summed[:, t].addcmul_(forget[:, t], summed[:, t - 1])
        ctx.save_for_backward(forget, candidate, summed)
        return summed

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor]:
        """d_t = ∂L/∂c_t, also through later positions: g_t + f_{t+1} ⊙ d_{t+1}."""
        forget, candidate, summed = ctx.saved_tensors
        total = grad.clone()
        for t in range(forget.size(1) - 1, 0, -1):
            total[:, t - 1].addcmul_(forget[:, t], total[:, t])
        of_forget = -total * candidate
        of_forget[:, 1:].addcmul_(total[:, 1:], summed[:, :-1])
        return of_forget, total * (1 - forget)


class AverageAttention(nn.Module):
    """Each position reads the mean of all so far; gates weigh it against the position itself.

    g_j = FFN(ḡ_j), [i_j; f_j] = σ(W [x_j; g_j] + b), h_j = i_j ⊙ x_j + f_j ⊙ g_j.

    It has the methods of `MultiHeadAttention` that a decoder layer calls for self-attention.

    Args:
        d_model: width of the input and the output.
        feed_forward: FFN, or the identity.
        bias: whether the gates add a bias.

    Source: Zhang et al. 2018, section 3.1, equations 1 to 4.
    """

    def __init__(self, d_model: int, feed_forward: nn.Module, *, bias: bool = True) -> None:
        super().__init__()
        self.feed_forward = feed_forward
        self.gate = Linear(2 * d_model, 2 * d_model, bias=bias)

    def forward(
        self,
        x: Tensor,
        *,
        is_causal: bool = True,
        rotation: Rotation | None = None,
        distances: Tensor | None = None,
    ) -> Tensor:
        """Let each position of `x` `(batch, length, d_model)` read those before it and itself.

        The output has the same shape. It is always causal, which also hides the padding after a
        target; `rotation` and `distances` are not used.
        """
        return self._gated(x, running_mean(x))

    def new_cache(self) -> RunningState:
        """The state before the first token: an empty sum."""
        return RunningState()

    def extend(
        self,
        x: Tensor,
        cache: RunningState,
        rotation: Rotation | None = None,
        *,
        distances: Tensor | None = None,
    ) -> Tensor:
        """Compute the newest position from `x` `(rows, 1, d_model)` and the sum of those before it.

        The output has the same shape. `cache` holds the sum, which grows by `x`; `rotation` and
        `distances` are not used.
        """
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        total = cache.update(wide if cache.value is None else cache.value + wide)
        return self._gated(x, (total / cache.length).to(x.dtype))

    def _gated(self, x: Tensor, mean: Tensor) -> Tensor:
        average = self.feed_forward(see(self, "mean", mean))
        gates = torch.sigmoid(self.gate(torch.cat([x, average], dim=-1)))
        of_input, of_average = see(self, "gates", gates).chunk(2, dim=-1)
        return see(self, "out", of_input * x + of_average * average)


class SSRU(nn.Module):
    """A recurrent unit that multiplies only its input with a matrix, not its state.

    f_t = σ(W_f x_t + b_f), c_t = f_t ⊙ c_{t-1} + (1 - f_t) ⊙ (W x_t + b), o_t = max(0, c_t).

    The paper has no b; `bias` adds or leaves out both. W_f and W are the rows of one matrix. It has
    the methods of `MultiHeadAttention` that a decoder layer calls for self-attention.

    Args:
        d_model: width of the input and the output.
        bias: whether the linear maps add a bias.

    Source: Kim et al. 2019, section 3.1, after Lei et al. 2018, "Simple Recurrent Units".
    """

    def __init__(self, d_model: int, *, bias: bool = True) -> None:
        super().__init__()
        self.cell = Linear(d_model, 2 * d_model, bias=bias)

    def forward(
        self,
        x: Tensor,
        *,
        is_causal: bool = True,
        rotation: Rotation | None = None,
        distances: Tensor | None = None,
    ) -> Tensor:
        """Let each position of `x` `(batch, length, d_model)` read those before it and itself.

        The output has the same shape. It is always causal, which also hides the padding after a
        target; `rotation` and `distances` are not used.
        """
        return self._out(gated_sum(*self._gates(x)))

    def new_cache(self) -> RunningState:
        """The state before the first token."""
        return RunningState()

    def extend(
        self,
        x: Tensor,
        cache: RunningState,
        rotation: Rotation | None = None,
        *,
        distances: Tensor | None = None,
    ) -> Tensor:
        """Compute the newest position from `x` `(rows, 1, d_model)` and c of those before it.

        The output has the same shape. `cache` holds c, which the next one replaces; `rotation` and
        `distances` are not used.
        """
        forget, candidate = self._gates(x)
        summed = (1 - forget) * candidate
        if cache.value is not None:
            summed = summed.addcmul(forget, cache.value)
        return self._out(cache.update(summed))

    def _gates(self, x: Tensor) -> tuple[Tensor, Tensor]:
        forget, candidate = self.cell(x).chunk(2, dim=-1)
        return see(self, "forget", torch.sigmoid(forget)), see(self, "candidate", candidate)

    def _out(self, summed: Tensor) -> Tensor:
        return see(self, "out", torch.relu(see(self, "state", summed)))
