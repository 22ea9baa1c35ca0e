"""What each named tensor is: its axes, the operation that makes it, and the formula.

`trace.py` gives the names; the tests hold this table against the tensors of every family.
"""

import re
from dataclasses import dataclass

_SUBLAYER = re.compile(r"(self|cross|joint)_attention$")
_LAYER = re.compile(r"(encoder|decoder)\.\d+$")


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """What a named tensor is.

    Attributes:
        kind: the kind of its module, a dot and its own name: `attention.weights`.
        operation: what makes it, in a few words.
        formula: the same as a formula; X is what comes in.
        axes: names of its axes, without the batch.
    """

    kind: str
    operation: str
    formula: str
    axes: tuple[str, ...]


# Axes: {q} and {k} are the sides of queries and keys.
_TABLE: dict[str, tuple[str, str, str]] = {
    "embedding.tokens": ("embed", "E[id] · √d_model", "{q} d_model"),
    "embedding.sum": ("add the positions", "tokens + PE", "{q} d_model"),
    "attention.query": ("project", "Q = X W^Q + b^Q", "head {q} d_k"),
    "attention.key": ("project", "K = X W^K + b^K", "head {k} d_k"),
    "attention.value": ("project", "V = X W^V + b^V", "head {k} d_v"),
    "attention.rotated_query": ("rotate by position", "R(p) q_p", "head {q} d_k"),
    "attention.rotated_key": ("rotate by position", "R(p) k_p", "head {k} d_k"),
    "attention.products": ("inner products", "Q Kᵀ", "head {q} {k}"),
    "attention.scores": ("scale", "Q Kᵀ / √d_k", "head {q} {k}"),
    "attention.bias": ("bias of distances", "B", "head {q} {k}"),
    "attention.biased": ("add the bias", "Q Kᵀ / √d_k + B", "head {q} {k}"),
    "attention.masked": ("mask", "−∞ where reading is not allowed", "head {q} {k}"),
    "attention.weights": ("softmax", "A = softmax(scores)", "head {q} {k}"),
    "attention.context": ("weighted sum", "A V", "head {q} d_v"),
    "attention.relative": ("weighted sum of distances", "A a^V", "head {q} d_v"),
    "attention.joined": ("join the heads", "Concat(head_1, …, head_h)", "{q} heads·d_v"),
    "attention.out": ("project", "Concat(head_1, …, head_h) W^O + b^O", "{q} d_model"),
    "residual.normed": ("LayerNorm", "LayerNorm(X)", "{q} d_model"),
    "residual.sum": ("add", "X + Sublayer(X)", "{q} d_model"),
    "residual.out": ("residual connection", "LayerNorm(X + Sublayer(X))", "{q} d_model"),
    "feed_forward.expanded": ("project", "X W_1 + b_1", "{q} d_ff"),
    "feed_forward.activated": ("activation", "f(X W_1 + b_1)", "{q} d_ff"),
    "feed_forward.out": ("project", "f(X W_1 + b_1) W_2 + b_2", "{q} d_model"),
    "layer.in": ("input", "X", "{q} d_model"),
    "layer.out": ("output", "X", "{q} d_model"),
    "network.memory": ("output of the encoder", "M", "src d_model"),
    "network.states": ("output of the decoder", "H", "tgt d_model"),
    "network.logits": ("project to the vocabulary", "H Eᵀ", "tgt piece"),
    "network.log_probs": ("log softmax", "log softmax(H Eᵀ)", "tgt piece"),
}


def stage_of(name: str) -> Stage:
    """What the tensor of this name is.

    Raises:
        KeyError: no module shows a tensor of this name.
    """
    module, _, last = name.rpartition(".")
    kind = f"{_kind_of(module)}.{last}"
    operation, formula, axes = _TABLE[kind]
    side = "tgt" if module.startswith(("decoder", "embed_tgt")) else "src"
    memory = "src" if "cross_attention" in module else side
    return Stage(
        kind=kind,
        operation=operation,
        formula=formula,
        axes=tuple(axes.format(q=side, k=memory).split()),
    )


def _kind_of(module: str) -> str:
    """The kind of module that has this name in a model."""
    last = module.rpartition(".")[2]
    if not module:
        return "network"
    if last.startswith("embed"):
        return "embedding"
    if last.startswith("around_"):
        return "residual"
    if _SUBLAYER.search(module):
        return "attention"
    return "layer" if _LAYER.search(module) else last
