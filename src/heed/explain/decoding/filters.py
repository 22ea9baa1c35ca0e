"""The distribution of the next token before and after each filter of sampling.

Every stage is computed by `decode.sampling.candidates` with the later filters switched off. So the
last stage is the distribution that is sampled from.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from heed.decode.constraints import Choice
from heed.decode.options import DecodeOptions
from heed.decode.sampling import Distribution, candidates

Probabilities = NDArray[np.float64]

NEUTRAL: dict[str, Any] = {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "min_p": 0.0}
"""The filters in the order of `candidates`, each with its neutral value."""


@dataclass(frozen=True, kw_only=True)
class Stage:
    """The distribution after one filter.

    Attributes:
        name: `model`, `constraints`, or the filter.
        value: value of the filter; None for the first two.
        probabilities: rows that sum to 1, with 0 for removed tokens, `(rows, vocab_size)`.
    """

    name: str
    value: float | None
    probabilities: Probabilities

    @property
    def n_allowed(self) -> NDArray[np.int64]:
        """The number of tokens that could be drawn, `(rows,)`."""
        counts: NDArray[np.int64] = np.count_nonzero(self.probabilities, axis=1)
        return counts


def stages(choice: Choice, options: DecodeOptions) -> list[Stage]:
    """The model's distribution, after constraints, and after each filter, in this order.

    Args:
        choice: the candidates of a step.
        options: options of the search; its filters are applied even if it does not sample.
    """
    wanted = {name: getattr(options, name) for name in NEUTRAL}
    on = replace(options, sample=True, **NEUTRAL)
    vocab_size = choice.following.vocab_size
    found = [
        Stage(
            name="model", value=None, probabilities=_normalized(choice.following.all_log_probs())
        ),
        Stage(
            name="constraints", value=None, probabilities=_whole(candidates(choice, on), vocab_size)
        ),
    ]
    for name, value in wanted.items():
        changed: dict[str, Any] = {name: value}
        on = replace(on, **changed)
        probabilities = _whole(candidates(choice, on), vocab_size)
        found.append(Stage(name=name, value=value, probabilities=probabilities))
    return found


def removed_by(staged: list[Stage], row: int, token: int) -> str:
    """The stage that removed a token, or "" if it could be drawn.

    Args:
        staged: from `stages`.
        row: index of the line.
        token: its id.
    """
    return next((stage.name for stage in staged if stage.probabilities[row, token] == 0.0), "")


def entropy(probabilities: Probabilities) -> Probabilities:
    """H in bits of each distribution.

    Args:
        probabilities: rows that sum to 1, `(rows, vocab_size)`.

    Returns:
        From 0 to log2 of `vocab_size`, `(rows,)`.

    Source: Shannon 1948, section 6.
    """
    logs = np.log2(probabilities, out=np.zeros_like(probabilities), where=probabilities > 0)
    bits: Probabilities = 0.0 - (probabilities * logs).sum(axis=1)  # 0 instead of −0
    return bits


def _normalized(log_probs: NDArray[np.float32]) -> Probabilities:
    """The distribution, exact to float64 despite float32 log-probs, `(rows, vocab_size)`."""
    shares: Probabilities = np.exp(
        log_probs - log_probs.max(axis=1, keepdims=True), dtype=np.float64
    )
    shares /= shares.sum(axis=1, keepdims=True)
    return shares


def _whole(found: Distribution, vocab_size: int) -> Probabilities:
    """The candidate tokens as a distribution over the vocabulary, `(rows, vocab_size)`."""
    chances = found.probabilities.astype(np.float64)
    chances /= chances.sum(axis=1, keepdims=True)
    if found.ids is None:
        return chances
    whole = np.zeros((len(chances), vocab_size))
    np.put_along_axis(whole, found.ids, chances, axis=1)
    return whole
