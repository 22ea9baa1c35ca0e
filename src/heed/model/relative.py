"""Positions as distances inside self-attention: ALiBi's penalties and Shaw's learned vectors.

A distance is a key's position minus the query's, `(q_len, n_keys)`, from `RelativePositions`. Keys
in front of these `n_keys`, such as those of a memory, have no distance.
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def alibi_slopes(n_heads: int) -> list[float]:
    """m_h = 2^(-8h/n), h = 1 … n: a geometric series that ends with 1/256, for n a power of two.

    Other numbers of heads take the series of the power of two below, then every other slope of the
    power of two above, as the authors' code does.

    Source: Press et al. 2022, section 3 and the code beside it.
    """
    power = 2 ** math.floor(math.log2(n_heads))
    slopes = [2 ** (-8 * head / power) for head in range(1, power + 1)]
    between = [2 ** (-4 * head / power) for head in range(1, 2 * power, 2)]
    return slopes + between[: n_heads - power]


class AlibiBias(nn.Module):
    """-m_h |i - j| for each head: the more distant a key, the less weight.

    Source: Press et al. 2022, "Train Short, Test Long: Attention with Linear Biases Enables Input
    Length Extrapolation", section 3; symmetric where both directions are read.
    """

    def __init__(self, n_heads: int) -> None:
        super().__init__()
        self.slopes: Tensor
        slopes = torch.tensor(alibi_slopes(n_heads))[:, None, None]
        self.register_buffer("slopes", slopes, persistent=False)

    def bias(self, query: Tensor, distances: Tensor) -> Tensor:
        """The bias that is added to the scores.

        Args:
            query: gives the dtype, `(batch, n_heads, q_len, d_k)`.
            distances: whole numbers, `(q_len, n_keys)`.

        Returns:
            `(1, n_heads, q_len, n_keys)`.
        """
        return (-self.slopes * distances.abs()).to(query.dtype)[None]


class ShawVectors(nn.Module):
    """A learned vector for each distance, added to the keys and one added to the values.

    e_ij = q_i·(k_j + a^K_ij) / √d_k and z_i = Σ_j α_ij (v_j + a^V_ij), where a_ij is the vector of
    the distance j - i, cut to -max_distance … max_distance. Heads share the vectors.

    Args:
        d_k: width of queries and keys in one head.
        d_v: width of values in one head.
        max_distance: the largest distance with a vector of its own.

    Source: Shaw et al. 2018, "Self-Attention with Relative Position Representations", equations 3
    to 5.
    """

    def __init__(self, d_k: int, d_v: int, max_distance: int) -> None:
        super().__init__()
        self.max_distance = max_distance
        self.keys = nn.Parameter(torch.empty(2 * max_distance + 1, d_k))
        self.values = nn.Parameter(torch.empty(2 * max_distance + 1, d_v))
        nn.init.xavier_uniform_(self.keys)
        nn.init.xavier_uniform_(self.values)

    def bias(self, query: Tensor, distances: Tensor) -> Tensor:
        """q_i·a^K_ij / √d_k, added to the scores.

        Args:
            query: `(batch, n_heads, q_len, d_k)`.
            distances: whole numbers, `(q_len, n_keys)`.

        Returns:
            `(batch, n_heads, q_len, n_keys)`.
        """
        # One product for each distance there is, not for each key.
        by_distance = query @ self.keys.T / math.sqrt(query.size(-1))
        rows = self._rows(distances)
        return by_distance.gather(-1, rows.expand(*query.shape[:3], -1))

    def context(self, weights: Tensor, distances: Tensor) -> Tensor:
        """Σ_j α_ij a^V_ij, added to the context.

        Args:
            weights: of keys that have a distance, `(batch, n_heads, q_len, n_keys)`.
            distances: whole numbers, `(q_len, n_keys)`.

        Returns:
            `(batch, n_heads, q_len, d_v)`.
        """
        rows = self._rows(distances).expand_as(weights)
        by_distance = weights.new_zeros(*weights.shape[:3], len(self.values))
        return by_distance.scatter_add(-1, rows, weights) @ self.values

    def _rows(self, distances: Tensor) -> Tensor:
        return distances.clamp(-self.max_distance, self.max_distance) + self.max_distance


Relative = AlibiBias | ShawVectors


def for_all_keys(bias: Tensor, k_len: int) -> Tensor:
    """A bias with zeros for the keys in front, which have no distance.

    Args:
        bias: `(batch, n_heads, q_len, n_keys)`.
        k_len: number of keys in all.

    Returns:
        `(batch, n_heads, q_len, k_len)`.
    """
    return F.pad(bias, (k_len - bias.size(-1), 0))
