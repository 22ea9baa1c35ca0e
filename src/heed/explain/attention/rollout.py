"""Attention rollout: the share of each input in each position, through all layers.

Attention of one layer mixes positions that are already mixtures. Rollout multiplies the matrices of
the layers, each averaged with the identity for the residual connection.
"""

import numpy as np

from heed.errors import UsageError
from heed.explain.attention.maps import maps, mean_of_heads
from heed.model.interface import Floats
from heed.translate.trace import Trace

_HALF = np.float32(0.5)


def rollout(layers: list[Floats]) -> list[Floats]:
    """Rollout of self-attention, Ã_l … Ã_1 with Ã = (A + I) / 2.

    Args:
        layers: mean over heads of each layer, rows that sum to 1, `(length, length)`.

    Returns:
        After each layer, the share of each input in each position, `(length, length)`; rows sum to
        1.

    Source: Abnar and Zuidema 2020, "Quantifying Attention Flow in Transformers", section 3.
    """
    shares = np.eye(layers[0].shape[-1], dtype=np.float32)
    found = []
    for weights in layers:
        shares = (shares + weights @ shares) * _HALF
        found.append(shares)
    return found


def rollout_to_source(
    self_attention: list[Floats], cross_attention: list[Floats], memories: list[Floats]
) -> list[tuple[Floats, Floats]]:
    """Rollout of a decoder: shares of the source and of the target's own inputs.

    Each sublayer averages its attention's mixture with its input: the self-attention as in
    `rollout`, then the cross-attention, which mixes the encoder's mixtures.

    Args:
        self_attention: mean over heads by layer, `(tgt_len, tgt_len)`.
        cross_attention: mean over heads by layer, `(tgt_len, src_len)`.
        memories: for each layer, rollout of the encoder after the layer that it reads,
            `(src_len, src_len)`.

    Returns:
        After each layer, shares of source `(tgt_len, src_len)` and target `(tgt_len, tgt_len)`
        inputs; a row of both together sums to 1.

    Source: Abnar and Zuidema 2020, section 3, carried through cross-attention.
    """
    of_target = np.eye(self_attention[0].shape[-1], dtype=np.float32)
    of_source = np.zeros_like(cross_attention[0])
    found = []
    for to_self, to_source, memory in zip(self_attention, cross_attention, memories, strict=True):
        of_target = (of_target + to_self @ of_target) * _HALF
        of_source = (of_source + to_self @ of_source) * _HALF
        of_target = of_target * _HALF
        of_source = (of_source + to_source @ memory) * _HALF
        found.append((of_source, of_target))
    return found


def rollout_of(
    trace: Trace, use: str, heads: list[dict[int, float] | None] | None = None
) -> list[Floats]:
    """Rollout of a trace after each layer.

    Args:
        trace: trace of a model whose layers have attention.
        use: `encoder` and `decoder` for self-attention alone; `cross` for the shares of the source
            in each target position, through decoder and encoder.
        heads: for each layer of this use, the weight of each head; None = all equal.

    Returns:
        For each layer, `(q_len, k_len)`. For `cross`, rows sum to less than 1; the rest is the
        target's own share.

    Raises:
        UsageError: the model has no attention of this use, or it is `joint`.
    """
    if use == "joint":
        raise UsageError("Rollout needs self-attention; use must be encoder, decoder or cross.")
    means = _means(trace, use, heads)
    if use != "cross":
        return rollout(means)
    memories = rollout(_means(trace, "encoder"))
    if "memory.0" not in trace:  # each decoder layer reads the last encoder layer
        memories = [memories[-1]] * len(means)
    pairs = rollout_to_source(_means(trace, "decoder"), means, memories)
    return [of_source for of_source, _ in pairs]


def _means(
    trace: Trace, use: str, heads: list[dict[int, float] | None] | None = None
) -> list[Floats]:
    layers = maps(trace, use)
    chosen = heads or [None] * len(layers)
    return [mean_of_heads(*pair) for pair in zip(layers, chosen, strict=True)]
