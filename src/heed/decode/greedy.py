"""Greedy search and sampling: one hypothesis for each row.

`sampling.py` draws the tokens; `beam.py` keeps several hypotheses.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Self

import numpy as np
from numpy.typing import NDArray

from heed.decode.constraints import Choice
from heed.decode.length_penalty import LENGTH_FORMULAS
from heed.decode.state import ENDED, Hypothesis, Step, Sums, Task, check_alive, make_hypothesis
from heed.model.interface import Decodable, Floats, Ids, State

Choose = Callable[[Choice, int, Ids], tuple[Ids, Floats, Ids | None]]
"""`(choice, step, sources) -> (ids, scores, n_allowed or None)`; see `choose_likeliest`."""

# Removing rows copies the model's memory of the others, so several are removed at a time.
_LEAVE_SHARE = 1 / 8


@dataclass(kw_only=True)
class Rows:
    """One growing hypothesis for each source still in the batch.

    Attributes:
        sources: index of its source in the call, `(rows,)`.
        limits: most tokens it may get, `(rows,)`.
        is_live: False if it is finished but still in the batch, `(rows,)`.
        tokens: predicted so far, then room for more, `(rows, longest limit)`.
        token_log_probs: their log-probs by the model, `(rows, longest limit)`.
        totals: sum of the scores by which they were chosen, `(rows,)`.
    """

    sources: Ids
    limits: Ids
    is_live: NDArray[np.bool_]
    tokens: Ids
    token_log_probs: Floats
    totals: Sums

    def select(self, rows: Ids | NDArray[np.bool_]) -> Self:
        """Keep some rows.

        Args:
            rows: those to keep, `(new_rows,)`.
        """
        return type(self)(**{field.name: getattr(self, field.name)[rows] for field in fields(self)})


def choose_likeliest(choice: Choice, step: int, sources: Ids) -> tuple[Ids, Floats, None]:
    """Take the likeliest id of each row, the lowest among equals.

    Args:
        choice: the candidates.
        step: not used.
        sources: not used, `(rows,)`.

    Returns:
        The ids and their scores, both `(rows,)`, and None.
    """
    scores, ids = choice.top(1)
    return ids[:, 0], scores[:, 0], None


def greedy_search(
    model: Decodable, src: Ids, task: Task, choose: Choose = choose_likeliest
) -> list[Hypothesis | None]:
    """Continue each source one token at a time until `<eos>` or its limit.

    Args:
        model: anything that can be decoded.
        src: padded source ids, `(n_sources, src_len)`.
        task: options, limits and constraints.
        choose: picks each row's next token.

    Returns:
        One hypothesis a source; None for one that was not wanted any more.

    Raises:
        HeedError: the model's output is not a number.
    """
    results: dict[int, Hypothesis] = {}
    state = model.start(src, required_ids=task.constraints.prefixes)
    rows = _begin(task)
    last = np.full(len(src), task.bos_id)
    number = task.n_unscored
    if number:
        last = _read(model, state, rows, last, task)
    while len(rows.sources):
        following = model.step(state, last)
        choice = task.constraints.apply(following, rows.tokens[:, :number], rows.sources)
        last, scores, n_allowed = choose(choice, number, rows.sources)
        rows.tokens[:, number] = last
        rows.token_log_probs[:, number] = choice.log_probs(last[:, None], scores[:, None])[:, 0]
        rows.totals += scores
        if not scores.min() > -math.inf:
            check_alive(np.where(rows.is_live, rows.totals, 0.0), rows.sources // task.n_samples)
        if task.observer is not None:
            task.observer(_seen(rows, choice, number, n_allowed, task))

        number += 1
        is_over = ((last == task.eos_id) | (rows.limits <= number)) & rows.is_live
        if is_over.any():
            results.update(_harvest(rows.select(is_over), number, task))
        is_out, must_leave = is_over, False
        if task.is_wanted is not None:
            is_dropped = ~task.is_wanted(rows.sources)
            is_out, must_leave = is_over | is_dropped, bool(is_dropped.any())
        if is_out.any():
            rows.is_live &= ~is_out
            stay = rows.is_live.nonzero()[0]
            if must_leave or len(stay) <= (1 - _LEAVE_SHARE) * len(rows.sources):
                rows, last = rows.select(stay), last[stay]
                if len(stay):
                    model.select(state, stay, stay)
    return [results.get(source) for source in range(len(src))]


def _read(model: Decodable, state: State, rows: Rows, last: Ids, task: Task) -> Ids:
    """Read the first tokens of all prefixes at once, and return the last of them, `(rows,)`."""
    first = task.constraints.prefixes[:, : task.n_unscored]
    rows.tokens[:, : task.n_unscored] = first
    rows.token_log_probs[:, : task.n_unscored] = 0.0
    model.extend(state, np.concatenate([last[:, None], first[:, :-1]], axis=1))
    return first[:, -1]


def _begin(task: Task) -> Rows:
    n_sources, longest = len(task.limits), int(task.limits.max())
    return Rows(
        sources=np.arange(n_sources),
        limits=task.limits,
        is_live=np.ones(n_sources, dtype=bool),
        tokens=np.empty((n_sources, longest), dtype=np.int64),
        token_log_probs=np.empty((n_sources, longest), dtype=np.float32),
        totals=np.zeros(n_sources),
    )


def _harvest(rows: Rows, length: int, task: Task) -> dict[int, Hypothesis]:
    """Turn finished rows into hypotheses, by source."""
    divisor = LENGTH_FORMULAS[task.options.length_formula](length, task.options.length_penalty)
    return {
        source: make_hypothesis(
            tokens, log_probs, score=total / divisor, has_ended=tokens[-1] == task.eos_id
        )
        for source, tokens, log_probs, total in zip(
            rows.sources.tolist(),
            rows.tokens[:, :length].tolist(),
            rows.token_log_probs[:, :length].tolist(),
            rows.totals.tolist(),
            strict=True,
        )
    }


def _seen(rows: Rows, choice: Choice, number: int, n_allowed: Ids | None, task: Task) -> Step:
    """The record of the last step of the live rows."""
    live = rows.select(rows.is_live)
    ids = live.tokens[:, number, None]
    return Step(
        number=number,
        sources=live.sources,
        parents=np.zeros_like(ids),
        ids=ids,
        log_probs=live.token_log_probs[:, number, None],
        totals=live.totals[:, None],
        slots=np.where(ids == task.eos_id, ENDED, 0),
        limits=live.limits,
        choice=choice,
        rows=rows.is_live.nonzero()[0],
        n_allowed=None if n_allowed is None else n_allowed[rows.is_live],
    )
