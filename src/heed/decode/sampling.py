"""Draw a token at random: temperature, top-k, top-p and min-p, one random stream a sentence."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from heed.decode.constraints import Choice
from heed.decode.options import DecodeOptions
from heed.decode.state import Sums
from heed.model.interface import Floats, Ids

_FIRST_WIDTH = 256
_BLOCK = 256


@dataclass(frozen=True, kw_only=True)
class Distribution:
    """The tokens that may be drawn.

    Attributes:
        probabilities: at least 0, not normalized, `(rows, n)`.
        scores: of the search, independent of the temperature, `(rows, n)`.
        ids: their ids, most probable first, `(rows, n)`; None = the whole vocabulary in order.
    """

    probabilities: Floats
    scores: Floats
    ids: Ids | None


def draw_table(keys: Sequence[tuple[int, int]], *, seed: int, length: int) -> Sums:
    """Draw all random numbers of a call, so that no sentence depends on others in its batch.

    Args:
        keys: for each source, the key of the sentence and the number of the sample.
        seed: the run's.
        length: numbers each source may need.

    Returns:
        Uniform numbers from 0 to below 1, `(n_sources, length)`.

    Source: Salmon et al. 2011, "Parallel Random Numbers: As Easy as 1, 2, 3" (Philox).
    """
    rows = np.empty((len(keys), length))
    for row, (key, sample) in zip(rows, keys, strict=True):
        pair = np.array([seed, key % 2**64], dtype=np.uint64)
        philox = np.random.Philox(key=pair, counter=[0, 0, 0, sample])
        np.random.Generator(philox).random(out=row)
    return rows


def candidates(choice: Choice, options: DecodeOptions) -> Distribution:
    """Keep the tokens that temperature, top-k, top-p and min-p allow, in this order.

    Args:
        choice: the candidates.
        options: of the search.
    """
    # The temperature does not change the order, so top-k can be applied before it.
    scores, ids = choice.top(options.top_k) if options.top_k > 0 else (choice.all(), None)
    best = scores.max(axis=1, keepdims=True)
    found = Distribution(
        probabilities=_weigh(scores, best, options.temperature), scores=scores, ids=ids
    )
    if options.top_p < 1.0:
        found = _nucleus(choice, found, best, options)
    if options.min_p > 0.0:
        floor = options.min_p * found.probabilities.max(axis=1, keepdims=True)
        found.probabilities[found.probabilities < floor] = 0.0
    return found


def draw(allowed: Distribution, uniform: Sums) -> tuple[Ids, Floats]:
    """Draw one token a row by turning a uniform number into an id.

    Args:
        allowed: the tokens that may be drawn.
        uniform: from 0 to below 1, `(rows,)`.

    Returns:
        The ids and their scores, both `(rows,)`.

    Source: inverse transform sampling.
    """
    chances = allowed.probabilities
    rows, width = np.arange(len(chances)), chances.shape[1]
    # First a block of tokens, then a token in it: sums of blocks cost a sixth of all running sums.
    blocks = np.add.reduceat(chances, np.arange(0, width, _BLOCK), axis=1, dtype=np.float64)
    ends = blocks.cumsum(axis=1)
    wanted = uniform * ends[:, -1]
    block = _first_above(ends, wanted)
    rest = np.maximum(wanted - (ends - blocks)[rows, block], 0.0)
    inside = np.minimum(block[:, None] * _BLOCK + np.arange(_BLOCK), width - 1)
    running = chances[rows[:, None], inside].cumsum(axis=1, dtype=np.float64)
    places = inside[rows, _first_above(running, rest)]
    ids = places if allowed.ids is None else allowed.ids[rows, places]
    return ids, allowed.scores[rows, places]


def _first_above(cumulative: Sums, numbers: Sums) -> Ids:
    """In each row of running sums `(rows, n)`, the index of the first above a number, `(rows,)`."""
    # A number rounded up to the total must not select a token of probability 0, or none.
    below = np.minimum(numbers, np.nextafter(cumulative[:, -1], 0.0))
    places: Ids = (cumulative > below[:, None]).argmax(axis=1)
    return places


@dataclass(frozen=True, kw_only=True)
class Sampler:
    """A way to choose tokens for `greedy_search`.

    Attributes:
        options: of the search.
        draws: uniform numbers from 0 to below 1, `(n_sources, length)`.
        is_observed: count the tokens that could have been drawn.
    """

    options: DecodeOptions
    draws: Sums
    is_observed: bool

    def __call__(self, choice: Choice, steps: Ids, sources: Ids) -> tuple[Ids, Floats, Ids | None]:
        """Draw one token a row.

        Args:
            choice: the candidates.
            steps: index of the draw that each row uses, `(rows,)`.
            sources: index of each row's source, `(rows,)`.

        Returns:
            The ids and their scores, both `(rows,)`; how many could have been drawn `(rows,)`,
            or None.
        """
        with np.errstate(invalid="ignore"):  # the search itself refuses NaN
            allowed = candidates(choice, self.options)
            ids, scores = draw(allowed, self.draws[sources, steps])
        n_allowed = (allowed.probabilities > 0).sum(axis=1) if self.is_observed else None
        return ids, scores, n_allowed


def _weigh(scores: Floats, best: Floats, temperature: float) -> Floats:
    """Turn scores `(rows, n)` into probabilities relative to that of the best, `(rows, 1)`."""
    shares: Floats = scores - best
    if temperature != 1.0:
        shares /= temperature
    np.exp(shares, out=shares)
    return shares


def _nucleus(
    choice: Choice, found: Distribution, best: Floats, options: DecodeOptions
) -> Distribution:
    """Keep the smallest set of most probable tokens whose total probability is above `top_p`.

    Args:
        choice: the candidates.
        found: the tokens left by top-k, or the whole vocabulary in order.
        best: the largest of all scores, `(rows, 1)`.
        options: of the search.
    """
    total = found.probabilities.sum(axis=1, keepdims=True, dtype=np.float64)
    whole = found.scores.shape[1]
    width = min(_FIRST_WIDTH, whole) if found.ids is None else whole
    likeliest = found
    while True:
        if found.ids is None:
            scores, ids = choice.top(width)
            chances = _weigh(scores, best, options.temperature)
            likeliest = Distribution(probabilities=chances, scores=scores, ids=ids)
        cumulative = likeliest.probabilities.cumsum(axis=1, dtype=np.float64) / total
        is_outside = np.zeros(cumulative.shape, dtype=bool)
        is_outside[:, 1:] = cumulative[:, :-1] > options.top_p
        # Sorting a whole vocabulary is slow, and most nuclei are small: widen until it fits.
        if width == whole or is_outside[:, -1].all():
            likeliest.probabilities[is_outside] = 0.0
            return likeliest
        width = min(width * 8, whole)
