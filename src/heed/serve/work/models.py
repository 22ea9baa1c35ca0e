"""`Models`: the models that are served, by the languages that they read and write."""

import threading
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from heed.bundle.bundle import read_config
from heed.bundle.find import CONFIG, find_model_folder
from heed.disk.files import read_bytes
from heed.errors import ConfigError
from heed.text.languages import source_languages
from heed.translate.load import OTHER_TASKS
from heed.translate.translator import Translator, load

MAX_CONFIG_BYTES = 1 << 20
"""Far more than the configuration of any model takes."""


@dataclass(frozen=True, kw_only=True)
class Route:
    """A direction that can be translated.

    Attributes:
        source: language code.
        target: language code.
        model: the name of the model that does it.
    """

    source: str
    target: str
    model: str


class Models:
    """Opens each model when it is first used.

    Args:
        folders: name → folder of each.
        directions: name → the directions that a model translates.
    """

    def __init__(self, folders: dict[str, Path], routes: Sequence[Route]) -> None:
        self._folders = folders
        self._open: dict[str, Translator] = {}
        self._lock = threading.Lock()
        self.routes = tuple(routes)

    def open(self, name: str) -> Translator:
        """The translator of this name; reads it from disk the first time."""
        with self._lock:
            if name not in self._open:
                self._open[name] = load(self._folders[name], threads=1)
            return self._open[name]


def read_models(names: Sequence[str]) -> Models:
    """The models of these folders, none of them opened yet.

    Args:
        names: folders of models or runs.

    Raises:
        FormatError: a folder holds no model, or its description is damaged.
        ConfigError: a model is not a translator, or does not say its languages.
    """
    folders: dict[str, Path] = {}
    routes: list[Route] = []
    for name in names:
        folder = find_model_folder(name)
        config = read_config(read_bytes(folder / CONFIG, max_bytes=MAX_CONFIG_BYTES), folder)
        label = _label(Path(name), folders)
        folders[label] = Path(name)
        routes += _routes(config, label, name)
    return Models(folders, routes)


def _label(path: Path, taken: Container[str]) -> str:
    """A short name of a model that no other has."""
    name = path.resolve().name
    return next(
        label for n in count(1) if (label := name if n == 1 else f"{name}-{n}") not in taken
    )


def _routes(config: Mapping[str, Any], label: str, name: str) -> list[Route]:
    task = config.get("task", "translate")
    if task != "translate":
        raise ConfigError(f"{name} {OTHER_TASKS[task]} heed serve takes translators only.")
    targets = tuple(config.get("target_langs", ())) or (config["target_lang"],)
    sources = source_languages(config["source_lang"], targets)
    if not sources or not all(targets):
        raise ConfigError(
            f"{name} does not say which languages it translates, so requests cannot name them. "
            f'Write "source_lang" and "target_lang" into its config.json with heed quantize, or '
            "train with --source-lang and --target-lang."
        )
    return [
        Route(source=source, target=target, model=label)
        for source in sources
        for target in targets
        if source != target
    ]
