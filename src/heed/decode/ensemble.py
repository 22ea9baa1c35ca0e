"""Several models that translate together: a search sees the mean of their probabilities.

Source: Hansen and Salamon 1990, "Neural Network Ensembles"; Sutskever et al. 2014, "Sequence to
Sequence Learning with Neural Networks", section 3.6, translates with one.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from heed.model.interface import (
    ArrayNextTokens,
    Changes,
    Decodable,
    Floats,
    Ids,
    Inspectable,
    NextTokens,
    Parallel,
)

_NONE = np.empty(0, dtype=np.int64)
_NO_SCORES = np.empty(0, dtype=np.float32)

_WIDEST = 1024
"""The most tokens of a model that are compared; for more, sorting whole rows is as fast."""

_ROUNDING = 1e-4
"""More than the rounding of log-probs; a difference that is smaller leaves a bound open."""


class Ensemble:
    """Models that read the same ids and give the probabilities of the same ids.

    It implements `Inspectable` and `Parallel` of `heed.model.interface`.

    Args:
        models: two or more; attention is that of the first.

    Attributes:
        models: the same.
        n_workers: number of searches that all models can run at the same time.
    """

    def __init__(self, models: Sequence[Decodable]) -> None:
        self.models = list(models)
        self.n_workers = min(
            model.n_workers if isinstance(model, Parallel) else 1 for model in models
        )

    @property
    def length_limit(self) -> int | None:
        """The lowest of the models' limits; None = there is none."""
        limits = [model.length_limit for model in self.models if model.length_limit is not None]
        return min(limits, default=None)

    @property
    def is_on_gpu(self) -> bool:
        """Whether all models are on a GPU."""
        return all(getattr(model, "is_on_gpu", False) for model in self.models)

    @property
    def is_native(self) -> bool:
        """False if NumPy computes one of the models."""
        return all(getattr(model, "is_native", True) for model in self.models)

    def single_threaded(self) -> "Ensemble":
        """The same models, each with one thread; see `Parallel.single_threaded`."""
        return Ensemble(
            [
                model.single_threaded() if isinstance(model, Parallel) else model
                for model in self.models
            ]
        )

    def start(self, src: Ids, *, beam_size: int = 1, required_ids: Ids | None = None) -> list[Any]:
        """Read the sources with each model; see `Decodable.start`."""
        return [
            model.start(src, beam_size=beam_size, required_ids=required_ids)
            for model in self.models
        ]

    def step(self, state: list[Any], tokens: Ids) -> "MeanNextTokens":
        """The next tokens after `tokens` `(rows,)`; see `Decodable.step`."""
        return MeanNextTokens(
            [model.step(own, tokens) for model, own in zip(self.models, state, strict=True)]
        )

    def extend(self, state: list[Any], tokens: Ids) -> None:
        """Advance every row by several tokens `(rows, n_tokens)`; see `Decodable.extend`."""
        for model, own in zip(self.models, state, strict=True):
            model.extend(own, tokens)

    def select(self, state: list[Any], rows: Ids, sources: Ids | None = None) -> None:
        """Keep, repeat or reorder rows `(new_rows,)`; see `Decodable.select`."""
        for model, own in zip(self.models, state, strict=True):
            model.select(own, rows, sources)

    def teacher_forced(self, src: Ids, tgt_in: Ids) -> "MeanNextTokens":
        """The next tokens after each of `tgt_in` `(batch, tgt_len)`; see `Decodable`."""
        return MeanNextTokens([model.teacher_forced(src, tgt_in) for model in self.models])

    def cross_attention(self, src: Ids, tgt_in: Ids, *, layer: int | None = None) -> list[Floats]:
        """Attention of the first model; see `Inspectable.cross_attention`."""
        first = self.models[0]
        if not isinstance(first, Inspectable):
            return []
        return first.cross_attention(src, tgt_in, layer=layer)


class MeanNextTokens:
    """The next tokens by the mean probability of several models; see `NextTokens`.

    Args:
        members: of each model, for the same rows.
    """

    def __init__(self, members: Sequence[NextTokens]) -> None:
        self._members = members
        self.n_rows, self.vocab_size = members[0].n_rows, members[0].vocab_size

    def log_probs_of(self, ids: Ids) -> Floats:
        """Logs of the mean probabilities of ids `(rows, n_ids)`; see `NextTokens.log_probs_of`."""
        return _log_mean([member.log_probs_of(ids) for member in self._members])

    def top_k(self, count: int, changes: Changes | None = None) -> tuple[Floats, Ids]:
        """The largest scores and their ids, both `(rows, count)`; see `NextTokens.top_k`.

        Only what some model ranks among its `width` largest is compared. A token that none ranks so
        high is not above the mean of the probabilities of rank `width`; where that bound leaves the
        largest open, the whole row is searched (Fagin et al. 2001, "Optimal Aggregation Algorithms
        for Middleware", the threshold algorithm).
        """
        count = min(count, self.vocab_size)
        more = 0 if changes is None else changes.most_entries
        width = min(2 * count + 2 + more, self.vocab_size)
        if width > min(_WIDEST, self.vocab_size - 1):
            return ArrayNextTokens(self.all_log_probs()).top_k(count, changes)
        tops = [member.top_k(width, _without_entries(changes)) for member in self._members]
        # The id of an entry with a score of minus infinity is arbitrary.
        named = [np.where(found > -np.inf, ids, self.vocab_size) for found, ids in tops]
        ids = np.sort(np.concatenate(named, axis=1), axis=1)
        is_real = ids < self.vocab_size
        is_real[:, 1:] &= ids[:, 1:] != ids[:, :-1]
        ids[~is_real] = 0
        scores = np.where(is_real, self.log_probs_of(ids), -np.inf).astype(np.float32)
        if changes is not None:
            rows, columns, numbers = changes.places_in(ids)
            np.minimum.at(scores, (rows, columns), changes.scores[numbers])
        # The ids ascend, so a stable sort puts the lower one first among equals.
        order = np.argsort(-scores, axis=1, kind="stable")[:, :count]
        scores, ids = np.take_along_axis(scores, order, 1), np.take_along_axis(ids, order, 1)
        bound = _log_mean([found[:, -1] for found, _ in tops])
        # Also where a model gives NaN, which the search itself refuses.
        is_open = ~(scores[:, -1] > bound + _ROUNDING) & (bound != -np.inf)
        if is_open.any():
            rows = is_open.nonzero()[0]
            whole = ArrayNextTokens(self.all_log_probs()[rows])
            scores[rows], ids[rows] = whole.top_k(count, _of_rows(changes, rows, self.n_rows))
        return scores, ids

    def all_log_probs(self) -> Floats:
        """Logs of all mean probabilities, `(rows, vocab_size)`; see `NextTokens.all_log_probs`."""
        return _log_mean([member.all_log_probs() for member in self._members])


def _log_mean(log_probs: Sequence[Floats]) -> Floats:
    """The logs of mean probabilities, without underflow."""
    largest = np.maximum.reduce(log_probs)
    # Where all are minus infinity, so is the mean, and not the difference of two infinities.
    shift = np.where(largest == -np.inf, np.float32(0), largest)
    total = np.zeros_like(largest)
    for each in log_probs:
        total += np.exp(each - shift)
    with np.errstate(divide="ignore"):
        found: Floats = np.log(total / len(log_probs)) + shift
    return found


def _without_entries(changes: Changes | None) -> Changes | None:
    """The same for all rows, without changes of single entries."""
    if changes is None:
        return None
    return replace(changes, rows=_NONE, ids=_NONE, scores=_NO_SCORES)


def _of_rows(changes: Changes | None, rows: Ids, n_rows: int) -> Changes | None:
    """The changes of some rows, which are numbered from 0."""
    if changes is None:
        return None
    places = np.full(n_rows, -1)
    places[rows] = np.arange(len(rows))
    is_theirs = places[changes.rows] >= 0
    return Changes(
        forbidden=changes.forbidden,
        rows=places[changes.rows[is_theirs]],
        ids=changes.ids[is_theirs],
        scores=changes.scores[is_theirs],
    )
