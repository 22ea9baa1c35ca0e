"""The contribution of each source and each earlier target token to a target token's log-prob.

There are gradient methods (`gradient_times_input`, `integrated_gradients`), and methods that leave
out one token at a time (`erasure`, `masking`, `deletion`), which are slower but easy to interpret.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from heed.errors import UsageError
from heed.explain.causes.effects import array
from heed.explain.causes.pair import Pair
from heed.explain.causes.parts import keys_of
from heed.model.interface import Floats
from heed.model.trace import Edit, editing, recording
from heed.translate.arguments import require_whole

SOURCE_VECTORS = ("embed_src.tokens", "embed.src_tokens", "embedded_src")
"""Names of the token vectors before positions are added; the first one that a model has is used."""
TARGET_VECTORS = ("embed_tgt.tokens", "embed.tgt_tokens", "embedded_tgt")


@dataclass(frozen=True, kw_only=True)
class Attribution:
    """The contribution of each token to the log-prob of each expected token, in nats.

    Attributes:
        source_tokens: the pieces that the encoder reads.
        target_tokens: the pieces that the decoder reads, `<bos>` first.
        expected_tokens: the pieces that are explained, `<eos>` last.
        source: contribution of each source token, `(tgt_len, src_len)`.
        target: of each target token that was read, `(tgt_len, tgt_len)`; 0 after the diagonal.
        source_sums: theoretical sums of the rows of `source`, `(tgt_len,)`; None = no theory.
        target_sums: the same for `target`.
    """

    source_tokens: list[str]
    target_tokens: list[str]
    expected_tokens: list[str]
    source: Floats
    target: Floats
    source_sums: Floats | None = None
    target_sums: Floats | None = None

    @property
    def gap(self) -> float:
        """The largest difference between the sum of a row and its theoretical value."""
        both = (self.source, self.source_sums), (self.target, self.target_sums)
        gaps = [abs(rows.sum(axis=1) - sums).max() for rows, sums in both if sums is not None]
        return float(max(gaps, default=0.0))


def gradient_times_input(pair: Pair) -> Attribution:
    """x · ∂ log p / ∂x, summed over a token's vector: its contribution to first order.

    Args:
        pair: the sentence.

    Source: Shrikumar et al. 2017, "Not Just a Black Box"; for translation, Ding et al. 2019,
        "Saliency-driven Word Alignment Interpretation for Neural Machine Translation".
    """
    n_rows = len(pair.tgt_out_ids)
    vectors = [each.expand(n_rows, -1, -1) for each in _vectors(pair)]
    gradients = _gradients(pair, *vectors)
    source, target = (
        (gradient * vector).sum(dim=-1) for gradient, vector in zip(gradients, vectors, strict=True)
    )
    return _attribution(pair, array(source), array(target))


def integrated_gradients(pair: Pair, *, n_points: int = 32) -> Attribution:
    """The gradient, integrated along the straight line from a sentence without words.

    For the source, the line starts where all token vectors but those of `<eos>` and language tags
    are that of `<unk>`, and the target is fixed. For the target, it is the other way round. The
    rows sum to the difference of the log-probs at both ends (completeness), up to the error of the
    integral: `Attribution.gap`.

    Args:
        pair: the sentence.
        n_points: number of points of the Gauss-Legendre quadrature.

    Raises:
        UsageError: `n_points` is not a whole number from 1.

    Source: Sundararajan et al. 2017, "Axiomatic Attribution for Deep Networks", section 3.
    """
    require_whole(n_points, "n_points", 1)
    (src, tgt), (no_src, no_tgt) = _vectors(pair), _vectors(pair.without_words())
    source, source_sums = _integral(pair, (no_src, tgt), (src, tgt), n_points)
    target, target_sums = _integral(pair, (src, no_tgt), (src, tgt), n_points)
    return replace(
        _attribution(pair, array(source[0]), array(target[1])),
        source_sums=source_sums,
        target_sums=target_sums,
    )


def _integral(
    pair: Pair, begin: tuple[Tensor, Tensor], end: tuple[Tensor, Tensor], n_points: int
) -> tuple[list[Tensor], Floats]:
    """Integrate the gradients between two pairs of token vectors.

    Args:
        pair: the sentence.
        begin: token vectors of both sides, `(1, src_len, d_model)` and `(1, tgt_len, d_model)`.
        end: the same, at the end of the line.
        n_points: number of points of the quadrature.

    Returns:
        The contributions of the tokens of both sides, `(tgt_len, src_len)` and
        `(tgt_len, tgt_len)`, and their sums, `(tgt_len,)`.
    """
    ways = [last - first for first, last in zip(begin, end, strict=True)]
    places, weights = np.polynomial.legendre.leggauss(n_points)
    n_rows = len(pair.tgt_out_ids)
    n_at_once = max(1, pair.n_rows_at_once // n_rows)
    totals = [way.new_zeros(n_rows, *way.shape[1:]) for way in ways]
    for first in range(0, n_points, n_at_once):
        at = (places[first : first + n_at_once] + 1) / 2
        shares = torch.from_numpy(at).to(ways[0]).repeat_interleave(n_rows)[:, None, None]
        points = [start + shares * way for start, way in zip(begin, ways, strict=True)]
        factors = torch.from_numpy(weights[first : first + n_at_once] / 2).to(ways[0])
        for total, gradient in zip(totals, _gradients(pair, *points), strict=True):
            total += torch.einsum("p,prld->rld", factors, gradient.view(len(at), *total.shape))
    parts = [(total * way).sum(dim=-1) for total, way in zip(totals, ways, strict=True)]
    ends = []
    for vectors in (begin, end):
        with torch.no_grad(), editing(pair.network, _put(pair, *vectors)):
            ends.append(pair.token_log_probs()[0])
    return parts, array(ends[1] - ends[0])


@torch.no_grad()
def erasure(pair: Pair) -> Attribution:
    """The log-prob that is lost when `<unk>` replaces a token, of either side.

    Source: Li et al. 2016, "Understanding Neural Networks through Representation Erasure".
    """
    rows = erased_rows(pair)
    source = _lost(pair, rows, pair.rows(pair.tgt_in_ids, len(rows)))
    forced = _with_each(pair.tgt_in_ids, pair.tgt_vocab.unk_id)
    target = _lost(pair, pair.rows(pair.src_ids, len(forced)), forced)
    target[:, 0] = 0.0  # `<bos>` is not a word
    return _attribution(pair, source, np.tril(target))


@torch.no_grad()
def masking(pair: Pair) -> Attribution:
    """The log-prob that is lost when a source token is masked, like padding.

    Raises:
        UsageError: the model does not read its source by softmax attention.
    """
    if not keys_of(pair):
        raise UsageError("Source tokens can be masked only where softmax attention reads them.")
    mask = ~torch.eye(len(pair.src_ids), dtype=torch.bool, device=pair.device)[:, None, None]
    parts = []
    for first in range(0, len(mask), pair.n_rows_at_once):
        portion = mask[first : first + pair.n_rows_at_once]
        pair.before_pass()
        src, tgt_in = (pair.rows(ids, len(portion)) for ids in (pair.src_ids, pair.tgt_in_ids))
        logits = pair.network.logits(pair.network(src, tgt_in, portion))
        parts.append(pair.of_expected(logits.log_softmax(dim=-1)))
    source = array(pair.token_log_probs() - torch.cat(parts)).T
    return _attribution(pair, source, np.zeros((len(source), len(source)), dtype=np.float32))


@torch.no_grad()
def deletion(pair: Pair) -> Attribution:
    """The log-prob that is lost when a source token is deleted and the gap is closed."""
    ids = pair.src_ids
    rows = torch.tensor([ids[:i] + ids[i + 1 :] for i in range(len(ids))], dtype=torch.long)
    source = _lost(pair, rows, pair.rows(pair.tgt_in_ids, len(rows)))
    return _attribution(pair, source, np.zeros((len(source), len(source)), dtype=np.float32))


METHODS = {
    "gradient": gradient_times_input,
    "integrated": integrated_gradients,
    "erasure": erasure,
    "masking": masking,
    "deletion": deletion,
}
"""Maps a short name to the method."""


def rank_correlation(one: Floats, other: Floats) -> float:
    """Spearman's ρ: the correlation of the ranks of two rows; equal numbers get their mean rank.

    Args:
        one: `(n,)`.
        other: `(n,)`.

    Returns:
        From -1 to 1; NaN if all numbers of a row are equal.
    """
    ranks = np.stack([_ranks(one), _ranks(other)])
    centered = ranks - ranks.mean(axis=1, keepdims=True)
    norms = np.linalg.norm(centered, axis=1)
    if not norms.all():
        return float("nan")
    return float(centered[0] @ centered[1] / norms.prod())


def _ranks(row: Floats) -> Floats:
    _, inverse, counts = np.unique(row, return_inverse=True, return_counts=True)
    last = counts.cumsum()
    ranks: Floats = ((last - counts + last - 1) / 2)[inverse]
    return ranks


def _attribution(pair: Pair, source: Floats, target: Floats) -> Attribution:
    return Attribution(
        source_tokens=pair.source_tokens,
        target_tokens=pair.target_tokens,
        expected_tokens=pair.expected_tokens,
        source=source,
        target=target,
    )


def _names(pair: Pair) -> tuple[str, str]:
    """The names of the token vectors of source and target."""
    source, target = (
        next(name for name in names if name in pair.shapes)
        for names in (SOURCE_VECTORS, TARGET_VECTORS)
    )
    return source, target


@torch.no_grad()
def _vectors(pair: Pair) -> tuple[Tensor, Tensor]:
    """Token vectors of both sides, `(1, src_len, d_model)` and `(1, tgt_len, d_model)`."""
    source, target = _names(pair)
    with recording(pair.network, source, target) as caught:
        pair.log_probs()
    return caught[source], caught[target]


def _put(pair: Pair, source: Tensor, target: Tensor) -> Mapping[str, Edit]:
    """The edits that replace the pair's token vectors."""
    of_source, of_target = _names(pair)
    return {of_source: lambda _: source, of_target: lambda _: target}


def _gradients(pair: Pair, source: Tensor, target: Tensor) -> tuple[Tensor, ...]:
    """The gradient of one expected token's log-prob for each row of token vectors.

    Args:
        pair: the sentence.
        source: `(n_rows, src_len, d_model)`; row r is for the expected token r modulo tgt_len.
        target: `(n_rows, tgt_len, d_model)`.

    Returns:
        The gradients of both.
    """
    parts = []
    n_tgt = len(pair.tgt_out_ids)
    expected = torch.tensor(pair.tgt_out_ids, device=pair.device)
    with torch.inference_mode(False), torch.enable_grad():
        for first in range(0, len(source), pair.n_rows_at_once):
            portion = slice(first, first + pair.n_rows_at_once)
            leaves = [each[portion].detach().clone().requires_grad_() for each in (source, target)]
            with editing(pair.network, _put(pair, *leaves)):
                states = pair.states(len(leaves[0]))
            rows = torch.arange(len(states), device=pair.device)
            at = (rows + first) % n_tgt
            # Logits of one position per row: those of all positions would take most of the time.
            log_probs = pair.network.logits(states[rows, at]).log_softmax(dim=-1)
            explained = log_probs.gather(1, expected[at, None])
            # Rows are independent, so one backward pass gives each row's own gradient.
            parts.append(torch.autograd.grad(explained.sum(), leaves))
    return tuple(torch.cat(each) for each in zip(*parts, strict=True))


def erased_rows(pair: Pair) -> Tensor:
    """The source with `<unk>` in place of each token in turn, `(src_len, src_len)`."""
    return _with_each(pair.src_ids, pair.tracer.src_vocab.unk_id)


def _with_each(ids: list[int], other: int) -> Tensor:
    """Ids with `other` in place of each one in turn, `(length, length)`."""
    rows = torch.tensor([ids], dtype=torch.long).repeat(len(ids), 1)
    return rows.fill_diagonal_(other)


def _lost(pair: Pair, src: Tensor, tgt_in: Tensor) -> Floats:
    """The log-prob that each expected token loses with other ids, `(tgt_len, n_rows)`."""
    before, n = pair.token_log_probs(), pair.n_rows_at_once
    parts = [
        pair.of_expected(pair.log_probs_of(src[first : first + n], tgt_in[first : first + n]))
        for first in range(0, len(src), n)
    ]
    return array(before - torch.cat(parts)).T.copy()
