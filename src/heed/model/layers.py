"""One encoder layer and one decoder layer, and the parts that only they use.

The kinds of residual connections have the same parameter names, so a layer is written once for all
of them.
"""

from collections.abc import Callable
from typing import Any

import torch.nn.functional as F
from torch import Tensor, nn

from heed.model.attention import Cache, MultiHeadAttention
from heed.model.cache import RunningState
from heed.model.convolutional.convolution import GatedConvolution
from heed.model.fast.dropout import Dropout
from heed.model.fast.products import Linear
from heed.model.positions import Rotation
from heed.model.recurrence import SSRU, AverageAttention
from heed.model.trace import is_heard, see


class PostNorm(nn.Module):
    """LayerNorm(x + Dropout(Sublayer(x))), as the paper has it.

    Source: Vaswani et al. 2017, sections 3.1 and 5.4.
    """

    def __init__(
        self, d_model: int, *, dropout: float, eps: float, is_residual: bool = True
    ) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(d_model, eps=eps)
        self.dropout = Dropout(dropout)
        self.is_residual = is_residual

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """Wrap `sublayer` around `x`, `(batch, length, d_model)`."""
        total = see(self, "sum", self.dropout(sublayer(x), x if self.is_residual else None))
        return see(self, "out", self.norm(total))


class PreNorm(nn.Module):
    """x + Dropout(Sublayer(LayerNorm(x))): gradients have a path without any norm.

    Source: Xiong et al. 2020, "On Layer Normalization in the Transformer Architecture".
    """

    def __init__(
        self, d_model: int, *, dropout: float, eps: float, is_residual: bool = True
    ) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(d_model, eps=eps)
        self.dropout = Dropout(dropout)
        self.is_residual = is_residual

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """Wrap `sublayer` around `x`, `(batch, length, d_model)`."""
        normed = see(self, "normed", self.norm(x))
        return see(self, "out", self.dropout(sublayer(normed), x if self.is_residual else None))


class NoNorm(nn.Module):
    """x + Dropout(Sublayer(x)): no norm limits the sum of many sublayers."""

    def __init__(
        self, d_model: int, *, dropout: float, eps: float, is_residual: bool = True
    ) -> None:
        super().__init__()
        self.dropout = Dropout(dropout)
        self.is_residual = is_residual

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """Wrap `sublayer` around `x`, `(batch, length, d_model)`."""
        return see(self, "out", self.dropout(sublayer(x), x if self.is_residual else None))


Around = PostNorm | PreNorm | NoNorm
"""The connection around a sublayer."""

RESIDUALS: dict[str, type[Around]] = {"post": PostNorm, "pre": PreNorm, "none": NoNorm}


class FeedForward(nn.Module):
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2, the same network at every position.

    Source: Vaswani et al. 2017, section 3.3, equation 2; GELU: Hendrycks and Gimpel 2016.
    """

    def __init__(
        self,
        d_model: int,
        d_ff: int,
        *,
        activation: Callable[[Tensor], Tensor] = F.relu,
        dropout: float = 0.0,
        bias: bool = True,
    ) -> None:
        super().__init__()
        self.expand = Linear(d_model, d_ff, bias=bias)
        self.contract = Linear(d_ff, d_model, bias=bias)
        self.activation = activation
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Map each position by itself, `(batch, length, d_model)`."""
        return see(self, "out", self.contract(self.dropout(self._activated(x))))

    def _activated(self, x: Tensor) -> Tensor:
        if self.activation is F.relu and not is_heard(self):
            clamped: Tensor = self.expand(x, clamps=True)
            return clamped
        expanded = see(self, "expanded", self.expand(x))
        return see(self, "activated", self.activation(expanded))


def relu_networks(model: nn.Module) -> list[FeedForward]:
    """The feed-forward networks with ReLU inside a model."""
    return [
        module
        for module in model.modules()
        if isinstance(module, FeedForward) and module.activation is F.relu
    ]


class SwiGLU(nn.Module):
    """FFN(x) = (Swish(x W) ⊙ x V) W_2: each inner feature has a gate.

    Source: Shazeer 2020, "GLU Variants Improve Transformer", equation 6.
    """

    def __init__(self, d_model: int, d_ff: int, *, dropout: float = 0.0, bias: bool = True) -> None:
        super().__init__()
        self.expand = Linear(d_model, 2 * d_ff, bias=bias)
        self.contract = Linear(d_ff, d_model, bias=bias)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Map each position by itself, `(batch, length, d_model)`."""
        gate, inner = see(self, "expanded", self.expand(x)).chunk(2, dim=-1)
        activated = see(self, "activated", F.silu(gate) * inner)
        return see(self, "out", self.contract(self.dropout(activated)))


class EncoderLayer(nn.Module):
    """Self-attention, then feed-forward if it has one, each inside a residual connection."""

    def __init__(
        self,
        self_attention: MultiHeadAttention | GatedConvolution,
        feed_forward: FeedForward | SwiGLU | None,
        *,
        residual: Callable[[], Around],
    ) -> None:
        super().__init__()
        self.self_attention = self_attention
        self.feed_forward = feed_forward
        self.around_self = residual()
        if feed_forward is not None:
            self.around_feed_forward = residual()

    def forward(
        self,
        x: Tensor,
        mask: Tensor | None = None,
        rotation: Rotation | None = None,
        is_causal: bool = False,
        distances: Tensor | None = None,
        n_prefix: int = 0,
    ) -> Tensor:
        """Refine every position.

        Args:
            x: `(batch, length, d_model)`.
            mask: True where reading is allowed, broadcasts to `(batch, n_heads, length, length)`.
            rotation: rotary cosines and sines.
            is_causal: position t also reads no position after t.
            distances: of keys from queries, `(length, length)`.
            n_prefix: with `is_causal`, first positions that read each other in both directions.

        Returns:
            `(batch, length, d_model)`.
        """

        def read_itself(y: Tensor) -> Tensor:
            attended: Tensor = self.self_attention(
                y,
                mask=mask,
                rotation=rotation,
                is_causal=is_causal,
                distances=distances,
                n_prefix=n_prefix,
            )
            return attended

        x = self.around_self(see(self, "in", x), read_itself)
        return see(self, "out", self._fed_forward(x))

    def extend(
        self,
        x: Tensor,
        cache: Cache,
        mask: Tensor | None = None,
        rotation: Rotation | None = None,
        distances: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Refine new positions, which read those in the cache and each other.

        Args:
            x: `(rows, n_new, d_model)`.
            cache: this layer's keys and values so far; grows by the new ones.
            mask: True where reading is allowed, broadcasts to `(rows, n_heads, n_new, length)`.
            rotation: rotary cosines and sines of the new positions.
            distances: of all positions from the new ones, `(n_new, length)`.
            is_causal: a new position reads no later one.

        Returns:
            `(rows, n_new, d_model)`.
        """
        x = self.around_self(
            see(self, "in", x),
            lambda y: self.self_attention.extend(y, cache, rotation, mask, distances, is_causal),
        )
        return see(self, "out", self._fed_forward(x))

    def _fed_forward(self, x: Tensor) -> Tensor:
        return x if self.feed_forward is None else self.around_feed_forward(x, self.feed_forward)


TargetReader = MultiHeadAttention | GatedConvolution | AverageAttention | SSRU
"""The sublayer by which a decoder position reads earlier ones."""


class DecoderLayer(nn.Module):
    """Masked self-attention, cross-attention, feed-forward, each inside a residual connection."""

    def __init__(
        self,
        self_attention: TargetReader,
        cross_attention: MultiHeadAttention,
        feed_forward: FeedForward | SwiGLU | None,
        *,
        residual: Callable[[], Around],
    ) -> None:
        super().__init__()
        self.self_attention = self_attention
        self.cross_attention = cross_attention
        self.feed_forward = feed_forward
        self.around_self = residual()
        self.around_cross = residual()
        if feed_forward is not None:
            self.around_feed_forward = residual()

    def new_cache(self) -> Cache | RunningState:
        """An empty cache of the target, for `extend`."""
        return self.self_attention.new_cache()

    def project_memory(self, memory: Tensor, src_mask: Tensor | None = None) -> tuple[Tensor, ...]:
        """Keys and values of a memory, or their sums, computed once a source.

        Args:
            memory: the encoder's output, `(batch, src_len, d_model)`.
            src_mask: True at real source tokens, `(batch, 1, 1, src_len)`.

        Returns:
            Keys `(batch, n_heads, src_len, d_k)` and values `(batch, n_heads, src_len, d_v)`, or
            their sums.
        """
        return self.cross_attention.prepare_memory(memory, src_mask)

    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        src_mask: Tensor | None = None,
        rotation: Rotation | None = None,
        distances: Tensor | None = None,
    ) -> Tensor:
        """Refine all target positions at once; none reads a later one.

        Args:
            x: `(batch, tgt_len, d_model)`.
            memory: encoder output, `(batch, src_len, d_model)`.
            src_mask: True at real source tokens, `(batch, 1, 1, src_len)`.
            rotation: rotary cosines and sines.
            distances: of target positions from each other, `(tgt_len, tgt_len)`.

        Returns:
            `(batch, tgt_len, d_model)`.
        """

        def read_itself(y: Tensor) -> Tensor:
            attended: Tensor = self.self_attention(
                y, is_causal=True, rotation=rotation, distances=distances
            )
            return attended

        x = see(self, "in", x)
        x = self.around_self(x, read_itself)
        x = self.around_cross(x, lambda y: self.cross_attention(y, memory, mask=src_mask))
        return see(self, "out", self._fed_forward(x))

    def extend(
        self,
        x: Tensor,
        cache: Any,
        memory_heads: tuple[Tensor, ...],
        src_mask: Tensor | None = None,
        rotation: Rotation | None = None,
        distances: Tensor | None = None,
    ) -> Tensor:
        """Refine the newest target position, which also reads the earlier ones in the cache.

        Args:
            x: `(n_sources * beam_size, 1, d_model)`.
            cache: from `new_cache`; holds the target so far.
            memory_heads: from `project_memory`.
            src_mask: True at real source tokens, `(n_sources, 1, 1, src_len)`.
            rotation: rotary cosines and sines of this position.
            distances: of all target positions so far from this one, `(1, length)`.

        Returns:
            `(n_sources * beam_size, 1, d_model)`.
        """

        def read_source(y: Tensor) -> Tensor:
            # All beams of a source read its memory together: no copy of the memory per beam.
            n_sources = memory_heads[0].size(0)
            together = y.reshape(n_sources, -1, y.size(-1))
            attended = self.cross_attention.attend_memory(together, memory_heads, src_mask)
            return attended.reshape(y.shape)

        x = self.around_self(
            see(self, "in", x),
            lambda y: self.self_attention.extend(y, cache, rotation, distances=distances),
        )
        x = self.around_cross(x, read_source)
        return see(self, "out", self._fed_forward(x))

    def _fed_forward(self, x: Tensor) -> Tensor:
        return x if self.feed_forward is None else self.around_feed_forward(x, self.feed_forward)
