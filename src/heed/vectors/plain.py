"""Skip-gram and CBOW with negative sampling in NumPy: slow, the same bits as engine/word2vec.inc.

Source: Mikolov et al. 2013b, "Distributed Representations of Words and Phrases and their
Compositionality", equation 4; Mikolov et al. 2013a for the two models.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from heed.engine.lanes import exponential, lane_sum
from heed.vectors.table import Floats

_ONE, _MOST = np.float32(1.0), np.float32(88.0)
_AT_ONCE = 16
"""Targets of one step: the number of lanes of a vector register."""


@dataclass(frozen=True, kw_only=True)
class Learner:
    """The vectors being learned, and the tables for drawing words.

    Attributes:
        inputs: the word vectors, padded with zeros, `(n_words, width)`; width is a multiple of 16.
        outputs: the vectors that the inputs are multiplied with, `(n_words, width)`.
        keep: a word stays in a line if a random draw is at most this, `(n_words,)`.
        chances: negative word i stays word i if a draw is at most this, `(n_words,)` …
        others: … and otherwise becomes this word, `(n_words,)`.
        size: numbers in a vector, without padding.
        window: most words to each side.
        negative: negative words drawn for each target word.
        is_cbow: predict a word from the mean of its context, instead of each context word from it.
    """

    inputs: Floats
    outputs: Floats
    keep: NDArray[np.uint32]
    chances: NDArray[np.uint32]
    others: NDArray[np.int32]
    size: int
    window: int
    negative: int
    is_cbow: bool


class Draws:
    """Random numbers of 32 bits, from the 48-bit linear congruential generator of drand48."""

    def __init__(self, state: int) -> None:
        self.state = state

    def next(self) -> int:
        """The next number."""
        self.state = (self.state * 25214903917 + 11) & ((1 << 48) - 1)
        return self.state >> 16

    def below(self, n: int) -> int:
        """A number from 0 to n − 1."""
        return self.next() * n >> 32


def learn_lines(
    learner: Learner, ids: NDArray[np.int32], ends: NDArray[np.int64], rate: float, state: int
) -> int:
    """Learn from each line once.

    Args:
        learner: the vectors; changed in place.
        ids: the words of all lines, concatenated.
        ends: where each line ends.
        rate: the learning rate.
        state: the state of the random generator, below 2**48.

    Returns:
        The state of the generator afterwards.
    """
    draws = Draws(state)
    start = 0
    for end in ends.tolist():
        line = [word for word in ids[start:end].tolist() if draws.next() <= learner.keep[word]]
        start = end
        for place, word in enumerate(line):
            # Near words count more: the window of each word is drawn, 1 to `window`.
            reach = learner.window - draws.below(learner.window)
            context = line[max(0, place - reach) : place] + line[place + 1 : place + 1 + reach]
            if context:
                _learn_word(learner, word, context, np.float32(rate), draws)
    return draws.state


def _learn_word(
    learner: Learner, word: int, context: list[int], rate: np.float32, draws: Draws
) -> None:
    inputs = learner.inputs
    if learner.is_cbow:
        total = np.zeros_like(inputs[0])
        for other in context:
            total = total + inputs[other]
        mean = total * (_ONE / np.float32(len(context)))
        change = _predict(learner.outputs, mean, _targets(learner, word, draws), rate)
        # Each context word gets the whole change of the mean, not its share, as in word2vec.c.
        for other in context:
            inputs[other] += change
        return
    for other in context:
        targets = _targets(learner, word, draws)
        inputs[other] += _predict(learner.outputs, inputs[other], targets, rate)


def _targets(learner: Learner, word: int, draws: Draws) -> list[int]:
    """The word to predict, then the negative words drawn for it, without the word itself."""
    targets = [word]
    for _ in range(learner.negative):
        drawn = draws.below(len(learner.others))
        if draws.next() > learner.chances[drawn]:
            drawn = int(learner.others[drawn])
        if drawn != word:
            targets.append(drawn)
    return targets


def _predict(outputs: Floats, x: Floats, targets: list[int], rate: np.float32) -> Floats:
    """One step of gradient ascent on log σ(u·x) for the first target, log σ(−u·x) for the others.

    Each target's row u of `outputs` changes by rate (label − σ(u·x)) x.

    Returns:
        The change of x: rate Σ (label − σ(u·x)) u.
    """
    change = np.zeros_like(x)
    for done in range(0, len(targets), _AT_ONCE):
        some = targets[done : done + _AT_ONCE]
        labels = np.zeros(len(some), np.float32)
        labels[0] = done == 0
        scores = np.maximum(lane_sum(outputs[some] * x), -_MOST)
        gains = (labels - _ONE / (_ONE + exponential(-scores))) * rate
        for target, gain in zip(some, gains, strict=True):
            row = outputs[target].copy()
            change = change + gain * row
            outputs[target] = row + gain * x
    return change
