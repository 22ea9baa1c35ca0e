"""How much the heads of an attention sublayer differ in what they read.

`compress/importance.py` tells how much each matters.
"""

import math
from collections.abc import Iterable

import torch
from torch import Tensor

from heed.data.batch import Batch
from heed.model.network import TorchNetwork
from heed.model.trace import recording


def head_distances(weights: Tensor) -> Tensor:
    """Jensen–Shannon distance of the attention rows of each two heads, the mean over rows.

    JS(p, q) = H((p + q) / 2) − (H(p) + H(q)) / 2 with H in bits: 0 for equal rows, 1 for rows that
    read from no common position.

    Args:
        weights: rows that sum to 1, `(batch, n_heads, q_len, k_len)`.

    Returns:
        Symmetric, `(n_heads, n_heads)`.

    Source: Lin 1991, "Divergence Measures Based on the Shannon Entropy", equation 3.6; between
        heads, Clark et al. 2019, "What Does BERT Look At?", section 6.
    """
    rows = weights.double().transpose(0, 1).flatten(1, 2)
    own = _entropy(rows)
    # A head at a time, because all pairs of rows at once would be n_heads times the memory.
    mixed = torch.stack([_entropy((row + rows) / 2) for row in rows])
    return (mixed - (own[:, None] + own) / 2).mean(dim=-1)


@torch.inference_mode()
def distances_by_sublayer(model: TorchNetwork, batches: Iterable[Batch]) -> dict[str, Tensor]:
    """`head_distances` in every attention sublayer, the mean over batches.

    Args:
        model: in evaluation mode.
        batches: in which rows of padding would count, so one sequence each is best.

    Returns:
        By the name of the sublayer, such as `decoder.0.cross_attention`, `(n_heads, n_heads)`.
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
