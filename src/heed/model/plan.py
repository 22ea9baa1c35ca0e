"""Every weight of the Transformer, listed once: name, shape, role, blocks, ties.

The shapes in a file, the engine's matrices, the optimizer's groups and the operations of a training
step follow from this table. `build.py` makes the modules of these names; a test compares the two.
Nothing is allocated, and torch is not needed. `families.py` finds the plan of any config.
"""

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Literal

from heed.model.config import LayerConfig, ModelConfig
from heed.model.convolutional.config import ConvConfig
from heed.model.one_stack.config import DecoderConfig, EncoderConfig, OneStackConfig

Shape = tuple[int, ...]
Role = Literal["table", "positions", "matrix", "bias", "norm", "output", "fixed", "n_grams"]
Side = Literal["src", "tgt", "both"]
MetBy = Side | Literal["sentence"]
_LAYER = re.compile(r"^(encoder|decoder)\.\d+\.")


@dataclass(frozen=True, slots=True)
class Block:
    """Rows of a fused matrix that are one matrix of the paper, such as W^Q.

    Attributes:
        name: `query`, `key`, `value`, `gate`, …; "" for a matrix that is not fused.
        n_rows: how many rows.
        met_by: the tokens that it multiplies: of the source, of the target or of both; or
            `sentence`: one vector of each sentence. Keys and values of cross-attention are computed
            once for each source token.
    """

    name: str
    n_rows: int
    met_by: MetBy


@dataclass(frozen=True, slots=True)
class Weight:
    """One named tensor.

    Attributes:
        name: its name in `state_dict`.
        shape: its shape; a matrix is `(n_outputs, n_inputs)`.
        role: `table` (embeddings), `positions` (a learned table), `matrix`, `bias`, `norm` (gain or
            bias of a LayerNorm), `output` (the map to the target vocabulary), `fixed` (drawn or
            counted once and never trained), `n_grams` (vectors of hashed n-grams).
        side: the tokens that it multiplies; for a fused matrix with both, those of the query.
        blocks: the rows of a matrix or bias, first to last; one block unless it is fused.
        tied_to: the name of the weight it is the same tensor as, or None.
    """

    name: str
    shape: Shape
    role: Role
    side: Side
    blocks: tuple[Block, ...] = ()
    tied_to: str | None = None

    @property
    def size(self) -> int:
        """How many numbers it holds."""
        return math.prod(self.shape)


def transformer_plan(config: ModelConfig) -> list[Weight]:
    """Every weight of this encoder–decoder in the order of its `state_dict`, tied ones too."""
    return _shared(with_ties(_weights(config), config.tied), config)


def decoder_plan(config: DecoderConfig) -> list[Weight]:
    """Every weight of this decoder-only model; each multiplies source and target tokens."""
    return _shared(with_ties(_decoder_weights(config), config.tied), config)


def encoder_plan(config: EncoderConfig) -> list[Weight]:
    """Every weight of this encoder-only model."""
    return _shared(with_ties(_one_stack(config, "encoder", "src"), config.tied), config)


def patches_plan(config: EncoderConfig, patch_width: int) -> list[Weight]:
    """Every weight of an encoder of image patches: a linear map in the place of the table."""
    width, tokens = config.d_model, "embed.tokens"
    _, *others = encoder_plan(config)
    blocks = (Block("", width, "src"),)
    return [
        Weight(f"{tokens}.weight", (width, patch_width), "matrix", "src", blocks),
        Weight(f"{tokens}.bias", (width,), "bias", "src", blocks),
        *others,
    ]


def with_ties(weights: Iterable[Weight], tied: str) -> list[Weight]:
    """The weights of a model whose embeddings are `tied` three-way, to the output, or not."""
    found = list(weights)
    tables = [weight.name for weight in found if weight.role == "table"]
    ties: dict[str, str] = {}
    if tied != "none":
        ties["output.weight"] = tables[-1]
    if tied == "three-way":
        ties |= dict.fromkeys([*tables[1:], "output.weight"], tables[0])
    return [replace(weight, tied_to=ties.get(weight.name)) for weight in found]


def _shared(weights: list[Weight], config: LayerConfig) -> list[Weight]:
    """Ties the weights of all layers of a stack to those of its first, if the layers share them."""
    if config.share_layers == "none":
        return weights
    firsts = [_LAYER.sub(r"\1.0.", weight.name) for weight in weights]
    return [
        weight if first == weight.name else replace(weight, tied_to=first)
        for weight, first in zip(weights, firsts, strict=True)
    ]


def operations(weights: list[Weight]) -> tuple[float, float]:
    """Multiplications of one source token and of one target token in a forward pass.

    Attention's own products, which grow with the length of a sentence, are not counted, nor are
    those of one vector of each sentence.
    """
    met: dict[MetBy, float] = {"src": 0.0, "tgt": 0.0, "both": 0.0, "sentence": 0.0}
    for weight in weights:
        if weight.role in ("matrix", "output"):
            for block in weight.blocks:
                met[block.met_by] += block.n_rows * weight.shape[1]
    return met["src"] + met["both"], met["tgt"] + met["both"]


def _weights(config: ModelConfig) -> Iterator[Weight]:
    yield from _embedding(config, "src", config.src_vocab_size)
    yield from _embedding(config, "tgt", config.tgt_vocab_size)
    for layer in range(config.n_encoder_layers):
        yield from _layer(config, f"encoder.{layer}.", "src", cross=False)
    for layer in range(config.n_decoder_layers):
        yield from _layer(config, f"decoder.{layer}.", "tgt", cross=True)
    if config.norm == "pre":
        yield from _norm(config, "encoder_norm", "src")
        yield from _norm(config, "decoder_norm", "tgt")
    n_pieces = config.tgt_vocab_size
    shape = (n_pieces, config.d_model)
    yield Weight("output.weight", shape, "output", "tgt", (Block("", n_pieces, "tgt"),))


def _decoder_weights(config: DecoderConfig) -> Iterator[Weight]:
    yield Weight("sides", (2, config.d_model), "positions", "src")
    yield from _one_stack(config, "decoder", "both")


def _one_stack(config: OneStackConfig, name: str, side: Side) -> Iterator[Weight]:
    width = config.d_model
    yield Weight("embed.tokens.weight", (config.src_vocab_size, width), "table", "src")
    if config.positions == "learned":
        yield Weight("embed.positions.table", (config.max_positions, width), "positions", "src")
    for layer in range(config.n_layers):
        yield from _layer(config, f"{name}.{layer}.", side, cross=False)
    if config.norm == "pre":
        yield from _norm(config, f"{name}_norm", side)
    # Its rows are pieces of the one vocabulary, which is named as that of the source.
    n_pieces = config.tgt_vocab_size
    yield Weight("output.weight", (n_pieces, width), "output", "src", (Block("", n_pieces, "tgt"),))


def _embedding(config: ModelConfig, side: Side, vocab_size: int) -> Iterator[Weight]:
    yield Weight(f"embed_{side}.tokens.weight", (vocab_size, config.d_model), "table", side)
    if config.positions == "learned":
        shape = (config.max_positions, config.d_model)
        yield Weight(f"embed_{side}.positions.table", shape, "positions", side)


def _layer(config: LayerConfig, prefix: str, side: Side, *, cross: bool) -> Iterator[Weight]:
    """An encoder or decoder layer: its sublayers, then the norm of each of them."""
    is_merged = cross and isinstance(config, ModelConfig) and config.decoder_attention == "merged"
    if is_merged:
        yield from _attention(config, f"{prefix}joint_attention", side, memory="both")
    elif isinstance(config, ConvConfig):
        yield from _convolution(config, f"{prefix}self_attention", side)
    elif cross and isinstance(config, ModelConfig) and config.decoder_self != "attention":
        yield from _recurrence(config, f"{prefix}self_attention", side)
    else:
        yield from _attention(config, f"{prefix}self_attention", side, memory=side)
    if cross and not is_merged:
        yield from _attention(config, f"{prefix}cross_attention", side, memory="src")
    sublayers = ["joint"] if is_merged else ["self", "cross"] if cross else ["self"]
    if config.feed_forward:
        yield from _feed_forward(config, f"{prefix}feed_forward", side)
        sublayers.append("feed_forward")
    if config.norm != "none":
        for sublayer in sublayers:
            yield from _norm(config, f"{prefix}around_{sublayer}.norm", side)


def _attention(config: LayerConfig, name: str, side: Side, *, memory: Side) -> Iterator[Weight]:
    """W^Q, W^K and W^V of all heads as one matrix, then W^O (section 3.2.2)."""
    if config.attention == "favor":
        shape = (config.feature_count, config.key_width)
        yield Weight(f"{name}.directions", shape, "fixed", side)
    keys, values = config.n_heads * config.key_width, config.n_heads * config.value_width
    projections = (
        Block("query", keys, side),
        Block("key", keys, memory),
        Block("value", values, memory),
    )
    yield from _linear(config, f"{name}.project_in", config.d_model, side, *projections)
    if config.output_projection:
        out = Block("", config.d_model, side)
        yield from _linear(config, f"{name}.project_out", values, side, out)
    if config.positions == "shaw" and not name.endswith("cross_attention"):
        n_distances = 2 * config.max_distance + 1
        for part, width in (("keys", config.key_width), ("values", config.value_width)):
            yield Weight(f"{name}.relative.{part}", (n_distances, width), "positions", side)


def _convolution(config: ConvConfig, name: str, side: Side) -> Iterator[Weight]:
    width = config.d_model
    yield Weight(f"{name}.kernel", (width, config.kernel_size), "bias", side)
    blocks = Block("value", width, side), Block("gate", width, side)
    yield from _linear(config, f"{name}.project_in", width, side, *blocks)
    yield from _linear(config, f"{name}.project_out", width, side, Block("", width, side))


def _recurrence(config: ModelConfig, name: str, side: Side) -> Iterator[Weight]:
    """The sublayers of `recurrence.py`."""
    width = config.d_model
    if config.decoder_self == "ssru":
        blocks = Block("forget", width, side), Block("candidate", width, side)
        yield from _linear(config, f"{name}.cell", width, side, *blocks)
        return
    if config.average_feed_forward:
        yield from _feed_forward(config, f"{name}.feed_forward", side)
    blocks = Block("input", width, side), Block("average", width, side)
    yield from _linear(config, f"{name}.gate", 2 * width, side, *blocks)


def _feed_forward(config: LayerConfig, name: str, side: Side) -> Iterator[Weight]:
    expanded = [Block("", config.d_ff, side)]
    if config.activation == "swiglu":
        expanded = [Block("gate", config.d_ff, side), Block("value", config.d_ff, side)]
    yield from _linear(config, f"{name}.expand", config.d_model, side, *expanded)
    contracted = Block("", config.d_model, side)
    yield from _linear(config, f"{name}.contract", config.d_ff, side, contracted)


def _linear(
    config: LayerConfig, name: str, n_inputs: int, side: Side, *blocks: Block
) -> Iterator[Weight]:
    n_outputs = sum(block.n_rows for block in blocks)
    yield Weight(f"{name}.weight", (n_outputs, n_inputs), "matrix", side, blocks)
    if config.bias:
        yield Weight(f"{name}.bias", (n_outputs,), "bias", side, blocks)


def _norm(config: LayerConfig, name: str, side: Side) -> Iterator[Weight]:
    yield Weight(f"{name}.weight", (config.d_model,), "norm", side)
    yield Weight(f"{name}.bias", (config.d_model,), "norm", side)
