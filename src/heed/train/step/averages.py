"""Copy weights by name into a model, for good or for a while; tensors to arrays and back."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from heed.train.parallel.shard import fill


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
def average(averaged: Mapping[str, Tensor], model: nn.Module, step: int, decay: float) -> None:
    """Move an exponential average towards the weights after `step`; a young one moves faster."""
    if averaged:
        parameters = dict(model.named_parameters())
        torch._foreach_lerp_(  # one call for all tensors; no public spelling exists
            list(averaged.values()),
            [parameters[name] for name in averaged],
            1 - min(decay, step / (step + 9)),
        )


@torch.no_grad()
def copy_into(model: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Give the model these weights, by name; those not named stay."""
    parameters = dict(model.named_parameters())
    for name, value in weights.items():
        fill(parameters[name], value)


def to_arrays(tensors: Mapping[str, Tensor]) -> dict[str, NDArray[Any]]:
    """The same numbers for NumPy, in the same memory where that is the CPU's."""
    return {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}


def to_tensors(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Tensor]:
    """Copies of the same numbers for torch, which has no tensors that must not be written into."""
    return {name: torch.tensor(array) for name, array in arrays.items()}
