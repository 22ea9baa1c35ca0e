"""Which of a model's layers a deeper or a shallower one begins with.

Not here: what else a run takes over from a model (`finetune.py`), nor the training that follows.
Source: Shleifer and Rush 2020, "Pre-trained Summarization Distillation": shrink and fine-tune.
"""

from collections.abc import Mapping
from typing import TypeVar

from heed.model.config import ModelConfig

T = TypeVar("T")


def spread(n_layers: int, n_wanted: int) -> list[int]:
    """The layer that each of `n_wanted` begins as: the first and the last, and evenly between.

    A single one begins as the first. Of more than there are, some come twice in a row.
    """
    gap = (n_layers - 1) / max(1, n_wanted - 1)
    return [round(number * gap) for number in range(n_wanted)]


def with_depth(weights: Mapping[str, T], old: ModelConfig, new: ModelConfig) -> dict[str, T]:
    """The weights with which a model begins that differs from another in depth alone.

    Args:
        weights: those of the `old` one, by name (see `heed/model/plan.py`).
        old: its shape.
        new: the shape wanted.

    Returns:
        The weights by their names in the `new` one; a layer that comes twice is the same objects.
    """
    layers = {
        "encoder": spread(old.n_encoder_layers, new.n_encoder_layers),
        "decoder": spread(old.n_decoder_layers, new.n_decoder_layers),
    }
    found = {}
    for name, value in weights.items():
        stack, _, rest = name.partition(".")
        if stack not in layers:
            found[name] = value
            continue
        number, _, rest = rest.partition(".")
        for place, layer in enumerate(layers[stack]):
            if layer == int(number):
                found[f"{stack}.{place}.{rest}"] = value
    return found
