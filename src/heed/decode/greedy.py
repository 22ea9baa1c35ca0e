"""One hypothesis a row: the likeliest token, or a drawn one, again and again.

Not a beam: nothing is kept beside. How a token is drawn is in `sampling.py`; read on in `beam.py`
for the search that keeps several hypotheses, of which this is the narrowest case.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Self

import torch
from torch import Tensor

from heed.decode.length_penalty import LENGTH_PENALTIES
from heed.decode.state import (
    ENDED,
    Hypothesis,
    LogSoftmax,
    Step,
    Task,
    check_alive,
    make_hypothesis,
    sum_dtype,
)
from heed.decode.top import top
from heed.model.interface import Decodable

Choose = Callable[[Tensor, int, Tensor], tuple[Tensor, Tensor | None]]
"""`(scores, step, sources) -> (ids, n_allowed or None)`; shapes as in `choose_likeliest`."""

# Leaving the batch copies the model's memory of all who stay, so the first few wait for company.
_LEAVE_SHARE = 1 / 8


@dataclass(frozen=True, kw_only=True)
class Rows:
    """One growing hypothesis for each source still in the batch.

    Attributes:
        sources: which source of the call it answers, `(rows,)`.
        is_live: False once it is over but still in the batch, `(rows,)`.
        tokens: predicted so far, `(rows, length)`.
        token_log_probs: what the model gave them, `(rows, length)`.
        totals: sum of the scores they were chosen by, `(rows,)`.
    """

    sources: Tensor
    is_live: Tensor
    tokens: Tensor
    token_log_probs: Tensor
    totals: Tensor

    def select(self, rows: Tensor) -> Self:
        """Keep some rows.

        Args:
            rows: those to keep, `(new_rows,)`.
        """
        return type(self)(**{field.name: getattr(self, field.name)[rows] for field in fields(self)})


def choose_likeliest(scores: Tensor, step: int, sources: Tensor) -> tuple[Tensor, None]:
    """Take the likeliest id of each row, the lowest among equals.

    Args:
        scores: log-probs to choose by, `(rows, vocab_size)`.
        step: not looked at.
        sources: not looked at, `(rows,)`.

    Returns:
        The ids `(rows,)`, and None.
    """
    return top(scores, 1)[1].squeeze(-1), None


def greedy_search(
    model: Decodable, src: Tensor, task: Task, choose: Choose = choose_likeliest
) -> list[Hypothesis]:
    """Continue each source one token at a time until `<eos>` or its limit.

    Args:
        model: anything that can be decoded.
        src: padded source ids, `(n_sources, src_len)`.
        task: what to respect.
        choose: picks each row's next token.

    Returns:
        One hypothesis a source.

    Raises:
        HeedError: the model's output is not a number.
    """
    results: dict[int, Hypothesis] = {}
    log_softmax = LogSoftmax()
    state = model.start(src)
    rows = _begin(src)
    last = torch.full_like(rows.sources, task.bos_id)
    while len(rows.sources):
        number = rows.tokens.size(1)
        log_probs = log_softmax(model.step(state, last))
        scores = task.constraints.apply(log_probs, rows.tokens, rows.sources)
        last, n_allowed = choose(scores, number, rows.sources)
        rows = _extend(rows, last, log_probs, scores)
        check_alive(rows.totals[rows.is_live], rows.sources[rows.is_live] // task.n_samples)
        if task.observer is not None:
            task.observer(_seen(rows, n_allowed, task))

        is_over = (last == task.eos_id) | (task.limits[rows.sources] <= number + 1)
        is_over &= rows.is_live
        if is_over.any():
            results.update(_harvest(rows.select(is_over), task))
            rows = replace(rows, is_live=rows.is_live & ~is_over)
            stay = rows.is_live.nonzero().squeeze(-1)
            if len(stay) <= (1 - _LEAVE_SHARE) * len(rows.sources):
                rows, last = rows.select(stay), last[stay]
                if len(stay):
                    model.select(state, stay, stay)
    return [results[source] for source in range(src.size(0))]


def _begin(src: Tensor) -> Rows:
    n_sources, device = src.size(0), src.device
    return Rows(
        sources=torch.arange(n_sources, device=device),
        is_live=torch.ones(n_sources, dtype=torch.bool, device=device),
        tokens=torch.empty(n_sources, 0, dtype=torch.long, device=device),
        token_log_probs=torch.empty(n_sources, 0, device=device),
        totals=torch.zeros(n_sources, dtype=sum_dtype(device), device=device),
    )


def _extend(rows: Rows, ids: Tensor, log_probs: Tensor, scores: Tensor) -> Rows:
    """Append one id to each row."""
    column = ids[:, None]
    return Rows(
        sources=rows.sources,
        is_live=rows.is_live,
        tokens=torch.cat([rows.tokens, column], dim=1),
        token_log_probs=torch.cat([rows.token_log_probs, log_probs.gather(1, column)], dim=1),
        totals=rows.totals + scores.gather(1, column).squeeze(1),
    )


def _harvest(rows: Rows, task: Task) -> dict[int, Hypothesis]:
    """Put rows that are over into hypotheses, by source."""
    length = rows.tokens.size(1)
    divisor = LENGTH_PENALTIES[task.options.length_penalty](length, task.options.alpha)
    return {
        source: make_hypothesis(
            tokens, log_probs, score=total / divisor, has_ended=tokens[-1] == task.eos_id
        )
        for source, tokens, log_probs, total in zip(
            rows.sources.tolist(),
            rows.tokens.tolist(),
            rows.token_log_probs.tolist(),
            rows.totals.tolist(),
            strict=True,
        )
    }


def _seen(rows: Rows, n_allowed: Tensor | None, task: Task) -> Step:
    """Describe the last step of the live rows."""
    live = rows.select(rows.is_live)
    ids = live.tokens[:, -1:]
    slots = torch.where(ids == task.eos_id, ENDED, 0)
    return Step(
        number=rows.tokens.size(1) - 1,
        sources=live.sources,
        parents=torch.zeros_like(ids),
        ids=ids,
        log_probs=live.token_log_probs[:, -1:],
        totals=live.totals[:, None],
        slots=slots,
        n_allowed=None if n_allowed is None else n_allowed[rows.is_live],
    )
