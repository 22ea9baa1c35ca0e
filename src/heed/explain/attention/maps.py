"""Attention maps of a trace: by use, layer, head and stage, with their entropy.

A row belongs to the position that attends, a column to the position that it attends to.
"""

import re

import numpy as np

from heed.errors import UsageError
from heed.model.interface import Floats
from heed.translate.trace import Trace

USES = ("encoder", "decoder", "cross", "joint")
"""Self-attention of the encoder and of the decoder, attention of the decoder to the source, and
attention to source and target together."""

STAGES = ("products", "scores", "masked", "weights")
"""From inner products to weights: Q Kᵀ, divided by √d_k, masked, after the softmax."""

_SUBLAYERS = {
    "encoder": re.compile(r"encoder(\.\d+)?\.self_attention"),
    "decoder": re.compile(r"decoder(\.\d+)?\.self_attention"),
    "cross": re.compile(r"(decoder(\.\d+)?\.)?cross_attention"),
    "joint": re.compile(r"decoder(\.\d+)?\.joint_attention"),
}


def sublayers(trace: Trace, use: str) -> list[str]:
    """Names of the attention sublayers of one use, first layer first.

    Args:
        trace: trace of a model with attention.
        use: one of `USES`.

    Raises:
        UsageError: the use is unknown, or this model lacks it.
    """
    if use not in USES:
        raise UsageError(f"use must be one of {', '.join(USES)}, but is {use!r}.")
    found = [name for name in _attentions(trace) if _SUBLAYERS[use].fullmatch(name)]
    if not found:
        raise UsageError(f"This model has no {use} attention; it has: {', '.join(uses_of(trace))}.")
    return found


def _attentions(trace: Trace) -> list[str]:
    return [name.removesuffix(".weights") for name in trace.named("attention.weights")]


def uses_of(trace: Trace) -> list[str]:
    """The uses of attention that a model has, in the order of `USES`; at least one.

    Raises:
        UsageError: it has none.
    """
    names = _attentions(trace)
    found = [use for use in USES if any(map(_SUBLAYERS[use].fullmatch, names))]
    if not found:
        raise UsageError("This model has no attention.")
    return found


def maps(trace: Trace, use: str, stage: str = "weights") -> list[Floats]:
    """The attention of every layer in one use.

    Args:
        trace: trace of a model with attention.
        use: one of `USES`.
        stage: one of `STAGES`. If nothing is masked, `masked` is the stage before it; `scores`
            include the terms of relative positions.

    Returns:
        For each layer, `(n_heads, q_len, k_len)`.

    Raises:
        UsageError: the use or stage is unknown, or this model lacks it.
    """
    if stage not in STAGES:
        raise UsageError(f"stage must be one of {', '.join(STAGES)}, but is {stage!r}.")
    return [_stage(trace, name, stage) for name in sublayers(trace, use)]


def tokens(trace: Trace, use: str) -> tuple[list[str], list[str]]:
    """The pieces of the rows and of the columns of the maps of one use.

    A decoder row is labeled with the piece that it reads; the piece that it writes is in
    `Trace.expected_tokens`.
    """
    rows, columns = trace.node(f"{sublayers(trace, use)[0]}.weights").axes[-2:]
    return _pieces(trace, rows), _pieces(trace, columns)


def entropy(weights: Floats) -> Floats:
    """H(p) = −Σ p log₂ p of each row, in bits: 0 for a single position, log₂ n for n equal weights.

    Args:
        weights: rows that sum to 1, `(…, k_len)`.

    Returns:
        `(…,)`.
    """
    logs = np.log2(weights, where=weights > 0, out=np.zeros_like(weights))
    bits: Floats = -(weights * logs).sum(axis=-1)
    return bits


def softmax(scores: Floats) -> Floats:
    """The softmax of scores: e^x divided by the sum of its row; −∞ becomes 0.

    Args:
        scores: `(…, k_len)`, with a finite score in each row.
    """
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights: Floats = powers / powers.sum(axis=-1, keepdims=True)
    return weights


def without_columns(weights: Floats, columns: list[int]) -> Floats:
    """Weights without some key positions; the others are divided by their new sum.

    Args:
        weights: rows that sum to 1, `(…, k_len)`.
        columns: positions to leave out, such as `<eos>`.

    Returns:
        The same shape; 0 in these columns, and in rows without any other weight.
    """
    kept = weights.copy()
    kept[..., columns] = 0
    total = kept.sum(axis=-1, keepdims=True)
    shares: Floats = np.divide(kept, total, where=total > 0, out=np.zeros_like(kept))
    return shares


def mean_of_heads(weights: Floats, heads: dict[int, float] | None = None) -> Floats:
    """The weighted mean over heads.

    Args:
        weights: `(n_heads, q_len, k_len)`.
        heads: the weight of each head; None = all equal.

    Returns:
        `(q_len, k_len)`.

    Raises:
        UsageError: a head does not exist, or all weights are 0.
    """
    if heads is None:
        heads = dict.fromkeys(range(len(weights)), 1.0)
    if unknown := [head for head in heads if head not in range(len(weights))]:
        raise UsageError(f"head must lie between 0 and {len(weights) - 1}, but is {unknown[0]}.")
    total = sum(heads.values())
    if min(heads.values(), default=0) < 0 or total <= 0:
        raise UsageError("Shares of heads must not be negative, and one must be larger than 0.")
    shares = np.array([*heads.values()]) / total
    mean: Floats = np.tensordot(shares, weights[[*heads]], axes=1).astype(np.float32)
    return mean


def _pieces(trace: Trace, axis: str) -> list[str]:
    """The pieces along an axis: `src`, `tgt`, or both, `src+tgt`."""
    sides = {"src": trace.source_tokens, "tgt": trace.target_tokens}
    return [piece for side in axis.split("+") for piece in sides[side]]


def _stage(trace: Trace, sublayer: str, stage: str) -> Floats:
    """A stage of one sublayer, or the last stage before it if it is missing."""
    orders = {
        "products": ["products"],
        "scores": ["biased", "scores"],
        "masked": ["masked", "biased", "scores"],
        "weights": ["weights"],
    }
    for part in orders[stage]:
        if (name := f"{sublayer}.{part}") in trace:
            return trace[name]
    raise UsageError(f"The attention {sublayer} of this model has no stage {stage}.")
