"""The record of a search: plain values, ready for JSON.

`observe.py` fills it during the search; `recorded.py` runs that search.
"""

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

from heed.translate.result import Match

Strategy = Literal["greedy", "beam", "sample"]

Fate = Literal["kept", "ended", "cut", "pruned"]
"""The fate of a candidate: continued, ended by `<eos>`, ended by the length limit, or pruned."""

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
"""The reasons for pruning a candidate, in words."""

STOPS = {
    "max_length": "the length limit was reached",
    "first": "enough hypotheses had ended",
    "bound": "no live hypothesis could still enter the best",
    "eos": "the hypothesis ended",
    "no_live": "no live hypothesis was left",
}
"""The reasons for the end of a search, in words."""

PENALTIES = {
    "gnmt": "((5 + {length}) / 6) ** {alpha}",
    "power": "{length} ** {alpha}",
    "none": "1",
}
"""The formulas of `decode/length_penalty.py`, by their names there."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """A hypothesis continued by one token.

    Attributes:
        parent: the slot it continues.
        id: the token it adds.
        piece: the token as text.
        log_prob: of that token by the model, natural log.
        total: sum of the scores of all tokens; equals the sum of log-probs unless a repetition
            penalty is set.
        score: `total` divided by the length penalty at this length.
        fate: see `Fate`.
        reason: a key of `REASONS` if it was pruned, else "".
        slot: its slot in the next step, or None.
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
        slot: its slot in the beam.
        candidate: its index among the candidates of the step before; None at the first step.
        total: sum of its scores.
        entropy: entropy of the model's distribution of the next token, in bits.
    """

    slot: int
    candidate: int | None
    total: float
    entropy: float


@dataclass(frozen=True, kw_only=True, slots=True)
class StageSummary:
    """The effect of one filter at one step.

    Attributes:
        name: `model`, `constraints`, or the filter.
        value: value of the filter.
        n_allowed: number of tokens left.
        entropy: entropy of the remaining distribution, in bits.
    """

    name: str
    value: float | None
    n_allowed: int
    entropy: float


@dataclass(frozen=True, kw_only=True, slots=True)
class Likely:
    """One of the most probable tokens of a step.

    Attributes:
        id: its id.
        piece: the token as text.
        probabilities: its probability after each stage; 0 after its removal.
    """

    id: int
    piece: str
    probabilities: list[float]


@dataclass(frozen=True, kw_only=True, slots=True)
class Draw:
    """The draw of one token.

    Attributes:
        uniform: the random number, from 0 to below 1.
        probability: of the drawn token, after all filters.
        n_allowed: number of tokens that could be drawn: the k of this step.
        stages: the filters, from the model's distribution to the one that is sampled from.
        likeliest: the model's most probable tokens, best first.
    """

    uniform: float
    probability: float
    n_allowed: int
    stages: list[StageSummary]
    likeliest: list[Likely]


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchStep:
    """One step.

    Attributes:
        number: 0 for the first predicted token.
        divisor: the length penalty of hypotheses that end here.
        rows: the live hypotheses before the step.
        candidates: the candidates, best first; then forbidden tokens that would otherwise be among
            them.
        draw: the draw, if the search samples.
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
        step: the step at which it ended.
        candidate: its index among that step's candidates.
        ids: its tokens, without `<eos>`.
        pieces: its tokens as text.
        text: its text as a sentence.
        token_log_probs: log-prob of each token by the model, including `<eos>`.
        log_prob: their sum.
        total: sum of the scores by which its tokens were chosen.
        length: number of tokens for the length penalty, including `<eos>`.
        divisor: the length penalty.
        score: `total` / `divisor`, which ranks it.
        formula: the same, written out with its numbers.
        status: `eos`, or `max_length` if it was cut.
        is_answer: whether the search returned it.
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
    """The reason for the end of a search.

    Attributes:
        reason: a key of `STOPS`.
        sentence: the reason with its numbers.
    """

    reason: str
    sentence: str


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchRecord:
    """One search of one sentence.

    Attributes:
        strategy: greedy search, beam search or sampling.
        options: options of the search, by name.
        source_tokens: pieces that the model read.
        root: the piece that every target begins with.
        prefix: ids that the translation had to begin with.
        prefix_tokens: the prefix as pieces.
        match: the remembered pair that guided every step, so that the log-probs are not those of
            the model alone; None = no pair did.
        limit: maximum number of tokens of a hypothesis.
        steps: the steps in order.
        finished: ended hypotheses, best first; the first ones are the answer.
        stop: the reason for the end.
        vocab_size: number of target tokens.
    """

    strategy: Strategy
    options: dict[str, Any]
    source_tokens: list[str]
    root: str
    prefix: list[int]
    prefix_tokens: list[str]
    match: Match | None
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
        """The record as JSON values; numbers that are not finite become None."""
        found: dict[str, Any] = _finite(asdict(self))
        return found


def ranking_formula(
    total: float, length: int, divisor: float, *, formula: str, alpha: float
) -> str:
    """A score, written out with its numbers.

    Args:
        total: sum of the scores of all tokens.
        length: number of tokens, including `<eos>`.
        divisor: the length penalty.
        formula: the penalty's name.
        alpha: the penalty's strength.
    """
    written = PENALTIES[formula].format(length=length, alpha=f"{alpha:g}")
    middle = f" = {_signed(total)} / {divisor:.4f}" if formula != "none" else ""
    return f"{_signed(total)} / {written}{middle} = {_signed(total / divisor)}"


def _signed(value: float) -> str:
    """A number with four decimals and a true minus sign."""
    return f"{value:.4f}".replace("-", "−")


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list | tuple) else value
