"""What each named tensor is: its axes, the operation that makes it, and the formula.

`trace.py` gives the names; the tests compare these tables with the tensors of every family with
every option.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from heed.model.bag.config import BagConfig
from heed.model.config import LINEAR, AnyConfig, LayerConfig, ModelConfig
from heed.model.convolutional.config import ConvConfig
from heed.model.one_stack.config import DecoderConfig, EncoderConfig
from heed.model.recurrent.config import RecurrentConfig

BOTH = "src+tgt"
"""The axis of a sequence that is the source followed by the target."""

Row = tuple[str, str, str]
"""Operation, formula and axes; {q} and {k} are the sequences of queries and of keys."""
Table = Mapping[str, Row]
"""By the kind of module, a dot and the tensor's own name."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Stage:
    """What a named tensor is.

    Attributes:
        kind: the kind of its module, a dot and its own name: `attention.weights`.
        operation: the operation that makes it, in a few words.
        formula: the same as a formula; X is the input.
        axes: names of its axes, without the batch.
    """

    kind: str
    operation: str
    formula: str
    axes: tuple[str, ...]


class Stages:
    """The stages of one model.

    Args:
        config: its shape.
        has_source: False for a language model, which continues a text.
        has_table: False for a model of image patches, which has no table of tokens.

    Attributes:
        rows: by kind, every kind of tensor that this family may have.
    """

    def __init__(
        self, config: AnyConfig, *, has_source: bool = True, has_table: bool = True
    ) -> None:
        self._family = _FAMILIES[config.family]
        self.rows = dict(self._family.rows(config))
        if not has_table:
            _, formula, axes = self.rows["embedding.tokens"]
            formula = formula.replace("E[id]", "(X W + b)")
            self.rows["embedding.tokens"] = "project each patch", formula, axes
        self._readers = self._family.readers(config)
        self._has_source = has_source

    def of(self, name: str) -> Stage:
        """What the tensor of this name is.

        Raises:
            KeyError: no module of this model has a tensor of this name.
        """
        module, _, last = _NUMBER.sub("", name).rpartition(".")
        kind = f"{self._kind_of(module)}.{last}"
        operation, formula, axes = self.rows[kind]
        queries, keys = self._sequences(module, last)
        return Stage(
            kind=kind,
            operation=operation,
            formula=formula,
            axes=tuple(axes.format(q=queries, k=keys).split()),
        )

    def _kind_of(self, module: str) -> str:
        """The kind of module that has this name in a model."""
        for pattern, kind in _KINDS.items():
            if re.search(pattern, module):
                return kind
        if module.endswith(".self_attention"):
            return self._readers[module.partition(".")[0]]
        return module

    def _sequences(self, module: str, last: str) -> tuple[str, str]:
        """The sequences of queries and of keys of a tensor."""
        queries, keys = self._family.sequences(module, last)
        if self._has_source:
            return queries, keys
        return queries.replace(BOTH, "tgt"), keys.replace(BOTH, "tgt")


_NUMBER = re.compile(r"\.\d+$")
"""Of the memories, if there are several."""
_KINDS = {
    r"^$": "network",
    r"embed(_src|_tgt)?$": "embedding",
    r"\.around_[a-z_]+$": "residual",
    r"feed_forward$": "feed_forward",
    r"(cross|joint)_attention$": "attention",
    r"^(encoder|decoder)\.\d+$": "layer",
    r"^encoder\.\d+\.(forwards|backwards)$": "cell",
}
"""By the end of a module's name, the kind of module in every family."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Family:
    """The stages of a family.

    Attributes:
        rows: of a config.
        readers: of a config, the kind of `self_attention` in each stack.
        sequences: of a module's and a tensor's name, the sequences of its queries and keys.
    """

    rows: Callable[[Any], Table]
    readers: Callable[[Any], Mapping[str, str]]
    sequences: Callable[[str, str], tuple[str, str]]


def _two_stacks(module: str, last: str) -> tuple[str, str]:
    """An encoder of the source, and a decoder of the target that reads it."""
    if "cross_attention" in module:
        return "tgt", "src"
    if "joint_attention" in module:
        return "tgt", {"memory_": "src", "target_": "tgt"}.get(last[:7], BOTH)
    is_tgt = module.startswith(("decoder", "embed_tgt")) or last in _OF_TARGET
    return ("tgt", "tgt") if is_tgt else ("src", "src")


def _one_decoder(module: str, last: str) -> tuple[str, str]:
    """One stack over the source and the target after it."""
    if module.startswith("decoder"):
        return BOTH, BOTH
    is_src = last.startswith("src_") or last == "embedded_src"
    return ("src", "src") if is_src else ("tgt", "tgt")


def _one_encoder(module: str, last: str) -> tuple[str, str]:
    return "src", "src"


_OF_TARGET = ("states", "logits", "log_probs", "embedded_tgt")


def _of_layers(config: LayerConfig) -> Table:
    """Embedding, attention, residual connection and feed-forward network."""
    return {
        **_embedding(config, "tokens", "sum"),
        **_attention(config),
        **_residual(config),
        **_feed_forward(config),
        "layer.in": ("input", "X", "{q} d_model"),
        "layer.out": ("output", "X", "{q} d_model"),
    }


def _embedding(config: LayerConfig, tokens: str, with_positions: str) -> Table:
    scaled = "E[id] · √d_model" if config.scale_embedding else "E[id]"
    added = ("add the positions", "tokens + PE")
    if config.positions in ("none", "rotary", "shaw", "alibi"):
        added = ("no positions are added", "tokens")
    elif config.normalize_positions:
        added = ("add the positions", "tokens + PE / |PE|")
    return {
        f"embedding.{tokens}": ("embed", scaled, "{q} d_model"),
        f"embedding.{with_positions}": (*added, "{q} d_model"),
    }


_SCORES = {
    "softmax": ("Q Kᵀ", "Q Kᵀ / √d_k"),
    "unscaled": ("√d_k Q Kᵀ", "Q Kᵀ"),
    "cosine": ("d_k cos(Q, K)", "√d_k cos(Q, K)"),
    "gaussian": ("(Q Kᵀ − |K|² / 2) √((d_k + 1) / d_k)", "(Q Kᵀ − |K|² / 2) / √d_k"),
    "linear": ("", ""),
    "favor": ("", ""),
}
"""By the kind of attention, the formulas of `products` and `scores`."""
_OTHER_SCORES = ("Q′ K′ᵀ", "Q′ K′ᵀ / √d_k")
"""Those of a kind without a row, which passes other queries and keys to `attend`."""


def _attention(config: LayerConfig) -> Table:
    products, scores = _SCORES.get(config.attention, _OTHER_SCORES)
    bias = "Q (a^K)ᵀ" if config.attention == "unscaled" else "Q (a^K)ᵀ / √d_k"
    bias = "−m_h |i − j|" if config.positions == "alibi" else bias
    masked = ("mask", "S, −∞ where reading is not allowed")
    weights = ("softmax", "A = softmax(S)")
    if config.mask == "after":
        masked = ("softmax, then mask", "softmax(S), 0 where reading is not allowed")
        weights = ("divide by the sum", "A = softmax(S), divided by the sum of each row")
    if config.attention in LINEAR:
        weights = ("kernel", "A = φ(Q) φ(K)ᵀ, divided by the sum of each row")
    of_keys = {
        f"attention.{name}": ("project", _with_bias(formula, config), "head {k} " + width)
        for names, formula, width in (
            (("key", "memory_key", "target_key"), "K = X W^K + b^K", "d_k"),
            (("value", "memory_value", "target_value"), "V = X W^V + b^V", "d_v"),
        )
        for name in names
    }
    out = ("project", _with_bias("C W^O + b^O", config))
    if not config.output_projection:
        out = ("no projection", "C")
    return of_keys | {
        "attention.query": ("project", _with_bias("Q = X W^Q + b^Q", config), "head {q} d_k"),
        "attention.rotated_query": ("rotate by position", "Q := R(p) q_p", "head {q} d_k"),
        "attention.rotated_key": ("rotate by position", "K := R(p) k_p", "head {k} d_k"),
        "attention.products": ("inner products", products, "head {q} {k}"),
        "attention.scores": ("scale", f"S = {scores}", "head {q} {k}"),
        "attention.bias": ("bias of distances", f"B = {bias}", "head {q} {k}"),
        "attention.biased": ("add the bias", f"S = {scores} + B", "head {q} {k}"),
        "attention.masked": (*masked, "head {q} {k}"),
        "attention.weights": (*weights, "head {q} {k}"),
        "attention.context": ("weighted sum", "A V", "head {q} d_v"),
        "attention.relative": ("weighted sum of distances", "A a^V", "head {q} d_v"),
        "attention.joined": ("join the heads", "C = Concat(A_1 V_1, …, A_h V_h)", "{q} heads·d_v"),
        "attention.out": (*out, "{q} d_model"),
    }


def _residual(config: LayerConfig) -> Table:
    added = "X + Sublayer(X)" if config.residual else "Sublayer(X)"
    out = {
        "post": ("LayerNorm", f"LayerNorm({added})"),
        "pre": ("residual connection", added.replace("(X)", "(LayerNorm(X))")),
        "none": ("residual connection", added),
    }[config.norm]
    if not config.residual and config.norm != "post":
        out = ("no residual connection", out[1])
    return {
        "residual.normed": ("LayerNorm", "LayerNorm(X)", "{q} d_model"),
        "residual.sum": ("add", added, "{q} d_model"),
        "residual.out": (*out, "{q} d_model"),
    }


def _feed_forward(config: LayerConfig) -> Table:
    inner = _with_bias("X W_1 + b_1", config)
    activated = {
        "relu": ("ReLU", f"F = max(0, {inner})"),
        "gelu": ("GELU", f"F = GELU({inner})"),
        "swiglu": ("gate", "F = Swish(G) ⊙ U"),
    }[config.activation]
    is_gated = config.activation == "swiglu"
    expanded = (f"[G, U] = {inner}", "2·d_ff") if is_gated else (inner, "d_ff")
    return {
        "feed_forward.expanded": ("project", expanded[0], f"{{q}} {expanded[1]}"),
        "feed_forward.activated": (*activated, "{q} d_ff"),
        "feed_forward.out": ("project", _with_bias("F W_2 + b_2", config), "{q} d_model"),
    }


def _transformer(config: ModelConfig) -> Table:
    memory = "LayerNorm(X)" if config.norm == "pre" else "X"
    return {
        **_of_layers(config),
        **_target_readers(config),
        **_output("tgt ", "LayerNorm(X)" if config.norm == "pre" else "X", config.tied != "none"),
        # With cross_from = same there is one for each layer, and its number follows the name.
        "network.memory": ("output of the encoder", f"M = {memory}", "src d_model"),
    }


def _target_readers(config: ModelConfig) -> Table:
    """The sublayers that can replace a decoder's self-attention."""
    gates = _with_bias("[i, f] = σ([X, G] W + b)", config)
    mean = "ḡ_j = (x_1 + … + x_j) / j"
    forget, candidate = (
        _with_bias(formula, config) for formula in ("f_t = σ(W_f x_t + b_f)", "z_t = W x_t + b")
    )
    return {
        "average.mean": ("mean of all so far", mean, "{q} d_model"),
        "average.gates": ("gates", gates, "{q} 2·d_model"),
        "average.out": ("weigh input and mean", "i ⊙ X + f ⊙ G", "{q} d_model"),
        "ssru.forget": ("forget gate", forget, "{q} d_model"),
        "ssru.candidate": ("candidate", candidate, "{q} d_model"),
        "ssru.state": ("gated sum", "c_t = f_t ⊙ c_{t−1} + (1 − f_t) ⊙ z_t", "{q} d_model"),
        "ssru.out": ("ReLU", "max(0, c_t)", "{q} d_model"),
    }


def _readers(config: ModelConfig) -> Mapping[str, str]:
    return {"encoder": "attention", "decoder": config.decoder_self}


def _convolutional(config: ConvConfig) -> Table:
    return {
        **_transformer(config),
        "convolution.projected": (
            *("project", _with_bias("[V, G] = X W + b", config), "{q} 2·d_model"),
        ),
        "convolution.gated": ("gate", "Z = V ⊙ σ(G)", "{q} d_model"),
        "convolution.mixed": ("convolve", "Y_t = Σ_j w_j ⊙ Z_{t+j}", "{q} d_model"),
        "convolution.out": ("project", _with_bias("Y W^O + b^O", config), "{q} d_model"),
    }


def _decoder(config: DecoderConfig) -> Table:
    last = "LayerNorm(X)" if config.norm == "pre" else "X"
    return {
        **_of_layers(config),
        **_embedding(config, "src_tokens", "src_sum"),
        **_embedding(config, "tgt_tokens", "tgt_sum"),
        **_output("tgt ", last, config.tied != "none"),
        "network.embedded_src": ("add the vector of the side", "X + s_src", "src d_model"),
        "network.embedded_tgt": ("add the vector of the side", "X + s_tgt", "tgt d_model"),
    }


def _encoder(config: EncoderConfig) -> Table:
    memory = "M = LayerNorm(X)" if config.norm == "pre" else "M = X"
    is_pooled = config.pooling == "mean"
    output = _output(
        "text ", "mean of the rows of M", is_tied=config.tied != "none", outputs="label"
    )
    if not is_pooled:
        output = _output("src ", "M", is_tied=config.tied != "none")
    return {
        **_of_layers(config),
        **output,
        "network.memory": ("output of the encoder", memory, "src d_model"),
    }


def _bag(config: BagConfig) -> Table:
    formula = "Σ w_i v_i / √(Σ w_i²), and a 1"
    return {
        **_output("text ", formula, is_tied=False, outputs="label"),
        "network.states": ("weighted sum of the n-grams", formula, "text d_model"),
    }


def _recurrent(config: RecurrentConfig) -> Table:
    states = "tanh(W [s_t; c_t] + b)"
    if config.residual:
        states = "c_t + W [s_t; c_t] + b"
    if config.attention == "none":
        states = "s_t"
    energies = "e_j = s · h_j" if config.attention == "dot" else "e_j = v · tanh(W s + U h_j + b)"
    return {
        **_output("tgt ", states, config.tied != "none"),
        "network.embedded_src": ("embed", "E[id] · √d_model", "src d_model"),
        "network.embedded_tgt": ("embed", "E[id] · √d_model", "tgt d_model"),
        "network.memory": ("output of the encoder", "M = h_1, …, h_n", "src d_model"),
        "network.last": ("the state after the last token", "h_n", "d_model"),
        "bridge.out": ("first states of the decoder", "s_0 = tanh(W h_n + b)", "layer·d_model"),
        "layer.in": ("input", "X", "{q} d_model"),
        "layer.out": ("output", "h_t", "{q} d_model"),
        # A cell of the encoder is a part of its layer, one of the decoder is the layer.
        **{f"cell.{name}": (*row, "{q} width") for name, row in _CELLS[config.cell].items()},
        **{f"layer.{name}": (*row, "{q} d_model") for name, row in _CELLS[config.cell].items()},
        "attention.energies": ("compare", energies, "head {q} {k}"),
        "attention.weights": ("softmax", "α = softmax(e)", "head {q} {k}"),
        "attention.context": ("weighted sum", "c_t = Σ_j α_j h_j", "head {q} d_model"),
    }


_CELLS: dict[str, dict[str, tuple[str, str]]] = {
    "tanh": {"state": ("state", "h_t = tanh(W x_t + U h_{t-1} + b)")},
    "gru": {
        "reset_gate": ("gate", "r = σ(W_r x_t + U_r h_{t-1} + b_r)"),
        "update_gate": ("gate", "z = σ(W_z x_t + U_z h_{t-1} + b_z)"),
        "candidate": ("candidate", "n = tanh(W_n x_t + b_n + r ⊙ (U_n h_{t-1} + c_n))"),
        "state": ("state", "h_t = (1 − z) ⊙ n + z ⊙ h_{t-1}"),
    },
    "lstm": {
        "input_gate": ("gate", "i = σ(W_i x_t + U_i h_{t-1} + b_i)"),
        "forget_gate": ("gate", "f = σ(W_f x_t + U_f h_{t-1} + b_f)"),
        "candidate": ("candidate", "g = tanh(W_g x_t + U_g h_{t-1} + b_g)"),
        "memory_cell": ("memory cell", "c_t = f ⊙ c_{t-1} + i ⊙ g"),
        "output_gate": ("gate", "o = σ(W_o x_t + U_o h_{t-1} + b_o)"),
        "state": ("state", "h_t = o ⊙ tanh(c_t)"),
    },
}
"""By kind of cell, its gates and states: operation and formula."""


def _output(side: str, states: str, is_tied: bool, *, outputs: str = "piece") -> Table:
    """From the last states to probabilities."""
    product = "H Eᵀ" if is_tied else "H Wᵀ"
    return {
        "network.states": ("what the output layer reads", f"H = {states}", f"{side}d_model"),
        "network.logits": ("score each output", product, f"{side}{outputs}"),
        "network.log_probs": ("log softmax", f"log softmax({product})", f"{side}{outputs}"),
    }


def _with_bias(formula: str, config: LayerConfig) -> str:
    """The formula, without its biases where the model has none."""
    return formula if config.bias else re.sub(r" \+ b(?:[_^]\w)?", "", formula)


def _no_readers(config: AnyConfig) -> Mapping[str, str]:
    return {}


_FAMILIES: dict[str, _Family] = {
    "transformer": _Family(rows=_transformer, readers=_readers, sequences=_two_stacks),
    "conv": _Family(
        rows=_convolutional,
        readers=lambda config: {"encoder": "convolution", "decoder": "convolution"},
        sequences=_two_stacks,
    ),
    "rnn": _Family(rows=_recurrent, readers=_no_readers, sequences=_two_stacks),
    "decoder": _Family(
        rows=_decoder, readers=lambda config: {"decoder": "attention"}, sequences=_one_decoder
    ),
    "encoder": _Family(
        rows=_encoder, readers=lambda config: {"encoder": "attention"}, sequences=_one_encoder
    ),
    "bag": _Family(rows=_bag, readers=_no_readers, sequences=_one_encoder),
}
"""By the name of a family."""
