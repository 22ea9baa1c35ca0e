"""`Detector`: detects which of the served languages a text is in, with calibrated probabilities.

py3langid knows 140 languages. Bayes' rule turns its scores for all of them into probabilities, with
most of the prior on the served ones. So a text in another language gets a low probability, instead
of being assigned to the nearest served language with certainty.
"""

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from heed.serve.languages import base_of
from heed.text.languages import NAMES

if TYPE_CHECKING:
    from py3langid.langid import LanguageIdentifier

SERVED_PRIOR = 0.95
"""Prior probability that a text is in a served language."""

DOUBTFUL = 0.8
"""A guess with a lower probability counts as doubtful."""

MAX_CHARS = 1000
"""The language is detected from this many characters at the beginning of a text."""


@dataclass(frozen=True, kw_only=True)
class Guess:
    """A language that a text may be in.

    Attributes:
        code: code of a served language.
        probability: 0 to 1.
    """

    code: str
    probability: float


@dataclass(frozen=True, kw_only=True)
class Detection:
    """The detected languages of a text.

    Attributes:
        guesses: all served languages, the most probable first. All other languages together have
            the rest of the probability.
        other: code of a language that is not served but more probable than all of them, or None.
    """

    guesses: tuple[Guess, ...]
    other: str | None = None

    @property
    def best(self) -> Guess:
        """The most probable served language."""
        return self.guesses[0]

    @property
    def is_doubtful(self) -> bool:
        """Whether the text may well be in another language."""
        return self.probability_of(self.best.code) < DOUBTFUL

    def probability_of(self, code: str) -> float:
        """The probability of a language in all its forms, such as `pt-BR` and `pt-PT`."""
        return sum(
            guess.probability for guess in self.guesses if base_of(guess.code) == base_of(code)
        )


class Detector:
    """Detects served languages. It loads its model at the first use. Thread-safe.

    Args:
        served: codes; those unknown to py3langid are never detected.
    """

    def __init__(self, served: Sequence[str]) -> None:
        self._served = tuple(dict.fromkeys(served))
        self._lock = threading.Lock()
        self._identifier: LanguageIdentifier | None = None

    def detect(self, text: str) -> Detection:
        """The served languages with their probabilities."""
        scores = dict(self.read().rank(text[:MAX_CHARS]))
        base = {code: base_of(code) for code in self._served}
        priors = dict.fromkeys(scores, (1 - SERVED_PRIOR) / len(scores))
        for known in {base[code] for code in self._served} & scores.keys():
            priors[known] += SERVED_PRIOR / len(self._served)
        probabilities = _posterior(scores, priors)
        # Two served codes of one language share its probability.
        shares = {code: [*base.values()].count(base[code]) for code in self._served}
        guesses = [
            Guess(code=code, probability=probabilities.get(base[code], 0.0) / shares[code])
            for code in self._served
        ]
        guesses.sort(key=lambda guess: -guess.probability)
        other = max(probabilities, key=probabilities.__getitem__)
        # py3langid also knows rare languages, and one code that is no language at all.
        is_foreign = other in NAMES and other not in base.values()
        return Detection(guesses=tuple(guesses), other=other if is_foreign else None)

    @property
    def is_read(self) -> bool:
        """Whether its model is in memory."""
        return self._identifier is not None

    def read(self) -> "LanguageIdentifier":
        """Its model, which is read from disk the first time."""
        with self._lock:
            if self._identifier is None:
                from py3langid.langid import MODEL_FILE, LanguageIdentifier

                self._identifier = LanguageIdentifier.from_model_file(MODEL_FILE)
            return self._identifier


def _posterior(scores: dict[str, float], priors: dict[str, float]) -> dict[str, float]:
    """Bayes' rule. If the text has no feature of any language, the result is the priors."""
    highest = max(scores.values())
    weights = {code: priors[code] * math.exp(score - highest) for code, score in scores.items()}
    total = sum(weights.values())
    return {code: weight / total for code, weight in weights.items()}
