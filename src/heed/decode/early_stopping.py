"""When a beam search may stop before its length limit: one function for each rule."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(kw_only=True, slots=True)
class Standing:
    """The progress of the search for each source.

    Attributes:
        n_ended: hypotheses that ended so far, kept or not, `(n_sources,)`.
        beam_size: live hypotheses a source.
        best_live: log-prob of the best live hypothesis, `(n_sources,)`.
        divisors: the length penalty at the most favorable length, `(n_sources,)`.
        worst_kept: score of the last of the `n_best`, minus infinity while there are fewer,
            `(n_sources,)`.
    """

    n_ended: Any
    beam_size: int
    best_live: Any
    divisors: Any
    worst_kept: Any


def stop_first(standing: Standing) -> Any:
    """Stop when `beam_size` hypotheses have ended: fast, may miss a better one.

    Source: OpenNMT (Klein et al. 2017) and fairseq.
    """
    return standing.n_ended >= standing.beam_size


def stop_bound(standing: Standing) -> Any:
    """Stop when no live hypothesis can still enter the `n_best`: as good as `never`, but faster.

    Source: Huang et al. 2017, "When to Finish?", section 3, with the length penalty in the bound.
    """
    return standing.best_live / standing.divisors <= standing.worst_kept


def stop_never(standing: Standing) -> Any:
    """Continue to the limit."""
    return standing.n_ended < 0  # never so, for each source


EARLY_STOPPING: dict[str, Callable[[Standing], Any]] = {
    "first": stop_first,
    "bound": stop_bound,
    "never": stop_never,
}
