"""Beam search with phrases: the places of a beam are divided between banks.

The bank of a hypothesis is the number of ids that its missing phrases still need. All nonempty
banks get equally many places, so that hypotheses with an improbable phrase are not displaced by
more probable ones without it. `beam.py` has the loop, `phrases.py` the phrases.

Source: Post and Vilar 2018, "Fast lexically constrained decoding with dynamic beam allocation".
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from heed.decode.constraints import FREE, LEAST, Choice
from heed.decode.phrases import START, Phrases, Progress, State
from heed.decode.state import Candidates, Flags, Sums, Task
from heed.model.interface import Changes, Floats, Ids


@dataclass(frozen=True, slots=True)
class _Way:
    """One way to continue a hypothesis of a source with phrases."""

    total: float
    parent: int
    id: int
    log_prob: float


class Banks:
    """The phrases of every source of a call, and the progress of its hypotheses.

    Args:
        phrases: of each source; None = none.
        beam_size: hypotheses of each source.
        eos_id: ends a hypothesis.
    """

    def __init__(
        self,
        phrases: Sequence[Phrases | None],
        *,
        beam_size: int,
        eos_id: int,
    ) -> None:
        self._eos_id = eos_id
        self._progress = {source: Progress(each) for source, each in enumerate(phrases) if each}
        self._states = {source: [START] * beam_size for source in self._progress}

    @classmethod
    def of(cls, task: Task) -> "Banks | None":
        """The banks of a call; None if it has no phrases."""
        if task.phrases is None or not any(task.phrases):
            return None
        return cls(
            task.phrases,
            beam_size=task.options.beam_size,
            eos_id=task.eos_id,
        )

    def limit(self, choice: Choice, tokens: Ids, sources: Ids) -> Choice:
        """Forbid `<eos>` to hypotheses that lack phrases, and the ends of banned sequences.

        Args:
            choice: the candidates of this step.
            tokens: predicted so far, `(rows, length)`.
            sources: still searched, `(n_sources,)`.
        """
        rows: list[int] = []
        ids: list[int] = []
        for place, progress, states in self._each(sources):
            for row, state in enumerate(states, place * len(states)):
                never = progress.banned_ids(tokens[row].tolist()) if progress.has_banned else []
                if not progress.has_all(state):
                    never = [*never, self._eos_id]
                rows += [row] * len(never)
                ids += never
        if not rows:
            return choice
        old = choice.changes
        changes = Changes(
            forbidden=old.forbidden,
            rows=np.concatenate([old.rows, np.array(rows, dtype=np.int64)]),
            ids=np.concatenate([old.ids, np.array(ids, dtype=np.int64)]),
            scores=np.concatenate([old.scores, np.full(len(rows), -math.inf, dtype=np.float32)]),
        )
        return replace(choice, changes=changes)

    def share(
        self,
        found: Candidates,
        choice: Choice,
        top: tuple[Floats, Ids],
        totals: Sums,
        sources: Ids,
    ) -> None:
        """Replace the candidates of sources with phrases by those of all their banks.

        Args:
            found: the best of all, `2 * beam_size` a source; changed in place.
            choice: the candidates of this step.
            top: scores and ids of the most probable tokens of each row, both `(rows, n)`.
            totals: of the hypotheses that are continued, `(n_sources, beam_size)`.
            sources: still searched, `(n_sources,)`.
        """
        each = self._each(sources)
        wanted = self._wanted(each, choice)
        if not each:
            return
        beam_size = totals.shape[1]
        # The two most probable tokens of each row come before the ids of its phrases. Two, because
        # one may be `<eos>`: a hypothesis of small probability does not end, but continues.
        scores, likeliest = top[0][:, :2], top[1][:, :2]
        n_likeliest = likeliest.shape[1]
        width = n_likeliest + max(map(len, wanted.values()), default=0)
        ids = np.repeat(likeliest[:, :1], width, axis=1)
        ids[:, :n_likeliest] = likeliest
        for row, row_ids in wanted.items():
            ids[row, n_likeliest : n_likeliest + len(row_ids)] = row_ids
        log_probs = choice.following.log_probs_of(ids)
        for place, progress, states in each:
            ways = _best_ways(found, place)
            for slot in range(beam_size):
                row, total = place * beam_size + slot, float(totals[place, slot])
                if total == -math.inf:
                    continue
                for column in range(n_likeliest):
                    score, id = float(scores[row, column]), int(likeliest[row, column])
                    if score > -math.inf:
                        log_prob = float(log_probs[row, column])
                        ways[slot, id] = _Way(total + score, slot, id, log_prob)
                    if id != self._eos_id:
                        break
                for column, id in enumerate(wanted.get(row, ()), start=n_likeliest):
                    log_prob = log_probs[row, column]
                    score = float(np.maximum(log_prob, LEAST))
                    ways[slot, id] = _Way(total + score, slot, id, float(log_prob))
            chosen = self._shared([*ways.values()], progress, states)
            _write(found, place, chosen, not_eos=0 if self._eos_id else 1)

    def advance(self, chosen: Candidates, sources: Ids, is_cut: Flags) -> None:
        """Take one step.

        Args:
            chosen: the candidates to continue, `beam_size` a source. At its limit a source keeps
                only those that lack fewest ids; the totals of others are changed in place.
            sources: still searched, `(n_sources,)`.
            is_cut: which of them are at their limit, `(n_sources,)`.
        """
        for place, progress, states in self._each(sources):
            states = self._states[int(sources[place])] = [
                progress.step(states[parent], id) if total > -math.inf else START
                for parent, id, total in zip(
                    chosen.parents[place].tolist(),
                    chosen.ids[place].tolist(),
                    chosen.totals[place].tolist(),
                    strict=True,
                )
            ]
            if is_cut[place]:
                lacking = np.array([progress.remaining(state) for state in states])
                is_live = chosen.totals[place] > -math.inf
                least = lacking[is_live].min(initial=lacking.max())
                chosen.totals[place, lacking > least] = -math.inf

    def _each(self, sources: Ids) -> list[tuple[int, Progress, list[State]]]:
        """Place among the sources still searched, progress and states of those with phrases."""
        return [
            (place, self._progress[source], self._states[source])
            for place, source in enumerate(sources.tolist())
            if source in self._progress
        ]

    def _wanted(
        self, each: Sequence[tuple[int, Progress, list[State]]], choice: Choice
    ) -> dict[int, list[int]]:
        """The ids of phrases that may come next, by row; none within a prefix."""
        is_forced = choice.required_ids
        return {
            row: progress.next_ids(state)
            for place, progress, states in each
            for row, state in enumerate(states, place * len(states))
            if is_forced is None or is_forced[row] == FREE
        }

    def _shared(self, ways: list[_Way], progress: Progress, states: Sequence[State]) -> list[_Way]:
        """The ways of each bank in turn until the beam is full, and those that end; best first."""
        ways.sort(key=lambda way: (-way.total, way.parent, way.id))
        ending = [way for way in ways if way.id == self._eos_id]
        banks: dict[int, list[_Way]] = {}
        for way in ways:
            if way.id != self._eos_id:
                lacking = progress.remaining(progress.step(states[way.parent], way.id))
                banks.setdefault(lacking, []).append(way)
        chosen: list[_Way] = []
        for rank in range(len(states)):
            for lacking in sorted(banks):
                if rank < len(banks[lacking]) and len(chosen) < len(states):
                    chosen.append(banks[lacking][rank])
        return sorted([*chosen, *ending], key=lambda way: (-way.total, way.parent, way.id))


def _best_ways(found: Candidates, place: int) -> dict[tuple[int, int], _Way]:
    """The best candidates of all, by slot and id."""
    return {
        (parent, id): _Way(total, parent, id, log_prob)
        for parent, id, log_prob, total in zip(
            found.parents[place].tolist(),
            found.ids[place].tolist(),
            found.log_probs[place].tolist(),
            found.totals[place].tolist(),
            strict=True,
        )
        if total > -math.inf
    }


def _write(found: Candidates, place: int, ways: Sequence[_Way], *, not_eos: int) -> None:
    """Make these the candidates of a source; the remaining places are empty."""
    n = found.ids.shape[1]
    found.totals[place] = -math.inf
    found.parents[place], found.ids[place] = 0, not_eos
    for column, way in enumerate(ways[:n]):
        found.parents[place, column], found.ids[place, column] = way.parent, way.id
        found.log_probs[place, column], found.totals[place, column] = way.log_prob, way.total
