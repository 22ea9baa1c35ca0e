"""Attention of a recurrent decoder: a state is compared with every state of the encoder.

The score a(s, h) is a dot product or a small network; α = softmax(a), c = Σ α_j h_j.
"""

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from heed.model.fast.products import Linear


def attend(
    scores: Tensor,
    states: Tensor,
    src_mask: Tensor | None,
    *,
    see: Callable[[str, Tensor], Tensor] = lambda name, tensor: tensor,
) -> Tensor:
    """The mean of the encoder's states, weighted by the softmax of their scores.

    Args:
        scores: of each state for each query, `(n_sources, n_queries, src_len)`.
        states: the encoder's, `(n_sources, src_len, d_model)`.
        src_mask: True at real source tokens, `(n_sources, 1, src_len)`, or None.
        see: gets the name and value of each stage and returns the value; see `trace.py`.

    Returns:
        The contexts, `(n_sources, n_queries, d_model)`.
    """
    scores = see("energies", scores)
    if src_mask is None:
        weights = see("weights", scores.softmax(dim=-1))
    else:
        masked = scores.masked_fill(~src_mask, -math.inf)
        # A source without tokens would be 0/0 here; its weights are 0.
        weights = see("weights", masked.softmax(dim=-1).masked_fill(~src_mask, 0.0))
    return see("context", weights @ states)


class DotAttention(nn.Module):
    """a(s, h) = s · h. Source: Luong et al. 2015, section 3.1, "dot"."""

    def __init__(self, d_model: int) -> None:
        super().__init__()

    def keys(self, states: Tensor) -> Tensor:
        """The encoder's states as they are, `(n_sources, src_len, d_model)`."""
        return states

    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        """Compare queries with keys.

        Args:
            query: decoder states, `(n_sources, n_queries, d_model)`.
            keys: from `keys`, `(n_sources, src_len, d_model)`.

        Returns:
            `(n_sources, n_queries, src_len)`.
        """
        return query @ keys.mT


class AdditiveAttention(nn.Module):
    """a(s, h) = v · tanh(W s + U h + b). Source: Bahdanau et al. 2015, appendix A.1.2."""

    def __init__(self, d_model: int) -> None:
        super().__init__()
        self.score = nn.Parameter(torch.empty(d_model))
        nn.init.normal_(self.score, std=d_model**-0.5)
        self.project_query = Linear(d_model, d_model, bias=False)
        self.project_memory = Linear(d_model, d_model)

    def keys(self, states: Tensor) -> Tensor:
        """U h + b of the encoder's states, computed once, `(n_sources, src_len, d_model)`."""
        projected: Tensor = self.project_memory(states)
        return projected

    def scores(self, query: Tensor, keys: Tensor) -> Tensor:
        """Compare queries with keys.

        Args:
            query: decoder states, `(n_sources, n_queries, d_model)`.
            keys: from `keys`, `(n_sources, src_len, d_model)`.

        Returns:
            `(n_sources, n_queries, src_len)`.
        """
        compared = torch.tanh(self.project_query(query)[:, :, None] + keys[:, None])
        return compared @ self.score


ATTENTIONS: dict[str, type[DotAttention] | type[AdditiveAttention]] = {
    "dot": DotAttention,
    "additive": AdditiveAttention,
}
