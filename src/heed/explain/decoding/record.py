"""What a record of a search holds: plain values, ready for JSON.

`observe.py` fills it from the search itself, `recorded.py` runs that search.
"""

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

Strategy = Literal["greedy", "beam", "sample"]

Fate = Literal["kept", "ended", "cut", "pruned"]
"""Of a candidate: continued; ended by `<eos>`; ended by the length limit; given up."""

REASONS = {
    "beam": "below the beam",
    "late_eos": "<eos> below the beam does not end a hypothesis",
    "ngram": "would repeat an n-gram",
    "prefix": "another token is forced here",
    "min_length": "too early for <eos>",
    "forbidden": "never written",
    "stopped": "the search stopped",
    "not_drawn": "not drawn",
    "temperature": "probability rounds to 0 at this temperature",
    "top_k": "not among the top k",
    "top_p": "outside the nucleus",
    "min_p": "below min-p",
}
"""Why a candidate was pruned, in words."""

STOPS = {
    "max_length": "the length limit was reached",
    "first": "as many hypotheses had ended as the beam holds",
    "bound": "no live hypothesis could still enter the best",
    "eos": "the hypothesis ended",
    "no_live": "no live hypothesis was left",
}
"""Why a search was over, in words."""

PENALTIES = {
    "gnmt": "((5 + {length}) / 6) ** {alpha}",
    "power": "{length} ** {alpha}",
    "none": "1",
}
"""The formulas of `decode/length_penalty.py`, by the same names."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """A hypothesis continued by one token.

    Attributes:
        parent: the slot it continues.
        id: the token it adds.
        piece: the same as text.
        log_prob: of that token by the model, natural log.
        total: sum of the scores of all tokens; equals the sum of log-probs unless a repetition
            penalty is set.
        score: `total` divided by the length penalty at this length.
        fate: what became of it.
        reason: a key of `REASONS` if it was pruned, else "".
        slot: that it takes in the next step, or None.
    """

    parent: int
    id: int
    piece: str
    log_prob: float
    total: float
    score: float
    fate: Fate
    reason: str
    slot: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """A live hypothesis before a step.

    Attributes:
        slot: its place in the beam.
        candidate: its place among the candidates of the step before; None at the first step.
        total: sum of its scores.
        entropy: of the model's distribution of the next token, in bits.
    """

    slot: int
    candidate: int | None
    total: float
    entropy: float


@dataclass(frozen=True, kw_only=True, slots=True)
class StageSummary:
    """One filter at one step.

    Attributes:
        name: `model`, `constraints`, or the filter.
        value: of the filter.
        n_allowed: tokens that were left.
        entropy: of what was left, in bits.
    """

    name: str
    value: float | None
    n_allowed: int
    entropy: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Likely:
    """One of the likeliest tokens of a step.

    Attributes:
        id: its id.
        piece: the same as text.
        probabilities: after each stage, 0 where it was removed.
    """

    id: int
    piece: str
    probabilities: list[float]


@dataclass(frozen=True, kw_only=True, slots=True)
class Draw:
    """How a token was drawn.

    Attributes:
        uniform: the random number, from 0 to below 1.
        n_allowed: tokens that could be drawn: the k of this step.
        stages: the distribution from the model's to the one drawn from.
        likeliest: by the model, likeliest first.
    """

    uniform: float
    n_allowed: int
    stages: list[StageSummary]
    likeliest: list[Likely]


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchStep:
    """One step.

    Attributes:
        number: 0 for the first predicted token.
        divisor: the length penalty of hypotheses that end here.
        rows: the live hypotheses before it.
        candidates: best first, then those that were forbidden though they would have been among
            them.
        draw: when sampling.
    """

    number: int
    divisor: float
    rows: list[Row]
    candidates: list[Candidate]
    draw: Draw | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Finished:
    """A hypothesis that ended.

    Attributes:
        step: at which it ended.
        candidate: its place there.
        ids: its tokens, without `<eos>`.
        pieces: the same as text.
        text: the same as a sentence.
        token_log_probs: of each token by the model, `<eos>` included.
        log_prob: their sum.
        total: sum of the scores by which its tokens were chosen.
        length: tokens that the length penalty counts, `<eos>` included.
        divisor: the length penalty.
        score: `total` / `divisor`: by which it is ranked.
        formula: the same with its numbers.
        status: `eos`, or `max_length` if it was cut.
        is_answer: whether it is among those the search returned.
    """

    step: int
    candidate: int
    ids: list[int]
    pieces: list[str]
    text: str
    token_log_probs: list[float]
    log_prob: float
    total: float
    length: int
    divisor: float
    score: float
    formula: str
    status: Literal["eos", "max_length"]
    is_answer: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Stop:
    """Why the search was over.

    Attributes:
        reason: a key of `STOPS`.
        sentence: the same with its numbers.
    """

    reason: str
    sentence: str


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchRecord:
    """One search of one sentence.

    Attributes:
        strategy: greedy search, beam search or sampling.
        options: of the search, by name.
        source_tokens: pieces the model read.
        prefix: ids the translation had to begin with.
        prefix_tokens: the same as pieces.
        limit: most tokens of a hypothesis.
        steps: in order.
        finished: best first; the first of them are the answer.
        stop: why it was over.
        vocab_size: number of target tokens.
    """

    strategy: Strategy
    options: dict[str, Any]
    source_tokens: list[str]
    prefix: list[int]
    prefix_tokens: list[str]
    limit: int
    steps: list[SearchStep]
    finished: list[Finished]
    stop: Stop
    vocab_size: int

    @property
    def text(self) -> str:
        """The translation."""
        return self.finished[0].text

    def to_dict(self) -> dict[str, Any]:
        """The record as JSON knows it: numbers that are not finite become None."""
        found: dict[str, Any] = _finite(asdict(self))
        return found


def ranking_formula(
    total: float, length: int, divisor: float, *, formula: str, alpha: float
) -> str:
    """A score written out with its numbers.

    Args:
        total: sum of the scores of all tokens.
        length: tokens, `<eos>` included.
        divisor: the length penalty.
        formula: its name.
        alpha: its strength.
    """
    written = PENALTIES[formula].format(length=length, alpha=f"{alpha:g}")
    middle = f" = {_signed(total)} / {divisor:.4f}" if formula != "none" else ""
    return f"{_signed(total)} / {written}{middle} = {_signed(total / divisor)}"


def _signed(value: float) -> str:
    """With four decimals and a true minus sign."""
    return f"{value:.4f}".replace("-", "−")


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list | tuple) else value
