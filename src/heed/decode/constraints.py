"""What a search may not choose: small functions on log-probs, and the one order they apply in.

Not a search, and nothing here changes what the model said: a constraint decides what may be chosen,
reported log-probs stay the model's own. Read on in `greedy.py` and `beam.py`, which share these.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import torch
from torch import Tensor

from heed.decode.options import DecodeOptions

# What must be chosen gets at least this, even where the model gives it no chance at all:
# a search cannot follow a path of minus infinity.
_LEAST = -1e4


def forbid(log_probs: Tensor, ids: Tensor) -> None:
    """Take the chance from some ids, in place.

    Args:
        log_probs: changed, `(rows, vocab_size)`.
        ids: never to be chosen, `(n_forbidden,)`.
    """
    log_probs.index_fill_(1, ids, -math.inf)


def forbid_repeated_ngrams(log_probs: Tensor, tokens: Tensor, *, size: int) -> None:
    """Take the chance from every id that would end an n-gram the row already holds, in place.

    Args:
        log_probs: changed, `(rows, vocab_size)`.
        tokens: predicted so far, `(rows, length)`.
        size: tokens in an n-gram, at least 1.

    Source: Paulus et al. 2018, section 2.5.
    """
    if tokens.size(1) < size:
        return
    ngrams = tokens.unfold(1, size, 1)
    ending = tokens[:, tokens.size(1) - size + 1 :]
    is_again = (ngrams[:, :, :-1] == ending[:, None, :]).all(dim=-1)
    limits = torch.where(is_again, -math.inf, math.inf).to(log_probs.dtype)
    log_probs.scatter_reduce_(1, ngrams[:, :, -1], limits, "amin")


def penalize_repetition(log_probs: Tensor, tokens: Tensor, *, penalty: float) -> None:
    """Multiply the log-probs of ids the row already holds by `penalty`, in place.

    Args:
        log_probs: changed, `(rows, vocab_size)`.
        tokens: predicted so far, `(rows, length)`.
        penalty: at least 1, which is neutral.

    Source: Keskar et al. 2019, section 4.1.
    """
    log_probs.scatter_(1, tokens, log_probs.gather(1, tokens) * penalty)


def force(log_probs: Tensor, ids: Tensor, forced_log_probs: Tensor) -> None:
    """Leave one id a row, in place, where one is prescribed.

    Args:
        log_probs: changed, `(rows, vocab_size)`.
        ids: the prescribed id, or -1 for a free choice, `(rows,)`.
        forced_log_probs: what the model gave that id, `(rows,)`.
    """
    rows = (ids >= 0).nonzero().squeeze(-1)
    log_probs.index_fill_(0, rows, -math.inf)
    log_probs[rows, ids[rows]] = forced_log_probs[rows].clamp(min=_LEAST)


def end_if_stuck(log_probs: Tensor, eos_log_probs: Tensor, *, eos_id: int) -> None:
    """Let a row end, in place, where the other constraints leave it nothing to choose.

    Args:
        log_probs: changed, `(rows, vocab_size)`.
        eos_log_probs: what the model gave `<eos>`, `(rows,)`.
        eos_id: the id of `<eos>`.
    """
    is_stuck = log_probs.amax(dim=-1) == -math.inf
    ending = torch.where(is_stuck, eos_log_probs.clamp(min=_LEAST), log_probs[:, eos_id])
    log_probs[:, eos_id] = ending


@dataclass(frozen=True, kw_only=True)
class Constraints:
    """All constraints of one call, ready to apply at every step.

    Attributes:
        eos_id: the id that ends a hypothesis.
        forbidden: ids never to be chosen, `(n_forbidden,)`.
        prefixes: ids each source must begin with, -1 where it is free, `(n_sources, prefix_len)`.
        min_length: tokens before `<eos>` is allowed.
        no_repeat_ngram_size: 0 is off.
        repetition_penalty: 1 is off.
    """

    eos_id: int
    forbidden: Tensor
    prefixes: Tensor
    min_length: int
    no_repeat_ngram_size: int
    repetition_penalty: float

    @classmethod
    def of(
        cls,
        options: DecodeOptions,
        *,
        eos_id: int,
        forbidden: Sequence[int],
        prefixes: Sequence[Sequence[int]],
        device: torch.device,
    ) -> Self:
        """Gather what `options` and the caller ask for.

        Args:
            options: the knobs.
            eos_id: the id that ends a hypothesis.
            forbidden: ids never to be chosen, beside `options.suppress`; `eos_id` is allowed even
                if listed here, so that a caller may pass all its control ids.
            prefixes: ids each source must begin with, one list a source.
            device: where the search runs.
        """
        never = sorted({*forbidden} - {eos_id} | {*options.suppress})
        longest = max((len(prefix) for prefix in prefixes), default=0)
        padded = [[*prefix, *[-1] * (longest - len(prefix))] for prefix in prefixes]
        return cls(
            eos_id=eos_id,
            forbidden=torch.tensor(never, dtype=torch.long, device=device),
            prefixes=torch.tensor(padded, dtype=torch.long, device=device).view(
                len(prefixes), longest
            ),
            min_length=options.min_length,
            no_repeat_ngram_size=options.no_repeat_ngram_size,
            repetition_penalty=options.repetition_penalty,
        )

    def apply(self, log_probs: Tensor, tokens: Tensor, sources: Tensor) -> Tensor:
        """Return the scores to choose by; minus infinity is out of the question.

        Args:
            log_probs: the model's, changed where something is forbidden, `(rows, vocab_size)`.
            tokens: predicted so far, `(rows, length)`.
            sources: which source of the call each run of rows answers, `(n_sources,)`.

        Returns:
            The scores `(rows, vocab_size)`: `log_probs` itself unless a penalty changes numbers.
        """
        length = tokens.size(1)
        is_forced = length < self.prefixes.size(1)
        may_be_stuck = (
            self.no_repeat_ngram_size > 0
            or length < self.min_length
            or len(self.forbidden) >= log_probs.size(1)
        )
        if is_forced:
            n_rows_each = len(log_probs) // len(sources)
            forced = self.prefixes[sources, length].repeat_interleave(n_rows_each)
            forced_log_probs = log_probs.gather(1, forced.clamp(min=0)[:, None]).squeeze(1)
        if may_be_stuck:
            eos_log_probs = log_probs[:, self.eos_id].clone()

        scores = log_probs
        if self.repetition_penalty != 1.0:
            scores = log_probs.clone()
            penalize_repetition(scores, tokens, penalty=self.repetition_penalty)
        if self.no_repeat_ngram_size > 0:
            forbid_repeated_ngrams(scores, tokens, size=self.no_repeat_ngram_size)
        forbid(scores, self.forbidden)
        if length < self.min_length:
            scores[:, self.eos_id] = -math.inf
        if may_be_stuck:
            end_if_stuck(scores, eos_log_probs, eos_id=self.eos_id)
        if is_forced:
            force(scores, forced, forced_log_probs)
        return scores
