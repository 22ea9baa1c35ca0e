"""What the served models are: their cards, directions and sizes, read from their folders."""

import math

from heed.bundle.bundle import read_folder_config
from heed.bundle.find import INT8, find_model_folder
from heed.disk.folders import CARD, read_manifest
from heed.model.families import config_from, stored_shapes
from heed.serve.request import ModelInfo
from heed.serve.work.models import Models
from heed.serve.work.versions import size_bytes, version_of

MAX_CARD_BYTES = 1 << 20
"""Longer cards are not shown."""


def describe(models: Models) -> list[ModelInfo]:
    """Read what all models are; not the models themselves.

    Raises:
        FormatError: a folder holds no model any more.
    """
    return [_describe(models, name) for name in models.folders]


def _describe(models: Models, name: str) -> ModelInfo:
    folder = find_model_folder(models.folders[name])
    config = config_from(read_folder_config(folder)["model"])
    card = folder / CARD
    is_shown = card.is_file() and card.stat().st_size <= MAX_CARD_BYTES
    return ModelInfo(
        name=name,
        directions=tuple(
            (route.source, route.target) for route in models.routes if route.model == name
        ),
        parameters=sum(map(math.prod, stored_shapes(config).values())),
        size_bytes=size_bytes(folder),
        dtype="int8" if INT8 in read_manifest(folder).files else "float32",
        is_loaded=models.is_open(name),
        card=card.read_text(encoding="utf-8", errors="replace") if is_shown else "",
        version=version_of(folder),
    )
