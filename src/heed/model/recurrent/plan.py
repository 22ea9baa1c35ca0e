"""Every weight of the recurrent encoder–decoder; cells name theirs as `torch.nn.LSTM` does."""

from collections.abc import Iterator

from heed.model.plan import Block, Side, Weight, with_ties
from heed.model.recurrent.config import RecurrentConfig

GATES = {
    "tanh": ("state",),
    "lstm": ("input_gate", "forget_gate", "candidate", "output_gate"),
    "gru": ("reset_gate", "update_gate", "candidate"),
}
"""By kind of cell, the rows of its matrices in order."""


def recurrent_plan(config: RecurrentConfig) -> list[Weight]:
    """Every weight of this model in the order of its `state_dict`, tied ones too."""
    return with_ties(_weights(config), config.tied)


def _weights(config: RecurrentConfig) -> Iterator[Weight]:
    width = config.d_model
    yield Weight("embed_src.weight", (config.src_vocab_size, width), "table", "src")
    yield Weight("embed_tgt.weight", (config.tgt_vocab_size, width), "table", "tgt")
    part = width // 2 if config.bidirectional else width
    for layer in range(config.n_encoder_layers):
        for direction in ("forwards", "backwards") if config.bidirectional else ("forwards",):
            yield from _cell(config, f"encoder.{layer}.{direction}", width, part, "src")
    for layer in range(config.n_decoder_layers):
        is_fed = layer == 0 and config.attention != "dot"
        yield from _cell(config, f"decoder.{layer}", (1 + is_fed) * width, width, "tgt")
    if config.attention == "additive":
        yield Weight("cross_attention.score", (width,), "bias", "tgt", (Block("", width, "tgt"),))
        yield from _linear("cross_attention.project_query", width, width, "tgt", has_bias=False)
        yield from _linear("cross_attention.project_memory", width, width, "src", has_bias=True)
    yield from _bridge(width, config.n_decoder_layers * width)
    if config.attention != "none":
        yield from _linear("readout", 2 * width, width, "tgt", has_bias=True)
    output = (Block("", config.tgt_vocab_size, "tgt"),)
    yield Weight("output.weight", (config.tgt_vocab_size, width), "output", "tgt", output)


def _bridge(n_inputs: int, n_outputs: int) -> Iterator[Weight]:
    """The map from the encoder's last state to the decoder's first states."""
    blocks = (Block("", n_outputs, "sentence"),)
    yield Weight("bridge.weight", (n_outputs, n_inputs), "matrix", "src", blocks)
    yield Weight("bridge.bias", (n_outputs,), "bias", "src", blocks)


def _cell(
    config: RecurrentConfig, name: str, n_inputs: int, width: int, side: Side
) -> Iterator[Weight]:
    blocks = tuple(Block(gate, width, side) for gate in GATES[config.cell])
    n_rows = len(blocks) * width
    yield Weight(f"{name}.weight_ih_l0", (n_rows, n_inputs), "matrix", side, blocks)
    yield Weight(f"{name}.weight_hh_l0", (n_rows, width), "matrix", side, blocks)
    yield Weight(f"{name}.bias_ih_l0", (n_rows,), "bias", side, blocks)
    yield Weight(f"{name}.bias_hh_l0", (n_rows,), "bias", side, blocks)


def _linear(
    name: str, n_inputs: int, n_outputs: int, side: Side, *, has_bias: bool
) -> Iterator[Weight]:
    blocks = (Block("", n_outputs, side),)
    yield Weight(f"{name}.weight", (n_outputs, n_inputs), "matrix", side, blocks)
    if has_bias:
        yield Weight(f"{name}.bias", (n_outputs,), "bias", side, blocks)
