"""Padding and causal masks.

A mask is bool and **True = may attend**; None = every position may attend to every other.
"""

import torch
from torch import Tensor


def padding_mask(ids: Tensor, pad_id: int) -> Tensor | None:
    """Mask padding: no position attends to it.

    Args:
        ids: token ids, `(batch, k_len)`.
        pad_id: id of `<pad>`.

    Returns:
        True at real tokens, `(batch, 1, 1, k_len)`; None when nothing is padded, which is faster.
    """
    is_real = ids != pad_id
    if bool(is_real.all()) and ids.size(1):
        return None
    return is_real[:, None, None, :]


def causal_mask(q_len: int, k_len: int, device: torch.device | None = None) -> Tensor:
    """Let position `t` read positions up to and including `t`, none after it.

    When `k_len > q_len`, the queries are the last `q_len` positions.

    Returns:
        Lower-triangular bool matrix, `(q_len, k_len)`.

    Source: Vaswani et al. 2017, section 3.2.3.
    """
    return torch.ones(q_len, k_len, dtype=torch.bool, device=device).tril(k_len - q_len)


def prefix_mask(length: int, n_prefix: int, device: torch.device | None = None) -> Tensor:
    """The causal mask of a sequence whose first `n_prefix` positions all read one another.

    Returns:
        Bool matrix, `(length, length)`.

    Source: Raffel et al. 2020, figure 3 ("causal with prefix").
    """
    mask = causal_mask(length, length, device)
    mask[:n_prefix, :n_prefix] = True
    return mask


def both(first: Tensor | None, second: Tensor | None) -> Tensor | None:
    """The intersection of two masks; None allows everything."""
    if first is None:
        return second
    return first if second is None else first & second
