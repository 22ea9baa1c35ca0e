"""The output layer and its softmax with AMX: `engine/output_layer.cpp` for tensors of torch."""

import ctypes
from ctypes import c_char_p, c_int32, c_void_p
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor

from heed.engine.library import LIBRARY
from heed.errors import HeedError
from heed.machine.cpu import has_bfloat16_tiles
from heed.model.fast.products import SMALLEST, is_rounding

MULTIPLE = 32
"""The width must be one of these: the inputs of a tile."""


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


def fit(states: Tensor, weight: Tensor) -> bool:
    """Whether `probabilities` can compute these, and may round their factors here."""
    return (
        is_rounding()
        and states.device.type == "cpu"
        and states.dtype == weight.dtype == torch.float32
        and states.size(0) >= SMALLEST
        and states.size(1) % MULTIPLE == 0
        and has_bfloat16_tiles()
        and _function() is not None
    )


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
    error = _function()(
        *(each.data_ptr() for each in (states, weight, targets)),
        *(len(states), *weight.shape, torch.get_num_threads()),
        *(each.data_ptr() for each in found),
    )
    if error:
        raise HeedError(f"engine: {error.decode(errors='replace')}.")
    return found


@cache
def _function() -> Any:
    """The function of the library; None where it is not compiled or older."""
    try:
        function = ctypes.CDLL(str(LIBRARY)).heed_output_layer
    except (OSError, AttributeError):
        return None
    function.restype = c_char_p
    function.argtypes = [*[c_void_p] * 3, *[c_int32] * 4, *[c_void_p] * 4]
    return function
