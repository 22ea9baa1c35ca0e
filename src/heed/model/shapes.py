"""The names and shapes of a model's weights, from its config alone.

Not here: the weights (`bundle/bundle.py`), nor the modules that compute with them (`build.py`),
whose names these are; a test compares the two. Nothing is allocated, and torch is not needed.
"""

from collections.abc import Iterator

from heed.model.config import ModelConfig

Shape = tuple[int, ...]
Named = Iterator[tuple[str, Shape]]

_SRC, _TGT, _OUTPUT = "embed_src.tokens.weight", "embed_tgt.tokens.weight", "output.weight"
_TIES: dict[str, dict[str, str]] = {
    "three-way": {_TGT: _SRC, _OUTPUT: _SRC},
    "output": {_OUTPUT: _TGT},
    "none": {},
}


def stored_weights(config: ModelConfig) -> tuple[dict[str, Shape], dict[str, str]]:
    """What the weights of such a model look like on disk.

    Returns:
        The shape of each stored tensor by name; and for each further name of a tied tensor, the
        name it is stored under.
    """
    aliases = dict(_TIES[config.tied])
    return {name: shape for name, shape in _weights(config) if name not in aliases}, aliases


def _weights(config: ModelConfig) -> Named:
    """Every name in the order of `Transformer.state_dict`, tied ones too."""
    encoder_layer = dict(_layer(config, ("self",)))
    decoder_layer = dict(_layer(config, ("self", "cross")))
    yield from _embedding(config, "embed_src", config.src_vocab_size)
    yield from _embedding(config, "embed_tgt", config.tgt_vocab_size)
    for number in range(config.n_encoder_layers):
        yield from ((f"encoder.{number}.{name}", shape) for name, shape in encoder_layer.items())
    for number in range(config.n_decoder_layers):
        yield from ((f"decoder.{number}.{name}", shape) for name, shape in decoder_layer.items())
    if config.norm == "pre":
        yield from _norm(config, "encoder_norm")
        yield from _norm(config, "decoder_norm")
    yield _OUTPUT, (config.tgt_vocab_size, config.d_model)


def _embedding(config: ModelConfig, side: str, vocab_size: int) -> Named:
    yield f"{side}.tokens.weight", (vocab_size, config.d_model)
    if config.positions == "learned":
        yield f"{side}.positions.table", (config.max_positions, config.d_model)


def _layer(config: ModelConfig, attentions: tuple[str, ...]) -> Named:
    n_heads, d_k, d_v = config.n_heads, config.key_width, config.value_width
    for kind in attentions:
        name = f"{kind}_attention"
        yield from _linear(config, f"{name}.project_in", config.d_model, n_heads * (2 * d_k + d_v))
        yield from _linear(config, f"{name}.project_out", n_heads * d_v, config.d_model)
    n_expanded = (2 if config.activation == "swiglu" else 1) * config.d_ff
    yield from _linear(config, "feed_forward.expand", config.d_model, n_expanded)
    yield from _linear(config, "feed_forward.contract", config.d_ff, config.d_model)
    for kind in (*attentions, "feed_forward"):
        yield from _norm(config, f"around_{kind}.norm")


def _linear(config: ModelConfig, name: str, n_inputs: int, n_outputs: int) -> Named:
    yield f"{name}.weight", (n_outputs, n_inputs)
    if config.bias:
        yield f"{name}.bias", (n_outputs,)


def _norm(config: ModelConfig, name: str) -> Named:
    yield f"{name}.weight", (config.d_model,)
    yield f"{name}.bias", (config.d_model,)
