"""Random segmentations of a text, by a seed: subword regularization and BPE-dropout.

SentencePiece has both, but its random numbers differ in every process, whatever the seed.

Source: Kudo 2018, section 3.3 (unigram, l = infinity); Provilkov et al. 2020 (BPE-dropout).
"""

import heapq
import math
import random
import re
from bisect import bisect_left
from collections.abc import Callable, Mapping
from functools import partial
from itertools import accumulate
from typing import NamedTuple

import sentencepiece

from heed.text.spans import BLANK_SIGN

_UNKNOWN_PENALTY = 10.0
"""The log-prob of a character without a piece is so much below the lowest one, as in
SentencePiece."""
_MOST_CACHED, _LONGEST_CACHED = 1 << 13, 16
"""Words whose lattices are kept, and the characters of the longest: up to 40 MB."""


def has_choice(processor: sentencepiece.SentencePieceProcessor) -> bool:
    """Whether a model can segment a text in several ways: `unigram` and `bpe` can."""
    # SentencePiece does not expose the kind of a model.
    return _can(partial(processor.sample_encode_as_ids, "a", nbest_size=-1, alpha=0.1))


def sampler_of(
    processor: sentencepiece.SentencePieceProcessor, pieces: Mapping[int, str]
) -> "Sampler":
    """The sampler of a model.

    Args:
        processor: a model that `has_choice`.
        pieces: its pieces of text, by their ids.
    """
    scores = {piece: processor.get_score(id) for id, piece in pieces.items()}
    # Only `unigram` lists its best segmentations.
    return Sampler(scores, is_bpe=not _can(partial(processor.nbest_encode_as_ids, "a", 1)))


def _can(call: Callable[[], object]) -> bool:
    try:
        call()
    except RuntimeError:
        return False
    return True


class _Ends(NamedTuple):
    """The pieces that may end at a place of a word.

    Attributes:
        starts: where each begins.
        shares: cumulative shares of all segmentations of the text up to here.
    """

    starts: list[int]
    shares: list[float]


class Sampler:
    """Draws segmentations.

    Args:
        scores: of each piece of text.
        is_bpe: scores are ranks of merges; else they are log-probs.
    """

    def __init__(self, scores: Mapping[str, float], *, is_bpe: bool) -> None:
        self._scores, self._is_bpe = scores, is_bpe
        self._longest = max(map(len, scores), default=1)
        self._unknown = min(scores.values(), default=0.0) - _UNKNOWN_PENALTY
        crosses_blanks = any(BLANK_SIGN in piece[1:] for piece in scores)
        self._word = re.compile(r".+" if crosses_blanks else f".[^{BLANK_SIGN}]*", re.DOTALL)
        self._lattices: dict[tuple[str, float], list[_Ends]] = {}

    def draw(self, text: str, *, alpha: float, seed: int) -> list[str]:
        """The pieces of a text with `▁` for its blanks; a character without a piece is one.

        Args:
            text: begins with `▁`.
            alpha: as in `Vocab.sample`.
            seed: decides with the text.
        """
        chance = random.Random(seed)
        draw = self._merged if self._is_bpe else self._drawn
        return [piece for word in self._word.findall(text) for piece in draw(word, alpha, chance)]

    def _drawn(self, word: str, alpha: float, chance: random.Random) -> list[str]:
        """A segmentation with a probability proportional to its own to the power of `alpha`."""
        lattice = self._lattices.get((word, alpha))
        if lattice is None:
            lattice = self._lattice(word, alpha)
            if len(self._lattices) >= _MOST_CACHED:
                self._lattices.clear()
            if len(word) <= _LONGEST_CACHED:
                self._lattices[word, alpha] = lattice
        pieces: list[str] = []
        end = len(word)
        while end:
            starts, shares = lattice[end]
            place = bisect_left(shares, chance.random() * shares[-1])
            start = starts[min(place, len(starts) - 1)]
            pieces.append(word[start:end])
            end = start
        return pieces[::-1]

    def _lattice(self, word: str, alpha: float) -> list[_Ends]:
        """For each place of a word, the pieces that may end there."""
        sums, ends = [0.0], [_Ends([], [])]
        for end in range(1, len(word) + 1):
            starts, weights = [], []
            for start in range(max(0, end - self._longest), end):
                score = self._scores.get(word[start:end])
                if score is None and start == end - 1:
                    score = self._unknown
                if score is not None:
                    starts.append(start)
                    weights.append(sums[start] + alpha * score)
            most = max(weights)
            shares = list(accumulate(math.exp(weight - most) for weight in weights))
            sums.append(most + math.log(shares[-1]))
            ends.append(_Ends(starts, shares))
        return ends

    def _merged(self, word: str, alpha: float, chance: random.Random) -> list[str]:
        """Merges by rank, each left out with probability `alpha`."""
        pieces: list[str] = list(word)  # at the place where each begins; "" = merged
        previous, following = list(range(-1, len(word) - 1)), list(range(1, len(word) + 1))
        waiting: list[tuple[float, int, str]] = []

        def offer(left: int, right: int) -> None:
            if left >= 0 and right < len(word):
                merged = pieces[left] + pieces[right]
                if merged in self._scores:
                    heapq.heappush(waiting, (-self._scores[merged], left, merged))

        for right in range(1, len(word)):
            offer(right - 1, right)
        while waiting:
            _, left, merged = heapq.heappop(waiting)
            right = following[left]
            is_left = pieces[left] and right < len(word) and pieces[left] + pieces[right] == merged
            if not is_left or chance.random() < alpha:
                continue
            pieces[left], pieces[right] = merged, ""
            following[left] = following[right]
            if following[left] < len(word):
                previous[following[left]] = left
            offer(previous[left], left)
            offer(left, following[left])
        return [piece for piece in pieces if piece]
