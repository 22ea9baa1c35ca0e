"""The interface between a search and a model: NumPy arrays in, NumPy arrays out.

These are protocols: a search runs with any class that has these methods, such as a Transformer, an
RNN or the int8 engine. `decodable.py` wraps a torch model; the searches are in `heed/decode/`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from heed.errors import ConfigError

Ids = NDArray[np.int64]
Floats = NDArray[np.float32]

State = Any
"""The state of a model between two steps of a search; a search passes it on, but never reads it."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Changes:
    """Changes that a search makes to a model's log-probs before it takes the largest of them.

    Attributes:
        forbidden: ids that no row may choose, `(n_forbidden,)`.
        rows: rows of single entries with a lower score, `(n_entries,)`.
        ids: ids of the same entries, `(n_entries,)`.
        scores: their scores, `(n_entries,)`; minus infinity forbids an entry. If several entries
            have the same row and id, the lowest score holds.
    """

    forbidden: Ids
    rows: Ids
    ids: Ids
    scores: Floats

    @property
    def most_entries(self) -> int:
        """The most single entries that are changed in one row."""
        return int(np.bincount(self.rows).max()) if len(self.rows) else 0

    def places_in(self, ids: Ids) -> tuple[Ids, Ids, Ids]:
        """Where the changed entries stand among some ids of each row.

        Args:
            ids: some for each row, `(rows, n_ids)`.

        Returns:
            Their rows and columns there, and their numbers here, each `(n_found,)`.
        """
        numbers, columns = (ids[self.rows] == self.ids[:, None]).nonzero()
        return self.rows[numbers], columns, numbers


class NextTokens(Protocol):
    """Natural log-probs of the next token of each row, over the whole vocabulary.

    `ArrayNextTokens` is the reference implementation; models have faster ones.

    Attributes:
        n_rows: number of rows.
        vocab_size: number of tokens in the vocabulary.
    """

    n_rows: int
    vocab_size: int

    def log_probs_of(self, ids: Ids) -> Floats:
        """The model's own log-probs of some ids.

        Args:
            ids: some for each row, `(rows, n_ids)`.

        Returns:
            Their log-probs, `(rows, n_ids)`.
        """
        ...

    def top_k(self, count: int, changes: Changes | None = None) -> tuple[Floats, Ids]:
        """The largest scores of each row, largest first, the lower id first among equals.

        Where the score is minus infinity, the id is arbitrary.

        Args:
            count: how many; fewer come back if the vocabulary is smaller.
            changes: applied to the log-probs for this call only.

        Returns:
            The scores and their ids, both `(rows, count)`. The caller may change them; they are
            valid until the next step.
        """
        ...

    def all_log_probs(self) -> Floats:
        """A copy of the model's own log-probs of the whole vocabulary, `(rows, vocab_size)`."""
        ...


class Decodable(Protocol):
    """A model that gives the log-probs of the next token, step by step.

    A search works on *rows*: `rows = n_sources * beam_size`, and row `r` continues source
    `r // beam_size`. Greedy search has one row for each source.
    """

    @property
    def length_limit(self) -> int | None:
        """Most tokens of a side, with its special ones; None = any number."""
        ...

    def start(self, src: Ids, *, beam_size: int = 1, required_ids: Ids | None = None) -> State:
        """Read the sources once and return the state before the first target token.

        Args:
            src: source ids, padded with the model's `pad_id`, `(n_sources, src_len)`.
            beam_size: rows that will continue each source.
            required_ids: ids that each target will contain, -1 for none, `(n_sources, n)`: a model
                that computes only probable tokens must compute these too.
        """
        ...

    def step(self, state: State, tokens: Ids) -> NextTokens:
        """Advance every row by one token.

        Args:
            state: from `start`; changed in place.
            tokens: the last token of each row, `<bos>` at first, `(rows,)`.

        Returns:
            The next tokens of each row, valid until the next call.
        """
        ...

    def extend(self, state: State, tokens: Ids) -> None:
        """Advance every row by several tokens at once, equal to as many steps.

        Args:
            state: from `start`; changed in place.
            tokens: the next tokens of each row, `(rows, n_tokens)`.
        """
        ...

    def select(self, state: State, rows: Ids, sources: Ids | None = None) -> None:
        """Keep, repeat or reorder rows, in place.

        Args:
            state: from `start`; changed in place.
            rows: which old row each new row continues, `(new_rows,)`.
            sources: which old sources stay, `(new_n_sources,)`; None keeps all, in order.
        """
        ...

    def teacher_forced(self, src: Ids, tgt_in: Ids) -> NextTokens:
        """Score given targets in one pass.

        Args:
            src: source ids, padded, `(batch, src_len)`.
            tgt_in: target ids that start with `<bos>`, padded, `(batch, tgt_len)`.

        Returns:
            The next tokens after each target token: row `b * tgt_len + t` predicts token `t + 1` of
            target `b`.
        """
        ...


@runtime_checkable
class Inspectable(Decodable, Protocol):
    """A model whose decoder layers attend to the source."""

    def cross_attention(self, src: Ids, tgt_in: Ids, *, layer: int | None = None) -> list[Floats]:
        """Attention weights of decoder layers over the source, in teacher forcing.

        Args:
            src: source ids, padded, `(batch, src_len)`.
            tgt_in: target ids that start with `<bos>`, padded, `(batch, tgt_len)`.
            layer: number of the only layer to return, negative from the end; None = all.

        Returns:
            The weights, first layer first, each `(batch, n_heads, tgt_len, src_len)`; an empty list
            if no layer attends to the source.

        Raises:
            ConfigError: the model has no such layer.
        """
        ...


def layer_number(layer: int, n_layers: int) -> int:
    """The number of a layer from 0.

    Args:
        layer: its number; from the end if negative.
        n_layers: how many there are.

    Raises:
        ConfigError: there is no such layer.
    """
    if layer not in range(-n_layers, n_layers):
        raise ConfigError(f"layer must lie between {-n_layers} and {n_layers - 1}, but is {layer}.")
    return layer % n_layers


@runtime_checkable
class PromptReader(Decodable, Protocol):
    """A model that reads prompts of unequal length at once, one for each row.

    Attributes:
        reads_prompts: whether this model does; not every setting allows it.
    """

    reads_prompts: bool

    def start_from(self, prompts: Ids) -> State:
        """Read the beginnings of targets without sources, one for each row.

        The next step gives the same as after `start` and a step for each of these tokens.

        Args:
            prompts: target ids, padded with the model's `pad_id`, `(rows, length)`.
        """
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class BeamPlan:
    """A beam search with the constraints that need only the ids so far.

    Attributes:
        n_best: hypotheses returned for each source, at most `beam_size`.
        beam_size: rows of each source.
        early_stopping: the name of a rule of `heed/decode/early_stopping.py`.
        bos_id: the token before the first.
        eos_id: the token that ends a hypothesis.
        forbidden: ids that are never chosen, `(n_forbidden,)`.
        limits: most tokens of each source, `(n_sources,)`.
        divisors: length penalties at these limits, `(n_sources,)`.
        penalties: length penalties of 0, 1, … tokens, at least as far as the longest limit, `(n,)`.
        min_length: tokens before `eos_id` is allowed.
        no_repeat_ngram_size: no n-gram of this size occurs twice; 0 = off.
        prefixes: ids each source must begin with, -1 where any id may come,
            `(n_sources, prefix_len)`.
        slots: the arrays of `heed.decode.slots.SlotRules` by name; None = no source has slots.
        missing_cost: penalty of `eos_id` for each missing slot, infinite if it is not allowed.
        required_ids: ids that each target will contain, -1 for none, `(n_sources, n)`.
    """

    n_best: int
    beam_size: int
    early_stopping: str
    bos_id: int
    eos_id: int
    forbidden: Ids
    limits: Ids
    divisors: NDArray[np.float64]
    penalties: NDArray[np.float64]
    min_length: int
    no_repeat_ngram_size: int
    prefixes: Ids
    slots: Mapping[str, NDArray[Any]] | None
    missing_cost: float
    required_ids: Ids


class RunningBeam(Protocol):
    """A beam search that a model runs; see `BeamSearcher`."""

    @property
    def sources(self) -> Ids:
        """Which sources of the call are still searched, `(n_sources,)`."""
        ...

    @property
    def stuck(self) -> tuple[int, float] | None:
        """A source without any probable token, and its best total, minus infinity or NaN.

        None = there is none. With one, the search has no more steps.
        """
        ...

    def step(self) -> int:
        """Add one token to each hypothesis; return the number of sources still searched."""
        ...

    def drop(self, are_dropped: NDArray[np.bool_]) -> int:
        """Remove sources without a result; return the number of those still searched.

        Args:
            are_dropped: of those still searched, `(n_sources,)`.
        """
        ...

    def found(self) -> list[list[tuple[list[int], list[float], float, bool]]]:
        """Of each source of the call its hypotheses, best first.

        Each has its ids, with `<eos>` if it ended; their log-probs; its score; and whether it ended
        and was not cut.
        """
        ...


@runtime_checkable
class BeamSearcher(Decodable, Protocol):
    """A model that can run the steps of a beam search itself."""

    def begin_beam(self, src: Ids, plan: BeamPlan) -> RunningBeam | None:
        """Read the sources for a search with the results of `heed.decode.beam.beam_search`.

        Args:
            src: source ids, padded with the model's `pad_id`, `(n_sources, src_len)`.
            plan: the search.

        Returns:
            The search before its first step; None if the model does not run this one itself.
        """
        ...


@runtime_checkable
class Parallel(Decodable, Protocol):
    """A model that can run several searches at the same time, each in one thread.

    Attributes:
        n_workers: number of threads.
    """

    n_workers: int

    def single_threaded(self) -> Decodable:
        """The same network; each of its searches runs in the thread of its caller."""
        ...


class ArrayNextTokens:
    """`NextTokens` in an array.

    Args:
        log_probs: `(rows, vocab_size)`; every method leaves them as they were.
        find: finds the largest entries, as `largest` does.
    """

    def __init__(
        self, log_probs: Floats, find: "Callable[[Floats, int], tuple[Floats, Ids]] | None" = None
    ) -> None:
        self.n_rows, self.vocab_size = log_probs.shape
        self._log_probs = log_probs
        self._find = find or largest

    def log_probs_of(self, ids: Ids) -> Floats:
        """The model's log-probs of ids `(rows, n_ids)`; see `NextTokens.log_probs_of`."""
        return np.take_along_axis(self._log_probs, ids, axis=1)

    def top_k(self, count: int, changes: Changes | None = None) -> tuple[Floats, Ids]:
        """The largest scores and their ids, both `(rows, count)`; see `NextTokens.top_k`."""
        if changes is None:
            return self._find(self._log_probs, count)
        # Changing a few entries and putting them back is cheaper than a copy.
        log_probs, rows, ids, forbidden = (
            self._log_probs,
            changes.rows,
            changes.ids,
            changes.forbidden,
        )
        columns, entries = log_probs[:, forbidden], log_probs[rows, ids]
        np.minimum.at(log_probs, (rows, ids), changes.scores)
        log_probs[:, forbidden] = -np.inf
        try:
            return self._find(log_probs, count)
        finally:
            log_probs[:, forbidden] = columns
            log_probs[rows, ids] = entries

    def all_log_probs(self) -> Floats:
        """A copy of the log-probs, `(rows, vocab_size)`; see `NextTokens.all_log_probs`."""
        return self._log_probs.copy()


def largest(scores: Floats, count: int) -> tuple[Floats, Ids]:
    """The `count` largest entries of each row, largest first, the lower id first among equals.

    Args:
        scores: log-probs, `(rows, vocab_size)`.
        count: how many; fewer come back if the rows are shorter.

    Returns:
        The values and their ids, both `(rows, count)`.
    """
    ids = np.argsort(-scores, axis=1, kind="stable")[:, :count]
    return np.take_along_axis(scores, ids, axis=1), ids
