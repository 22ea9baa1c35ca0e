"""The settings of several runs, for comparison."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from heed.config import read_toml
from heed.errors import ConfigError
from heed.explain.training.values import MAX_CHARS
from heed.train.recipe.files import RECIPE_FILE


def read_settings(run: Path) -> dict[str, Any]:
    """The settings of a run by their dotted names; empty if it has no readable recipe."""
    path = run / RECIPE_FILE
    if path.is_symlink() or not path.is_file():
        return {}
    try:
        return dict(sorted(_flat(read_toml(path)).items()))
    except ConfigError:
        return {}


def differing(settings: Sequence[Mapping[str, Any]]) -> dict[str, list[Any]]:
    """The settings that differ between runs, each with its value in every run; None = missing."""
    names = sorted({name for each in settings for name in each})
    values = {name: [each.get(name) for each in settings] for name in names}
    return {name: each for name, each in values.items() if any(v != each[0] for v in each)}


def _flat(values: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, Mapping):
            flat.update(_flat(value, f"{prefix}{key}."))
        else:
            flat[f"{prefix}{key}"] = _plain(value)
    return flat


def _plain(value: Any) -> bool | int | float | str:
    """A value that JSON supports."""
    is_number = isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
    return value if is_number else str(value)[:MAX_CHARS]
