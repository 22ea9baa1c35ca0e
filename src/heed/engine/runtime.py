"""`Engine`: heed's own engine with the interface of searches, as `TorchDecodable` for torch.

`native.py` computes if the engine is compiled, else `fallback.py`. The result for a row never
depends on the other rows, except in `fallback.py` with float32: NumPy's products round differently
with the number of rows (log-probs differ by about 1e-6). With int8 it is exact there too.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from heed.engine import fallback, library, native
from heed.engine.native_beam import NativeBeam
from heed.engine.network import EngineConfig, Network
from heed.engine.shortlist import Shortlist
from heed.model.interface import ArrayNextTokens, BeamPlan, Changes, Floats, Ids, layer_number

State = native.NativeState | fallback.FallbackState
_NONE = np.empty(0, np.int64)
_FEW = 64
"""Up to this many forbidden ids are left out as the largest are found; more, afterwards. For more
changed entries of a row, whole rows are changed."""

_SPARE = 6
"""Of many forbidden ids, hardly ever more are among the largest of a row; else whole rows are
changed. With 2,455 of 8,000 ids forbidden this happens in 5 % of the steps of a large batch, and
500 captions in int8 take 1.09 times their time, not 1.5 times."""


class StateNextTokens:
    """The next tokens of a state, which may have found the largest; see `NextTokens`.

    Args:
        state: after a step.
        n_rows: its number of rows.
        vocab_size: number of ids that may follow each row.
    """

    def __init__(self, state: State, n_rows: int, vocab_size: int) -> None:
        self.n_rows, self.vocab_size = n_rows, vocab_size
        self._state = state

    def log_probs_of(self, ids: Ids) -> Floats:
        """The model's log-probs of ids `(rows, n_ids)`; see `NextTokens.log_probs_of`."""
        return self._state.log_probs_of(ids)

    def top_k(self, count: int, changes: Changes | None = None) -> tuple[Floats, Ids]:
        """The largest scores and their ids, both `(rows, count)`; see `NextTokens.top_k`."""
        forbidden = _NONE if changes is None else changes.forbidden
        # With this many more than requested, enough remain after the changes in their row.
        more = 0 if changes is None else changes.most_entries
        if more <= _FEW and count + more + _SPARE <= library.MOST_INSERTED:
            best = self._best(count + more, forbidden)
            if best is not None:
                return _lowered(*best, count, changes) if changes is not None and more else best
        return self._whole().top_k(count, changes)

    def _best(self, count: int, forbidden: Ids) -> tuple[Floats, Ids] | None:
        if len(forbidden) <= _FEW or count + _SPARE > self.vocab_size:
            return self._state.best(count, forbidden)
        best = self._state.best(count + _SPARE, _NONE)
        return best and _without(*best, count, forbidden, self.vocab_size)

    def all_log_probs(self) -> Floats:
        """All log-probs, `(rows, vocab_size)`; see `NextTokens.all_log_probs`."""
        return self._whole().all_log_probs()

    def _whole(self) -> ArrayNextTokens:
        return _in_array(self._state.log_probs())


def _without(
    values: Floats, ids: Ids, count: int, forbidden: Ids, vocab_size: int
) -> tuple[Floats, Ids] | None:
    """The first `count` of each row that are not forbidden; None if a row has fewer.

    Args:
        values: the largest of each row, `(rows, n)`.
        ids: their ids, `(rows, n)`.
        count: how many to return.
        forbidden: ids to leave out, `(n_forbidden,)`.
        vocab_size: number of ids.
    """
    is_allowed = np.ones(vocab_size, bool)
    is_allowed[forbidden] = False
    is_left = is_allowed[ids]
    numbers = is_left.cumsum(axis=1)
    if len(numbers) and numbers[:, -1].min() < count:
        return None
    is_left &= numbers <= count
    return values[is_left].reshape(-1, count), ids[is_left].reshape(-1, count)


def _lowered(values: Floats, ids: Ids, count: int, changes: Changes) -> tuple[Floats, Ids]:
    """The best of each row after the scores of some entries were lowered.

    Args:
        values: the largest of each row before, `(rows, count + the most entries of a row)`.
        ids: their ids.
        count: how many to return.
        changes: the entries.
    """
    rows, columns, numbers = changes.places_in(ids)
    if not len(rows):
        return values[:, :count], ids[:, :count]
    values, ids = values.copy(), ids.copy()
    np.minimum.at(values, (rows, columns), changes.scores[numbers])
    rows = np.unique(rows)
    order = np.lexsort((ids[rows], -values[rows]), axis=1)
    values[rows] = np.take_along_axis(values[rows], order, axis=1)
    ids[rows] = np.take_along_axis(ids[rows], order, axis=1)
    return values[:, :count], ids[:, :count]


class ForcedNextTokens:
    """The next tokens after each token of given targets, computed on demand.

    If only one id for each token is requested, the others are not stored: a batch of texts would
    take hundreds of megabytes, and filling these as long as computing them.

    Args:
        start: reads the sources.
        tgt_in: the targets, `(batch, tgt_len)`.
        vocab_size: ids that may follow each token.
    """

    def __init__(self, start: Callable[[], State], tgt_in: Ids, vocab_size: int) -> None:
        self.n_rows, self.vocab_size = tgt_in.size, vocab_size
        self._start, self._tgt_in = start, tgt_in
        self._array: ArrayNextTokens | None = None

    def log_probs_of(self, ids: Ids) -> Floats:
        """The model's log-probs of ids `(rows, n_ids)`; see `NextTokens.log_probs_of`."""
        if self._array is not None or ids.shape[1] != 1:
            return self._whole().log_probs_of(ids)
        log_probs = np.empty(self._tgt_in.shape, np.float32)
        next_ids = ids.reshape(self._tgt_in.shape)
        self._start().extend(self._tgt_in, next_ids=next_ids, log_probs=log_probs)
        return log_probs.reshape(-1, 1)

    def top_k(self, count: int, changes: Changes | None = None) -> tuple[Floats, Ids]:
        """The largest scores and their ids, both `(rows, count)`; see `NextTokens.top_k`."""
        return self._whole().top_k(count, changes)

    def all_log_probs(self) -> Floats:
        """All log-probs, `(rows, vocab_size)`; see `NextTokens.all_log_probs`."""
        return self._whole().all_log_probs()

    def _whole(self) -> ArrayNextTokens:
        if self._array is None:
            log_probs = np.empty((*self._tgt_in.shape, self.vocab_size), np.float32)
            self._start().extend(self._tgt_in, log_probs=log_probs)
            self._array = _in_array(log_probs.reshape(self.n_rows, -1))
        return self._array


class Engine:
    """A network to search with; implements `heed.model.interface.Decodable`.

    Args:
        network: the weights, float32 or int8.
        threads: number of threads; the results do not depend on it.
        kernels: the instruction set, or `numpy`; "" = the best of this machine.
        shortlist: the ids that searches choose from; None = the whole vocabulary. Given targets are
            scored by the whole vocabulary in any case.

    Attributes:
        config: the model's shape.
        network: as given.
        is_native: False if NumPy computes.
        n_workers: number of searches that can run on `single_threaded()`, with a thread each.

    Raises:
        ConfigError: this machine does not have that instruction set.
    """

    def __init__(
        self,
        network: Network,
        *,
        threads: int = 1,
        kernels: str = "",
        shortlist: Shortlist | None = None,
    ) -> None:
        self.config: EngineConfig = network.config
        self.network = network
        self.is_native = library.is_compiled() and kernels != "numpy"
        self._model: native.NativeModel | fallback.FallbackModel = (
            native.NativeModel(network, threads=threads, kernels=kernels)
            if self.is_native
            else fallback.FallbackModel(network)
        )
        self.n_workers = threads if self.is_native else 1
        self._made_with: dict[str, Any] = {"threads": threads, "kernels": kernels}
        self._shortlist = shortlist
        self._alone: Engine | None = None
        if shortlist is not None:
            self._model.set_common_ids(
                shortlist.shared(network.matrices["output"]), shortlist.common_ids
            )

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickled as its weights, from which another process makes a new engine."""
        return partial(Engine, **self._made_with, shortlist=self._shortlist), (self.network,)

    @property
    def length_limit(self) -> int | None:
        """Most tokens of a side, with its special ones; None = any number."""
        return self.config.length_limit

    def with_shortlist(self, shortlist: Shortlist) -> "Engine":
        """The same with this shortlist."""
        return Engine(self.network, **self._made_with, shortlist=shortlist)

    def single_threaded(self) -> "Engine":
        """The same engine, whose searches each use one thread; see `Parallel.single_threaded`."""
        if self._alone is None:
            alone = {**self._made_with, "threads": 1}
            self._alone = Engine(self.network, **alone, shortlist=self._shortlist)
        return self._alone

    def start(self, src: Ids, *, beam_size: int = 1, required_ids: Ids | None = None) -> State:
        """Read sources `(n_sources, src_len)`, identical ones once; see `Decodable.start`."""
        state = self._start(src, beam_size)
        if self._shortlist is not None:
            state.restrict(*self._shortlist.ids_of(src, src != self.config.pad_id, required_ids))
        return state

    def _start(self, src: Ids, beam_size: int = 1) -> State:
        """Read sources for the whole vocabulary, even if there is a shortlist."""
        first: dict[bytes, int] = {}
        same = [first.setdefault(source.tobytes(), place) for place, source in enumerate(src)]
        distinct, places = np.unique(same, return_inverse=True)
        src = src[distinct]
        is_token = src != self.config.pad_id
        lengths = is_token.sum(axis=1, dtype=np.int32)
        state = self._model.start(src[is_token], lengths, beam_size)
        if len(distinct) < len(places):
            rows = places[:, None] * beam_size + np.arange(beam_size)
            state.select(rows.ravel(), places)
        return state

    @property
    def reads_prompts(self) -> bool:
        """Whether `start_from` may be called: there is no encoder."""
        return self.config.family == "decoder"

    def start_from(self, prompts: Ids) -> State:
        """Read the beginnings of targets `(rows, length)`; see `PromptReader.start_from`."""
        is_token = prompts != self.config.pad_id
        lengths = is_token.sum(axis=1, dtype=np.int32)
        return self._model.start(prompts[is_token], lengths, 1, are_prompts=True)

    def begin_beam(self, src: Ids, plan: BeamPlan) -> NativeBeam | None:
        """Begin a beam search, if the compiled library can run it; see `BeamSearcher`."""
        n_ids, forbidden = self.config.tgt_vocab_size, plan.forbidden
        is_sound = len(forbidden) < n_ids and not (forbidden >= n_ids).any()
        if not (self.is_native and is_sound):
            return None
        state = self.start(src, beam_size=plan.beam_size, required_ids=plan.required_ids)
        assert isinstance(state, native.NativeState)
        return NativeBeam(state, plan)

    def step(self, state: State, tokens: Ids) -> StateNextTokens:
        """The next tokens after `tokens` `(rows,)`; see `Decodable.step`."""
        state.step(tokens)
        return StateNextTokens(state, len(tokens), self.config.tgt_vocab_size)

    def extend(self, state: State, tokens: Ids) -> None:
        """Advance every row by several tokens `(rows, n_tokens)`; see `Decodable.extend`."""
        state.extend(tokens)

    def select(self, state: State, rows: Ids, sources: Ids | None = None) -> None:
        """Keep, repeat or reorder rows `(new_rows,)`; see `Decodable.select`."""
        state.select(rows, sources)

    def teacher_forced(self, src: Ids, tgt_in: Ids) -> "ForcedNextTokens":
        """The next tokens after each token of given targets; see `Decodable.teacher_forced`.

        The numbers are those that a search sees.
        """
        return ForcedNextTokens(lambda: self._start(src), tgt_in, self.config.tgt_vocab_size)

    def cross_attention(self, src: Ids, tgt_in: Ids, *, layer: int | None = None) -> list[Floats]:
        """Attention of decoder layers to the source; see `Inspectable.cross_attention`."""
        (batch, tgt_len), (_, src_len) = tgt_in.shape, src.shape
        n_layers = self.network.stacks.n_decoder_layers
        number = None if layer is None else layer_number(layer, n_layers)
        state = self._start(src)
        longest = int(state.lengths.max())
        shape = (n_layers if number is None else 1, batch, self.config.n_heads, tgt_len)
        weights = np.empty((*shape, longest), np.float32)
        if number is None:
            state.extend(tgt_in, weights=weights)
        else:
            state.attention(tgt_in, number, weights[0])
        behind = [(0, 0)] * len(shape) + [(0, src_len - longest)]
        return list(weights if longest == src_len else np.pad(weights, behind))


def _in_array(log_probs: Floats) -> ArrayNextTokens:
    return ArrayNextTokens(log_probs, library.largest if library.is_compiled() else None)
