"""Greedy search and sampling: one hypothesis for each row.

`sampling.py` draws the tokens; `beam.py` keeps several hypotheses.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Self, TypeGuard

import numpy as np
from numpy.typing import NDArray

from heed.decode.constraints import Choice
from heed.decode.length_penalty import LENGTH_FORMULAS
from heed.decode.state import ENDED, Hypothesis, Step, Sums, Task, check_alive, make_hypothesis
from heed.model.interface import Decodable, Floats, Ids, PromptReader, State

Choose = Callable[[Choice, Ids, Ids], tuple[Ids, Floats, Ids | None]]
"""`(choice, steps, sources) -> (ids, scores, n_allowed or None)`; see `choose_likeliest`."""

# Removing rows copies the model's memory of the others, so several are removed at a time.
_LEAVE_SHARE = 1 / 8


@dataclass(kw_only=True)
class Rows:
    """One growing hypothesis for each source still in the batch.

    Attributes:
        sources: index of its source in the call, `(rows,)`.
        limits: most tokens it may get, skipped ones included, `(rows,)`.
        n_skipped: places before its first token: prefixes that are read at once end at the same
            place, so that all rows continue there, `(rows,)`.
        is_live: False if it is finished but still in the batch, `(rows,)`.
        tokens: predicted so far, then room for more, `(rows, longest limit)`.
        token_log_probs: their log-probs by the model, `(rows, longest limit)`.
        totals: sum of the scores by which they were chosen, `(rows,)`.
    """

    sources: Ids
    limits: Ids
    n_skipped: Ids
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


def choose_likeliest(choice: Choice, steps: Ids, sources: Ids) -> tuple[Ids, Floats, None]:
    """Take the most probable id of each row, the lowest among equals.

    Args:
        choice: the candidates.
        steps: not used, `(rows,)`.
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
        One hypothesis a source; None for a source that is no longer wanted.

    Raises:
        HeedError: the model's output is not a number.
    """
    results: dict[int, Hypothesis] = {}
    state, rows, last, number = _begin(model, src, task)
    while len(rows.sources):
        following = model.step(state, last)
        choice = task.constraints.apply(following, rows.tokens[:, :number], rows.sources)
        last, scores, n_allowed = choose(choice, number - rows.n_skipped, rows.sources)
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
        rows.is_live &= ~is_out
        # No position and no random number is there for a row beyond its limit.
        must_leave |= bool((~rows.is_live & (rows.limits <= number)).any())
        if is_out.any() or must_leave:
            stay = rows.is_live.nonzero()[0]
            if must_leave or len(stay) <= (1 - _LEAVE_SHARE) * len(rows.sources):
                rows, last = rows.select(stay), last[stay]
                if len(stay):
                    model.select(state, stay, stay)
    return [results.get(source) for source in range(len(src))]


def _begin(model: Decodable, src: Ids, task: Task) -> tuple[State, Rows, Ids, int]:
    """Read sources, and the parts of prefixes that can be read at once.

    Returns:
        The state, the rows, the last token of each, `(rows,)`, and the number of places filled.
    """
    prefixes = task.constraints.prefixes
    begun = np.concatenate([np.full((len(src), 1), task.bos_id), prefixes], axis=1)
    n_read = task.constraints.prefix_lengths()
    if task.pad_id is None:
        n_read[:] = 0
    pad_id, is_prompt = task.pad_id, bool(n_read.any()) and src.shape[1] == 0
    if pad_id is not None and is_prompt and _reads_prompts(model):
        number = int(n_read.max())
        is_read = np.arange(number) < n_read[:, None]
        state = model.start_from(np.where(is_read, begun[:, :number], pad_id))
    else:
        number = int(n_read.min())
        n_read[:] = number
        state = model.start(src, required_ids=task.constraints.required_ids())
        if number:
            model.extend(state, begun[:, :number])
    rows = _new_rows(task, number - n_read)
    for tokens, prefix, n in zip(rows.tokens, prefixes, n_read.tolist(), strict=True):
        # The skipped places hold a token that is never chosen.
        tokens[: number - n], tokens[number - n : number] = task.bos_id, prefix[:n]
    rows.token_log_probs[:, :number] = 0.0
    return state, rows, begun[np.arange(len(src)), n_read], number


def _reads_prompts(model: Decodable) -> TypeGuard[PromptReader]:
    """Whether prompts of unequal length can be read at once."""
    return isinstance(model, PromptReader) and model.reads_prompts


def _new_rows(task: Task, n_skipped: Ids) -> Rows:
    """The rows before their first token."""
    n_sources, limits = len(task.limits), task.limits + n_skipped
    longest = int(limits.max())
    return Rows(
        sources=np.arange(n_sources),
        limits=limits,
        n_skipped=n_skipped,
        is_live=np.ones(n_sources, dtype=bool),
        tokens=np.empty((n_sources, longest), dtype=np.int64),
        token_log_probs=np.empty((n_sources, longest), dtype=np.float32),
        totals=np.zeros(n_sources),
    )


def _harvest(rows: Rows, length: int, task: Task) -> dict[int, Hypothesis]:
    """Turn finished rows into hypotheses, by source."""
    formula = LENGTH_FORMULAS[task.options.length_formula]
    found: dict[int, Hypothesis] = {}
    for source, skipped, tokens, log_probs, total in zip(
        rows.sources.tolist(),
        rows.n_skipped.tolist(),
        rows.tokens[:, :length].tolist(),
        rows.token_log_probs[:, :length].tolist(),
        rows.totals.tolist(),
        strict=True,
    ):
        divisor = formula(length - skipped, task.options.length_penalty)
        found[source] = make_hypothesis(
            tokens[skipped:],
            log_probs[skipped:],
            score=total / divisor,
            has_ended=tokens[-1] == task.eos_id,
        )
    return found


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
