"""Weights given or lent to a model by name.

Not here: where they come from, such as a checkpoint (`checkpoint.py`).
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from heed.train.shard import fill


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
