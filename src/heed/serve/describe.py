"""Descriptions of the served models, read from their folders, and of their languages."""

import asyncio
import math
from collections.abc import Sequence
from dataclasses import replace

from heed.bundle.bundle import read_folder_config
from heed.bundle.find import INT8, find_model_folder
from heed.disk.folders import CARD, read_manifest
from heed.errors import HeedError
from heed.model.families import config_from, stored_shapes
from heed.serve.languages import name_of
from heed.serve.request import Language, ModelInfo
from heed.serve.work.deadline import Deadline
from heed.serve.work.directions import Route
from heed.serve.work.models import Models
from heed.serve.work.speeds import Speeds
from heed.serve.work.versions import size_bytes, version_of

MAX_CARD_BYTES = 1 << 20
"""Longer cards are not shown."""


class Descriptions:
    """Reads the descriptions of models, once per version, without loading them.

    Args:
        models: the models.
        speeds: their speeds.
    """

    def __init__(self, models: Models, speeds: Speeds) -> None:
        self._models = models
        self._speeds = speeds
        self._known: dict[str, ModelInfo] = {}
        self._reading: asyncio.Future[list[ModelInfo]] | None = None

    async def read(self, timeout_s: float) -> list[ModelInfo]:
        """As `all`, in a thread. All callers share one, because their disk may not answer.

        Raises:
            Refusal: it takes too long (504).
        """
        if self._reading is None or self._reading.done():
            self._reading = asyncio.ensure_future(asyncio.to_thread(self.all))
        async with Deadline(timeout_s).enforced():
            return await asyncio.shield(self._reading)

    def all(self) -> list[ModelInfo]:
        """Descriptions of all models, except those whose folders could not be read before."""
        found = [self._now(name) for name in self._models.folders]
        return [each for each in found if each is not None]

    def _now(self, name: str) -> ModelInfo | None:
        known = self._known.get(name)
        try:
            version = version_of(self._models.folders[name])
            if known is None or known.version != version:
                known = self._known[name] = _read(self._models, name, version)
        except (HeedError, OSError):
            # The folder is gone, damaged or being written; the old description is still true of
            # the model in memory.
            if known is None:
                return None
        speed = self._speeds.of(name)
        return replace(known, is_loaded=self._models.is_open(name), tokens_per_s=speed)


def _read(models: Models, name: str, version: str) -> ModelInfo:
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
        is_loaded=False,
        tokens_per_s=None,
        card=card.read_text(encoding="utf-8", errors="replace") if is_shown else "",
        version=version,
    )


def languages_of(routes: Sequence[Route]) -> dict[str, Language]:
    """The languages of these directions by their codes, sources first."""
    targets: dict[str, dict[str, None]] = {}
    for route in routes:
        targets.setdefault(route.source, {})[route.target] = None
    for route in routes:
        targets.setdefault(route.target, {})
    return {
        code: Language(code=code, name=name_of(code), targets=tuple(into))
        for code, into in targets.items()
    }
