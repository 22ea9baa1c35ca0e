"""Remove the least important heads and features of a model: a smaller model of the same family.

Every attention sublayer loses the same number of heads, and every feed-forward the same number of
features, so that the config stays a plain one. Each sublayer keeps its most important units.

Source: Michel et al. 2019, "Are Sixteen Heads Really Better than One?", section 4.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from heed.bundle.bundle import Bundle
from heed.compress.importance import Scores, Sublayer, by_reader, gated, sublayers
from heed.data.batch import Batch
from heed.errors import ConfigError
from heed.model.config import AnyConfig
from heed.model.decodable import TorchDecodable
from heed.model.families import plan, stored_shapes, with_all_names
from heed.model.network import TorchNetwork

TOLERANCE = 1e-3
"""Largest difference of a state between the pruned model and the whole one with the same units
switched off, relative to the largest number of a state: both are computed in float32."""

Units = NDArray[np.int64]


def prunable(config: AnyConfig, what: str) -> list[Sublayer]:
    """The sublayers whose units can be removed.

    Args:
        config: the model's shape.
        what: `heads`, `features` or `both`.

    Raises:
        ConfigError: the model has none, or its heads cannot be removed.
    """
    found = sublayers(config)
    if not any(each.kind == "heads" for each in found):
        raise ConfigError(
            "heed prune is for models with attention heads, of the families transformer, conv, "
            f"decoder and encoder, but this one is: {config.summary()}."
        )
    chosen = [each for each in found if what in (each.kind, "both")]
    if not chosen:
        raise ConfigError(f"this model has no feed-forward features: {config.summary()}.")
    if what != "features" and not config.to_dict()["output_projection"]:
        raise ConfigError(
            "heads can be removed only where an output projection mixes them, but this model is: "
            f"{config.summary()}. Prune its features: --what features."
        )
    return chosen


def require_effect(chosen: Sequence[Sublayer], share: float) -> None:
    """Refuse a share that leaves every unit in its place.

    Raises:
        ConfigError: nothing would be removed.
    """
    if all(_n_kept(share, each.n_units) == each.n_units for each in chosen):
        raise _unchanged()


def most_important(scores: Mapping[str, Scores], share: float) -> dict[str, Units]:
    """The units that each sublayer keeps: a share of them, at least one, in ascending order."""
    kept = {}
    for name, values in scores.items():
        n_kept = _n_kept(share, len(values))
        # Of equally important units, the first ones stay.
        kept[name] = np.sort(np.argsort(-values, kind="stable")[:n_kept])
    return kept


def pruned(bundle: Bundle, kept: Mapping[str, Units]) -> Bundle:
    """The model reduced to the kept units.

    Args:
        bundle: a model with float32 weights.
        kept: for the name of each sublayer, the units to keep, in ascending order; the same number
            in each sublayer of a kind.

    Raises:
        ConfigError: nothing would be removed, or a weight other than the projections has heads.
    """
    config = _pruned_config(bundle.config, kept)
    if config == bundle.config:
        raise _unchanged()
    of_units = {each.name: each for each in sublayers(bundle.config)}
    weights = {}
    for weight in plan(bundle.config):
        if weight.tied_to is None:
            array = bundle.weights[weight.name]
            sublayer, _, matrix = weight.name.rpartition(".")[0].rpartition(".")
            if sublayer in kept:
                units, n_units = kept[sublayer], of_units[sublayer].n_units
                if matrix in ("project_in", "expand"):
                    n_rows = [block.n_rows for block in weight.blocks]
                    array = array[_numbers(units, n_units, n_rows)]
                elif weight.role == "matrix":
                    array = array[:, _numbers(units, n_units, [weight.shape[1]])]
            weights[weight.name] = array
    if {name: array.shape for name, array in weights.items()} != stored_shapes(config):
        raise _inseparable(bundle.config)
    weights = with_all_names(weights, config)
    # The heads are renumbered, so the alignment heads are unknown.
    return replace(bundle, config=config, weights=weights, path=None, alignment_heads=None)


@torch.no_grad()
def require_same_as_gated(
    bundle: Bundle, smaller: Bundle, kept: Mapping[str, Units], batch: Batch
) -> None:
    """Check that the smaller model equals the whole one with its other units switched off.

    Raises:
        ConfigError: they differ, because a head's output depends on the number of heads.
    """
    chosen = [each for each in sublayers(bundle.config) if each.name in kept]
    gates = []
    for each in chosen:
        gate = torch.zeros(1, each.n_units)
        gate[0, torch.from_numpy(kept[each.name])] = 1.0
        gates.append(gate)
    whole, small = opened(bundle), opened(smaller)
    with gated(whole, by_reader(chosen, gates)):
        expected = whole(batch.src, batch.tgt_in, batch.src_mask)
    found = small(batch.src, batch.tgt_in, batch.src_mask)
    if (found - expected).abs().max() > TOLERANCE * expected.abs().max():
        raise _inseparable(bundle.config)


def opened(bundle: Bundle) -> TorchNetwork:
    """The model of a bundle in evaluation mode; its weights get no gradients."""
    where, numbers = torch.device("cpu"), torch.float32
    model = TorchDecodable.of(bundle.config, bundle.weights, device=where, dtype=numbers)
    return model.network.requires_grad_(False)


def _n_kept(share: float, n_units: int) -> int:
    return max(1, round(share * n_units))


def _unchanged() -> ConfigError:
    return ConfigError("--keep leaves every head and feature in its place. Lower it.")


def _pruned_config(config: AnyConfig, kept: Mapping[str, Units]) -> AnyConfig:
    changes: dict[str, Any] = {}
    shape: Any = config
    for each in sublayers(config):
        if each.name in kept and len(kept[each.name]) < each.n_units:
            n_kept = len(kept[each.name])
            if each.kind == "features":
                changes |= {"d_ff": n_kept}
            else:
                changes |= {"n_heads": n_kept, "d_k": shape.key_width, "d_v": shape.value_width}
    return replace(shape, **changes)  # type: ignore[no-any-return]


def _numbers(units: Units, n_units: int, lengths: list[int]) -> Units:
    """The indices of units along an axis that consists of blocks, each with all units."""
    places, start = [], 0
    for length in lengths:
        width = length // n_units
        places.append((start + units[:, None] * width + np.arange(width)).ravel())
        start += length
    return np.concatenate(places)


def _inseparable(config: AnyConfig) -> ConfigError:
    return ConfigError(
        f"heads cannot be removed from this model, because what each computes depends on all of "
        f"them: {config.summary()}. Prune its features: --what features."
    )
