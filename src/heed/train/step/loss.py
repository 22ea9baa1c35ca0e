"""Label-smoothed cross-entropy: the equation, and the same fused with the output layer.

`smoothed_cross_entropy` is the definition. Training uses `output_cross_entropy`, which starts from
decoder states and the output matrix: their product, the logits `(n_tokens, vocab_size)`, would be
the largest tensor of a step, so it is made in chunks and never kept. If factors may be rounded to
bfloat16, `heed.model.fast.tiles` computes it in a quarter of the time. With large vocabularies it
samples small probabilities for the gradients, which stay right on average.
"""

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from heed.machine.cpu import has_faster_onednn
from heed.model.fast import tiles
from heed.model.fast.products import SMALLEST, faster_products, is_rounding

CHUNK = 512 if has_faster_onednn() else 128
"""Most tokens whose logits exist at once: of 8,000 pieces 16 or 4 MB, which stay within the cache.

On an Intel Xeon with 2 MB of cache a core, 128 takes 77 ms where 512 takes 102 (1,500 tokens, width
128). AMD's processors have more cache; 128 was not tried.
"""

ON_GPU = 1 << 26
"""Most logits that exist at once on a GPU: 256 MB, enough for it to be busy."""

LEAST_SAMPLED = 2048
"""Pieces of a vocabulary from which on small probabilities are sampled for the gradients."""


def smoothed_cross_entropy(logits: Tensor, targets: Tensor, smoothing: float = 0.0) -> Tensor:
    """Cross-entropy with `smoothing` of the probability spread evenly over the vocabulary.

    Args:
        logits: scores before softmax, `(n_tokens, vocab_size)`.
        targets: the true next token, `(n_tokens,)`.
        smoothing: share of the probability spread evenly over all tokens, 0 = none.

    Returns:
        The loss summed over tokens, in nats, `()`.

    Source: Szegedy et al. 2016, section 7; Vaswani et al. 2017, section 5.4.
    """
    log_probs = logits.log_softmax(dim=-1)
    nll = -log_probs.gather(-1, targets[:, None]).squeeze(-1)
    uniform = -log_probs.mean(dim=-1)
    return ((1 - smoothing) * nll + smoothing * uniform).sum()


class _OutputCrossEntropy(torch.autograd.Function):
    """Output layer and loss in one; forward also makes the gradients, for one backward pass.

    With p = softmax(logits), the gradient of `smoothed_cross_entropy` by the logits is
    p - (1 - smoothing) onehot(target) - smoothing / vocab_size.
    """

    @staticmethod
    def forward(
        ctx: Any, states: Tensor, weight: Tensor, targets: Tensor, smoothing: float
    ) -> tuple[Tensor, Tensor]:
        in_tiles = is_rounding() and tiles.fit(states, weight)
        if in_tiles:
            found = tiles.probabilities(states, weight, targets, seed=_draw(weight.size(0)))
        else:
            found = _in_chunks(states, weight, targets)
        totals, true, grad_states, grad_weight = found
        share, row_sum = smoothing / weight.size(0), weight.sum(dim=0)
        nll = (totals - true).double().sum()
        loss = (1 - smoothing) * nll
        if smoothing:
            loss += smoothing * totals.double().sum() - share * (states @ row_sum).double().sum()
        # So far these are the products of p. The other two terms are a row of the output matrix and
        # the sum of its rows, which need no pass over (n_tokens, vocab_size).
        grad_states.sub_(weight[targets], alpha=1 - smoothing)
        grad_weight.index_add_(0, targets, states, alpha=smoothing - 1)
        if smoothing:
            grad_states.sub_(share * row_sum)
            grad_weight.sub_(share * states.sum(dim=0))
        # Not saved as tensors of the graph, so that they need no copy to be scaled.
        ctx.gradients = grad_states, grad_weight
        ctx.mark_non_differentiable(nll)
        return loss.to(states.dtype), nll

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None, None]:
        (grad_states, grad_weight), ctx.gradients = ctx.gradients, None
        return grad_states.mul_(grads[0]), grad_weight.mul_(grads[0]), None, None


def _draw(vocab_size: int) -> int:
    """A seed for `tiles.probabilities`, or 0 if the vocabulary is too small for sampling."""
    return 0 if vocab_size < LEAST_SAMPLED else int(torch.randint(1, 2**62, ()))


def _in_chunks(states: Tensor, weight: Tensor, targets: Tensor) -> tiles.Probabilities:
    """As `tiles.probabilities`, on any device and in any precision."""
    grad_states, grad_weight = torch.empty_like(states), torch.zeros_like(weight)
    totals, trues = [], []
    for rows in _chunks(states, weight):
        chunk, n_rows = states[rows], rows.stop - rows.start
        with faster_products(n_rows):
            logits = chunk @ weight.t()
        highest = logits.amax(dim=1, keepdim=True)
        trues.append(logits.gather(1, targets[rows, None]).squeeze(1))
        powers = logits.sub_(highest).exp_()
        total = powers.sum(dim=1, keepdim=True)
        totals.append((total.log() + highest).squeeze(1))
        with faster_products(n_rows):
            torch.mm(powers, weight, out=grad_states[rows]).div_(total)
            grad_weight.addmm_(powers.t(), chunk / total)
    none = [states.new_empty(0)]
    return tiles.Probabilities(
        torch.cat(totals or none), torch.cat(trues or none), grad_states, grad_weight
    )


def output_cross_entropy(
    states: Tensor, weight: Tensor, targets: Tensor, *, smoothing: float = 0.0
) -> tuple[Tensor, Tensor]:
    """`smoothed_cross_entropy` of the logits `states @ weight.T`, without keeping them.

    Args:
        states: decoder states at real target positions, `(n_tokens, d_model)`.
        weight: output matrix, `(vocab_size, d_model)`.
        targets: the true next token, `(n_tokens,)`.
        smoothing: share of probability spread evenly over the vocabulary, 0 = none.

    Returns:
        The smoothed loss to train on and the plain negative log-likelihood, both summed, in nats.
    """
    states = states.to(weight.dtype)
    if torch.is_grad_enabled():
        loss, nll = _OutputCrossEntropy.apply(states, weight, targets, smoothing)  # type: ignore[no-untyped-call]
        return loss, nll
    nll = torch.zeros((), dtype=torch.float64, device=states.device)
    loss = torch.zeros_like(nll)
    for rows in _chunks(states, weight):
        logits, target = states[rows] @ weight.t(), targets[rows]
        nll += smoothed_cross_entropy(logits, target)
        loss += smoothed_cross_entropy(logits, target, smoothing)
    return loss.to(states.dtype), nll


def _chunks(states: Tensor, weight: Tensor) -> Iterator[slice]:
    """Cut tokens into equal chunks of few sizes, and a small one for what is left."""
    n_tokens, most = states.size(0), CHUNK
    if states.is_cuda:
        most = max(CHUNK, ON_GPU // weight.size(0))
    size = n_tokens // max(1, math.ceil(n_tokens / most))
    if size > SMALLEST:
        size -= size % SMALLEST
    for start in range(0, n_tokens, max(1, size)):
        yield slice(start, min(start + size, n_tokens))
