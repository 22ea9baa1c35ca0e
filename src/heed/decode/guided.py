"""A search guided by a similar translation: what came next there becomes more probable here.

The log-prob of a token that follows the last tokens of the hypothesis in the guide rises by a
bonus, and the probabilities are divided by their new sum. So scores stay log-probs, and a token
that the model finds impossible stays so.

Source: Zhang et al. 2018, "Guiding Neural Machine Translation with Retrieved Translation Pieces",
section 3.2, whose bonus is not normalized.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from heed.model.interface import Changes, Decodable, Floats, Ids, NextTokens, State

SHARES = np.array([0, 0, 0.7, 1], dtype=np.float32)
"""The share of the bonus by the number of tokens that agree; the beginning counts as all of them.

Software strings, 600 lines with a guide each: one token is too little, because it is often a common
word at another place.
"""

STRONG = 8.0
"""Bonus from which on a guide is strong.

2,000 software strings, BLEU and seconds: 37.17 and 13.5 if every guided search waits for better
hypotheses, 37.02 and 11.1 if none does, 37.03 and 11.3 from this bonus on.
"""

_NONE = -1


@dataclass(frozen=True, slots=True)
class Guide:
    """A translation to follow where the model agrees.

    Attributes:
        ids: its target ids, `<eos>` last; -1 in place of one that is not to follow.
        bonus: largest addition to a log-prob, from 0.
    """

    ids: tuple[int, ...]
    bonus: float

    @property
    def is_strong(self) -> bool:
        """Whether hypotheses that leave it are too improbable for their ends to stop a search."""
        return self.bonus >= STRONG


@dataclass(slots=True)
class _Guided:
    """The state of a guided search.

    Attributes:
        inner: the model's own state.
        targets: the guide of each row, filled up with -1, `(rows, longest)`.
        bonuses: of each row, `(rows, 1)`.
        agreed: for each token of the guide, how many tokens before it are the last ones of the row,
            `(rows, longest)`.
        n_read: number of tokens read.
    """

    inner: State
    targets: Ids
    bonuses: Floats
    agreed: Ids
    n_read: int = 0

    def read(self, tokens: Ids) -> None:
        """Advance by the next token of each row, `<bos>` at first, `(rows,)`."""
        is_same = self.targets[:, :-1] == tokens[:, None]
        self.agreed[:, 1:] = (self.agreed[:, :-1] + 1) * is_same
        self.agreed[:, :1] = 0 if self.n_read else len(SHARES)
        self.n_read += 1

    def shares(self) -> Floats:
        """The share of the bonus of each token of the guide, `(rows, longest)`."""
        found = SHARES.take(self.agreed, mode="clip")
        # Where a row is a beginning of its guide, repeated words do not lead to another place.
        is_next = self.agreed == len(SHARES) + self.n_read - 1
        return np.where(is_next.any(axis=1, keepdims=True) & ~is_next, np.float32(0), found)


class GuidedModel:
    """A model whose log-probs follow the guide of each source.

    Args:
        model: the model.
        guides: one for each source of the search; None = the model's own log-probs.
    """

    def __init__(self, model: Decodable, guides: Sequence[Guide | None]) -> None:
        self._model = model
        longest = max((len(guide.ids) for guide in guides if guide), default=0)
        self._targets = np.full((len(guides), longest), _NONE)
        for row, guide in zip(self._targets, guides, strict=True):
            if guide:
                row[: len(guide.ids)] = guide.ids
        self._bonuses = np.array(
            [[guide.bonus if guide else 0.0] for guide in guides], dtype=np.float32
        )

    @property
    def length_limit(self) -> int | None:
        """That of the model."""
        return self._model.length_limit

    def start(self, src: Ids, *, beam_size: int = 1, required_ids: Ids | None = None) -> State:
        """See `Decodable.start`; the tokens of guides are computed too."""
        ids = [self._targets] if required_ids is None else [required_ids, self._targets]
        inner = self._model.start(
            src, beam_size=beam_size, required_ids=np.concatenate(ids, axis=1)
        )
        targets = self._targets.repeat(beam_size, axis=0)
        bonuses = self._bonuses.repeat(beam_size, axis=0)
        return _Guided(inner, targets, bonuses, np.zeros_like(targets))

    def step(self, state: State, tokens: Ids) -> NextTokens:
        """See `Decodable.step`."""
        # First: the tokens may lie in memory of the model that a step overwrites.
        state.read(tokens)
        following = self._model.step(state.inner, tokens)
        bonuses = state.bonuses * state.shares()
        rows, places = ((bonuses > 0) & (state.targets != _NONE)).nonzero()
        if not len(rows):
            return following
        return GuidedNextTokens(following, rows, state.targets[rows, places], bonuses[rows, places])

    def extend(self, state: State, tokens: Ids) -> None:
        """See `Decodable.extend`."""
        for column in tokens.T:
            state.read(column)
        self._model.extend(state.inner, tokens)

    def select(self, state: State, rows: Ids, sources: Ids | None = None) -> None:
        """See `Decodable.select`."""
        self._model.select(state.inner, rows, sources)
        state.targets, state.bonuses = state.targets[rows], state.bonuses[rows]
        state.agreed = state.agreed[rows]

    def teacher_forced(self, src: Ids, tgt_in: Ids) -> NextTokens:
        """The model's own log-probs; see `Decodable.teacher_forced`."""
        return self._model.teacher_forced(src, tgt_in)


class GuidedNextTokens:
    """The next tokens with a bonus for some, all probabilities divided by their new sum.

    Args:
        following: the model's.
        rows: of single entries with a bonus, `(n_entries,)`.
        ids: of the same entries; of equal entries the largest bonus counts, `(n_entries,)`.
        bonuses: added to their log-probs, above 0, `(n_entries,)`.
    """

    def __init__(self, following: NextTokens, rows: Ids, ids: Ids, bonuses: Floats) -> None:
        self._following = following
        self.n_rows, self.vocab_size = following.n_rows, following.vocab_size
        self._ids, self._bonuses = _by_row(rows, ids, bonuses, self.n_rows)
        self._own = following.log_probs_of(self._ids)
        self._added = np.exp(self._own) * np.expm1(self._bonuses)
        self._log_sums = _log_sums(self._added)

    def log_probs_of(self, ids: Ids) -> Floats:
        """Their log-probs, bonuses included; see `NextTokens.log_probs_of`."""
        found: Floats = self._following.log_probs_of(ids) - self._log_sums
        for entries, bonuses in zip(self._ids.T, self._bonuses.T, strict=True):
            found += (ids == entries[:, None]) * bonuses[:, None]
        return _at_most_certain(found)

    def top_k(self, count: int, changes: Changes | None = None) -> tuple[Floats, Ids]:
        """The largest scores and their ids, bonuses included; see `NextTokens.top_k`."""
        own, is_real, log_sums = changes, self._bonuses > 0, self._log_sums
        if changes is not None:
            # An entry that may not come next has no share in the sum.
            is_real &= ~self._are_forbidden(changes)
            log_sums = _log_sums(self._added * is_real)
            own = replace(changes, scores=changes.scores + log_sums[changes.rows, 0])
        scores, ids = self._following.top_k(count, own)
        is_again = ((ids[:, :, None] == self._ids[:, None]) & is_real[:, None]).any(axis=2)
        entries = _at_most_certain(self._own + self._bonuses - log_sums)
        entries = np.where(is_real, entries, -np.inf)
        if changes is not None:
            rows, columns, numbers = changes.places_in(self._ids)
            np.minimum.at(entries, (rows, columns), changes.scores[numbers])
        scores = np.where(is_again, -np.inf, scores - log_sums)
        scores = np.concatenate([scores, entries], axis=1, dtype=np.float32)
        ids = np.concatenate([ids, self._ids], axis=1)
        order = np.lexsort((ids, -scores))[:, :count]
        return np.take_along_axis(scores, order, axis=1), np.take_along_axis(ids, order, axis=1)

    def all_log_probs(self) -> Floats:
        """All log-probs, bonuses included; see `NextTokens.all_log_probs`."""
        found: Floats = self._following.all_log_probs() - self._log_sums
        np.add.at(found, (np.arange(self.n_rows)[:, None], self._ids), self._bonuses)
        return _at_most_certain(found)

    def _are_forbidden(self, changes: Changes) -> NDArray[np.bool_]:
        """Which entries may not come next, `(n_rows, n_entries)`."""
        found = np.isin(self._ids, changes.forbidden)
        rows, columns, numbers = changes.places_in(self._ids)
        np.logical_or.at(found, (rows, columns), changes.scores[numbers] == -np.inf)
        return found


def _at_most_certain(log_probs: Floats) -> Floats:
    """The same, where rounding leaves the probability of a nearly certain token above 1."""
    return np.minimum(log_probs, np.float32(0))


def _log_sums(added: Floats) -> Floats:
    """The logs of the new sums of probabilities, from what the bonuses add, `(n_rows, 1)`."""
    # One after the other: `sum` adds in another order where another row has more entries.
    sums: Floats = np.log1p(added.cumsum(axis=1)[:, -1:])
    return sums


def _by_row(rows: Ids, ids: Ids, bonuses: Floats, n_rows: int) -> tuple[Ids, Floats]:
    """Entries as `(n_rows, most)`, filled up with the id 0 and no bonus; of equal ones the largest.

    Args:
        rows: of the entries, `(n_entries,)`.
        ids: of the entries, `(n_entries,)`.
        bonuses: of the entries, `(n_entries,)`.
        n_rows: number of rows.
    """
    order = np.lexsort((-bonuses, ids, rows))
    rows, ids, bonuses = rows[order], ids[order], bonuses[order]
    is_first = np.ones(len(rows), dtype=bool)
    is_first[1:] = (rows[1:] != rows[:-1]) | (ids[1:] != ids[:-1])
    rows, ids, bonuses = rows[is_first], ids[is_first], bonuses[is_first]
    counts = np.bincount(rows, minlength=n_rows)
    columns = np.arange(len(rows)) - (counts.cumsum() - counts)[rows]
    found = np.zeros((n_rows, counts.max()), dtype=np.int64)
    found_bonuses = np.zeros(found.shape, dtype=np.float32)
    found[rows, columns], found_bonuses[rows, columns] = ids, bonuses
    return found, found_bonuses
