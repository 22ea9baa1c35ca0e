"""Weights given or lent to a model by name; tensors as the arrays that files hold, and back.

Not here: where they come from; a checkpoint (`checkpoint.py`) or an average (`loop.py`).
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn


@contextmanager
def using_weights(model: nn.Module, weights: Mapping[str, Tensor]) -> Iterator[None]:
    """Lend `weights` to the model inside the block; an empty mapping leaves it as it is."""
    own = {name: p.detach().clone() for name, p in model.named_parameters() if name in weights}
    try:
        copy_into(model, weights)
        yield
    finally:
        copy_into(model, own)


@torch.no_grad()
def copy_into(model: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Give the model these weights, by name; those not named stay."""
    parameters = dict(model.named_parameters())
    for name, value in weights.items():
        parameters[name].copy_(value)


def to_arrays(tensors: Mapping[str, Tensor]) -> dict[str, NDArray[Any]]:
    """The same numbers for NumPy, in the same memory where that is the CPU's."""
    return {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}


def to_tensors(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Tensor]:
    """Copies of the same numbers for torch, which has no tensors that must not be written into."""
    return {name: torch.tensor(array) for name, array in arrays.items()}
