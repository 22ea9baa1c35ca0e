"""Records that all searches share: the task, the hypothesis, and one step for an observer."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from heed.decode.constraints import Choice, Constraints
from heed.decode.guided import Guide
from heed.decode.options import DecodeOptions
from heed.decode.phrases import Phrases
from heed.errors import HeedError
from heed.model.interface import Floats, Ids

Sums = NDArray[np.float64]
Flags = NDArray[np.bool_]

Ending = Literal["eos", "max_length"]
"""Why a hypothesis ended: by `<eos>`, or at its length limit."""

DROPPED = -1
ENDED = -2


@dataclass(frozen=True, kw_only=True, slots=True)
class Hypothesis:
    """One translation of one source.

    Attributes:
        ids: target ids without `<bos>` and `<eos>`.
        token_log_probs: of each id, natural log, `<eos>` included if it ended.
        log_prob: their sum.
        score: by which hypotheses are ranked: the log-prob divided by the length penalty.
        status: `eos`, or `max_length` if it was cut.
    """

    ids: list[int]
    token_log_probs: list[float]
    log_prob: float
    score: float
    status: Ending


@dataclass(frozen=True, kw_only=True)
class Step:
    """One step of a search, for an observer: the best candidates and the fate of each.

    Attributes:
        number: 0 for the first predicted token.
        sources: the source of the call for each line, `(n_sources,)`; when sampling, sample `j` of
            source `i` counts as source `i * n_best + j`.
        parents: the slot each candidate continues, best candidate first, `(n_sources, n)`.
        ids: its token, `(n_sources, n)`.
        log_probs: of that token by the model, `(n_sources, n)`.
        totals: sum over the hypothesis so far; minus infinity marks an empty place,
            `(n_sources, n)`.
        slots: the slot it takes next, `DROPPED` or `ENDED`, `(n_sources, n)`.
        limits: most tokens each source may get, `(n_sources,)`.
        choice: the whole vocabulary of every row, by the model and after all constraints; valid
            until the observer returns.
        rows: the first row of each source in `choice`, `(n_sources,)`.
        n_allowed: when sampling, how many tokens could have been drawn; else None, `(n_sources,)`.
    """

    number: int
    sources: Ids
    parents: Ids
    ids: Ids
    log_probs: Floats
    totals: Sums
    slots: Ids
    limits: Ids
    choice: Choice
    rows: Ids
    n_allowed: Ids | None = None


@dataclass(kw_only=True, slots=True)
class Candidates:
    """One-token continuations of a beam, best first.

    Attributes:
        parents: the slot each continues, `(n_sources, n)`.
        ids: the token it adds, `(n_sources, n)`.
        log_probs: of that token by the model, `(n_sources, n)`.
        totals: the sum with that token, `(n_sources, n)`.
    """

    parents: Ids
    ids: Ids
    log_probs: Floats
    totals: Sums

    def first(self, n: int) -> "Candidates":
        """Keep the `n` best of each source."""
        return Candidates(
            parents=self.parents[:, :n],
            ids=self.ids[:, :n],
            log_probs=self.log_probs[:, :n],
            totals=self.totals[:, :n],
        )


Observer = Callable[[Step], None]
"""Called after every step; `steps.append` is one. An observer that raises stops the search."""

IsWanted = Callable[[Ids], Flags]
"""Which sources of the call, `(n_sources,)`, are still wanted, `(n_sources,)`; called after every
step with those still searched."""


@dataclass(frozen=True, kw_only=True)
class Task:
    """The arguments of one call of `decode`, ready for the loops.

    Attributes:
        options: of the search.
        bos_id: the token before the first.
        eos_id: the token that ends a hypothesis.
        limits: most tokens predicted for each source, `(n_sources,)`.
        constraints: which tokens are not allowed.
        pad_id: fills shorter prefixes if they are read at once; None = they are not.
        phrases: required and forbidden phrases of each source; None = none.
        guides: a similar translation for each source; empty = none.
        n_samples: number of consecutive sources for each sentence of the call.
        observer: called after every step, or None.
        is_wanted: called after every step; None = all are wanted to the end.
    """

    options: DecodeOptions
    bos_id: int
    eos_id: int
    limits: Ids
    constraints: Constraints
    pad_id: int | None
    phrases: Sequence[Phrases | None] | None
    guides: Sequence[Guide | None]
    n_samples: int
    observer: Observer | None
    is_wanted: IsWanted | None

    @cached_property
    def are_led(self) -> Flags | None:
        """Which sources have a strong guide, `(n_sources,)`; None = none."""
        found = [guide is not None and guide.is_strong for guide in self.guides]
        return np.array(found) if any(found) else None


def make_hypothesis(
    tokens: Sequence[int], token_log_probs: Sequence[float], *, score: float, has_ended: bool
) -> Hypothesis:
    """Make a `Hypothesis` of arrays.

    Args:
        tokens: predicted ids, with `<eos>` if it ended.
        token_log_probs: one for each of them.
        score: by which it is ranked.
        has_ended: False if it was cut.
    """
    return Hypothesis(
        ids=list(tokens[:-1] if has_ended else tokens),
        token_log_probs=list(token_log_probs),
        log_prob=math.fsum(token_log_probs),
        score=score,
        status="eos" if has_ended else "max_length",
    )


def check_alive(best_totals: Sums, sources: Ids) -> None:
    """Refuse to continue a search if no token has a probability.

    Args:
        best_totals: the best sum of log-probs of each source, `(n_sources,)`.
        sources: which source of the call each is, `(n_sources,)`.

    Raises:
        HeedError: one of them is NaN or minus infinity.
    """
    is_alive = best_totals > -math.inf
    if not is_alive.all():
        source, total = int(sources[~is_alive][0]), float(best_totals[~is_alive][0])
        raise HeedError(
            f"The best log-prob of sentence {source + 1} of this batch must be finite, but is "
            f"{total}. The model's weights are damaged or overflowed: try float32, or an earlier "
            "checkpoint."
        )
