"""Differences between the heads of an attention sublayer, by what they attend to.

`compress/importance.py` measures how much each head matters.
"""

import math
from collections.abc import Iterable

import torch
from torch import Tensor

from heed.data.batch import Batch
from heed.model.network import TorchNetwork
from heed.model.trace import recording


def head_distances(weights: Tensor) -> Tensor:
    """Jensen–Shannon distance between the attention rows of two heads, for all pairs of heads.

    JS(p, q) = H((p + q) / 2) − (H(p) + H(q)) / 2 with H in bits, and the mean over rows. It is 0
    for equal rows, and 1 for rows that attend to no common position.

    Args:
        weights: rows that sum to 1, `(batch, n_heads, q_len, k_len)`.

    Returns:
        Symmetric, `(n_heads, n_heads)`.

    Source: Lin 1991, "Divergence Measures Based on the Shannon Entropy", equation 3.6; between
        heads, Clark et al. 2019, "What Does BERT Look At?", section 6.
    """
    rows = weights.double().transpose(0, 1).flatten(1, 2)
    own = _entropy(rows)
    # One head at a time, because all pairs at once would take n_heads times the memory.
    mixed = torch.stack([_entropy((row + rows) / 2) for row in rows])
    return (mixed - (own[:, None] + own) / 2).mean(dim=-1)


@torch.inference_mode()
def distances_by_sublayer(model: TorchNetwork, batches: Iterable[Batch]) -> dict[str, Tensor]:
    """`head_distances` of every attention sublayer, averaged over batches.

    Args:
        model: in evaluation mode.
        batches: best with one sequence each, because padding rows are counted, too.

    Returns:
        For the name of each sublayer, such as `decoder.0.cross_attention`, `(n_heads, n_heads)`.
    """
    found: dict[str, list[Tensor]] = {}
    for batch in batches:
        with recording(model, "attention.weights") as caught:
            model(batch.src, batch.tgt_in, batch.src_mask)
        for name, weights in caught.items():
            found.setdefault(name.removesuffix(".weights"), []).append(head_distances(weights))
    return {name: torch.stack(each).mean(dim=0) for name, each in found.items()}


def _entropy(rows: Tensor) -> Tensor:
    """H in bits of each row `(…, k_len)`."""
    entropy: Tensor = torch.special.entr(rows).sum(dim=-1) / math.log(2)
    return entropy
