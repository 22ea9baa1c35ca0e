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

from heed.engine.lanes import (
    ACTIVATIONS,
    attend,
    log_softmax,
    multiply,
    normalize,
    relu,
    sigmoid,
    to_bfloat16,
)
from heed.engine.matrices import Floats, Matrix, ShortIds, take
from heed.engine.network import Network
from heed.engine.tables import tables_of
from heed.errors import HeedError
from heed.model.interface import Ids


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

    def start(
        self, ids: Ids, lengths: NDArray[np.int32], beam_size: int, *, are_prompts: bool = False
    ) -> "FallbackState":
        """Read sources; see `NativeModel.start`."""
        return FallbackState(self, ids, lengths, beam_size, are_prompts)

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
        return self._feed_forward(f"{layer}.", x)

    def _feed_forward(self, prefix: str, x: Floats) -> Floats:
        activation = ACTIVATIONS[self.config.activation]
        return self.linear(f"{prefix}contract", activation(self.linear(f"{prefix}expand", x)))

    def gated_sum(self, layer: str, x: Floats, before: Floats) -> tuple[Floats, Floats]:
        """An SSRU sublayer: its output and its new state, both `(rows, d_model)`."""
        of_forget, candidate = np.split(self.linear(f"{layer}.cell", x), 2, axis=1)
        forget = sigmoid(of_forget)
        kept = (np.float32(1.0) - forget) * candidate + forget * before
        return relu(kept), kept

    def gated_mean(
        self, layer: str, x: Floats, before: Floats, count: int
    ) -> tuple[Floats, Floats]:
        """A sublayer of average attention, likewise; `count` positions with this one."""
        kept = before + x
        average: Floats = kept / np.float32(count)
        if f"{layer}.average_expand" in self.network.matrices:
            average = self._feed_forward(f"{layer}.average_", average)
        gates = sigmoid(self.linear(f"{layer}.gate", np.concatenate([x, average], axis=1)))
        of_input, of_average = np.split(gates, 2, axis=1)
        return of_input * x + of_average * average, kept

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
    """Keys and values of one decoder layer so far, `(rows, position, n_heads, width)`.

    Or the state of a recurrent layer, `(rows, d_model)`.
    """

    keys: list[Floats] = field(default_factory=list)
    values: list[Floats] = field(default_factory=list)
    state: Floats | None = None


class FallbackState:
    """A batch of sources in translation; made by `FallbackModel.start`."""

    def __init__(
        self,
        model: FallbackModel,
        ids: Ids,
        lengths: NDArray[np.int32],
        beam_size: int,
        are_prompts: bool,
    ) -> None:
        config = model.config
        n_ids = config.tgt_vocab_size if are_prompts else config.src_vocab_size
        if len(ids) and (ids.min() < 0 or ids.max() >= n_ids):
            raise HeedError("engine: a source id is not in the vocabulary.")
        stacks = model.network.stacks
        if not (stacks.is_one_stack or (lengths > 0).all()):
            raise HeedError("engine: a source has no tokens.")
        self.model = model
        self._are_prompts = are_prompts
        self.beam_size = beam_size
        self.lengths = lengths
        self.position = 0
        self._own: list[_Columns] = []
        self._log_probs = np.empty((0, config.tgt_vocab_size), np.float32)
        self._caches = [_Cache() for _ in range(stacks.n_decoder_layers)]
        self._memories = [
            self._prepare_memory(source) for source in np.split(ids, np.cumsum(lengths)[:-1])
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
        """Advance every row by one token; see `NativeState.step`.

        Args:
            tokens: the last of each row, `(rows,)`.
            weights: filled with the weights by which each row reads the source,
                `(n_decoder_layers, rows, n_heads, longest source)`.
        """
        model, config = self.model, self.model.config
        if len(tokens) and (tokens.min() < 0 or tokens.max() >= config.tgt_vocab_size):
            raise HeedError("engine: a target id is not in the vocabulary.")
        if len(tokens) != self.n_sources * self.beam_size:
            raise HeedError("engine: there must be one token for each row.")
        is_one_stack = model.network.stacks.is_one_stack
        n_read: Ids = self._are_prompts * self.lengths.astype(np.int64).repeat(self.beam_size)
        places = np.full(len(tokens), self.position) + n_read
        x = model.embed("tgt", tokens, places)
        for number, cache in enumerate(self._caches):
            layer = f"decoder.{number}"

            def read_target(
                y: Floats, layer: str = layer, number: int = number, cache: _Cache = cache
            ) -> Floats:
                if model.network.stacks.target_reading != "attention":
                    return self._recur(layer, y, cache)
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

    def extend(
        self,
        tokens: Ids,
        *,
        next_ids: Ids | None = None,
        log_probs: Floats | None = None,
        weights: Floats | None = None,
    ) -> None:
        """Advance every row by several tokens, one after another; see `NativeState.extend`."""
        for t, column in enumerate(tokens.T):
            self.step(column, weights=None if weights is None else weights[:, :, :, t])
            if log_probs is not None:
                of_next = None if next_ids is None else next_ids[:, t : t + 1]
                log_probs[:, t] = (
                    self._log_probs if of_next is None else self.log_probs_of(of_next)[:, 0]
                )

    def attention(self, tokens: Ids, layer: int, weights: Floats) -> None:
        """Weights by which targets read the source; see `NativeState.attention`.

        Here the state does not forget the targets.
        """
        n_layers = self.model.network.stacks.n_decoder_layers
        of_all = np.empty((n_layers, *weights.shape), np.float32)
        self.extend(tokens, weights=of_all)
        weights[...] = of_all[layer]

    def log_probs(self) -> Floats:
        """Log-probs after the last step, of each row; see `NativeState.log_probs`."""
        return self._log_probs

    def log_probs_of(self, ids: Ids) -> Floats:
        """Log-probs of ids `(rows, n_ids)`; see `NativeState.log_probs_of`."""
        return np.take_along_axis(self._log_probs, ids, axis=1)

    def best(self, count: int, forbidden: Ids) -> None:
        """None: nothing is found in advance; see `NativeState.best`."""

    def select(self, rows: Ids, sources: Ids | None = None) -> None:
        """Keep, repeat or reorder rows; see `NativeState.select`."""
        n_rows = self.n_sources * self.beam_size
        if len(rows) and (rows.min() < 0 or rows.max() >= n_rows):
            raise HeedError("engine: a row is out of range.")
        for cache in self._caches:
            cache.keys = [key[rows] for key in cache.keys]
            cache.values = [value[rows] for value in cache.values]
            cache.state = None if cache.state is None else cache.state[rows]
        if sources is not None:
            self._memories = [self._memories[source] for source in sources]
            self.lengths = self.lengths[sources]
            if self._own:
                self._own = [self._own[source] for source in sources]

    def _recur(self, layer: str, y: Floats, cache: _Cache) -> Floats:
        """A recurrent sublayer of the decoder."""
        before = np.zeros_like(y) if cache.state is None else cache.state
        if self.model.network.stacks.target_reading == "ssru":
            read, cache.state = self.model.gated_sum(layer, y, before)
        else:
            read, cache.state = self.model.gated_mean(layer, y, before, self.position + 1)
        return read

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
            # The column between the shared and the own ids is for all other ids.
            log_probs[rows, own.ids] = found[:, n_shared + 1 :]
        return log_probs

    def _prepare_memory(self, source: Ids) -> list[tuple[Floats, Floats]]:
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

        In a decoder-only model the target reads the same keys and values, so they are rounded as
        in the cache.
        """
        model, stacks = self.model, self.model.network.stacks
        places, is_one_stack = np.arange(len(source)), stacks.is_one_stack
        side = "tgt" if self._are_prompts else "src"
        heads: list[tuple[Floats, Floats]] = []

        def read(y: Floats, layer: str) -> Floats:
            query, key, value = model.heads(side, model.linear(f"{layer}.in", y), places)
            if is_one_stack:
                key, value = model.remembered(key), model.remembered(value)
            heads.append((key, value))
            # Position i reads up to i, or all of them everything.
            is_causal = stacks.is_causal or self._are_prompts
            ends = [(i, i + 1) for i in places] if is_causal else [(0, len(source))]
            contexts = [
                attend(query[first:end], key[None, :end], value[None, :end])[0]
                for first, end in ends
            ]
            return model.linear(f"{layer}.out", np.concatenate(contexts))

        x = model.embed(side, source, places)
        outputs = [x]
        for layer in (f"{stack}.{number}" for number in range(n_layers)):
            x = model.residual(f"{layer}.self", x, partial(read, layer=layer))
            x = model.residual(f"{layer}.feed_forward", x, partial(model.feed_forward, layer))
            outputs.append(x)
        return outputs, heads

    def _attend_to_source(
        self, number: int, query: Floats, weights: Floats | None, cache: _Cache | None = None
    ) -> Floats:
        """The context of each row, read from its source and its target in the cache.

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
