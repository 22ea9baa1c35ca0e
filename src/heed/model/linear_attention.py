"""Linear attention: by products φ(q)·φ(k), so that keys and values are summed for all queries.

y_t = φ(q_t) S / φ(q_t)·z, where S = Σ_j φ(k_j) v_jᵀ and z = Σ_j φ(k_j). Time and memory grow with
the length. S and z of the positions so far are all that a decoder keeps.

Sources: Katharopoulos et al. 2020, "Transformers are RNNs", equations 5 to 7 and 16 to 20;
Choromanski et al. 2021, "Rethinking Attention with Performers".
"""

import itertools
from collections.abc import Iterable
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

BLOCK = 64
"""Positions of a causal pass that read each other by their products; earlier ones by their sum."""


class Features(NamedTuple):
    """φ(x) of each position, e^log_scale · values.

    Attributes:
        values: not negative, `(batch, n_heads, length, n_features)`.
        log_scale: `(batch, n_heads, length, 1)`; None = 0.
    """

    values: Tensor
    log_scale: Tensor | None = None


class Sums(NamedTuple):
    """S and z, which is the last column: e^log_scale · values.

    Attributes:
        values: `(batch, n_heads, n_features, d_v + 1)`.
        log_scale: `(batch, n_heads, 1, 1)`; None = 0.
    """

    values: Tensor
    log_scale: Tensor | None = None


class RunningSums:
    """The sums over the positions so far; their size does not grow.

    Attributes:
        length: number of positions.
        sums: None = no position yet.
    """

    def __init__(self) -> None:
        self.length = 0
        self.sums: Sums | None = None

    def select(self, rows: Tensor) -> None:
        """Keep, repeat or reorder rows `(new_rows,)`."""
        if self.sums is not None:
            values, scale = self.sums
            self.sums = Sums(values[rows], None if scale is None else scale[rows])


def elu_features(x: Tensor) -> Features:
    """φ(x) = elu(x) + 1: x + 1 above 0, e^x below.

    Args:
        x: queries or keys, `(batch, n_heads, length, d_k)`.

    Source: Katharopoulos et al. 2020, equation 7.
    """
    x = _precise(x)
    # Not F.elu(x) + 1, which rounds to 0 below -17.
    return Features(x.clamp(max=0).exp() + x.relu())


def favor_features(x: Tensor, directions: Tensor) -> Features:
    """φ_i(x) = exp(w_i·x' - |x'|²/2) / √m with x' = x / d_k^¼, so that E φ(q)·φ(k) = e^(q·k/√d_k).

    1/√m and the scale of a query are left out: they cancel in the fraction.

    Args:
        x: queries or keys, `(batch, n_heads, length, d_k)`.
        directions: w_1 … w_m, `(n_features, d_k)`.

    Source: Choromanski et al. 2021, lemma 1 and section 2.4 (positive orthogonal features).
    """
    x = _precise(x) * x.size(-1) ** -0.25
    exponents = x @ _precise(directions).mT - x.square().sum(dim=-1, keepdim=True) / 2
    log_scale = exponents.detach().amax(dim=-1, keepdim=True)
    return Features((exponents - log_scale).exp(), log_scale)


def draw_directions(directions: Tensor) -> Tensor:
    """Fill `(n_features, d_k)` with normal vectors, each d_k of them orthogonal to one another.

    Source: Choromanski et al. 2021, section 2.4.
    """
    if torch.overrides.has_torch_function_unary(directions):
        # As in `torch.nn.init`: `build_unfilled` leaves this out.
        filled: Tensor = torch.overrides.handle_torch_function(
            draw_directions, (directions,), directions
        )
        return filled
    d_k = directions.size(1)
    with torch.no_grad():
        for block in torch.split(directions, d_k):
            turned, triangle = torch.linalg.qr(torch.randn(d_k, d_k, dtype=torch.float64))
            lengths = torch.randn(len(block), d_k, dtype=torch.float64).norm(dim=1, keepdim=True)
            # With these signs all rotations are equally probable.
            block.copy_(lengths * (turned * triangle.diagonal().sign()).mT[: len(block)])
    return directions


def readable(key: Features, mask: Tensor | None) -> Features:
    """Features of keys, zero where the mask `(batch, 1, 1, k_len)` is False."""
    if mask is None:
        return key
    hidden = ~mask.mT
    if key.log_scale is None:
        return Features(key.values.masked_fill(hidden, 0.0))
    lowest = torch.finfo(key.log_scale.dtype).min
    return Features(key.values.masked_fill(hidden, 0.0), key.log_scale.masked_fill(hidden, lowest))


def summed(key: Features, value: Tensor) -> Sums:
    """S and z of all keys.

    Args:
        key: `k_len` positions.
        value: `(batch, n_heads, k_len, d_v)`.
    """
    if key.log_scale is None:
        return Sums(key.values.mT @ _with_ones(value))
    lowest = torch.finfo(key.log_scale.dtype).min
    highest = F.pad(key.log_scale, (0, 0, 1, 0), value=lowest).amax(dim=2, keepdim=True)
    scaled = key.values * (key.log_scale - highest).exp()
    return Sums(scaled.mT @ _with_ones(value), highest)


def read(query: Tensor, sums: Sums) -> Tensor:
    """Let each query read the sums.

    Args:
        query: values of their features, `(batch, n_heads, q_len, n_features)`.
        sums: of all keys.

    Returns:
        `(batch, n_heads, q_len, d_v)`; 0 if there was no key.
    """
    return _divided(query @ sums.values)


def advance(query: Tensor, key: Features, value: Tensor, sums: Sums | None) -> tuple[Tensor, Sums]:
    """Let new positions read those in `sums`, and the new ones up to their own.

    Args:
        query: values of their features, `(batch, n_heads, n_new, n_features)`.
        key: features of the same positions.
        value: `(batch, n_heads, n_new, d_v)`.
        sums: of all positions before; None = there are none.

    Returns:
        The context, `(batch, n_heads, n_new, d_v)`, and the sums with the new positions.
    """
    products = query @ key.values.mT
    if key.log_scale is None:
        context = products.tril() @ _with_ones(value)
        new = summed(key, value)
        if sums is not None:
            context = context + query @ sums.values
            new = Sums(sums.values + new.values)
        return _divided(context), new
    # The largest scale up to each position, so that a later key changes nothing before it.
    before = key.log_scale[:, :, :1] if sums is None else sums.log_scale
    assert before is not None
    highest = torch.maximum(key.log_scale.cummax(dim=2).values, before)
    shifts = (key.log_scale.mT - highest).clamp(max=0)  # above the diagonal it may be anything
    context = (products * shifts.exp()).tril() @ _with_ones(value)
    last = highest[:, :, -1:]
    added = (key.values * (key.log_scale - last).exp()).mT @ _with_ones(value)
    if sums is not None:
        context = context + (before - highest).exp() * (query @ sums.values)
        added = added + (before - last).exp() * sums.values
    return _divided(context), Sums(added, last)


def attend_causally(
    query: Tensor, key: Features, value: Tensor, n_prefix: int = 0, sums: Sums | None = None
) -> tuple[Tensor, Sums | None]:
    """Let each position read those up to its own, a block at a time.

    Args:
        query: values of their features, `(batch, n_heads, length, n_features)`.
        key: features of the same positions.
        value: `(batch, n_heads, length, d_v)`.
        n_prefix: first positions, which also read each other in both directions.
        sums: of all positions before; None = there are none.

    Returns:
        The context, `(batch, n_heads, length, d_v)`, and the sums with these positions.
    """
    contexts = []
    if n_prefix:
        sums = summed(_part(key, 0, n_prefix), value[:, :, :n_prefix])
        contexts.append(read(query[:, :, :n_prefix], sums))
    if query.size(2) > n_prefix:
        new = _part(key, n_prefix, query.size(2))
        parts = query[:, :, n_prefix:], new.values, value[:, :, n_prefix:], new.log_scale
        for queries, keys, values, scales in zip(*map(_blocks, parts), strict=False):
            context, sums = advance(queries, Features(keys, scales), values, sums)
            contexts.append(context)
    return torch.cat(contexts, dim=2) if contexts else _precise(value), sums


def weights_of(query: Tensor, key: Features, mask: Tensor | None) -> Tensor:
    """The weights that the other functions never compute: φ(q)·φ(k), divided by their sum.

    Args:
        query: values of their features, `(batch, n_heads, q_len, n_features)`.
        key: features of `k_len` positions.
        mask: True where reading is allowed, broadcasts to `(batch, n_heads, q_len, k_len)`.

    Returns:
        `(batch, n_heads, q_len, k_len)`; a row whose keys are all masked is 0.
    """
    products = query @ key.values.mT
    if mask is not None:
        products = products.masked_fill(~mask, 0.0)
    if key.log_scale is not None:
        scales = key.log_scale.mT.expand_as(products)
        if mask is not None:
            scales = scales.masked_fill(~mask, torch.finfo(scales.dtype).min)
        highest = F.pad(scales, (1, 0), value=torch.finfo(scales.dtype).min).amax(-1, keepdim=True)
        products = products * (scales - highest).exp()
    total = products.sum(dim=-1, keepdim=True)
    return products / total.masked_fill(total == 0, 1.0)


def _with_ones(value: Tensor) -> Tensor:
    """Values `(…, d_v)` and a column of ones, whose weighted sum is that of the weights."""
    return F.pad(_precise(value), (0, 1), value=1.0)


def _precise(x: Tensor) -> Tensor:
    """As float32 at least: sums over a whole sequence need its precision."""
    return x if x.dtype == torch.float64 else x.float()


def _divided(sums: Tensor) -> Tensor:
    """Weighted sums of values, divided by the sum of weights after them; 0 without any key."""
    total = sums[..., -1:]
    return sums[..., :-1] / total.masked_fill(total == 0, 1.0)


def _blocks(x: Tensor | None) -> Iterable[Tensor | None]:
    """Cut `(batch, n_heads, length, width)` into blocks of positions; None repeats None.

    Slices are avoided: the gradient of each would be as long as the sequence.
    """
    return itertools.repeat(None) if x is None else torch.split(x, BLOCK, dim=2)


def _part(features: Features, start: int, end: int) -> Features:
    values, scale = features
    return Features(values[:, :, start:end], None if scale is None else scale[:, :, start:end])
