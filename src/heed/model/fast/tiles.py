"""Products with AMX for training, on tensors of torch.

`engine/linear.cpp` and `engine/output_layer.cpp` compute them. The factors are float32 and become
tiles of bfloat16 as they are multiplied; sums and results are float32. oneDNN does the same, but it
converts every factor by itself, and its code is compiled for every shape. Only for processors with
AMX (`machine.cpu.has_bfloat16_tiles`).
"""

from ctypes import c_int32, c_void_p
from typing import Any, NamedTuple

import torch
from torch import Tensor

from heed.machine.compiled import check, function
from heed.machine.cpu import has_bfloat16_tiles

MULTIPLE = 32
"""Widths must be multiples: the inputs of a tile."""
LEAST_TOKENS = 64
"""Fewer gain nothing."""

_FORWARD = "heed_linear_forward", (*[c_void_p] * 3, *[c_int32] * 5, c_void_p)
_BACKWARD = "heed_linear_backward", (*[c_void_p] * 4, *[c_int32] * 4, *[c_void_p] * 3)
_OUTPUT_LAYER = "heed_output_layer", (*[c_void_p] * 3, *[c_int32] * 4, *[c_void_p] * 4)


class Probabilities(NamedTuple):
    """What the softmax P of the logits L = S W^T gives, all that is needed of it.

    Attributes:
        totals: log Σ e^L of each token, `(n_tokens,)`.
        true: the logit of each token's target, `(n_tokens,)`.
        of_states: P W, `(n_tokens, d_model)`.
        of_weight: P^T S, `(vocab_size, d_model)`.
    """

    totals: Tensor
    true: Tensor
    of_states: Tensor
    of_weight: Tensor


def fit(x: Tensor, weight: Tensor) -> bool:
    """Whether the functions here can compute with these: x W^T or its gradients.

    Args:
        x: `(n, n_in)`.
        weight: `(n_out, n_in)`.
    """
    return (
        x.device.type == "cpu"
        and x.dtype == weight.dtype == torch.float32
        and x.size(0) >= LEAST_TOKENS
        and x.size(1) % MULTIPLE == 0
        and has_bfloat16_tiles()
        and function(*_OUTPUT_LAYER) is not None
    )


def fit_linear(x: Tensor, weight: Tensor) -> bool:
    """Whether `linear` and `linear_gradients` can compute with these; see `fit`."""
    return weight.size(0) % MULTIPLE == 0 and fit(x, weight)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None, *, clamps: bool = False) -> Tensor:
    """x W^T + b, or max(0, x W^T + b).

    Args:
        x: `(n, n_in)`.
        weight: `(n_out, n_in)`.
        bias: `(n_out,)`.
        clamps: whether negative results become 0.

    Returns:
        `(n, n_out)`.
    """
    x, weight = x.contiguous(), weight.contiguous()
    bias = None if bias is None else bias.contiguous()
    y = x.new_empty(len(x), len(weight))
    sizes = len(x), *weight.shape, clamps, torch.get_num_threads()
    _call(_FORWARD, (x, weight, bias), sizes, (y,))
    return y


def linear_gradients(
    x: Tensor,
    weight: Tensor,
    grad: Tensor,
    *,
    clamped: Tensor | None = None,
    needs: tuple[bool, bool, bool],
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Gradients of `linear`.

    Args:
        x: `(n, n_in)`.
        weight: `(n_out, n_in)`.
        grad: the gradient by the result, `(n, n_out)`.
        clamped: the result, `(n, n_out)`, if negative ones became 0.
        needs: whether those by `x`, `weight` and the bias are wanted.

    Returns:
        That by `x`, `(n, n_in)`, by `weight`, `(n_out, n_in)`, and by the bias, `(n_out,)`; None
        where it is not wanted.
    """
    x, weight, grad = x.contiguous(), weight.contiguous(), grad.contiguous()
    shapes = x.shape, weight.shape, weight.shape[:1]
    of_x, of_weight, of_bias = (
        x.new_empty(shape) if is_needed else None
        for shape, is_needed in zip(shapes, needs, strict=True)
    )
    sizes = len(x), *weight.shape, torch.get_num_threads()
    _call(_BACKWARD, (x, weight, clamped, grad), sizes, (of_x, of_weight, of_bias))
    return of_x, of_weight, of_bias


def probabilities(states: Tensor, weight: Tensor, targets: Tensor) -> Probabilities:
    """Products with the softmax of the logits, whose factors are rounded to bfloat16.

    Args:
        states: decoder states, `(n_tokens, d_model)`.
        weight: the output matrix, `(vocab_size, d_model)`.
        targets: the true next token, `(n_tokens,)`.

    Raises:
        HeedError: there is not enough memory, or a target is not in the vocabulary.
    """
    states, weight = states.detach().contiguous(), weight.detach().contiguous()
    targets = targets.to(torch.int64).contiguous()
    found = Probabilities(
        states.new_empty(len(states)),
        states.new_empty(len(states)),
        torch.empty_like(states),
        torch.empty_like(weight),
    )
    sizes = len(states), *weight.shape, torch.get_num_threads()
    _call(_OUTPUT_LAYER, (states, weight, targets), sizes, found)
    return found


def _call(
    name: tuple[str, tuple[Any, ...]],
    given: tuple[Tensor | None, ...],
    sizes: tuple[int, ...],
    found: tuple[Tensor | None, ...],
) -> None:
    addresses = [
        [None if each is None else each.data_ptr() for each in some] for some in (given, found)
    ]
    check(function(*name)(*addresses[0], *sizes, *addresses[1]))
