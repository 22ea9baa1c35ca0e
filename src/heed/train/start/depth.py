"""Choice of a model's layers for a deeper or shallower model to start with.

Source: Shleifer and Rush 2020, "Pre-trained Summarization Distillation": shrink and fine-tune.
"""

import re
from collections import Counter
from collections.abc import Mapping
from typing import TypeVar

from heed.errors import ConfigError
from heed.model.config import AnyConfig
from heed.model.families import plan

T = TypeVar("T")

_LAYER = re.compile(r"(?P<stack>\w+)\.(?P<number>\d+)\.")


def spread(n_layers: int, n_wanted: int) -> list[int]:
    """The old layer for each of `n_wanted` new ones: the first, the last, and evenly spaced ones.

    A single layer is the first. If there are too few, some are repeated.
    """
    gap = (n_layers - 1) / max(1, n_wanted - 1)
    return [round(number * gap) for number in range(n_wanted)]


def with_depth(weights: Mapping[str, T], old: AnyConfig, new: AnyConfig) -> dict[str, T]:
    """The initial weights of a model that differs from another in depth only.

    Args:
        weights: those of the `old` one, by the names of its plan.
        old: its shape.
        new: the shape wanted.

    Returns:
        The weights by their names in the `new` model; repeated layers share the same objects.

    Raises:
        ConfigError: the weights of a layer do not fit where they would be repeated.
    """
    before, after = depths(old), depths(new)
    layers = {stack: spread(before[stack], after.get(stack, 0)) for stack in before}
    origins = {}
    for name in weights:
        match = _LAYER.match(name)
        if match is None:
            origins[name] = name
            continue
        for place, layer in enumerate(layers[match["stack"]]):
            if layer == int(match["number"]):
                origins[f"{match['stack']}.{place}.{name[match.end() :]}"] = name
    _require_fit(origins, old, new)
    return {name: weights[origin] for name, origin in origins.items()}


def _require_fit(origins: Mapping[str, str], old: AnyConfig, new: AnyConfig) -> None:
    """Compare the shapes of weights with those of their origins; vocabularies may have grown."""
    shapes = {weight.name: weight.shape for weight in plan(old)}
    for weight in plan(new):
        if weight.role in ("table", "output") or weight.name not in origins:
            continue
        if shapes[origins[weight.name]] != weight.shape:
            raise ConfigError(
                f"with --from, {new.family} must keep the parent's numbers of layers, because "
                f"they determine the shape of {weight.name}. Leave them out."
            )


def depths(config: AnyConfig) -> dict[str, int]:
    """The number of layers of each stack, from the names of its weights: `encoder.0.….weight`."""
    matches = (_LAYER.match(weight.name) for weight in plan(config))
    layers = {(match["stack"], match["number"]) for match in matches if match}
    return Counter(stack for stack, _ in layers)
