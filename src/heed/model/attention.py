"""Attention: the equation, its fused version, and the multi-head sublayer around them.

`attend` is the paper's equation 1 and returns the weights; `attend_fused` computes the same faster.
Masks are in `masks.py`, windows in `window.py`, other similarities in `variants.py`.
"""

import math
from collections.abc import Callable
from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heed.model.cache import KVCache
from heed.model.fast import attention as fast
from heed.model.fast.products import Linear, linear
from heed.model.linear_attention import RunningSums
from heed.model.masks import both, causal_mask, prefix_mask
from heed.model.positions import Rotation, rotate
from heed.model.relative import Relative, ShawVectors, for_all_keys
from heed.model.trace import is_heard, see
from heed.model.window import block_distances, block_len, blocks_of, window_mask

Cache = KVCache | RunningSums
"""The state of self-attention over the positions so far."""


def attend(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    *,
    bias: Tensor | None = None,
    dropout: float = 0.0,
    see: Callable[[str, Tensor], Tensor] = lambda name, tensor: tensor,
) -> tuple[Tensor, Tensor]:
    """Attention: the mean of `value`, weighted by how well `query` matches `key`.

    Args:
        query: of each position, `(batch, n_heads, q_len, d_k)`.
        key: of each position, `(batch, n_heads, k_len, d_k)`.
        value: of each position, `(batch, n_heads, k_len, d_v)`.
        mask: True where reading is allowed, broadcasts to `(batch, n_heads, q_len, k_len)`.
        bias: added to the scores, broadcasts to the same shape.
        dropout: rate at which single weights are left out.
        see: gets the name and value of each stage and returns the value; see `trace.py`.

    Returns:
        The context `(batch, n_heads, q_len, d_v)` and the weights `(batch, n_heads, q_len, k_len)`.

    Source: Vaswani et al. 2017, section 3.2.1, equation 1.
    """
    scores = _scores(query, key, bias, see)
    if mask is None:
        weights = see("weights", scores.softmax(dim=-1))
    else:
        masked = see("masked", scores.masked_fill(~mask, -math.inf))
        # A row whose keys are all masked would be 0/0 here; its weights are set to 0.
        weights = see("weights", masked.softmax(dim=-1).masked_fill(~mask, 0.0))
    if dropout:
        weights = F.dropout(weights, dropout)
    return see("context", weights @ value), weights


def attend_then_mask(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor,
    *,
    bias: Tensor | None = None,
    dropout: float = 0.0,
    see: Callable[[str, Tensor], Tensor] = lambda name, tensor: tensor,
) -> tuple[Tensor, Tensor]:
    """Attention that is masked after the softmax: forbidden weights become 0, the rest sum to 1.

    Equal to `attend` up to rounding, with one exception: if a forbidden score is so much larger
    than all allowed ones (by 104 in float32) that their weights round to 0, all weights of the row
    are 0, as if all its keys were masked.

    Args:
        query: of each position, `(batch, n_heads, q_len, d_k)`.
        key: of each position, `(batch, n_heads, k_len, d_k)`.
        value: of each position, `(batch, n_heads, k_len, d_v)`.
        mask: True where reading is allowed, broadcasts to `(batch, n_heads, q_len, k_len)`.
        bias: added to the scores, broadcasts to the same shape.
        dropout: rate at which single weights are left out.
        see: gets the name and value of each stage and returns the value; see `trace.py`.

    Returns:
        The context `(batch, n_heads, q_len, d_v)` and the weights `(batch, n_heads, q_len, k_len)`.
    """
    scores = _scores(query, key, bias, see)
    allowed = see("masked", scores.softmax(dim=-1).masked_fill(~mask, 0.0))
    total = allowed.sum(dim=-1, keepdim=True)
    weights = see("weights", allowed / total.masked_fill(total == 0, 1.0))
    if dropout:
        weights = F.dropout(weights, dropout)
    return see("context", weights @ value), weights


def _scores(
    query: Tensor, key: Tensor, bias: Tensor | None, see: Callable[[str, Tensor], Tensor]
) -> Tensor:
    """Q K^T / √d_k, plus a bias."""
    products = see("products", query @ key.transpose(-2, -1))
    scores = see("scores", products / math.sqrt(query.size(-1)))
    return scores if bias is None else see("biased", scores + see("bias", bias))


def attend_fused(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    *,
    bias: Tensor | None = None,
    is_causal: bool = False,
    dropout: float = 0.0,
) -> Tensor:
    """The same context as `attend` in one kernel that never stores the weights.

    Args:
        query: `(batch, n_heads, q_len, d_k)`.
        key: `(batch, n_heads, k_len, d_k)`.
        value: `(batch, n_heads, k_len, d_v)`.
        mask: True where reading is allowed, broadcasts to `(batch, n_heads, q_len, k_len)`.
        bias: added to the scores, broadcasts to the same shape.
        is_causal: position t also reads no position after t.
        dropout: rate at which single weights are left out.

    Returns:
        The context, `(batch, n_heads, q_len, d_v)`.

    Source: Dao et al. 2022, "FlashAttention".
    """
    # The kernel takes a mask or is_causal, not both, and aligns first positions, not last ones.
    is_alone = mask is None and bias is None and query.size(2) == key.size(2)
    if is_causal and not is_alone:
        mask, is_causal = both(mask, causal_mask(query.size(2), key.size(2), query.device)), False
    added = mask
    if bias is not None:
        added = bias if mask is None else torch.where(mask, bias, -math.inf)
    context = F.scaled_dot_product_attention(
        query, key, value, attn_mask=added, is_causal=is_causal, dropout_p=dropout
    )
    if mask is not None:
        context = context.masked_fill(~mask.any(dim=-1, keepdim=True), 0.0)
    return context


class MultiHeadAttention(nn.Module):
    """MultiHead(Q, K, V) = Concat(head_1 … head_h) W^O.

    head_i = Attention(Q W_i^Q, K W_i^K, V W_i^V).

    One module for its three uses: encoder self-attention, masked decoder self-attention, and
    cross-attention, whose queries come from the decoder and whose keys from the encoder's memory.
    W^Q, W^K and W^V of all heads are the rows of one matrix, so self-attention is one product.

    Args:
        d_model: width of the input and the output.
        n_heads: number of heads.
        d_k: width of queries and keys in one head; None = d_model / n_heads.
        d_v: width of values in one head; None = d_model / n_heads.
        dropout: rate on the attention weights.
        bias: whether the projections add a bias.
        has_output: whether W^O mixes the heads; without it they are only joined.
        window: in self-attention, positions to each side that a position reads besides its own.
        masks_after: mask after the softmax (`attend_then_mask`) instead of before it.
        relative: bias and vectors for distances between positions; None = neither.

    Source: Vaswani et al. 2017, section 3.2.2.
    """

    def __init__(
        self,
        d_model: int,
        n_heads: int,
        *,
        d_k: int | None = None,
        d_v: int | None = None,
        dropout: float = 0.0,
        bias: bool = True,
        has_output: bool = True,
        window: int | None = None,
        masks_after: bool = False,
        relative: Relative | None = None,
    ) -> None:
        super().__init__()
        self.window = window
        self.masks_after = masks_after
        self.n_heads = n_heads
        self.d_k = d_k or d_model // n_heads
        self.d_v = d_v or d_model // n_heads
        self.dropout = dropout
        self.has_bias = bias
        self.project_in = Linear(d_model, n_heads * (2 * self.d_k + self.d_v), bias=bias)
        width = n_heads * self.d_v
        self.project_out = Linear(width, d_model, bias=bias) if has_output else nn.Identity()
        self.relative = relative

    def forward(
        self,
        x: Tensor,
        memory: Tensor | None = None,
        *,
        mask: Tensor | None = None,
        is_causal: bool = False,
        rotation: Rotation | None = None,
        distances: Tensor | None = None,
        n_prefix: int = 0,
    ) -> Tensor:
        """Let every position of `x` read from `memory`, or from `x` itself.

        Args:
            x: what queries are made from, `(batch, q_len, d_model)`.
            memory: what keys and values are made from, `(batch, k_len, d_model)`; None =
                self-attention.
            mask: True where reading is allowed, broadcasts to `(batch, n_heads, q_len, k_len)`; the
                window is not applied to a mask that has a row for each query.
            is_causal: position t also reads no position after t.
            rotation: rotary cosines and sines of these positions.
            distances: of keys from queries, `(q_len, k_len)`.
            n_prefix: with `is_causal`, first positions that read each other in both directions.

        Returns:
            What was read, `(batch, q_len, d_model)`.
        """
        read = fast.Read(self.n_heads, mask, is_causal, rotation)
        if distances is None and not n_prefix and self._is_plain and fast.fits(x, self.d_k, read):
            return self._attend_fast(x, memory, read)
        if memory is None:
            query, key, value = self._heads(self.project_in(x))
        else:
            query, (key, value) = self.project_query(x), self.project_memory(memory)
        if rotation is not None:
            query, key = self._rotated(query, key, rotation)
        if n_prefix:
            return self._attend_prefix(query, key, value, mask, distances, n_prefix)
        if self.window is not None and (mask is None or mask.size(-2) == 1):
            return self._attend_window(query, key, value, mask, distances, is_causal=is_causal)
        return self.attend_heads(
            query, key, value, mask=mask, is_causal=is_causal, distances=distances
        )

    def new_cache(self, n_prefix: int = 0) -> Cache:
        """What `extend` keeps of a sequence; its first `n_prefix` positions are always read."""
        return KVCache(window=self.window, n_prefix=n_prefix)

    def extend(
        self,
        x: Tensor,
        cache: Cache,
        rotation: Rotation | None = None,
        mask: Tensor | None = None,
        distances: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Self-attention of new positions over all so far.

        Args:
            x: the new positions, `(rows, n_new, d_model)`.
            cache: keys and values so far, from `new_cache`; grows by the new ones.
            rotation: rotary cosines and sines of the new positions.
            mask: True where reading is allowed, broadcasts to `(rows, n_heads, n_new, length)`.
            distances: of all positions from the new ones, `(n_new, length)`.
            is_causal: a new position reads no later one.

        Returns:
            What was read, `(rows, n_new, d_model)`.
        """
        query, key, value = self._heads(self.project_in(x))
        if rotation is not None:
            query, key = self._rotated(query, key, rotation)
        assert isinstance(cache, KVCache)
        key, value = cache.append(key, value)
        if distances is not None and key.size(2) < distances.size(1):
            n_near = key.size(2) - cache.n_prefix
            parts = distances[:, : cache.n_prefix], distances[:, -n_near:]
            distances = torch.cat(parts, dim=1)
        return self.attend_heads(
            query, key, value, mask=mask, is_causal=is_causal, distances=distances
        )

    def prepare_memory(self, memory: Tensor, mask: Tensor | None = None) -> tuple[Tensor, ...]:
        """The tensors of a memory that `attend_memory` reads, computed once a source.

        Args:
            memory: the encoder's output, `(batch, k_len, d_model)`.
            mask: True at real source tokens, `(batch, 1, 1, k_len)`.

        Returns:
            Keys and values, or for linear attention their sums; each has a row for each source.
        """
        return self.project_memory(memory)

    def attend_memory(
        self, x: Tensor, heads: tuple[Tensor, ...], mask: Tensor | None = None
    ) -> Tensor:
        """Let every position of `x` read a memory.

        Args:
            x: `(batch, q_len, d_model)`.
            heads: from `prepare_memory`.
            mask: True at real source tokens, `(batch, 1, 1, k_len)`.

        Returns:
            What was read, `(batch, q_len, d_model)`.
        """
        key, value = heads
        return self.attend_heads(self.project_query(x), key, value, mask=mask)

    def project_query(self, x: Tensor) -> Tensor:
        """Queries of `x` `(batch, q_len, d_model)`, as `(batch, n_heads, q_len, d_k)`."""
        return see(self, "query", self._split(self._queries(x), self.d_k))

    def project_memory(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """Keys and values of a memory, computed once a source.

        Args:
            memory: the encoder's output, `(batch, k_len, d_model)`.

        Returns:
            Keys `(batch, n_heads, k_len, d_k)` and values `(batch, n_heads, k_len, d_v)`.
        """
        key, value = self.keys_and_values(memory)
        return see(self, "key", key), see(self, "value", value)

    def keys_and_values(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """As `project_memory`, of a part of what is read: the tensors have no names.

        Args:
            memory: `(batch, k_len, d_model)`.

        Returns:
            Keys `(batch, n_heads, k_len, d_k)` and values `(batch, n_heads, k_len, d_v)`.
        """
        widths = [self.n_heads * self.d_k, self.n_heads * self.d_v]
        key, value = torch.split(self._keys_and_values(memory), widths, dim=-1)
        return self._split(key, self.d_k), self._split(value, self.d_v)

    def _queries(self, x: Tensor) -> Tensor:
        width = self.n_heads * self.d_k
        bias = self.project_in.bias[:width] if self.has_bias else None
        return linear(x, self.project_in.weight[:width], bias)

    def _keys_and_values(self, memory: Tensor) -> Tensor:
        width = self.n_heads * self.d_k
        bias = self.project_in.bias[width:] if self.has_bias else None
        return linear(memory, self.project_in.weight[width:], bias)

    def attend_heads(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        *,
        mask: Tensor | None = None,
        is_causal: bool = False,
        distances: Tensor | None = None,
    ) -> Tensor:
        """Attend in every head, join the heads and project back.

        Args:
            query: `(batch, n_heads, q_len, d_k)`.
            key: `(batch, n_heads, k_len, d_k)`.
            value: `(batch, n_heads, k_len, d_v)`.
            mask: True where reading is allowed, broadcasts to `(batch, n_heads, q_len, k_len)`.
            is_causal: position t also reads no position after t.
            distances: of the last `n_keys` keys from queries, `(q_len, n_keys)`.

        Returns:
            `(batch, q_len, d_model)`.
        """
        relative = None if distances is None else self.relative
        bias = None
        if relative is not None and distances is not None:
            bias = for_all_keys(relative.bias(query, distances), key.size(2))
        dropout = self.dropout if self.training else 0.0
        # The fused kernel does not return the weights.
        needs_weights = is_heard(self) or isinstance(relative, ShawVectors)
        if is_causal and (self.masks_after or needs_weights):
            mask = both(mask, causal_mask(query.size(2), key.size(2), query.device))
        heard = partial(see, self)
        if self.masks_after and mask is not None:
            context, weights = attend_then_mask(
                query, key, value, mask, bias=bias, dropout=dropout, see=heard
            )
        elif needs_weights:
            dropout = 0.0 if is_heard(self) else dropout
            context, weights = attend(
                query, key, value, mask, bias=bias, dropout=dropout, see=heard
            )
        else:
            context = attend_fused(
                query, key, value, mask, bias=bias, is_causal=is_causal, dropout=dropout
            )
        if isinstance(relative, ShawVectors) and distances is not None:
            near = weights[..., key.size(2) - distances.size(1) :]
            context = context + see(self, "relative", relative.context(near, distances))
        return self._projected(context)

    def _projected(self, context: Tensor) -> Tensor:
        joined = see(self, "joined", context.transpose(1, 2).flatten(2))
        return see(self, "out", self.project_out(joined))

    @property
    def _is_plain(self) -> bool:
        """Whether this is the paper's attention without dropout, and only the context is needed."""
        return (
            type(self).attend_heads is MultiHeadAttention.attend_heads
            and self.d_k == self.d_v
            and self.window is None
            and not (self.masks_after or (self.training and self.dropout) or is_heard(self))
        )

    def _attend_fast(self, x: Tensor, memory: Tensor | None, read: fast.Read) -> Tensor:
        """`forward` with one call for all heads, see `heed.model.fast.attention`."""
        if memory is None:
            context = fast.attend(self.project_in(x), None, read)
        else:
            context = fast.attend(self._queries(x), self._keys_and_values(memory), read)
        projected: Tensor = self.project_out(context)
        return projected

    def _attend_prefix(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None,
        distances: Tensor | None,
        n_prefix: int,
    ) -> Tensor:
        """`attend_heads` with later positions masked, except in the prefix."""
        length = query.size(2)
        allowed = both(mask, prefix_mask(length, n_prefix, query.device))
        return self.attend_heads(query, key, value, mask=allowed, distances=distances)

    def _attend_window(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None,
        distances: Tensor | None,
        *,
        is_causal: bool,
    ) -> Tensor:
        """`attend_heads` within the window; `mask` is `(batch, 1, 1, length)`."""
        assert self.window is not None
        length = query.size(2)
        if length <= 2 * block_len(self.window) or is_heard(self):
            if length > self.window + 1:
                mask = both(mask, window_mask(length, length, self.window, query.device))
            return self.attend_heads(
                query, key, value, mask=mask, is_causal=is_causal, distances=distances
            )
        *heads, near = blocks_of(query, key, value, self.window, mask, is_causal=is_causal)
        if distances is not None:
            distances = block_distances(self.window, is_causal=is_causal, device=query.device)
        read = self.attend_heads(*heads, mask=near, distances=distances)
        return read.reshape(len(query), -1, read.size(-1))[:, :length]

    def _heads(self, projected: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        widths = [self.n_heads * self.d_k, self.n_heads * self.d_k, self.n_heads * self.d_v]
        query, key, value = torch.split(projected, widths, dim=-1)
        return (
            see(self, "query", self._split(query, self.d_k)),
            see(self, "key", self._split(key, self.d_k)),
            see(self, "value", self._split(value, self.d_v)),
        )

    def _rotated(self, query: Tensor, key: Tensor, rotation: Rotation) -> tuple[Tensor, Tensor]:
        return (
            see(self, "rotated_query", rotate(query, rotation)),
            see(self, "rotated_key", rotate(key, rotation)),
        )

    def _split(self, x: Tensor, width: int) -> Tensor:
        """`(batch, length, n_heads * width)` → `(batch, n_heads, length, width)`."""
        batch, length, _ = x.shape
        return x.view(batch, length, self.n_heads, width).transpose(1, 2)
