"""Beam search: several partial hypotheses a source, all sources in one batch of tensors.

Not greedy search, though a beam of one finds the same; not the constraints, which both share.
`beam_search` is the loop; `expand`, `choose`, `advance` and `Ended.keep` are its moves, in order.
"""

import math
from dataclasses import dataclass, fields
from typing import Self

import torch
from torch import Tensor
from torch.nn import functional

from heed.decode.early_stopping import EARLY_STOPPING, Standing
from heed.decode.length_penalty import LENGTH_PENALTIES
from heed.decode.state import (
    DROPPED,
    ENDED,
    Hypothesis,
    LogSoftmax,
    Step,
    Task,
    check_alive,
    make_hypothesis,
    sum_dtype,
)
from heed.decode.top import top
from heed.model.interface import Decodable

_COMPLETE, _CUT, _EMPTY = 0, 1, 2


@dataclass(frozen=True, kw_only=True)
class Ended:
    """The best hypotheses that are over, complete ones first, then by score.

    Attributes:
        tokens: with `<eos>` if complete, then anything, `(n_sources, n_best, width)`.
        token_log_probs: what the model gave them, `(n_sources, n_best, width)`.
        lengths: how many tokens count, `(n_sources, n_best)`.
        scores: log-prob over length penalty, minus infinity if empty, `(n_sources, n_best)`.
        kinds: complete, cut or empty, `(n_sources, n_best)`.
        counts: how many have ended, kept or not, `(n_sources,)`.
    """

    tokens: Tensor
    token_log_probs: Tensor
    lengths: Tensor
    scores: Tensor
    kinds: Tensor
    counts: Tensor

    def select(self, sources: Tensor) -> Self:
        """Keep some sources.

        Args:
            sources: those to keep, `(new_n_sources,)`.
        """
        return type(self)(
            **{field.name: getattr(self, field.name)[sources] for field in fields(self)}
        )

    def keep(
        self, tokens: Tensor, token_log_probs: Tensor, scores: Tensor, *, kind: int
    ) -> "Ended":
        """Let new hypotheses, longer than any here, compete for the places.

        Args:
            tokens: of the new ones, `(n_sources, n, length)`.
            token_log_probs: theirs, `(n_sources, n, length)`.
            scores: theirs, minus infinity for none, `(n_sources, n)`.
            kind: whether they are complete or cut.
        """
        n_best, length = self.scores.size(1), tokens.size(2)
        grow = (0, length - self.tokens.size(2))
        is_new = scores > -math.inf
        all_scores = torch.cat([self.scores, scores], dim=1)
        all_kinds = torch.cat([self.kinds, torch.where(is_new, kind, _EMPTY)], dim=1)
        all_lengths = torch.cat([self.lengths, torch.full_like(all_kinds, length)], dim=1)
        # Two stable sorts: by kind, within a kind by score, within a score the earlier first.
        order = all_scores.sort(dim=1, descending=True, stable=True).indices
        order = order.gather(1, all_kinds.gather(1, order).sort(dim=1, stable=True).indices)
        order = order[:, :n_best]
        return Ended(
            tokens=_pick(torch.cat([functional.pad(self.tokens, grow), tokens], dim=1), order),
            token_log_probs=_pick(
                torch.cat([functional.pad(self.token_log_probs, grow), token_log_probs], dim=1),
                order,
            ),
            lengths=all_lengths.gather(1, order),
            scores=all_scores.gather(1, order),
            kinds=all_kinds.gather(1, order),
            counts=self.counts + is_new.sum(dim=1),
        )


@dataclass(frozen=True, kw_only=True)
class Beam:
    """Live hypotheses of every source still in the batch.

    Attributes:
        sources: which source of the call it is, `(n_sources,)`.
        tokens: predicted so far, `(n_sources, beam_size, length)`.
        token_log_probs: what the model gave them, `(n_sources, beam_size, length)`.
        totals: sum of the scores they were chosen by, minus infinity for an empty slot,
            `(n_sources, beam_size)`.
    """

    sources: Tensor
    tokens: Tensor
    token_log_probs: Tensor
    totals: Tensor

    def select(self, sources: Tensor) -> Self:
        """Keep some sources.

        Args:
            sources: those to keep, `(new_n_sources,)`.
        """
        return type(self)(
            **{field.name: getattr(self, field.name)[sources] for field in fields(self)}
        )


@dataclass(frozen=True, kw_only=True)
class Candidates:
    """One-token continuations of a beam, best first.

    Attributes:
        parents: the slot each continues, `(n_sources, n)`.
        ids: the token it adds, `(n_sources, n)`.
        log_probs: what the model gave that token, `(n_sources, n)`.
        totals: the sum with that token, `(n_sources, n)`.
    """

    parents: Tensor
    ids: Tensor
    log_probs: Tensor
    totals: Tensor

    def select(self, places: Tensor) -> Self:
        """Keep some candidates.

        Args:
            places: which to keep, `(n_sources, new_n)`.
        """
        return type(self)(
            **{field.name: getattr(self, field.name).gather(1, places) for field in fields(self)}
        )

    def first(self, n: int) -> Self:
        """Keep the `n` best of each source."""
        return type(self)(
            **{field.name: getattr(self, field.name)[:, :n] for field in fields(self)}
        )


def beam_search(model: Decodable, src: Tensor, task: Task) -> list[list[Hypothesis]]:
    """Find the hypotheses with the best scores, as far as `beam_size` can see.

    Args:
        model: anything that can be decoded.
        src: padded source ids, `(n_sources, src_len)`.
        task: what to respect.

    Returns:
        For each source at most `n_best` hypotheses, best first.

    Raises:
        HeedError: the model's output is not a number.

    Source: Sutskever et al. 2014, section 3.2; what is complete leaves the beam, which stays full.
    """
    beam_size, n_sources = task.options.beam_size, src.size(0)
    results: dict[int, list[Hypothesis]] = {}
    log_softmax = LogSoftmax()
    state = model.start(src, beam_size=beam_size)
    beam, ended = begin(src, task)
    last = torch.full((n_sources * beam_size,), task.bos_id, device=src.device)
    while len(beam.sources):
        log_probs = log_softmax(model.step(state, last))
        found = expand(beam, log_probs, task)
        is_ending, going = choose(found, task)
        if task.observer is not None:
            task.observer(_seen(beam, found, is_ending, going))
        ended = _end(ended, beam, found, is_ending, task)
        parents = found.parents.gather(1, going)
        beam = advance(beam, found.select(going), task)
        ended, is_over = _stop(ended, beam, task)
        check_alive(torch.maximum(beam.totals.amax(dim=1), ended.scores[:, 0]), beam.sources)

        stay = None
        if is_over.any():
            leaving = is_over.nonzero().squeeze(-1)
            results.update(_harvest(beam.sources[leaving], ended.select(leaving)))
            stay = (~is_over).nonzero().squeeze(-1)
            parents, beam, ended = parents[stay], beam.select(stay), ended.select(stay)
        if len(beam.sources):
            _move(model, state, parents, stay)
        last = beam.tokens[:, :, -1].flatten()
    return [results[source] for source in range(n_sources)]


def begin(src: Tensor, task: Task) -> tuple[Beam, Ended]:
    """Make the beam before the first token: one empty hypothesis a source, the other slots empty.

    Args:
        src: padded source ids, `(n_sources, src_len)`.
        task: what to respect.
    """
    n_sources, device, dtype = src.size(0), src.device, sum_dtype(src.device)
    beam_size, n_best = task.options.beam_size, task.options.n_best
    totals = torch.full((n_sources, beam_size), -math.inf, dtype=dtype, device=device)
    totals[:, 0] = 0.0
    beam = Beam(
        sources=torch.arange(n_sources, device=device),
        tokens=torch.empty(n_sources, beam_size, 0, dtype=torch.long, device=device),
        token_log_probs=torch.empty(n_sources, beam_size, 0, device=device),
        totals=totals,
    )
    ended = Ended(
        tokens=torch.empty(n_sources, n_best, 0, dtype=torch.long, device=device),
        token_log_probs=torch.empty(n_sources, n_best, 0, device=device),
        lengths=torch.zeros(n_sources, n_best, dtype=torch.long, device=device),
        scores=torch.full((n_sources, n_best), -math.inf, dtype=dtype, device=device),
        kinds=torch.full((n_sources, n_best), _EMPTY, device=device),
        counts=torch.zeros(n_sources, dtype=torch.long, device=device),
    )
    return beam, ended


def expand(beam: Beam, log_probs: Tensor, task: Task) -> Candidates:
    """Continue every live hypothesis by its likeliest tokens and rank them per source.

    `beam_size + 1` tokens a row suffice: one of them may be `<eos>`. Of these, twice the beam: as
    many may end as may go on. Equals keep the order of slots, then of ids.

    Args:
        beam: what to continue.
        log_probs: the model's, changed where something is forbidden, `(rows, vocab_size)`.
        task: what to respect.
    """
    n_sources, beam_size, _ = beam.tokens.shape
    scores = task.constraints.apply(log_probs, beam.tokens.flatten(0, 1), beam.sources)
    values, ids = top(scores, beam_size + 1)
    slots = torch.arange(beam_size, device=ids.device)[:, None].expand(-1, ids.size(1))
    everything = Candidates(
        parents=slots.flatten().expand(n_sources, -1),
        ids=ids.reshape(n_sources, -1),
        log_probs=log_probs.gather(1, ids).view(n_sources, -1),
        totals=(beam.totals.view(-1, 1) + values).view(n_sources, -1),
    )
    order = everything.totals.sort(dim=1, descending=True, stable=True).indices
    return everything.select(order[:, : 2 * beam_size])


def choose(found: Candidates, task: Task) -> tuple[Tensor, Tensor]:
    """Decide which candidates end a hypothesis and which go on.

    A candidate with `<eos>` ends one if it is among the `beam_size` best of all.

    Args:
        found: the candidates, best first.
        task: what to respect.

    Returns:
        Whether each of the `beam_size` best ends `(n_sources, beam_size)`, and the places of the
        best that go on `(n_sources, beam_size)`.
    """
    beam_size = task.options.beam_size
    is_eos = found.ids == task.eos_id
    is_ending = (is_eos & (found.totals > -math.inf))[:, :beam_size]
    going = is_eos.to(torch.uint8).sort(dim=1, stable=True).indices[:, :beam_size]
    return is_ending, going


def advance(beam: Beam, chosen: Candidates, task: Task) -> Beam:
    """Take one step: slot `i` becomes candidate `i`.

    Args:
        beam: before the step.
        chosen: `beam_size` candidates for each source.
        task: what to respect.
    """
    tokens, token_log_probs = _continue(beam, chosen)
    return Beam(
        sources=beam.sources,
        tokens=tokens,
        token_log_probs=token_log_probs,
        totals=chosen.totals.masked_fill(chosen.ids == task.eos_id, -math.inf),
    )


def _end(ended: Ended, beam: Beam, found: Candidates, is_ending: Tensor, task: Task) -> Ended:
    """Move the hypotheses that end out of the beam."""
    if not is_ending.any():
        return ended
    best = found.first(is_ending.size(1))
    tokens, token_log_probs = _continue(beam, best)
    scores = _scores(best.totals, tokens.size(2), task).masked_fill(~is_ending, -math.inf)
    return ended.keep(tokens, token_log_probs, scores, kind=_COMPLETE)


def _stop(ended: Ended, beam: Beam, task: Task) -> tuple[Ended, Tensor]:
    """Cut what is at its limit, and tell which sources are over, `(n_sources,)`."""
    length, limits = beam.tokens.size(2), task.limits[beam.sources]
    is_cut = limits <= length
    if is_cut.any():
        scores = _scores(beam.totals, length, task).masked_fill(~is_cut[:, None], -math.inf)
        ended = ended.keep(beam.tokens, beam.token_log_probs, scores, kind=_CUT)
    best_live = beam.totals.amax(dim=1)
    standing = Standing(
        n_ended=ended.counts,
        beam_size=task.options.beam_size,
        # A log-prob only falls, and a penalty only grows: the limit is the best place to end.
        best_possible=_scores(best_live, limits.to(best_live.dtype), task),
        worst_kept=ended.scores[:, -1],
    )
    is_enough = EARLY_STOPPING[task.options.early_stopping](standing)
    return ended, is_cut | is_enough | (best_live == -math.inf)


def _move(model: Decodable, state: object, parents: Tensor, stay: Tensor | None) -> None:
    """Let the model's memory follow the beam."""
    n_sources, beam_size = parents.shape
    old = torch.arange(n_sources, device=parents.device) if stay is None else stay
    rows = (old[:, None] * beam_size + parents).flatten()
    if stay is None and torch.equal(rows, torch.arange(len(rows), device=rows.device)):
        return
    model.select(state, rows, stay)


def _continue(beam: Beam, found: Candidates) -> tuple[Tensor, Tensor]:
    """Append to each candidate's parent its token, `(n_sources, n, length)`, and log-prob."""
    tokens = torch.cat([_pick(beam.tokens, found.parents), found.ids[:, :, None]], dim=2)
    log_probs = [_pick(beam.token_log_probs, found.parents), found.log_probs[:, :, None]]
    return tokens, torch.cat(log_probs, dim=2)


def _pick(items: Tensor, places: Tensor) -> Tensor:
    """Choose along the second axis of `items`, `(n_sources, n, width)`, by `(n_sources, m)`."""
    return items.gather(1, places[:, :, None].expand(-1, -1, items.size(2)))


def _scores(totals: Tensor, length: int | Tensor, task: Task) -> Tensor:
    """Apply the length penalty, once and here."""
    scores: Tensor = totals / LENGTH_PENALTIES[task.options.length_penalty](
        length, task.options.alpha
    )
    return scores


def _harvest(sources: Tensor, ended: Ended) -> dict[int, list[Hypothesis]]:
    """Put ended hypotheses into plain Python, by source."""
    harvest: dict[int, list[Hypothesis]] = {source: [] for source in sources.tolist()}
    lines = zip(
        harvest.values(),
        ended.tokens.tolist(),
        ended.token_log_probs.tolist(),
        ended.lengths.tolist(),
        ended.scores.tolist(),
        ended.kinds.tolist(),
        strict=True,
    )
    for found, *columns in lines:
        for tokens, log_probs, length, score, kind in zip(*columns, strict=True):
            if kind != _EMPTY:
                found.append(
                    make_hypothesis(
                        tokens[:length],
                        log_probs[:length],
                        score=score,
                        has_ended=kind == _COMPLETE,
                    )
                )
    return harvest


def _seen(beam: Beam, found: Candidates, is_ending: Tensor, going: Tensor) -> Step:
    """Describe a step before it is taken."""
    beam_size = going.size(1)
    slots = torch.full_like(found.parents, DROPPED)
    slots.scatter_(1, going, torch.arange(beam_size, device=going.device).expand_as(going))
    slots[:, :beam_size].masked_fill_(is_ending, ENDED)
    return Step(
        number=beam.tokens.size(2),
        sources=beam.sources,
        parents=found.parents,
        ids=found.ids,
        log_probs=found.log_probs,
        totals=found.totals,
        slots=slots.masked_fill(found.totals == -math.inf, DROPPED),
    )
