"""Weights by name: copied into a model, averaged over steps, and as NumPy arrays."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from heed.train.parallel.shard import fill


@contextmanager
def using_weights(model: nn.Module, weights: Mapping[str, Tensor]) -> Iterator[None]:
    """Use `weights` in the model inside the block; an empty mapping changes nothing."""
    own = {name: p.detach().clone() for name, p in model.named_parameters() if name in weights}
    try:
        copy_into(model, weights)
        yield
    finally:
        copy_into(model, own)


@torch.no_grad()
def average(averaged: Mapping[str, Tensor], model: nn.Module, step: int, decay: float) -> None:
    """Update an exponential average of the weights after `step`; faster at the beginning."""
    if averaged:
        parameters = dict(model.named_parameters())
        torch._foreach_lerp_(  # one call for all tensors; torch has no public function for it
            list(averaged.values()),
            [parameters[name] for name in averaged],
            1 - min(decay, step / (step + 9)),
        )


@torch.no_grad()
def copy_into(model: nn.Module, weights: Mapping[str, Tensor]) -> None:
    """Copy weights by name into the model; others stay."""
    parameters = dict(model.named_parameters())
    for name, value in weights.items():
        fill(parameters[name], value)


def to_arrays(tensors: Mapping[str, Tensor]) -> dict[str, NDArray[Any]]:
    """Tensors as NumPy arrays, sharing memory if on the CPU."""
    return {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}


def to_tensors(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Tensor]:
    """Arrays copied to tensors, because torch has no read-only tensors."""
    return {name: torch.tensor(array) for name, array in arrays.items()}
