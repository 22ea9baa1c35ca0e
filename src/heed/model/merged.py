"""A decoder layer with one attention to source and target, in the place of two.

Sources: He et al. 2018, "Layer-Wise Coordination between Encoder and Decoder for Neural Machine
Translation", section 3.2 (mixed attention); Fonollosa et al. 2019, "Joint Source-Target Self
Attention with Locality Constraints", section 3.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from heed.model.attention import Cache, MultiHeadAttention
from heed.model.layers import Around, FeedForward, SwiGLU
from heed.model.positions import Rotation
from heed.model.trace import see

TARGET_NAMES = ("target_key", "target_value")
"""Of the tensors of the target's side."""


class MergedDecoderLayer(nn.Module):
    """softmax(q [K_memory; K_target]^T / √d_k) [V_memory; V_target], then feed-forward.

    One softmax divides a position's attention between the whole source and the target before it.
    Source and target have the same W^K and W^V. It has the methods of `DecoderLayer`.
    """

    def __init__(
        self,
        joint_attention: MultiHeadAttention,
        feed_forward: FeedForward | SwiGLU | None,
        *,
        residual: Callable[[], Around],
    ) -> None:
        super().__init__()
        self.joint_attention = joint_attention
        self.feed_forward = feed_forward
        self.around_joint = residual()
        if feed_forward is not None:
            self.around_feed_forward = residual()

    def new_cache(self) -> Cache:
        """An empty cache of the target, for `extend`."""
        return self.joint_attention.new_cache()

    def project_memory(self, memory: Tensor, src_mask: Tensor | None = None) -> tuple[Tensor, ...]:
        """Keys and values of a memory; see `MultiHeadAttention.project_memory`.

        Args:
            memory: the encoder's output, `(batch, src_len, d_model)`.
            src_mask: not used.

        Returns:
            Keys `(batch, n_heads, src_len, d_k)` and values `(batch, n_heads, src_len, d_v)`.
        """
        return self._keys_and_values(memory, ("memory_key", "memory_value"))

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
            rotation: None: a memory has no positions to turn.
            distances: of target positions from each other, `(tgt_len, tgt_len)`.

        Returns:
            `(batch, tgt_len, d_model)`.
        """
        assert rotation is None
        memory_heads = self.project_memory(memory)

        def read(y: Tensor) -> Tensor:
            target_heads = self._keys_and_values(y, TARGET_NAMES)
            return self._read(
                y, memory_heads, target_heads, src_mask, is_causal=True, distances=distances
            )

        return self._finished(self.around_joint(see(self, "in", x), read))

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
            cache: from `new_cache`; keys and values of the target so far.
            memory_heads: keys of the source, `(n_sources, n_heads, src_len, d_k)`, and values.
            src_mask: True at real source tokens, `(n_sources, 1, 1, src_len)`.
            rotation: None.
            distances: of all target positions so far from this one, `(1, length)`.

        Returns:
            `(n_sources * beam_size, 1, d_model)`.
        """
        assert rotation is None

        def read(y: Tensor) -> Tensor:
            target_heads = cache.append(*self._keys_and_values(y, TARGET_NAMES))
            return self._read(y, memory_heads, target_heads, src_mask, distances=distances)

        return self._finished(self.around_joint(see(self, "in", x), read))

    def _keys_and_values(self, x: Tensor, names: tuple[str, str]) -> tuple[Tensor, Tensor]:
        """One side: `(batch, k_len, d_model)` → each `(batch, n_heads, k_len, d_k or d_v)`."""
        key, value = self.joint_attention.keys_and_values(x)
        module = self.joint_attention
        return see(module, names[0], key), see(module, names[1], value)

    def _read(
        self,
        y: Tensor,
        memory_heads: tuple[Tensor, ...],
        target_heads: tuple[Tensor, ...],
        src_mask: Tensor | None,
        *,
        is_causal: bool = False,
        distances: Tensor | None = None,
    ) -> Tensor:
        # All beams of a source read it, each together with its own target.
        beam_size = len(y) // max(1, len(memory_heads[0]))
        key, value = (
            torch.cat([of_memory.repeat_interleave(beam_size, dim=0), of_target], dim=2)
            for of_memory, of_target in zip(memory_heads, target_heads, strict=True)
        )
        mask = None
        if src_mask is not None:
            is_tgt = src_mask.new_ones(len(src_mask), 1, 1, target_heads[0].size(2))
            mask = torch.cat([src_mask, is_tgt], dim=-1).repeat_interleave(beam_size, dim=0)
        return self.joint_attention.attend_heads(
            self.joint_attention.project_query(y),
            see(self.joint_attention, "key", key),
            see(self.joint_attention, "value", value),
            mask=mask,
            is_causal=is_causal,
            distances=distances,
        )

    def _finished(self, x: Tensor) -> Tensor:
        if self.feed_forward is not None:
            x = self.around_feed_forward(x, self.feed_forward)
        return see(self, "out", x)
