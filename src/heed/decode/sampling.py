"""Drawing a token at random: temperature, top-k, top-p and min-p, one random stream a sentence.

Not the loop around it, which is `greedy.py`. Read on there, and in `options.py` for the ranges.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from heed.decode.options import DecodeOptions
from heed.decode.state import sum_dtype
from heed.decode.top import top

_FIRST_WIDTH = 256


@dataclass(frozen=True, kw_only=True)
class Candidates:
    """The tokens that may be drawn.

    Attributes:
        probabilities: at least 0, not normalized, `(rows, n)`.
        ids: their ids, likeliest first, `(rows, n)`; None if all of the vocabulary in order.
    """

    probabilities: Tensor
    ids: Tensor | None


def draw_table(
    keys: Sequence[tuple[int, int]], *, seed: int, length: int, device: torch.device
) -> Tensor:
    """Draw all random numbers of a call, so that no sentence depends on its company.

    Args:
        keys: for each source, the sentence's key and which of its samples this is.
        seed: the run's.
        length: numbers each source may need.
        device: where the search runs.

    Returns:
        Uniform numbers from 0 to below 1, `(n_sources, length)`.

    Source: Salmon et al. 2011, "Parallel Random Numbers: As Easy as 1, 2, 3" (Philox).
    """
    rows = np.empty((len(keys), length))
    for row, (key, sample) in zip(rows, keys, strict=True):
        pair = np.array([seed, key % 2**64], dtype=np.uint64)
        philox = np.random.Philox(key=pair, counter=[0, 0, 0, sample])
        np.random.Generator(philox).random(out=row)
    return torch.from_numpy(rows).to(device, sum_dtype(device))


def candidates(scores: Tensor, options: DecodeOptions) -> Candidates:
    """Leave the tokens that temperature, top-k, top-p and min-p allow, in this order.

    Args:
        scores: log-probs to choose by, at most 0, `(rows, vocab_size)`.
        options: the knobs.
    """
    if options.temperature != 1.0:
        scores = scores / options.temperature
    ids: Tensor | None = None
    if options.top_k > 0:
        scores, ids = top(scores, options.top_k)
    if options.top_p < 1.0:
        probabilities, ids = _nucleus(scores, ids, options.top_p)
    else:
        probabilities = scores.softmax(dim=-1)
    if options.min_p > 0.0:
        floor = options.min_p * probabilities.amax(dim=-1, keepdim=True)
        probabilities = probabilities.masked_fill(probabilities < floor, 0.0)
    return Candidates(probabilities=probabilities, ids=ids)


def draw(allowed: Candidates, uniform: Tensor) -> Tensor:
    """Pick one token a row by turning a uniform number into an id.

    Args:
        allowed: what may be drawn.
        uniform: from 0 to below 1, `(rows,)`.

    Returns:
        The ids `(rows,)`.

    Source: inverse transform sampling.
    """
    cumulative = allowed.probabilities.to(uniform.dtype).cumsum(dim=-1)
    total = cumulative[:, -1:].contiguous()
    place = torch.searchsorted(cumulative, uniform[:, None] * total, right=True)
    # A product rounded up to the total must not fall on a token of chance 0, nor off the end.
    last = torch.searchsorted(cumulative, total)
    place = torch.minimum(place, last).clamp(max=cumulative.size(-1) - 1)
    return (place if allowed.ids is None else allowed.ids.gather(1, place)).squeeze(1)


@dataclass(frozen=True, kw_only=True)
class Sampler:
    """A way to choose tokens for `greedy_search`.

    Attributes:
        options: the knobs.
        draws: uniform numbers from 0 to below 1, `(n_sources, length)`.
        is_observed: count what could have been drawn.
    """

    options: DecodeOptions
    draws: Tensor
    is_observed: bool

    def __call__(self, scores: Tensor, step: int, sources: Tensor) -> tuple[Tensor, Tensor | None]:
        """Draw one token a row.

        Args:
            scores: log-probs to choose by, `(rows, vocab_size)`.
            step: which of the draws to use.
            sources: which source each row answers, `(rows,)`.

        Returns:
            The ids `(rows,)`; how many could have been drawn `(rows,)`, or None.
        """
        allowed = candidates(scores, self.options)
        ids = draw(allowed, self.draws[sources, step])
        n_allowed = (allowed.probabilities > 0).sum(dim=-1) if self.is_observed else None
        return ids, n_allowed


def _nucleus(scores: Tensor, ids: Tensor | None, top_p: float) -> tuple[Tensor, Tensor]:
    """Keep the smallest set of likeliest entries whose probability together is above `top_p`.

    Args:
        scores: unnormalized log-probs, `(rows, width)`; sorted if `ids` are given.
        ids: of the entries, or None if they are all of the vocabulary in order.
        top_p: from 0 to below 1.

    Returns:
        Probabilities, 0 outside of the set, and ids, both `(rows, n)`.
    """
    log_total = scores.logsumexp(dim=-1, keepdim=True)
    width = min(_FIRST_WIDTH, scores.size(-1))
    while True:
        likeliest, places = top(scores, width) if ids is None else (scores, ids)
        probabilities = (likeliest - log_total).exp()
        cumulative = probabilities.cumsum(dim=-1, dtype=sum_dtype(scores.device))
        is_inside = functional.pad(cumulative[:, :-1], (1, 0)) <= top_p
        # Sorting a whole vocabulary is slow, and a nucleus is mostly small: widen until it fits.
        if likeliest.size(-1) == scores.size(-1) or not is_inside[:, -1].any():
            return probabilities.masked_fill(~is_inside, 0.0), places
        width = min(width * 8, scores.size(-1))
