"""An observer of a search that records every step; `heed.decode.search.decode` calls it."""

from dataclasses import dataclass

import numpy as np

from heed.decode.constraints import Choice
from heed.decode.length_penalty import LENGTH_FORMULAS
from heed.decode.options import DecodeOptions
from heed.decode.sampling import draw_table
from heed.decode.state import DROPPED, ENDED, Step
from heed.explain.decoding.filters import Stage, entropy, removed_by, stages
from heed.explain.decoding.record import (
    Candidate,
    Draw,
    Likely,
    Row,
    SearchStep,
    StageSummary,
    Strategy,
)
from heed.model.interface import Floats, Ids, largest
from heed.text.vocab import Vocab
from heed.translate.source import Source
from heed.translate.whole import written_pieces

N_LIKELIEST = 20
N_RUNNERS_UP = 3
"""Candidates besides the chosen one that greedy search and sampling record."""


@dataclass(frozen=True, kw_only=True)
class Distributions:
    """The distribution of the next token of every live hypothesis at one step.

    Attributes:
        slots: the slots of the hypotheses, `(rows,)`.
        log_probs: by the model, natural log, `(rows, vocab_size)`.
        scores: after all constraints; minus infinity for a forbidden token, `(rows, vocab_size)`.
    """

    slots: Ids
    log_probs: Floats
    scores: Floats


def strategy_of(options: DecodeOptions) -> Strategy:
    """The strategy of a search with these options."""
    if options.sample:
        return "sample"
    return "greedy" if options.beam_size == 1 else "beam"


def draws_at(step: int, *, seed: int, key: int = 0, count: int = 100) -> list[float]:
    """The random numbers that the first samples of a sentence use at one step.

    Args:
        step: 0 for the first predicted token.
        seed: seed of the options.
        key: key of the sentence.
        count: number of samples.
    """
    keys = [(key, sample) for sample in range(count)]
    numbers: list[float] = draw_table(keys, seed=seed, length=step + 1)[:, step].tolist()
    return numbers


class Recorder:
    """Records the search of one sentence.

    Args:
        vocab: target vocabulary.
        options: options of the search.
        key: key of the sentence.
        keep_from: the first step whose distributions are kept.
        max_bytes: limit for the kept distributions.
        line: the sentence, if it has protected spans.

    Attributes:
        steps: the steps so far.
        distributions: those of the kept steps.
        limit: maximum number of tokens of a hypothesis; 0 before the first step.
        vocab_size: number of target tokens; 0 before the first step.
    """

    def __init__(
        self,
        vocab: Vocab,
        options: DecodeOptions,
        *,
        key: int,
        keep_from: int,
        max_bytes: int,
        line: Source | None = None,
    ) -> None:
        self.steps: list[SearchStep] = []
        self.distributions: dict[int, Distributions] = {}
        self.limit = self.vocab_size = 0
        self._vocab, self._options, self._line = vocab, options, line
        self._strategy = strategy_of(options)
        self._key = key
        self._keep_from, self._room = keep_from, max_bytes
        self._live = [Row(slot=0, candidate=None, total=0.0, entropy=0.0)]

    def __call__(self, step: Step) -> None:
        """Record one step."""
        self.limit = int(step.limits[0])
        self.vocab_size = step.choice.following.vocab_size
        slots = np.array([row.slot for row in self._live])
        lines = int(step.rows[0]) + slots
        seen = Distributions(
            slots=slots,
            log_probs=step.choice.following.all_log_probs()[lines],
            scores=step.choice.all()[lines],
        )
        self._keep(step.number, seen)
        divisor = LENGTH_FORMULAS[self._options.length_formula](
            step.number + 1, self._options.length_penalty
        )
        if self._strategy == "beam":
            draw, found = None, self._ranked(step, divisor)
            n_shown = 2 * self._options.beam_size
        else:
            staged = stages(step.choice, self._options) if self._strategy == "sample" else []
            draw = self._draw(step, staged) if staged else None
            found, n_shown = self._chosen(step, seen, divisor, staged), N_RUNNERS_UP
        found += self._forbidden(step, seen, divisor, found, n_shown)
        rows = self._rows(seen)
        self.steps.append(
            SearchStep(number=step.number, divisor=divisor, rows=rows, candidates=found, draw=draw)
        )
        self._live = [
            Row(slot=each.slot, candidate=place, total=each.total, entropy=0.0)
            for place, each in enumerate(found)
            if each.slot is not None
        ]
        self._live.sort(key=lambda row: row.slot)

    def _keep(self, number: int, seen: Distributions) -> None:
        size = seen.log_probs.nbytes + seen.scores.nbytes
        if number >= self._keep_from and (size <= self._room or not self.distributions):
            self.distributions[number] = seen
            self._room -= size
        elif self.distributions:
            self._room = 0  # kept steps must be consecutive

    def _rows(self, seen: Distributions) -> list[Row]:
        bits = entropy(np.exp(seen.log_probs, dtype=np.float64)).tolist()
        return [
            Row(slot=row.slot, candidate=row.candidate, total=row.total, entropy=each)
            for row, each in zip(self._live, bits, strict=True)
        ]

    def _ranked(self, step: Step, divisor: float) -> list[Candidate]:
        """The candidates of a beam search, best first."""
        columns = (step.parents, step.ids, step.log_probs, step.totals, step.slots)
        found = []
        for parent, token, log_prob, total, slot in zip(
            *(c[0].tolist() for c in columns), strict=True
        ):
            if total == -np.inf:
                continue  # an empty slot
            reason = ""
            if slot == DROPPED:
                reason = "late_eos" if token == self._vocab.eos_id else "beam"
            found.append(
                self._candidate(parent, token, log_prob, total, divisor, slot=slot, reason=reason)
            )
        return found

    def _chosen(
        self, step: Step, seen: Distributions, divisor: float, staged: list[Stage]
    ) -> list[Candidate]:
        """The token of greedy search or sampling, and the most probable others, best first."""
        taken, before = int(step.ids[0, 0]), self._live[0].total
        scores, ids = largest(seen.scores, N_RUNNERS_UP + 1)
        found = [
            self._candidate(
                0, taken, step.log_probs[0, 0].item(), step.totals[0, 0].item(), divisor,
                slot=int(step.slots[0, 0]),
            )
        ]  # fmt: skip
        for token, score in zip(ids[0].tolist(), scores[0].tolist(), strict=True):
            if token == taken or score == -np.inf or len(found) > N_RUNNERS_UP:
                continue
            reason = (
                (removed_by(staged, int(step.rows[0]), token) or "not_drawn") if staged else "beam"
            )
            log_prob = seen.log_probs[0, token].item()
            found.append(
                self._candidate(0, token, log_prob, before + score, divisor, reason=reason)
            )
        return sorted(found, key=lambda each: -each.total)

    def _forbidden(
        self,
        step: Step,
        seen: Distributions,
        divisor: float,
        found: list[Candidate],
        n_shown: int,
    ) -> list[Candidate]:
        """Tokens that would have been among the candidates, but are not allowed, best first."""
        before = np.array([row.total for row in self._live])
        would = before[:, None] + seen.log_probs
        is_shown = (seen.scores == -np.inf) & (
            would > min((each.total for each in found), default=-np.inf)
        )
        rows, ids = is_shown.nonzero()
        best = np.argsort(-would[rows, ids], kind="stable")[:n_shown]
        return [
            self._candidate(
                slot, token, seen.log_probs[row, token].item(), would[row, token].item(), divisor,
                reason=self._why(step.choice, int(step.rows[0]) + slot, token),
            )
            for row, token in zip(rows[best].tolist(), ids[best].tolist(), strict=True)
            for slot in [self._live[row].slot]
        ]  # fmt: skip

    def _why(self, choice: Choice, line: int, token: int) -> str:
        """The constraint that forbids a token."""
        if choice.required_ids is not None and choice.required_ids[line] >= 0:
            return "prefix"
        changes = choice.changes
        is_entry = (changes.rows == line) & (changes.ids == token)
        if (changes.scores[is_entry] == -np.inf).any():
            return "ngram"
        return "min_length" if token == self._vocab.eos_id else "forbidden"

    def _candidate(
        self,
        parent: int,
        token: int,
        log_prob: float,
        total: float,
        divisor: float,
        *,
        slot: int = DROPPED,
        reason: str = "",
    ) -> Candidate:
        return Candidate(
            parent=parent,
            id=token,
            piece=written_pieces(self._vocab, [token], self._line)[0],
            log_prob=log_prob,
            total=total,
            score=total / divisor,
            fate="ended" if slot == ENDED else "pruned" if slot == DROPPED else "kept",
            reason=reason,
            slot=slot if slot >= 0 else None,
        )

    def _draw(self, step: Step, staged: list[Stage]) -> Draw:
        line = int(step.rows[0])
        assert step.n_allowed is not None, "a search that samples counts what it could draw"
        uniform = draws_at(step.number, seed=self._options.seed, key=self._key, count=1)[0]
        ids = np.argsort(-staged[0].probabilities[line], kind="stable")[:N_LIKELIEST].tolist()
        columns = np.array([stage.probabilities[line, ids] for stage in staged]).T.tolist()
        pieces = written_pieces(self._vocab, ids, self._line)
        return Draw(
            uniform=uniform,
            probability=staged[-1].probabilities[line, int(step.ids[0, 0])].item(),
            n_allowed=int(step.n_allowed[0]),
            stages=[
                StageSummary(
                    name=stage.name,
                    value=stage.value,
                    n_allowed=int(stage.n_allowed[line]),
                    entropy=entropy(stage.probabilities[line : line + 1])[0].item(),
                )
                for stage in staged
            ],
            likeliest=[
                Likely(id=token, piece=piece, probabilities=column)
                for token, piece, column in zip(ids, pieces, columns, strict=True)
            ],
        )
