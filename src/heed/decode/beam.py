"""Beam search: several partial hypotheses for each source, all sources in one batch of arrays.

`beam_search` is the loop; `expand`, `end`, `go_on`, `advance` and `stop` are its steps, in order.
With a beam of one it finds what greedy search finds. `constraints.py` applies to both.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heed.decode.banks import Banks
from heed.decode.constraints import Choice
from heed.decode.early_stopping import EARLY_STOPPING, Standing, stop_bound
from heed.decode.length_penalty import LENGTH_FORMULAS
from heed.decode.state import (
    DROPPED,
    ENDED,
    Candidates,
    Flags,
    Hypothesis,
    Step,
    Sums,
    Task,
    check_alive,
    make_hypothesis,
)
from heed.model.interface import Decodable, Floats, Ids, NextTokens

_FIRST_ROOM = 32


class Ended:
    """The best finished hypotheses of every source of the call.

    Args:
        n_sources: sources of the call.
        n_best: hypotheses kept of each.

    Attributes:
        found: of each source, complete ones first, then by score, then by time.
        counts: how many have ended, kept or not, `(n_sources,)`.
        best: score of the first, minus infinity while there is none, `(n_sources,)`.
        worst: score of the last of the `n_best`, minus infinity while there are fewer,
            `(n_sources,)`.
    """

    def __init__(self, n_sources: int, n_best: int) -> None:
        self.found: list[list[Hypothesis]] = [[] for _ in range(n_sources)]
        self.counts = np.zeros(n_sources, dtype=np.int64)
        self.best = np.full(n_sources, -math.inf)
        self.worst = np.full(n_sources, -math.inf)
        self._n_best = n_best

    def keep(self, source: int, hypothesis: Hypothesis) -> None:
        """Add a hypothesis, longer than any here, if it is among the best."""
        found = self.found[source]
        found.append(hypothesis)
        found.sort(key=lambda answer: (answer.status != "eos", -answer.score))
        del found[self._n_best :]
        self.best[source] = found[0].score
        if len(found) == self._n_best:
            self.worst[source] = found[-1].score

    def forget(self, sources: Ids) -> None:
        """Remove all hypotheses of some sources, `(n_sources,)`."""
        for source in sources.tolist():
            self.found[source] = []


@dataclass(kw_only=True, slots=True)
class Beam:
    """Live hypotheses of every source still in the batch; row `r` is slot `r % beam_size`.

    Attributes:
        length: tokens predicted so far.
        sources: which source of the call it is, `(n_sources,)`.
        limits: most tokens each may get, `(n_sources,)`.
        divisors: length penalties at these limits, `(n_sources,)`.
        tokens: predicted so far, then room for more, `(rows, room)`.
        token_log_probs: their log-probs by the model, `(rows, room)`.
        totals: sum of the scores by which they were chosen, best first, minus infinity for an empty
            slot, `(n_sources, beam_size)`.
    """

    length: int
    sources: Ids
    limits: Ids
    divisors: Sums
    tokens: Ids
    token_log_probs: Floats
    totals: Sums

    def select(self, sources: Ids, rows: Ids) -> "Beam":
        """Keep some sources.

        Args:
            sources: those to keep, `(new_n_sources,)`.
            rows: their rows, `(new_rows,)`.
        """
        return Beam(
            length=self.length,
            sources=self.sources[sources],
            limits=self.limits[sources],
            divisors=self.divisors[sources],
            tokens=self.tokens[rows],
            token_log_probs=self.token_log_probs[rows],
            totals=self.totals[sources],
        )


def beam_search(model: Decodable, src: Ids, task: Task) -> list[list[Hypothesis]]:
    """Find the hypotheses with the best scores within the beam.

    Args:
        model: anything that can be decoded.
        src: padded source ids, `(n_sources, src_len)`.
        task: options, limits and constraints.

    Returns:
        For each source at most `n_best` hypotheses, best first; none if it is no longer wanted.

    Raises:
        HeedError: the model's output is not a number.

    Source: Sutskever et al. 2014, section 3.2; complete hypotheses leave the beam, which stays
        full.
    """
    beam_size = task.options.beam_size
    banks = Banks.of(task)
    state = model.start(src, beam_size=beam_size, required_ids=_required_ids(task))
    beam, ended = begin(task)
    last = np.full(len(src) * beam_size, task.bos_id)
    # Of arrays this small, `count_nonzero` takes a sixth of the time of `any`.
    while len(beam.sources):
        following = model.step(state, last)
        choice = _allowed(task, banks, following, beam)
        top = choice.top(beam_size + 1)
        found = expand(beam, choice, top, ended)
        if banks is not None:
            banks.share(found, choice, top, beam.totals, beam.sources)
        is_eos = found.ids == task.eos_id
        if np.count_nonzero(is_eos):
            end(ended, beam, found, is_eos, task)
            chosen = go_on(found, is_eos, beam_size)
        else:
            chosen = found.first(beam_size)
        if task.observer is not None:
            task.observer(_seen(beam, choice, found, is_eos))
        rows = _flat(chosen.parents, beam_size).ravel()
        beam = advance(beam, chosen, rows)
        if banks is not None:
            banks.advance(chosen, beam.sources, beam.limits <= beam.length)
        is_over = stop(ended, beam, task)
        if task.is_wanted is not None:
            is_dropped = ~is_over & ~task.is_wanted(beam.sources)
            ended.forget(beam.sources[is_dropped])
            is_over |= is_dropped

        stay = None
        if np.count_nonzero(is_over):
            stay = (~is_over).nonzero()[0]
            old = (stay[:, None] * beam_size + np.arange(beam_size)).ravel()
            rows, beam = rows[old], beam.select(stay, old)
        is_in_place = stay is None and rows.tolist() == [*range(len(rows))]
        if len(rows) and not is_in_place:
            model.select(state, rows, stay)
        last = beam.tokens[:, beam.length - 1]
    return ended.found


def begin(task: Task) -> tuple[Beam, Ended]:
    """Make the beam before the first token: one empty hypothesis a source, the other slots empty.

    Args:
        task: options, limits and constraints.
    """
    n_sources, beam_size = len(task.limits), task.options.beam_size
    totals = np.full((n_sources, beam_size), -math.inf)
    totals[:, 0] = 0.0
    beam = Beam(
        length=0,
        sources=np.arange(n_sources),
        limits=task.limits,
        divisors=_length_penalty(task.limits, task),
        tokens=np.empty((n_sources * beam_size, _FIRST_ROOM), dtype=np.int64),
        token_log_probs=np.empty((n_sources * beam_size, _FIRST_ROOM), dtype=np.float32),
        totals=totals,
    )
    return beam, Ended(n_sources, task.options.n_best)


def _required_ids(task: Task) -> Ids:
    """The ids that each answer will contain, padded with -1, `(n_sources, n)`."""
    own = task.constraints.required_ids()
    if task.phrases is None:
        return own
    rows = [each.ids if each else [] for each in task.phrases]
    required = np.full((len(rows), max(map(len, rows))), -1)
    for row, ids in zip(required, rows, strict=True):
        row[: len(ids)] = ids
    return np.concatenate([own, required], axis=1)


def _allowed(task: Task, banks: Banks | None, following: NextTokens, beam: Beam) -> Choice:
    """The candidates of a step, after all constraints."""
    tokens = beam.tokens[:, : beam.length]
    choice = task.constraints.apply(following, tokens, beam.sources)
    return choice if banks is None else banks.limit(choice, tokens, beam.sources)


def expand(beam: Beam, choice: Choice, top: tuple[Floats, Ids], ended: Ended) -> Candidates:
    """Continue every live hypothesis by its most probable tokens and rank them per source.

    `beam_size + 1` tokens a row suffice: one of them may be `<eos>`. Of all of these, keep twice
    the beam: all of the best `beam_size` might end. Ties keep the order of slots, then of ids.

    Args:
        beam: the hypotheses to continue.
        choice: the tokens that may come next.
        top: scores and ids of the most probable of each row, both `(rows, n)`.
        ended: the finished hypotheses.

    Raises:
        HeedError: the model's output is not a number.
    """
    n_sources, beam_size = beam.totals.shape
    scores, ids = top
    n_each = ids.shape[1]
    totals = (beam.totals.reshape(-1, 1) + scores).reshape(n_sources, -1)
    # Sorted backward, so that NaN comes first and is detected.
    backwards = totals[:, ::-1].argsort(axis=1, kind="stable")[:, : -2 * beam_size - 1 : -1]
    order = totals.shape[1] - 1 - backwards
    places = _flat(order, totals.shape[1])
    found = Candidates(
        parents=order // n_each,
        ids=ids.take(places),
        log_probs=choice.log_probs(ids, scores).take(places),
        totals=totals.take(places),
    )
    best = found.totals[:, 0]
    if not best.min() > -math.inf:
        check_alive(np.maximum(best, ended.best[beam.sources]), beam.sources)
    return found


def end(ended: Ended, beam: Beam, found: Candidates, is_eos: Flags, task: Task) -> None:
    """Add the hypotheses that end to the finished ones, if they are good enough.

    A candidate with `<eos>` ends one if it is among the `beam_size` best of all.

    Args:
        ended: those that ended before; changed in place.
        beam: the hypotheses that the candidates continue.
        found: the candidates.
        is_eos: which of them add `<eos>`, `(n_sources, n)`.
        task: options, limits and constraints.
    """
    beam_size, penalty = beam.totals.shape[1], _length_penalty(beam.length + 1, task)
    for place, slot in _places(_is_ending(found, is_eos, beam_size)):
        source, score = beam.sources[place], found.totals[place, slot].item() / penalty
        ended.counts[source] += 1
        if score <= ended.worst[source]:
            continue
        row = place * beam_size + found.parents[place, slot]
        answer = make_hypothesis(
            [*beam.tokens[row, : beam.length].tolist(), task.eos_id],
            [
                *beam.token_log_probs[row, : beam.length].tolist(),
                found.log_probs[place, slot].item(),
            ],
            score=score,
            has_ended=True,
        )
        ended.keep(source, answer)


def go_on(found: Candidates, is_eos: Flags, beam_size: int) -> Candidates:
    """Choose the best candidates that do not end, `beam_size` for each source; some may be empty.

    Args:
        found: the candidates.
        is_eos: which of them add `<eos>`, `(n_sources, n)`.
        beam_size: number to choose.
    """
    places = _flat(_going(is_eos, beam_size), is_eos.shape[1])
    return Candidates(
        parents=found.parents.take(places),
        ids=found.ids.take(places),
        log_probs=found.log_probs.take(places),
        totals=np.where(is_eos.take(places), -math.inf, found.totals.take(places)),
    )


def advance(beam: Beam, chosen: Candidates, rows: Ids) -> Beam:
    """Take one step: slot `i` becomes candidate `i`.

    Args:
        beam: before the step.
        chosen: `beam_size` candidates for each source.
        rows: the row that each continues, `(rows,)`.
    """
    tokens = _with_room(beam.tokens.take(rows, axis=0), beam.length)
    token_log_probs = _with_room(beam.token_log_probs.take(rows, axis=0), beam.length)
    tokens[:, beam.length] = chosen.ids.ravel()
    token_log_probs[:, beam.length] = chosen.log_probs.ravel()
    return Beam(
        length=beam.length + 1,
        sources=beam.sources,
        limits=beam.limits,
        divisors=beam.divisors,
        tokens=tokens,
        token_log_probs=token_log_probs,
        totals=chosen.totals,
    )


def stop(ended: Ended, beam: Beam, task: Task) -> Flags:
    """Cut hypotheses at their limit, and decide which sources are done, `(n_sources,)`.

    Args:
        ended: the hypotheses that are over; changed in place.
        beam: the live ones.
        task: options, limits and constraints.
    """
    is_cut: Flags = beam.limits <= beam.length
    if not (np.count_nonzero(is_cut) or np.count_nonzero(ended.counts)):
        return is_cut
    best_live = beam.totals[:, 0]
    standing = Standing(
        n_ended=ended.counts[beam.sources],
        beam_size=task.options.beam_size,
        best_live=best_live,
        # A log-prob can only fall and a divisor only grow: the score is best at the limit.
        divisors=beam.divisors,
        worst_kept=ended.worst[beam.sources],
    )
    is_over: Flags = EARLY_STOPPING[task.options.early_stopping](standing)
    if task.are_led is not None:
        # Improbable hypotheses that leave a strong guide soon end: their number must not stop it.
        is_over = np.where(task.are_led[beam.sources], stop_bound(standing), is_over)
    is_over = is_over | is_cut
    is_over |= best_live == -math.inf
    if np.count_nonzero(is_over):
        _cut(ended, beam, is_cut, task)
    return is_over


def _cut(ended: Ended, beam: Beam, is_cut: Flags, task: Task) -> None:
    """Add hypotheses at their limit to the finished ones, if they are good enough."""
    is_whole = is_cut[:, None] & (beam.totals > -math.inf)
    for source, slot in _places(is_whole):
        row = source * beam.totals.shape[1] + slot
        answer = make_hypothesis(
            beam.tokens[row, : beam.length].tolist(),
            beam.token_log_probs[row, : beam.length].tolist(),
            score=beam.totals[source, slot].item() / _length_penalty(beam.length, task),
            has_ended=False,
        )
        ended.counts[beam.sources[source]] += 1
        ended.keep(beam.sources[source], answer)


def _flat(places: Ids, width: int) -> Ids:
    """Indices into rows of `width`, `(n_sources, n)`, as indices into all rows concatenated."""
    return places + np.arange(0, len(places) * width, width)[:, None]


def _places(flags: Flags) -> Iterator[tuple[int, int]]:
    """Row and column of each that is set, in order."""
    rows, columns = flags.nonzero()
    return zip(rows.tolist(), columns.tolist(), strict=True)


def _is_ending(found: Candidates, is_eos: Flags, beam_size: int) -> Flags:
    """Which of the `beam_size` best end a hypothesis, `(n_sources, beam_size)`."""
    return (is_eos & (found.totals > -math.inf))[:, :beam_size]


def _going(is_eos: Flags, beam_size: int) -> Ids:
    """Indices of the `beam_size` best that do not end, `(n_sources, beam_size)`."""
    return is_eos.argsort(axis=1, kind="stable")[:, :beam_size]


def _with_room(items: NDArray[Any], length: int) -> NDArray[Any]:
    """`items` `(rows, room)`, with twice the room if `length` tokens fill it."""
    if length < items.shape[1]:
        return items
    return np.concatenate([items, np.empty_like(items)], axis=1)


def _length_penalty(length: Any, task: Task) -> Any:
    """The divisor of a score, for one length or an array of them."""
    return LENGTH_FORMULAS[task.options.length_formula](length, task.options.length_penalty)


def _seen(beam: Beam, choice: Choice, found: Candidates, is_eos: Flags) -> Step:
    """The record of a step, before the beam changes."""
    beam_size = beam.totals.shape[1]
    slots = np.full(found.ids.shape, DROPPED)
    np.put_along_axis(slots, _going(is_eos, beam_size), np.arange(beam_size)[None], axis=1)
    slots[:, :beam_size][_is_ending(found, is_eos, beam_size)] = ENDED
    slots[found.totals == -math.inf] = DROPPED
    return Step(
        number=beam.length,
        sources=beam.sources,
        parents=found.parents,
        ids=found.ids,
        log_probs=found.log_probs,
        totals=found.totals,
        slots=slots,
        limits=beam.limits,
        choice=choice,
        rows=np.arange(len(beam.sources)) * beam_size,
    )
