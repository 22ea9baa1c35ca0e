"""The engine in NumPy, for machines without the compiled library: slower, with the same results.

With int8 weights it gives the same bits as `engine/*.cpp`: products of int8 are exact, and
everything else is done in the same order, sixteen columns at a time (`engine/lanes.h`). With
float32 weights only the order of additions inside a product differs.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heed.engine.matrices import COLUMNS, Floats, Matrix, ShortIds, rounded, take
from heed.engine.network import Network
from heed.engine.tables import tables_of
from heed.errors import HeedError
from heed.model.interface import Ids

_ONE, _HALF = np.float32(1.0), np.float32(0.5)


# ---- the arithmetic of engine/lanes.h


def lane_sum(x: Floats) -> Floats:
    """Sum over the last axis, a multiple of 16, in the engine's order."""
    lanes = np.zeros((*x.shape[:-1], COLUMNS), np.float32)
    for start in range(0, x.shape[-1], COLUMNS):
        lanes += x[..., start : start + COLUMNS]
    for half in (8, 4, 2, 1):
        lanes = lanes[..., :half] + lanes[..., half : 2 * half]
    total: Floats = lanes[..., 0]
    return total


def to_bfloat16(x: Floats) -> Floats:
    """The nearest numbers of eight bits each (half to even), still as float32."""
    bits = np.ascontiguousarray(x).view(np.uint32)
    nearest = bits + (np.uint32(0x7FFF) + (bits >> np.uint32(16) & np.uint32(1)))
    result: Floats = (nearest & np.uint32(0xFFFF0000)).view(np.float32)
    return result


def exponential(x: Floats) -> Floats:
    """e^x, x up to 88, as the engine computes it: Cody and Waite's reduction, then a polynomial."""
    x = np.maximum(x, np.float32(-87.0))
    n = np.rint(x * np.float32(1.44269504))
    r = x - n * np.float32(0.693359375) - n * np.float32(-2.12194440e-4)
    square = r * r
    low = r * np.float32(1.6667114e-1) + np.float32(4.999923e-1)
    high = r * np.float32(8.312521e-3) + np.float32(4.1890156e-2)
    p = (high * square + low) * square + (r + _ONE)
    result: Floats = np.ldexp(p, n.astype(np.int32))
    return result


def relu(x: Floats) -> Floats:
    """max(x, 0)."""
    result: Floats = np.maximum(x, np.float32(0.0))
    return result


def gelu(x: Floats) -> Floats:
    """x Φ(x), with erf by Abramowitz and Stegun, 7.1.26."""
    z = np.abs(x) * np.float32(0.70710678)
    t = _ONE / (_ONE + np.float32(0.3275911) * z)
    p = np.full_like(t, np.float32(1.061405429))
    for coefficient in (-1.453152027, 1.421413741, -0.284496736, 0.254829592):
        p = p * t + np.float32(coefficient)
    erf = _ONE - p * t * exponential(np.float32(0.0) - z * z)
    result: Floats = _HALF * x * (_ONE + np.copysign(erf, x))
    return result


def swiglu(x: Floats) -> Floats:
    """Swish of the first half times the second."""
    gate, inner = np.split(x, 2, axis=-1)
    power = np.minimum(np.float32(0.0) - gate, np.float32(88.0))
    silu: Floats = gate / (_ONE + exponential(power))
    return silu * inner


ACTIVATIONS: dict[str, Callable[[Floats], Floats]] = {"relu": relu, "gelu": gelu, "swiglu": swiglu}


def normalize(x: Floats, gain: Floats, bias: Floats, eps: float) -> Floats:
    """LayerNorm of rows `(rows, d_model)`."""
    width = x.shape[-1]
    mean = lane_sum(_padded(x)) / np.float32(width)
    deviation = x - mean[:, None]
    squares = _padded(deviation)
    variance = lane_sum(squares * squares) / np.float32(width)
    scale = _ONE / np.sqrt(variance + np.float32(eps))
    result: Floats = deviation * scale[:, None] * gain[:width] + bias[:width]
    return result


def attend(query: Floats, key: Floats, value: Floats) -> tuple[Floats, Floats]:
    """The context and the weights of some queries.

    Args:
        query: `(rows, n_heads, d_k)`.
        key: `(rows or 1, n_keys, n_heads, d_k)`.
        value: `(rows or 1, n_keys, n_heads, d_v)`.

    Returns:
        `(rows, n_heads * d_v)` and `(rows, n_heads, n_keys)`.
    """
    n_keys, d_k = key.shape[1], key.shape[3]
    dots = lane_sum(_padded(query[:, None] * key)).transpose(0, 2, 1)
    scores = dots * (_ONE / np.sqrt(np.float32(d_k)))
    weights = exponential(scores - scores.max(axis=-1, keepdims=True))
    weights = weights * (_ONE / lane_sum(_padded(weights)))[:, :, None]
    context = np.zeros((*query.shape[:2], value.shape[3]), np.float32)
    for t in range(n_keys):
        context += weights[:, :, t, None] * value[:, t]
    return context.reshape(len(query), -1), weights


def multiply(x: Floats, matrix: Matrix, dense: NDArray[Any]) -> Floats:
    """x W^T + b of rows `(rows, k)`; int8 rounds each row by its largest magnitude.

    Args:
        x: `(rows, k)`.
        matrix: scales and bias.
        dense: its entries, `(n, k)`: float32, or the integers as float64.
    """
    if matrix.scales is None:
        product: Floats = x @ dense.T
    else:
        ints, scales = rounded(x)
        # In float64 each of these sums is exact: below 2^53.
        sums = ints.astype(np.float64) @ dense.T
        product = sums.astype(np.float32) * (scales[:, None] * matrix.scales[: matrix.n])
    if matrix.bias is not None:
        product += matrix.bias[: matrix.n]
    return product


def log_softmax(x: Floats) -> Floats:
    """Log-probs of rows of logits."""
    most = x.max(axis=1, keepdims=True)
    padded = _padded(x, fill=-np.inf)
    total = lane_sum(exponential(padded - most))[:, None]
    log_probs: Floats = x - (most + np.log(total.astype(np.float64)).astype(np.float32))
    return log_probs


def _padded(x: Floats, fill: float = 0.0) -> Floats:
    """Pad the last axis with zeros to a multiple of 16."""
    missing = -x.shape[-1] % COLUMNS
    return np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, missing)], constant_values=fill)


# ---- the model, as in engine/model.cpp


class FallbackModel:
    """A network that NumPy computes.

    Args:
        network: its weights.
    """

    def __init__(self, network: Network) -> None:
        self.network = network
        self.config = network.config
        once = {id(m): _dense(m) for m in network.matrices.values()}
        self._dense: dict[str, NDArray[Any]] = {
            role: once[id(m)] for role, m in network.matrices.items()
        }
        self.tables = tables_of(network)
        self.shared: _Columns | None = None

    def set_common_ids(self, matrix: Matrix, ids: ShortIds) -> None:
        """Set the ids of every restricted state; see `NativeModel.set_common_ids`."""
        self.shared = _Columns.of(matrix, ids)

    def start(self, ids: Ids, lengths: NDArray[np.int32], beam_size: int) -> "FallbackState":
        """Read sources; see `NativeModel.start`."""
        return FallbackState(self, ids, lengths, beam_size)

    def linear(self, role: str, x: Floats) -> Floats:
        """A product of the network, by its role."""
        return multiply(x, self.network.matrices[role], self._dense[role])

    def normalize(self, role: str, x: Floats) -> Floats:
        """A LayerNorm of the network, by its role."""
        return normalize(x, *self.network.norms[role], self.config.norm_eps)

    def residual(self, role: str, x: Floats, sublayer: Callable[[Floats], Floats]) -> Floats:
        """x + f(LayerNorm(x)), or LayerNorm(x + f(x))."""
        if self.config.norm == "pre":
            return x + sublayer(self.normalize(role, x))
        return self.normalize(role, x + sublayer(x))

    def feed_forward(self, layer: str, x: Floats) -> Floats:
        """A feed-forward sublayer."""
        activation = ACTIVATIONS[self.config.activation]
        return self.linear(f"{layer}.contract", activation(self.linear(f"{layer}.expand", x)))

    def embed(self, side: str, ids: Ids, places: Ids) -> Floats:
        """Embeddings of ids at their positions, `(rows, d_model)`."""
        config, role = self.config, f"embed_{side}"
        scales = self.network.matrices[role].scales
        x: Floats = self._dense[role][ids].astype(np.float32)
        if scales is not None:
            x = x * scales[ids][:, None]
        x *= np.float32(config.d_model**0.5 if config.scale_embedding else 1.0)
        added = self.tables[side].first(int(places.max()) + 1).added
        if added is not None:
            x += added[places, : config.d_model]
        return x

    def remembered(self, x: Floats) -> Floats:
        """Keys or values as the cache keeps them; rounded if the weights are."""
        return to_bfloat16(x) if self.network.matrices["output"].is_quantized else x

    def heads(self, side: str, x: Floats, places: Ids) -> tuple[Floats, Floats, Floats]:
        """Queries, keys and values `(rows, n_heads, width)`, rotated if positions are rotary."""
        config, tables = self.config, self.tables[side].first(int(places.max()) + 1)
        width = config.n_heads * config.key_width
        query, key, value = np.split(x, [width, 2 * width], axis=1)
        parts = [part.reshape(len(x), config.n_heads, -1) for part in (query, key, value)]
        if tables.cosines is not None and tables.sines is not None:
            turn = tables.cosines[places][:, None], tables.sines[places][:, None]
            parts[:2] = [_rotated(part, *turn) for part in parts[:2]]
        return parts[0], parts[1], parts[2]


def _rotated(x: Floats, cosines: Floats, sines: Floats) -> Floats:
    first, second = np.split(x, 2, axis=-1)
    turned: Floats = np.concatenate([-second, first], axis=-1)
    return x * cosines + turned * sines


def _dense(matrix: Matrix) -> NDArray[Any]:
    """A matrix in the form that `multiply` takes."""
    # Products of float64 go to the machine's BLAS, products of integers do not.
    return matrix.dense().astype(np.float64 if matrix.is_quantized else np.float32)


@dataclass(frozen=True)
class _Columns:
    """Some columns of the output, and their ids."""

    ids: ShortIds
    matrix: Matrix
    dense: NDArray[Any]

    @classmethod
    def of(cls, matrix: Matrix, ids: ShortIds) -> "_Columns":
        return cls(ids, matrix, _dense(matrix))


@dataclass
class _Cache:
    """Keys and values of one decoder layer so far, `(rows, position, n_heads, width)`."""

    keys: list[Floats] = field(default_factory=list)
    values: list[Floats] = field(default_factory=list)


class FallbackState:
    """A batch of sources in translation; made by `FallbackModel.start`."""

    def __init__(
        self, model: FallbackModel, ids: Ids, lengths: NDArray[np.int32], beam_size: int
    ) -> None:
        config = model.config
        if len(ids) and (ids.min() < 0 or ids.max() >= config.src_vocab_size):
            raise HeedError("engine: a source id is not in the vocabulary.")
        stacks = model.network.stacks
        if not (stacks.is_one_stack or (lengths > 0).all()):
            raise HeedError("engine: a source has no tokens.")
        self.model = model
        self.beam_size = beam_size
        self.lengths = lengths
        self.position = 0
        self._own: list[_Columns] = []
        self._log_probs = np.empty((0, config.tgt_vocab_size), np.float32)
        self._caches = [_Cache() for _ in range(stacks.n_decoder_layers)]
        self._memories = [
            self._remember(source) for source in np.split(ids, np.cumsum(lengths)[:-1])
        ]

    @property
    def n_sources(self) -> int:
        """How many sources are still in the batch."""
        return len(self.lengths)

    def restrict(self, ids: ShortIds, counts: ShortIds) -> None:
        """Restrict the ids that may follow; see `NativeState.restrict`."""
        output = self.model.network.matrices["output"]
        each = np.split(ids, np.cumsum(counts)[:-1])
        self._own = [_Columns.of(take(output, own), own) for own in each]

    def step(self, tokens: Ids, *, weights: Floats | None = None) -> None:
        """Advance every row by one token; see `NativeState.step`."""
        model, config = self.model, self.model.config
        if len(tokens) and (tokens.min() < 0 or tokens.max() >= config.tgt_vocab_size):
            raise HeedError("engine: a target id is not in the vocabulary.")
        if len(tokens) != self.n_sources * self.beam_size:
            raise HeedError("engine: there must be one token for each row.")
        places, is_one_stack = (
            np.full(len(tokens), self.position),
            model.network.stacks.is_one_stack,
        )
        x = model.embed("tgt", tokens, places)
        for number, cache in enumerate(self._caches):
            layer = f"decoder.{number}"

            def read_target(
                y: Floats, layer: str = layer, number: int = number, cache: _Cache = cache
            ) -> Floats:
                query, key, value = model.heads("tgt", model.linear(f"{layer}.in", y), places)
                cache.keys.append(model.remembered(key))
                cache.values.append(model.remembered(value))
                if is_one_stack:
                    context = self._attend_to_source(number, query, weights, cache)
                else:
                    context, _ = attend(query, np.stack(cache.keys, 1), np.stack(cache.values, 1))
                return model.linear(f"{layer}.out", context)

            def read_source(y: Floats, layer: str = layer, number: int = number) -> Floats:
                query = model.linear(f"{layer}.query", y).reshape(len(y), config.n_heads, -1)
                context = self._attend_to_source(number, query, weights)
                return model.linear(f"{layer}.cross_out", context)

            x = model.residual(f"{layer}.self", x, read_target)
            if not is_one_stack:
                x = model.residual(f"{layer}.cross", x, read_source)
            x = model.residual(f"{layer}.feed_forward", x, partial(model.feed_forward, layer))
        if config.norm == "pre":
            x = model.normalize("decoder", x)
        self.position += 1
        self._log_probs = (
            self._shortened(x) if self._own else log_softmax(model.linear("output", x))
        )

    def extend(self, tokens: Ids, *, log_probs: Floats | None = None) -> None:
        """Advance every row by several tokens, one after another; see `NativeState.extend`."""
        for t, column in enumerate(tokens.T):
            self.step(column)
            if log_probs is not None:
                log_probs[:, t] = self._log_probs

    def log_probs(self) -> Floats:
        """Log-probs after the last step, of each row; see `NativeState.log_probs`."""
        return self._log_probs

    def best(self, count: int, forbidden: Ids) -> None:
        """Nothing is found in advance; see `NativeState.best`."""

    def select(self, rows: Ids, sources: Ids | None = None) -> None:
        """Keep, repeat or reorder rows; see `NativeState.select`."""
        n_rows = self.n_sources * self.beam_size
        if len(rows) and (rows.min() < 0 or rows.max() >= n_rows):
            raise HeedError("engine: a row is out of range.")
        for cache in self._caches:
            cache.keys = [key[rows] for key in cache.keys]
            cache.values = [value[rows] for value in cache.values]
        if sources is not None:
            self._memories = [self._memories[source] for source in sources]
            self.lengths = self.lengths[sources]
            if self._own:
                self._own = [self._own[source] for source in sources]

    def _shortened(self, x: Floats) -> Floats:
        """Log-probs of each row, restricted to its ids, `(rows, tgt_vocab_size)`."""
        shared = self.model.shared
        assert shared is not None
        log_probs = np.full((len(x), self.model.config.tgt_vocab_size), -np.inf, np.float32)
        for source, own in enumerate(self._own):
            rows = slice(source * self.beam_size, (source + 1) * self.beam_size)
            logits = [multiply(x[rows], each.matrix, each.dense) for each in (shared, own)]
            found, n_shared = log_softmax(np.concatenate(logits, axis=1)), len(shared.ids)
            log_probs[rows, shared.ids] = found[:, :n_shared]
            # Between them is the column for all other ids.
            log_probs[rows, own.ids] = found[:, n_shared + 1 :]
        return log_probs

    def _remember(self, source: Ids) -> list[tuple[Floats, Floats]]:
        """Keys and values of one source for every decoder layer, `(src_len, n_heads, width)`."""
        model, config, stacks = self.model, self.model.config, self.model.network.stacks
        if not len(source):
            key, value = (
                np.empty((0, config.n_heads, width), np.float32)
                for width in (config.key_width, config.value_width)
            )
            return [(key, value)] * stacks.n_decoder_layers
        if stacks.is_one_stack:
            return self._pass(source, "decoder", stacks.n_decoder_layers)[1]
        outputs, _ = self._pass(source, "encoder", stacks.n_encoder_layers)
        if config.norm == "pre":
            outputs = [model.normalize("encoder", x) for x in outputs]
        memories = []
        for number in range(stacks.n_decoder_layers):
            memory = outputs[number + 1 if stacks.is_same_layer else -1]
            both = model.remembered(model.linear(f"decoder.{number}.memory", memory))
            key, value = np.split(both, [config.n_heads * config.key_width], axis=1)
            heads = [part.reshape(len(source), config.n_heads, -1) for part in (key, value)]
            memories.append((heads[0], heads[1]))
        return memories

    def _pass(
        self, source: Ids, stack: str, n_layers: int
    ) -> tuple[list[Floats], list[tuple[Floats, Floats]]]:
        """Read one source with a stack: the input of each layer and the last output, keys, values.

        What a decoder-only model reads is also what its target reads, so it is rounded as kept.
        """
        model, stacks = self.model, self.model.network.stacks
        places, is_one_stack = np.arange(len(source)), stacks.is_one_stack
        heads: list[tuple[Floats, Floats]] = []

        def read(y: Floats, layer: str) -> Floats:
            query, key, value = model.heads("src", model.linear(f"{layer}.in", y), places)
            if is_one_stack:
                key, value = model.remembered(key), model.remembered(value)
            heads.append((key, value))
            # Position i reads up to i, or all of them everything.
            ends = [(i, i + 1) for i in places] if stacks.is_causal else [(0, len(source))]
            contexts = [
                attend(query[first:end], key[None, :end], value[None, :end])[0]
                for first, end in ends
            ]
            return model.linear(f"{layer}.out", np.concatenate(contexts))

        x = model.embed("src", source, places)
        outputs = [x]
        for layer in (f"{stack}.{number}" for number in range(n_layers)):
            x = model.residual(f"{layer}.self", x, partial(read, layer=layer))
            x = model.residual(f"{layer}.feed_forward", x, partial(model.feed_forward, layer))
            outputs.append(x)
        return outputs, heads

    def _attend_to_source(
        self, number: int, query: Floats, weights: Floats | None, cache: _Cache | None = None
    ) -> Floats:
        """What each row reads of its source, and of its target in the cache.

        Args:
            number: of the decoder layer.
            query: `(rows, n_heads, d_k)`.
            weights: filled with those of the source, as in `step`.
            cache: of the target; None = the source alone.

        Returns:
            `(rows, n_heads * d_v)`.
        """
        contexts = []
        for source, memories in enumerate(self._memories):
            key, value = (part[None] for part in memories[number])
            n_keys = key.shape[1]
            rows = slice(source * self.beam_size, (source + 1) * self.beam_size)
            if cache is not None:
                key, value = (
                    np.concatenate([part.repeat(self.beam_size, 0), np.stack(so_far, 1)[rows]], 1)
                    for part, so_far in ((key, cache.keys), (value, cache.values))
                )
            context, found = attend(query[rows], key, value)
            contexts.append(context)
            if weights is not None:
                weights[number, rows] = 0.0
                weights[number, rows, :, :n_keys] = found[:, :, :n_keys]
        return np.concatenate(contexts)
