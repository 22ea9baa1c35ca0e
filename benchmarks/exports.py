"""heed's weights in the terms of the systems that `translators.py` runs.

Each function takes the fields of heed's `ModelConfig` and heed's tensors by name, and gives what a
peer loads: the same numbers under its own names. All systems then compute the same function;
`translate_speed.py` tells whether they write the same. Not here: loading and running them.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

Config = dict[str, Any]
Weights = dict[str, NDArray[np.float32]]
MAX_POSITIONS = 512


def vocabulary(config: Config) -> list[str]:
    """A token for each id."""
    words = (f"t{i}" for i in range(4, config["src_vocab_size"]))
    return ["<blank>", "<unk>", "<s>", "</s>", *words]


def positions(width: int, *, is_interleaved: bool = False) -> NDArray[np.float32]:
    """heed's `sinusoidal_halves`, or its `sinusoidal`, `(MAX_POSITIONS, width)`."""
    rates = np.exp(np.arange(0, width, 2) * (-np.log(10000.0) / width))
    angles = np.outer(np.arange(MAX_POSITIONS), rates)
    waves = np.stack([np.sin(angles), np.cos(angles)], axis=2 if is_interleaved else 1)
    return waves.reshape(MAX_POSITIONS, width).astype(np.float32)


def ctranslate2_spec(
    config: Config,
    weights: Weights,
    *,
    tokens: list[str] | None = None,
    reads_eos: bool = False,
    kind: str = "float32",
) -> Any:
    """The model in CTranslate2's terms.

    Args:
        config: the fields of heed's `ModelConfig`; pre-norm, with ReLU.
        weights: heed's tensors by name.
        tokens: one for each id; None = invented ones.
        reads_eos: add `</s>` to every source.
        kind: of the numbers in the file, such as `int8`.
    """
    from ctranslate2.specs import common_spec, transformer_spec

    layers = (config["n_encoder_layers"], config["n_decoder_layers"])
    spec = transformer_spec.TransformerSpec.from_config(
        layers, config["n_heads"], pre_norm=True, activation=common_spec.Activation.RELU
    )
    width = config["d_model"]

    def linear(to: Any, name: str, rows: slice = slice(None)) -> None:
        to.weight = np.ascontiguousarray(weights[f"{name}.weight"][rows])
        to.bias = np.ascontiguousarray(weights[f"{name}.bias"][rows])

    def norm(to: Any, name: str) -> None:
        to.gamma, to.beta = weights[f"{name}.weight"], weights[f"{name}.bias"]

    for side, stack in (("encoder", spec.encoder), ("decoder", spec.decoder)):
        embeddings = stack.embeddings[0] if side == "encoder" else stack.embeddings
        embeddings.weight = weights["embed_src.tokens.weight"]
        stack.scale_embeddings = True
        # Its own waves have other lengths.
        is_interleaved = config["positions"] == "sinusoidal"
        stack.position_encodings.encodings = weights.get(
            f"embed_{'src' if side == 'encoder' else 'tgt'}.positions.table",
            positions(width, is_interleaved=is_interleaved),
        )
        norm(stack.layer_norm, f"{side}_norm")
        for number, layer in enumerate(stack.layer):
            name = f"{side}.{number}"
            linear(layer.self_attention.linear[0], f"{name}.self_attention.project_in")
            linear(layer.self_attention.linear[1], f"{name}.self_attention.project_out")
            norm(layer.self_attention.layer_norm, f"{name}.around_self.norm")
            if side == "decoder":
                cross = f"{name}.cross_attention"
                linear(layer.attention.linear[0], f"{cross}.project_in", slice(width))
                linear(layer.attention.linear[1], f"{cross}.project_in", slice(width, None))
                linear(layer.attention.linear[2], f"{cross}.project_out")
                norm(layer.attention.layer_norm, f"{name}.around_cross.norm")
            linear(layer.ffn.linear_0, f"{name}.feed_forward.expand")
            linear(layer.ffn.linear_1, f"{name}.feed_forward.contract")
            norm(layer.ffn.layer_norm, f"{name}.around_feed_forward.norm")
    spec.decoder.projection.weight = weights["output.weight"]
    spec.decoder.projection.bias = np.zeros(len(weights["output.weight"]), np.float32)
    spec.register_source_vocabulary(tokens or vocabulary(config))
    spec.register_target_vocabulary(tokens or vocabulary(config))
    spec.config.add_source_eos = reads_eos
    spec.config.layer_norm_epsilon = config["norm_eps"]
    spec.validate()
    spec.optimize(quantization=kind)
    return spec


PEGASUS = {
    "layers": "model.{side}.layers",
    "self_attention": "self_attn",
    "cross_attention": "encoder_attn",
    "query": "q_proj",
    "key": "k_proj",
    "value": "v_proj",
    "out": "out_proj",
    "around_self": "self_attn_layer_norm",
    "around_cross": "encoder_attn_layer_norm",
    "around_feed_forward": "final_layer_norm",
    "expand": "fc1",
    "contract": "fc2",
    "last_norm": "model.{side}.layer_norm",
}
"""What Hugging Face's Pegasus calls the parts of a layer."""

EOLE = {
    "layers": "{side}.transformer_layers",
    "self_attention": "self_attn",
    "cross_attention": "context_attn",
    "query": "linear_query",
    "key": "linear_keys",
    "value": "linear_values",
    "out": "final_linear",
    "around_self": "input_layernorm",
    "around_cross": "precontext_layernorm",
    "around_feed_forward": "post_attention_layernorm",
    "expand": "mlp.gate_up_proj",
    "contract": "mlp.down_proj",
    "last_norm": "{side}.layer_norm",
}
"""What eole calls them."""


def renamed(config: Config, weights: Weights, names: dict[str, str]) -> Weights:
    """Every layer and norm by a peer's names, with queries, keys and values apart."""
    width = config["d_model"]
    found = {}

    def put(name: str, ours: str, rows: slice = slice(None)) -> None:
        for part in ("weight", "bias"):
            found[f"{name}.{part}"] = weights[f"{ours}.{part}"][rows].copy()

    for side, attentions in (("encoder", ("self",)), ("decoder", ("self", "cross"))):
        put(names["last_norm"].format(side=side), f"{side}_norm")
        for number in range(config[f"n_{side}_layers"]):
            theirs, ours = f"{names['layers'].format(side=side)}.{number}", f"{side}.{number}"
            for kind in attentions:
                attention = f"{theirs}.{names[f'{kind}_attention']}"
                for i, part in enumerate(("query", "key", "value")):
                    rows = slice(i * width, (i + 1) * width)
                    put(f"{attention}.{names[part]}", f"{ours}.{kind}_attention.project_in", rows)
                put(f"{attention}.{names['out']}", f"{ours}.{kind}_attention.project_out")
                put(f"{theirs}.{names[f'around_{kind}']}", f"{ours}.around_{kind}.norm")
            for part in ("expand", "contract"):
                put(f"{theirs}.{names[part]}", f"{ours}.feed_forward.{part}")
            put(f"{theirs}.{names['around_feed_forward']}", f"{ours}.around_feed_forward.norm")
    return found


def pegasus_config(config: Config) -> dict[str, Any]:
    """The settings of Hugging Face's Pegasus, special ids and what it may not write included."""
    depth = {f"{side}_layers": config[f"n_{side}_layers"] for side in ("encoder", "decoder")}
    heads = {f"{side}_attention_heads": config["n_heads"] for side in ("encoder", "decoder")}
    inner = {f"{side}_ffn_dim": config["d_ff"] for side in ("encoder", "decoder")}
    return {
        **depth,
        **heads,
        **inner,
        "vocab_size": config["src_vocab_size"],
        "d_model": config["d_model"],
        "activation_function": "relu",
        "max_position_embeddings": MAX_POSITIONS,
        "scale_embedding": True,
        "pad_token_id": 0,
        "bos_token_id": 2,
        "eos_token_id": 3,
        "decoder_start_token_id": 2,
        "forced_eos_token_id": None,
    }


def pegasus_weights(config: Config, weights: Weights) -> Weights:
    """The tensors of Hugging Face's Pegasus: its Marian, but pre-norm."""
    shared = ("model.shared", "model.encoder.embed_tokens", "model.decoder.embed_tokens")
    embedding = weights["embed_src.tokens.weight"]
    return renamed(config, weights, PEGASUS) | {
        f"{name}.weight": embedding for name in (*shared, "lm_head")
    }


def eole_weights(config: Config, weights: Weights) -> Weights:
    """The tensors of an eole checkpoint; its tables of positions are among them, and are ours."""
    table = np.zeros((5000, 1, config["d_model"]), np.float32)
    table[:MAX_POSITIONS, 0] = positions(config["d_model"])
    found = renamed(config, weights, EOLE)
    found["src_emb.embeddings.weight"] = weights["embed_src.tokens.weight"]
    for side in ("src", "tgt"):
        found[f"{side}_emb.pe.pe"] = table.copy()
    for number in range(config["n_decoder_layers"]):
        found[f"decoder.transformer_layers.{number}.layer_scalar"] = np.ones(1, np.float32)
    return found


def eole_config(config: Config) -> dict[str, Any]:
    """The settings in an eole checkpoint."""
    return {
        "src_vocab": "",
        "tgt_vocab": "",
        "share_vocab": True,
        "data": {},
        "training": {"compute_dtype": "fp32"},
        "model": {
            "architecture": "transformer",
            "encoder": {"encoder_type": "transformer", "layers": config["n_encoder_layers"]},
            "decoder": {"decoder_type": "transformer", "layers": config["n_decoder_layers"]},
            "heads": config["n_heads"],
            "hidden_size": config["d_model"],
            "transformer_ff": config["d_ff"],
            "norm_eps": config["norm_eps"],
            "add_qkvbias": True,
            "add_final_linear_bias": True,
            "add_ffnbias": True,
            "generator_bias": False,
            "share_embeddings": True,
            "share_decoder_embeddings": True,
            "embeddings": {
                "word_vec_size": config["d_model"],
                "position_encoding_type": "SinusoidalInterleaved",
            },
        },
    }
