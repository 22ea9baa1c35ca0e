"""Documented shapes are real shapes: docstrings of `heed.model` read and compared with calls.

Every axis name stands for one number here, and no two names for the same, so that swapped axes
show. Not here: what the numbers in the tensors are (`tests/model/`).
"""

import functools
import importlib
import inspect
import math
import pkgutil
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

import heed.model
from heed.engine.network import Network
from heed.engine.runtime import Engine
from heed.model.attention import (
    MultiHeadAttention,
    attend,
    attend_fused,
    attend_then_mask,
)
from heed.model.bag.network import BagOfNGrams, inverse_frequencies
from heed.model.build import build_model
from heed.model.cache import KVCache, RunningState
from heed.model.config import ModelConfig
from heed.model.convolutional.convolution import GatedConvolution, convolve
from heed.model.decodable import TorchDecodable, TorchNextTokens, stable_top, top
from heed.model.families import config_from
from heed.model.fast import attention as fast_attention
from heed.model.fast import tiles
from heed.model.fast.products import Linear, linear
from heed.model.fast.rotation import rotate_fused
from heed.model.interface import (
    ArrayNextTokens,
    BeamPlan,
    BeamSearcher,
    Changes,
    Inspectable,
    NextTokens,
    PromptReader,
    RunningBeam,
    largest,
)
from heed.model.layers import (
    DecoderLayer,
    EncoderLayer,
    FeedForward,
    NoNorm,
    PostNorm,
    PreNorm,
    SwiGLU,
)
from heed.model.linear_attention import (
    Features,
    RunningSums,
    advance,
    attend_causally,
    draw_directions,
    elu_features,
    favor_features,
    read,
    readable,
    summed,
    weights_of,
)
from heed.model.masks import causal_mask, padding_mask, prefix_mask
from heed.model.merged import MergedDecoderLayer
from heed.model.network import TorchNetwork
from heed.model.one_stack.decoder import DecoderOnly
from heed.model.one_stack.encoder import EncoderOnly
from heed.model.one_stack.patches import patches
from heed.model.positions import (
    POSITIONS,
    LearnedPositions,
    NoPositions,
    RelativePositions,
    RotaryPositions,
    SinusoidalPositions,
    absolute_table,
    normalized,
    rotary_table,
    rotate,
    seed1_table,
    sinusoidal_halves_table,
    sinusoidal_table,
)
from heed.model.recurrence import SSRU, AverageAttention, gated_sum, running_mean
from heed.model.recurrent import cells
from heed.model.recurrent import network as recurrent
from heed.model.recurrent.attention import AdditiveAttention, DotAttention
from heed.model.recurrent.attention import attend as attend_to_states
from heed.model.recurrent.network import Recurrent
from heed.model.relative import AlibiBias, ShawVectors, for_all_keys
from heed.model.transformer import Embedding, Transformer
from heed.model.variants import FavorAttention, LinearAttention
from heed.model.window import blocks_of, window_mask
from heed.train.step import loss
from heed.train.step.averages import to_arrays

SIZES = {
    "n": 97,
    "n_sources": 2,
    "n_heads": 3,
    "beam_size": 4,
    "new_n_sources": 5,
    "d_k": 6,
    "d_v": 7,
    "rows": 2 * 4,  # n_sources * beam_size
    "batch": 9,
    "q_len": 10,
    "k_len": 34,
    "src_len": 12,
    "tgt_len": 13,
    "length": 14,
    "n_positions": 15,
    "d_model": 16,
    "new_rows": 5 * 4,  # new_n_sources * beam_size
    "tgt_vocab_size": 23,
    "src_vocab_size": 29,
    "vocab_size": 31,
    "count": 19,
    "n_ids": 21,
    "n_found": 26,
    "n_in": 24,
    "n_out": 25,
    "n_new": 1,
    "n_tokens": 17,
    "n_queries": 27,
    "n_keys": 11,
    "n_inputs": 28,
    "width": 11 * 37,
    "height": 2 * 37,
    "size": 37,
    "n_patches": 11 * 2,
    "n_channels": 36,
    "kernel_size": 33,
    "n_features": 35,
    "n_rows": 39,
}
SHAPE = re.compile(r"(?P<before>\S+ \S+ |\S+ |)`\((?P<axes>[^`]+)\)`")


class Shape(NamedTuple):
    axes: str  # "batch, q_len, d_model"
    before: str  # the words before it: "broadcasts to", "each", …


# ---------------------------------------------------------------------------- reading docstrings


def shapes_in(text: str) -> list[Shape]:
    return [Shape(found["axes"], found["before"]) for found in SHAPE.finditer(text)]


def documented(function: Callable[..., Any]) -> dict[str, list[Shape]]:
    """Shapes a docstring states, by argument; those of the result are under `return`."""
    text = inspect.getdoc(function) or ""
    parameters = [name for name in inspect.signature(function).parameters if name != "self"]
    sections = re.split(r"^(Args|Returns|Yields|Raises|Source):", text, flags=re.MULTILINE)
    titled = dict(zip(sections[1::2], sections[2::2], strict=True))
    stated: dict[str, list[Shape]] = {}
    for entry in re.split(r"\n    (?=\w+: )", titled.get("Args", "")):
        name, _, rest = entry.partition(":")
        stated[name.strip()] = shapes_in(" ".join(rest.split()))
    result = titled.get("Returns", "") + titled.get("Yields", "")
    stated["return"] = shapes_in(" ".join(result.split()))
    # In a sentence, a shape behind an argument's name (or before an arrow) is that argument's.
    sentence = " ".join(sections[0].split())
    for match in SHAPE.finditer(sentence):
        shape, rest = Shape(match["axes"], match["before"]), sentence[match.end() :]
        words = re.findall(r"\w+", match["before"])
        if words and words[-1] in parameters:
            stated.setdefault(words[-1], []).append(shape)
        elif rest.startswith(" →"):
            stated.setdefault(parameters[0], []).append(shape)
        else:
            stated["return"].append(shape)
    return {name: shapes for name, shapes in stated.items() if shapes}


def size(axis: str) -> int:
    """`d_model`, `1` and `n_sources * beam_size` as numbers."""
    factors = axis.split(" * ")
    return math.prod(int(factor) if factor.isdigit() else SIZES[factor] for factor in factors)


def check(name: str, value: Any, shapes: list[Shape]) -> None:
    """Compare a tensor, or several, with the shapes stated for it."""
    tensors = [value] if isinstance(value, Tensor | np.ndarray) else list(value)
    if len(shapes) == 1 and "each" in shapes[0].before:
        shapes = shapes * len(tensors)
    assert len(shapes) <= len(tensors), f"{name} has {len(tensors)} tensors, {len(shapes)} shapes"
    for tensor, shape in zip(tensors, shapes, strict=False):
        axes = [axis.strip() for axis in shape.axes.split(",") if axis.strip()]
        real = tuple(tensor.shape)
        if axes[0] == "…":
            axes, real = axes[1:], real[1 - len(axes) :]
        expected = tuple(size(axis) for axis in axes)
        if "broadcasts to" in shape.before:
            real = tuple(torch.broadcast_shapes(real, expected))
        assert real == expected, f"{name} is {real}, but its docstring says ({shape.axes})"


# ---------------------------------------------------------------------------- real calls


def tensor(axes: str) -> Tensor:
    return torch.zeros([size(axis.strip()) for axis in axes.split(",")])


def ids(axes: str, highest: int = 20) -> Tensor:
    return torch.randint(1, highest, [size(axis.strip()) for axis in axes.split(",")])


@functools.cache
def model(**changes: Any) -> Transformer:
    torch.manual_seed(0)
    shape = {
        name: SIZES[name]
        for name in ("src_vocab_size", "tgt_vocab_size", "d_model", "n_heads", "d_k", "d_v")
    }
    return build_model(ModelConfig(**shape, d_ff=31, tied="output", norm="pre", **changes)).eval()


def started(n_steps: int) -> Any:
    state = model().start(ids("n_sources, src_len"), beam_size=SIZES["beam_size"])
    for _ in range(n_steps):
        model().step(state, ids("rows"))
    return state


def filled_cache(rows: str) -> KVCache:
    """One position short of `length`."""
    cache = KVCache()
    n_kept = SIZES["length"] - 1
    cache.append(
        torch.zeros(size(rows), SIZES["n_heads"], n_kept, SIZES["d_k"]),
        torch.zeros(size(rows), SIZES["n_heads"], n_kept, SIZES["d_v"]),
    )
    return cache


def whole_numbers(axes: str) -> Tensor:
    return tensor(axes).long()


def mask(axes: str) -> Tensor:
    return tensor(axes) == 0


QUERY, KEY = "batch, n_heads, q_len, d_k", "batch, n_heads, k_len, d_k"
VALUE = "batch, n_heads, k_len, d_v"
SRC_MASK = "batch, 1, 1, src_len"
Call = tuple[Callable[..., Any], Callable[..., Any], dict[str, Any]]


def function_calls() -> Iterator[Call]:
    """Whose docstring, what to call, with what."""
    heads = {"query": tensor(QUERY), "key": tensor(KEY), "value": tensor(VALUE)}
    yield attend, attend, {**heads, "mask": mask("batch, 1, 1, k_len")}
    yield attend, attend, {**heads, "mask": mask("q_len, k_len")}
    bias = tensor("batch, n_heads, q_len, k_len")
    yield attend, attend, {**heads, "bias": bias}
    yield attend_fused, attend_fused, {**heads, "bias": bias}
    yield attend_fused, attend_fused, {**heads, "mask": mask("batch, 1, q_len, k_len")}
    yield attend_then_mask, attend_then_mask, {**heads, "mask": mask("q_len, k_len")}
    yield causal_mask, causal_mask, {"q_len": size("q_len"), "k_len": size("k_len")}
    yield prefix_mask, prefix_mask, {"length": size("length"), "n_prefix": 3}
    near = {"q_len": size("q_len"), "k_len": size("k_len"), "window": 2}
    yield window_mask, window_mask, near
    whole = {name: heads[name][:, :, :1].expand(-1, -1, size("length"), -1) for name in heads}
    windowed = {**whole, "window": 2, "mask": mask("batch, 1, 1, length")}
    yield blocks_of, blocks_of, windowed
    padded = torch.zeros(size("batch"), size("k_len"), dtype=torch.long)
    yield padding_mask, padding_mask, {"ids": padded, "pad_id": 0}
    for make in (sinusoidal_table, sinusoidal_halves_table, absolute_table, seed1_table):
        yield make, make, {"n_positions": size("n_positions"), "d_model": size("d_model")}
    images = tensor("batch, n_channels, height, width")
    yield patches, patches, {"images": images, "size": size("size")}
    yield normalized, normalized, {"table": tensor("n_positions, d_model")}
    rotation = rotary_table(size("length"), size("d_k"))
    x = tensor("batch, n_heads, length, d_k")
    yield rotate, rotate, {"x": x, "rotation": rotation}
    yield rotate_fused, rotate_fused, {"x": x, "cosines": rotation[0], "sines": rotation[1]}
    asked = {"x": tensor("batch, q_len, d_model"), "d_k": size("d_k")}
    fits = fast_attention.fits
    yield fits, fits, {**asked, "read": fast_attention.Read(size("n_heads"))}


def linear_attention_calls() -> Iterator[Call]:
    directions = tensor("n_features, d_k")
    x = {"x": tensor("batch, n_heads, length, d_k")}
    yield elu_features, lambda x: elu_features(x).values, x
    yield (
        favor_features,
        lambda **given: favor_features(**given).values,
        {**x, "directions": directions},
    )
    yield draw_directions, draw_directions, {"directions": directions}
    key, value = Features(tensor("batch, n_heads, k_len, n_features")), tensor(VALUE)
    masked = {"key": key, "mask": mask("batch, 1, 1, k_len")}
    yield readable, readable, masked
    yield summed, lambda **given: summed(**given).values, {"key": key, "value": value}
    query = tensor("batch, n_heads, q_len, n_features")
    yield read, read, {"query": query, "sums": summed(key, value)}
    yield weights_of, weights_of, {"query": query, **masked}
    new = tensor("batch, n_heads, n_new, n_features")
    of_new = {"query": new, "key": Features(new), "value": tensor("batch, n_heads, n_new, d_v")}
    yield advance, lambda **given: advance(**given, sums=None)[0], of_new
    whole = tensor("batch, n_heads, length, n_features")
    of_all = {"query": whole, "key": Features(whole)}
    of_all["value"] = tensor("batch, n_heads, length, d_v")
    yield attend_causally, lambda **given: attend_causally(**given)[0], of_all
    sums = RunningSums()
    sums.sums = summed(
        Features(tensor("rows, n_heads, length, n_features")), tensor("rows, n_heads, length, d_v")
    )
    chosen = torch.zeros(size("new_rows"), dtype=torch.long)
    yield RunningSums.select, sums.select, {"rows": chosen}
    widths: dict[str, Any] = {name: size(name) for name in ("d_k", "d_v")}
    favor = FavorAttention(
        size("d_model"), size("n_heads"), n_features=size("n_features"), **widths
    )
    draw_directions(favor.directions)
    for module in (LinearAttention(size("d_model"), size("n_heads"), **widths), favor):
        of = type(module)
        if "features" in vars(of):
            heads = tensor("batch, n_heads, length, d_k")
            yield of.features, lambda x, module=module: module.features(x).values, {"x": heads}
    memory = {"memory": tensor("batch, k_len, d_model"), "mask": mask("batch, 1, 1, k_len")}
    linear_kind: Any = LinearAttention(size("d_model"), size("n_heads"), **widths)
    yield (
        LinearAttention.prepare_memory,
        lambda **given: linear_kind.prepare_memory(**given),
        memory,
    )
    x = {"x": tensor("batch, q_len, d_model"), "heads": linear_kind.prepare_memory(**memory)}
    yield LinearAttention.attend_memory, linear_kind.attend_memory, x


def tile_calls() -> Iterator[Call]:
    """What stands in for products in tiles, which need AMX and widths that these are not."""

    def gradients(
        x: Tensor, weight: Tensor, grad: Tensor, clamped: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        kept = grad * (clamped > 0)
        return kept @ weight, kept.t() @ x, kept.sum(0)

    to_multiply = {"x": tensor("n, n_in"), "weight": tensor("n_out, n_in")}
    yield tiles.fit, tiles.fit, to_multiply
    yield tiles.linear, F.linear, {**to_multiply, "bias": tensor("n_out")}
    of_y = {"grad": tensor("n, n_out"), "clamped": tensor("n, n_out")}
    yield tiles.linear_gradients, gradients, {**to_multiply, **of_y}
    given = {"states": tensor("n_tokens, d_model"), "weight": tensor("vocab_size, d_model")}
    targets = torch.zeros(size("n_tokens"), dtype=torch.int64)
    yield tiles.probabilities, loss._in_chunks, {**given, "targets": targets}


def layer_calls() -> Iterator[Call]:
    encoder, decoder = model().encoder[0], model().decoder[0]
    attention: Any = decoder.cross_attention
    x, memory = tensor("batch, q_len, d_model"), tensor("batch, k_len, d_model")
    heads = {"query": tensor(QUERY), "key": tensor(KEY), "value": tensor(VALUE)}
    newest = tensor("rows, 1, d_model")

    yield (
        MultiHeadAttention.forward,
        attention,
        {"x": x, "memory": memory, "mask": mask("batch, 1, 1, k_len")},
    )
    yield (
        MultiHeadAttention.extend,
        attention.extend,
        {"x": newest, "cache": filled_cache("rows"), "mask": mask("rows, 1, 1, length")},
    )
    to_prepare = {"memory": memory, "mask": mask("batch, 1, 1, k_len")}
    yield MultiHeadAttention.prepare_memory, attention.prepare_memory, to_prepare
    to_attend = {
        "x": x,
        "heads": attention.prepare_memory(memory),
        "mask": mask("batch, 1, 1, k_len"),
    }
    yield MultiHeadAttention.attend_memory, attention.attend_memory, to_attend
    yield MultiHeadAttention.project_query, attention.project_query, {"x": x}
    yield MultiHeadAttention.project_memory, attention.project_memory, {"memory": memory}
    yield MultiHeadAttention.keys_and_values, attention.keys_and_values, {"memory": memory}
    yield (
        MultiHeadAttention.attend_heads,
        attention.attend_heads,
        {**heads, "mask": mask("q_len, k_len")},
    )
    yield (
        KVCache.append,
        filled_cache("rows").append,
        {"keys": tensor("rows, n_heads, 1, d_k"), "values": tensor("rows, n_heads, 1, d_v")},
    )
    chosen = torch.zeros(size("new_rows"), dtype=torch.long)
    yield KVCache.select, filled_cache("rows").select, {"rows": chosen}
    src, tgt = tensor("batch, src_len, d_model"), tensor("batch, tgt_len, d_model")
    whole = tensor("batch, length, d_model")
    yield EncoderLayer.forward, encoder, {"x": whole, "mask": mask("batch, 1, 1, length")}
    yield (
        EncoderLayer.extend,
        encoder.extend,
        {"x": newest, "cache": filled_cache("rows"), "mask": mask("rows, 1, 1, length")},
    )
    yield DecoderLayer.forward, decoder, {"x": tgt, "memory": src, "src_mask": mask(SRC_MASK)}
    memory_heads = (
        tensor("n_sources, n_heads, src_len, d_k"),
        tensor("n_sources, n_heads, src_len, d_v"),
    )
    merged: Any = model(decoder_attention="merged").decoder[0]
    of_tgt = {"x": tgt, "memory": src, "src_mask": mask(SRC_MASK)}
    yield MergedDecoderLayer.forward, merged, of_tgt
    for layer in (decoder, merged):
        yield type(layer).project_memory, layer.project_memory, {"memory": src}
        yield (
            type(layer).extend,
            layer.extend,
            {
                "x": newest,
                "cache": filled_cache("rows"),
                "memory_heads": memory_heads,
                "src_mask": mask("n_sources, 1, 1, src_len"),
            },
        )
    sizes = size("d_model"), size("d_k"), 99
    for kind in (PostNorm, PreNorm, NoNorm):
        around = kind(size("d_model"), dropout=0.0, eps=1e-6)
        yield kind.forward, around, {"x": whole, "sublayer": torch.sin}
    convolution = GatedConvolution(size("d_model"), 3)
    of_encoder = {"x": whole, "mask": mask("batch, 1, 1, length")}
    yield GatedConvolution.forward, convolution, of_encoder
    of_step = {"x": newest, "cache": KVCache()}
    yield GatedConvolution.extend, convolution.extend, of_step
    state = RunningState()
    yield RunningState.update, state.update, {"value": newest}
    yield RunningState.select, state.select, {"rows": chosen}
    yield running_mean, running_mean, {"x": whole}
    yield gated_sum, gated_sum, {"forget": whole, "candidate": whole}
    for reader in (SSRU(size("d_model")), AverageAttention(size("d_model"), torch.nn.Identity())):
        yield type(reader).forward, reader, {"x": whole}
        yield type(reader).extend, reader.extend, {"x": newest, "cache": reader.new_cache()}
    kernel = torch.zeros(size("d_model"), size("kernel_size"))
    yield convolve, convolve, {"x": whole, "kernel": kernel, "n_before": 1}
    for network in (FeedForward(size("d_model"), 31), SwiGLU(size("d_model"), 31)):
        yield type(network).forward, network, {"x": whole}
    to_map = {"x": tensor("batch, length, n_in")}
    layer = Linear(size("n_in"), size("n_out"))
    yield linear, linear, {**to_map, "weight": layer.weight, "bias": layer.bias}
    yield Linear.forward, layer, to_map
    yield from tile_calls()
    for positions in (kind(*sizes) for kind in POSITIONS.values()):
        yield type(positions).forward, positions, {"x": whole, "offset": 3}
    rotary = RotaryPositions(*sizes)
    far: dict[str, Any] = {"n_queries": size("n_queries"), "n_keys": size("n_keys"), "offset": 3}
    places = RelativePositions(*sizes)
    tokens = torch.nn.Embedding(9, size("d_model"))
    placed = Embedding(tokens, places, is_scaled=True, dropout=0.0)
    yield RelativePositions.distances, places.distances, far
    yield Embedding.distances, placed.distances, far
    to_weigh = {"query": tensor(QUERY), "distances": whole_numbers("q_len, n_keys")}
    vectors = ShawVectors(size("d_k"), size("d_v"), 3)
    yield ShawVectors.bias, vectors.bias, to_weigh
    yield AlibiBias.bias, AlibiBias(size("n_heads")).bias, to_weigh
    weights = tensor("batch, n_heads, q_len, n_keys")
    to_read = {"weights": weights, "distances": to_weigh["distances"]}
    yield ShawVectors.context, vectors.context, to_read
    yield for_all_keys, for_all_keys, {"bias": weights, "k_len": size("k_len")}
    yield RotaryPositions.rotation, rotary.rotation, {"length": size("length"), "offset": 3}


def model_calls() -> Iterator[Call]:
    src, tgt_in = ids("batch, src_len"), ids("batch, tgt_len")
    src_mask, memory = mask(SRC_MASK), tensor("batch, src_len, d_model")
    yield Embedding.forward, model().embed_src, {"ids": ids("batch, length")}
    yield Transformer.encode, model().encode, {"src": src, "src_mask": src_mask}
    decoded = {"tgt_in": tgt_in, "memories": [memory] * 3, "src_mask": src_mask}
    yield Transformer.decode, model().decode, decoded
    yield Transformer.forward, model(), {"src": src, "tgt_in": tgt_in, "src_mask": src_mask}
    yield TorchNetwork.forward, model(), {"src": src, "tgt_in": tgt_in, "src_mask": src_mask}
    yield TorchNetwork.logits, model().logits, {"states": tensor("batch, tgt_len, d_model")}
    beams: dict[str, Any] = {"src": ids("n_sources, src_len"), "beam_size": size("beam_size")}
    chosen = {
        "rows": torch.zeros(size("new_rows"), dtype=torch.long),
        "sources": torch.zeros(size("new_n_sources"), dtype=torch.long),
    }
    yield TorchNetwork.teacher_forced, model().teacher_forced, {"src": src, "tgt_in": tgt_in}
    yield TorchNetwork.source_attention, model().source_attention, {"src": src, "tgt_in": tgt_in}
    whole = tensor("batch, length, d_model")
    yield TorchNetwork.through, lambda x: model().through(model().encoder[0], x), {"x": whole}
    for owner in (TorchNetwork, Transformer):
        yield owner.start, model().start, beams
        yield owner.step, model().step, {"state": started(2), "tokens": ids("rows")}
        yield owner.select, model().select, {"state": started(2), **chosen}


@functools.cache
def relative(family: str) -> Any:
    """A small model of another family."""
    torch.manual_seed(0)
    n_pieces = SIZES["tgt_vocab_size"]
    sizes = {"src_vocab_size": n_pieces, "tgt_vocab_size": n_pieces, "d_model": SIZES["d_model"]}
    return build_model(config_from({"family": family.split()[0], **sizes, **KINDS[family]})).eval()


KINDS: dict[str, dict[str, Any]] = {
    "rnn": {"attention": "additive"},
    "rnn with dot attention": {"attention": "dot"},
    "decoder": {"d_ff": 31, "n_layers": 2},
    "encoder": {"d_ff": 31, "n_layers": 2},
    "bag": {"n_gram_rows": 97},
}


def family_calls() -> Iterator[Call]:
    src, tgt_in = ids("batch, src_len"), ids("batch, tgt_len")
    forced = {"src": src, "tgt_in": tgt_in, "src_mask": mask(SRC_MASK)}
    beams: dict[str, Any] = {"src": ids("n_sources, src_len"), "beam_size": size("beam_size")}
    chosen = {
        "rows": torch.zeros(size("new_rows"), dtype=torch.long),
        "sources": torch.zeros(size("new_n_sources"), dtype=torch.long),
    }
    for kind, family in ((Recurrent, "rnn"), (DecoderOnly, "decoder")):
        network = relative(family)
        yield kind.forward, network, forced
        yield kind.start, network.start, beams
        step = {"state": network.start(**beams), "tokens": ids("rows")}
        yield kind.step, network.step, step
        yield kind.select, network.select, {"state": network.start(**beams), **chosen}
        several = {"state": network.start(**beams), "tokens": ids("rows, n_tokens")}
        yield type(network).extend, network.extend, several
    yield EncoderOnly.forward, relative("encoder"), {"src": ids("batch, src_len"), "tgt_in": tgt_in}
    yield BagOfNGrams.forward, relative("bag"), {"src": ids("batch, src_len"), "tgt_in": tgt_in}
    src_mask = mask("batch, 1, 1, src_len")
    yield (
        BagOfNGrams.rows,
        relative("bag").rows,
        {"src": ids("batch, src_len"), "src_mask": src_mask},
    )
    counts = {"n_texts_with": whole_numbers("n_rows"), "n_texts": 5}
    yield inverse_frequencies, inverse_frequencies, counts
    network = relative("rnn")
    n_sources = {"src": ids("n_sources, src_len"), "src_mask": mask("n_sources, 1, 1, src_len")}
    yield Recurrent.encode, network.encode, n_sources
    memory = network.encode(**n_sources)
    states = network.start(**beams).layers
    dot = relative("rnn with dot attention")
    unrolled = [cells.Unrolled(dot, size("length"))] * (len(states) + 1)
    embedded = {"embedded": tensor("rows, length, d_model"), "memory": memory}
    embedded |= {"layers": states, "unrolled": unrolled}
    yield Recurrent.read, lambda **given: dot.read(**given), embedded
    query = {"query": tensor("rows, length, d_model"), "memory": memory, "see": as_it_is}
    yield Recurrent.attend, network.attend, query
    x, lengths = tensor("n_sources, src_len, d_model"), torch.tensor([3, SIZES["src_len"]])
    yield recurrent.EncoderLayer.forward, network.encoder[0], {"x": x, "lengths": lengths}
    yield from recurrent_cells()
    queries = tensor("n_sources, n_queries, d_model")
    for attention in (DotAttention(size("d_model")), AdditiveAttention(size("d_model"))):
        yield type(attention).keys, attention.keys, {"states": x}
        yield type(attention).scores, attention.scores, {"query": queries, "keys": x}
    scores = {"scores": tensor("n_sources, n_queries, src_len"), "states": x}
    src_mask = mask("n_sources, 1, src_len")
    yield attend_to_states, attend_to_states, {**scores, "src_mask": src_mask}
    of_memory = {"sources": torch.zeros(size("new_n_sources"), dtype=torch.long)}
    yield recurrent.Memory.of, memory.of, of_memory


def as_it_is(name: str, stage: Tensor) -> Tensor:
    return stage


def recurrent_cells() -> Iterator[Call]:
    x = tensor("rows, length, n_inputs")
    given = {"state": None, "see": as_it_is}
    kinds = {cells.tanh_cell: 1, cells.gru_cell: 3, cells.lstm_cell: 4}
    for cell, (equation, n_gates) in zip(cells.CELLS.values(), kinds.items(), strict=True):
        module = cell(size("n_inputs"), size("width"), batch_first=True)
        of_rows = {"cell": module, "x": x}
        yield cells.advance, lambda cell, x: cells.advance(cell, x)[0], of_rows
        plainly = lambda **given: cells.advance_plainly(**given)[0]  # noqa: E731
        yield cells.advance_plainly, plainly, of_rows | given
        gates = torch.zeros(size("rows"), 1, n_gates * size("width"))
        state = [tensor("rows, 1, width")] * 2
        yield equation, equation, {"of_x": gates, "of_h": gates, "state": state, "see": as_it_is}
    lengths = torch.ones(size("rows"), dtype=torch.long)
    yield cells.reverse, cells.reverse, {"x": x, "lengths": lengths}
    unrolled = cells.Unrolled(module, size("length"))
    yield cells.Unrolled.see, unrolled.see, {"name": "gate", "new": tensor("rows, n_new, width")}


def interface_calls() -> Iterator[Call]:
    src, tgt_in = ids("batch, src_len").numpy(), ids("batch, tgt_len").numpy()
    beams = {"src": ids("n_sources, src_len").numpy(), "beam_size": size("beam_size")}
    chosen = {
        "rows": np.zeros(size("new_rows"), dtype=np.int64),
        "sources": np.zeros(size("new_n_sources"), dtype=np.int64),
    }
    decodable = TorchDecodable(model(), torch.device("cpu"))
    for owner in (TorchDecodable, Inspectable):
        yield owner.start, decodable.start, beams
        yield owner.teacher_forced, decodable.teacher_forced, {"src": src, "tgt_in": tgt_in}
        yield owner.cross_attention, decodable.cross_attention, {"src": src, "tgt_in": tgt_in}
        step = {"state": decodable.start(**beams), "tokens": ids("rows").numpy()}
        yield owner.step, decodable.step, step
        state = decodable.start(**beams)
        decodable.step(state, ids("rows").numpy())
        yield owner.select, decodable.select, {"state": state, **chosen}
        several = {"state": decodable.start(**beams), "tokens": ids("rows, n_tokens").numpy()}
        yield owner.extend, decodable.extend, several
    network = relative("decoder")
    engine = Engine(Network.of(network.config, to_arrays(network.state_dict())))
    yield PromptReader.start_from, engine.start_from, {"prompts": ids("rows, length").numpy()}
    yield from beam_calls(engine)
    for reader in (TorchNetwork, DecoderOnly):
        yield reader.start_from, network.start_from, {"prompts": ids("rows, length")}
    in_torch = TorchDecodable(network, torch.device("cpu"))
    yield TorchDecodable.start_from, in_torch.start_from, {"prompts": ids("rows, length").numpy()}
    log_probs = tensor("rows, vocab_size")
    for find in (top, stable_top):
        yield find, find, {"scores": log_probs, "count": size("count")}
    yield largest, largest, {"scores": log_probs.numpy(), "count": size("count")}
    on_device, in_array = TorchNextTokens(log_probs), ArrayNextTokens(log_probs.numpy())
    for kind, following in (
        (TorchNextTokens, on_device),
        (ArrayNextTokens, in_array),
        (NextTokens, in_array),
    ):
        yield kind.log_probs_of, following.log_probs_of, {"ids": ids("rows, n_ids").numpy()}
        yield kind.top_k, following.top_k, {"count": size("count")}
        yield kind.all_log_probs, following.all_log_probs, {}
    shown = np.broadcast_to(np.arange(size("n_ids")), (size("rows"), size("n_ids")))
    found, absent = np.arange(size("n_found")), np.full(4, size("n_ids"))
    changed = np.concatenate([found % size("n_ids"), absent])
    rows = np.arange(len(changed)) % size("rows")
    scores = np.zeros(len(changed))
    changes = Changes(forbidden=found[:0], rows=rows, ids=changed, scores=scores)
    yield Changes.places_in, changes.places_in, {"ids": shown}


def beam_calls(engine: Engine) -> Iterator[Call]:
    src, n_sources = ids("n_sources, src_len").numpy(), size("n_sources")
    plan = BeamPlan(
        n_best=1,
        beam_size=size("beam_size"),
        early_stopping="first",
        bos_id=2,
        eos_id=3,
        forbidden=np.array([0]),
        limits=np.full(n_sources, 9),
        divisors=np.ones(n_sources),
        penalties=np.ones(10),
        min_length=5,
        no_repeat_ngram_size=0,
        prefixes=np.empty((n_sources, 0), np.int64),
        slots=None,
        missing_cost=0.0,
        required_ids=np.empty((n_sources, 0), np.int64),
    )
    yield BeamSearcher.begin_beam, engine.begin_beam, {"src": src, "plan": plan}
    beam = engine.begin_beam(src, plan)  # None without the compiled library
    drop = beam.drop if beam else lambda are_dropped: 0
    yield RunningBeam.drop, drop, {"are_dropped": np.ones(n_sources, bool)}


ARRAYS: Any = Tensor | np.ndarray | tuple | list
CALLS = [
    *function_calls(),
    *linear_attention_calls(),
    *layer_calls(),
    *model_calls(),
    *family_calls(),
    *interface_calls(),
]


# ---------------------------------------------------------------------------- the comparison


def compare(documented_as: Callable[..., Any], call: Callable[..., Any], given: Any) -> int:
    """Make the call, compare all stated shapes, and return how many there were."""
    stated = documented(documented_as)
    with torch.no_grad():
        result = call(**given)
    real = {**given, "return": result}
    for name, shapes in stated.items():
        if isinstance(real.get(name), ARRAYS):
            check(name, real[name], shapes)
    return sum(isinstance(real.get(name), ARRAYS) for name in stated)


@pytest.mark.parametrize("call", CALLS, ids=[call[0].__qualname__ for call in CALLS])
def test_docstring_states_the_real_shapes(call: Call) -> None:
    """Claims 22, 60, 100."""
    assert compare(*call)


def test_every_function_of_the_model_that_states_a_shape_is_called_here() -> None:
    stating = set()
    for module_info in pkgutil.walk_packages(heed.model.__path__, "heed.model."):
        module = importlib.import_module(module_info.name)
        for thing in vars(module).values():
            if getattr(thing, "__module__", None) != module.__name__:
                continue
            members = vars(thing).values() if inspect.isclass(thing) else [thing]
            for member in members:
                is_public = inspect.isfunction(member) and not member.__name__.startswith("_")
                if is_public and documented(member):
                    stating.add(member.__qualname__)
    called = {call[0].__qualname__ for call in CALLS}
    assert stating - called == set()
    assert len(called) > 30


def test_a_wrong_docstring_is_caught() -> None:
    def transpose(x: Tensor) -> Tensor:
        """Swap the axes.

        Args:
            x: anything, `(batch, q_len)`.

        Returns:
            The same, `(batch, q_len)`.
        """
        return x.T

    with pytest.raises(AssertionError, match=r"return is \(10, 9\), but its docstring says"):
        compare(transpose, transpose, {"x": tensor("batch, q_len")})


def test_no_two_axes_have_the_same_size() -> None:
    assert len(set(SIZES.values())) == len(SIZES)


def test_a_sentence_names_its_arguments_or_points_an_arrow() -> None:
    assert documented(MultiHeadAttention.project_query) == {
        "x": [Shape("batch, q_len, d_model", "of `x` ")],
        "return": [Shape("batch, n_heads, q_len, d_k", ", as ")],
    }
    assert set(documented(Transformer.logits)) == {"states", "return"}
    assert set(documented(attend)) == {"query", "key", "value", "mask", "return"}
    assert len(documented(attend)["return"]) == 2
    assert documented(NoPositions.forward).keys() == {"return"}
    assert documented(LearnedPositions.forward).keys() == {"x"}
    assert documented(SinusoidalPositions.forward).keys() == {"x"}
