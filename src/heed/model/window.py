"""Windowed self-attention: each position reads only those within `window` positions of it.

Time and memory grow with the length of the sequence, not with its square.
"""

import torch
import torch.nn.functional as F
from torch import Tensor

MIN_BLOCK = 32
"""With shorter blocks, the extra calls cost more than the saved products."""


def receptive_field(n_layers: int, window: int, *, is_causal: bool) -> int:
    """The number of input positions that a position after `n_layers` windowed layers depends on.

    Each layer reaches `window` positions further: n_layers · window before a position, itself and,
    unless the layers are causal, as many after it.

    Args:
        n_layers: self-attention layers in a stack.
        window: positions that each layer reads to one side.
        is_causal: no layer reads a later position.
    """
    return 1 + n_layers * window * (1 if is_causal else 2)


def window_mask(q_len: int, k_len: int, window: int, device: torch.device | None = None) -> Tensor:
    """Let position t read positions t - window … t + window.

    When `k_len > q_len`, the queries are the last `q_len` positions.

    Returns:
        Bool matrix, `(q_len, k_len)`.
    """
    near = torch.ones(q_len, k_len, dtype=torch.bool, device=device)
    offset = k_len - q_len
    return near.tril(offset + window).triu(offset - window)


def blocks_of(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    window: int,
    mask: Tensor | None = None,
    *,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Cut a sequence into blocks, each with the keys and values that its queries may read.

    A block is as long as the window, so its keys lie in it, in the block before and, unless causal,
    in the block after. Blocks become rows of the batch.

    Args:
        query: `(batch, n_heads, length, d_k)`.
        key: `(batch, n_heads, length, d_k)`.
        value: `(batch, n_heads, length, d_v)`.
        window: positions to one side that a query reads besides its own.
        mask: True at keys that may be read, `(batch, 1, 1, length)`.
        is_causal: position t also reads no position after t.

    Returns:
        Queries, keys and values with a row for each block in the place of `batch`, and the mask of
        these rows. A row has as many queries as `block_len` says, and two or three times the keys.

    Source: Beltagy et al. 2020, "Longformer", section 3.1 and appendix A (chunks).
    """
    length, size = query.size(2), block_len(window)
    n_blocks = -(-length // size)
    starts = size * torch.arange(n_blocks, device=query.device)[:, None]
    at = starts + torch.arange(size, device=query.device)
    span = (2 if is_causal else 3) * size
    read_at = (starts + torch.arange(span, device=query.device) - size)[:, None]
    near = (read_at - at[:, :, None]).abs() <= window
    near &= (read_at >= 0) & (read_at < length)
    if is_causal:
        near &= read_at <= at[:, :, None]
    allowed = near[None, :, None]
    if mask is not None:
        readable = _as_rows(_with_neighbors(_cut(mask.mT, n_blocks, size), is_causal)).mT
        allowed = allowed & readable.view(len(mask), n_blocks, *readable.shape[1:])
    return (
        _as_rows(_cut(query, n_blocks, size)),
        _as_rows(_with_neighbors(_cut(key, n_blocks, size), is_causal)),
        _as_rows(_with_neighbors(_cut(value, n_blocks, size), is_causal)),
        allowed.expand(len(query), -1, -1, -1, -1).flatten(0, 1),
    )


def block_distances(window: int, *, is_causal: bool, device: torch.device | None = None) -> Tensor:
    """Positions of a block's keys minus those of its queries, the same in all blocks.

    Returns:
        Whole numbers, with as many queries and keys as a row of `blocks_of` has.
    """
    size = block_len(window)
    read_at = torch.arange((2 if is_causal else 3) * size, device=device) - size
    return read_at - torch.arange(size, device=device)[:, None]


def block_len(window: int) -> int:
    """The number of queries in a block."""
    return max(window, MIN_BLOCK)


def _cut(x: Tensor, n_blocks: int, size: int) -> Tensor:
    """`(batch, n_heads, length, width)` → `(batch, n_heads, n_blocks, size, width)`."""
    padded = F.pad(x, (0, 0, 0, n_blocks * size - x.size(2)))
    return padded.view(*x.shape[:2], n_blocks, size, x.size(3))


def _with_neighbors(blocks: Tensor, is_causal: bool) -> Tensor:
    """Each block, preceded by the block before it and, unless causal, followed by the next one."""
    n_blocks = blocks.size(2)
    padded = F.pad(blocks, (0, 0, 0, 0, 1, 0 if is_causal else 1))
    parts = [padded[:, :, first : first + n_blocks] for first in range(2 if is_causal else 3)]
    return torch.cat(parts, dim=3)


def _as_rows(blocks: Tensor) -> Tensor:
    """`(batch, n_heads, n_blocks, size, width)` → `(batch * n_blocks, n_heads, size, width)`."""
    return blocks.transpose(1, 2).flatten(0, 1)
