"""Products with factors in bfloat16 for training, on tensors of torch.

`engine/linear.inc` and `engine/output_layer.inc` compute them, with AMX or with AVX-512's
instruction for bfloat16. The factors are float32 and become tiles of bfloat16 during the product;
sums and results are float32. oneDNN does the same with AMX, but it converts every factor
separately, and it compiles code for every shape.
Only for some processors (`machine.cpu.has_compiled_bfloat16`).
"""

from ctypes import Structure, byref, c_char_p, c_int32, c_uint64, c_void_p
from typing import Any, NamedTuple

import torch
from torch import Tensor

from heed.machine.compiled import check, function
from heed.machine.cpu import has_compiled_bfloat16

MULTIPLE = 32
"""Widths must be multiples: the inputs of a tile."""
LEAST_TOKENS = 64
"""With fewer it is not faster."""


class _LinearLayer(Structure):
    _fields_ = (
        *((name, c_void_p) for name in ("x", "weight")),
        *((name, c_int32) for name in ("n", "n_out", "n_in", "n_threads")),
    )


class _OutputLayer(Structure):
    _fields_ = (
        *((name, c_void_p) for name in ("states", "weight", "targets")),
        ("seed", c_uint64),
        *((name, c_int32) for name in ("n", "n_columns", "width", "n_threads")),
    )


_FORWARD = "heed_linear_forward", (c_void_p, c_char_p, c_void_p, c_int32, c_void_p)
_BACKWARD = "heed_linear_backward", (c_void_p, c_char_p, *[c_void_p] * 5)
_OUTPUT = "heed_output_layer", (c_void_p, c_char_p, *[c_void_p] * 4)


class Probabilities(NamedTuple):
    """The results needed from P, the softmax of the logits L = S W^T.

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
        and has_compiled_bfloat16()
    )


def fit_linear(x: Tensor, weight: Tensor) -> bool:
    """Whether `linear` and `linear_gradients` can compute with these; see `fit`."""
    return weight.size(0) % MULTIPLE == 0 and fit(x, weight)


def linear(
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    *,
    clamps: bool = False,
    kernels: str = "",
) -> Tensor:
    """x W^T + b, or max(0, x W^T + b).

    Args:
        x: `(n, n_in)`.
        weight: `(n_out, n_in)`.
        bias: `(n_out,)`.
        clamps: whether negative results become 0.
        kernels: the instruction set, `amx` or `avx512`; "" = the best here.

    Returns:
        `(n, n_out)`.

    Raises:
        HeedError: there is not enough memory, or this processor lacks the instruction set.
    """
    x, weight = x.contiguous(), weight.contiguous()
    bias = None if bias is None else bias.contiguous()
    y = x.new_empty(len(x), len(weight))
    call = function(*_FORWARD)
    check(call(_layer(x, weight), kernels.encode(), _address(bias), clamps, y.data_ptr()))
    return y


def linear_gradients(
    x: Tensor,
    weight: Tensor,
    grad: Tensor,
    *,
    clamped: Tensor | None = None,
    needs: tuple[bool, bool, bool],
    kernels: str = "",
) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
    """Gradients of `linear`.

    Args:
        x: `(n, n_in)`.
        weight: `(n_out, n_in)`.
        grad: the gradient of the result, `(n, n_out)`.
        clamped: the result, `(n, n_out)`, if negative ones became 0.
        needs: whether the gradients of `x`, `weight` and the bias are wanted.
        kernels: see `linear`.

    Returns:
        The gradients of `x`, `(n, n_in)`, of `weight`, `(n_out, n_in)`, and of the bias,
        `(n_out,)`; None for those not wanted.
    """
    x, weight, grad = x.contiguous(), weight.contiguous(), grad.contiguous()
    shapes = x.shape, weight.shape, weight.shape[:1]
    of_x, of_weight, of_bias = (
        x.new_empty(shape) if is_needed else None
        for shape, is_needed in zip(shapes, needs, strict=True)
    )
    addresses = [_address(each) for each in (clamped, grad, of_x, of_weight, of_bias)]
    check(function(*_BACKWARD)(_layer(x, weight), kernels.encode(), *addresses))
    return of_x, of_weight, of_bias


def probabilities(
    states: Tensor, weight: Tensor, targets: Tensor, *, seed: int = 0, kernels: str = ""
) -> Probabilities:
    """Products with the softmax of the logits, whose factors are rounded to bfloat16.

    Args:
        states: decoder states, `(n_tokens, d_model)`.
        weight: the output matrix, `(vocab_size, d_model)`.
        targets: the true next token, `(n_tokens,)`.
        seed: chooses small probabilities that the gradients leave out; the others count more, so
            that the gradients are right on average; 0 = none.
        kernels: see `linear`.

    Raises:
        HeedError: there is not enough memory, a target is not in the vocabulary, or this processor
            lacks the instruction set.
    """
    states, weight = states.detach().contiguous(), weight.detach().contiguous()
    targets = targets.to(torch.int64).contiguous()
    found = Probabilities(
        states.new_empty(len(states)),
        states.new_empty(len(states)),
        torch.empty_like(states),
        torch.empty_like(weight),
    )
    given = [each.data_ptr() for each in (states, weight, targets)]
    layer = _OutputLayer(*given, seed, len(states), *weight.shape, torch.get_num_threads())
    addresses = [each.data_ptr() for each in found]
    check(function(*_OUTPUT)(byref(layer), kernels.encode(), *addresses))
    return found


def _layer(x: Tensor, weight: Tensor) -> Any:
    """The addresses and sizes of a layer for the library, which keeps none of them."""
    sizes = len(x), *weight.shape, torch.get_num_threads()
    return byref(_LinearLayer(x.data_ptr(), weight.data_ptr(), *sizes))


def _address(tensor: Tensor | None) -> int | None:
    return None if tensor is None else tensor.data_ptr()
