"""The names of the models, and the directions that each one translates."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from heed.bundle.bundle import read_folder_config
from heed.bundle.find import find_model_folder
from heed.errors import ConfigError
from heed.serve.languages import resolve, resolve_pair
from heed.serve.refusal import Refusal
from heed.serve.request import Direction
from heed.text.languages import as_directions, known_directions
from heed.translate.load import OTHER_TASKS


@dataclass(frozen=True, kw_only=True)
class Route:
    """A direction with its model.

    Attributes:
        source: language code.
        target: language code.
        model: name of the model.
    """

    source: str
    target: str
    model: str


def read_routes(names: Sequence[str]) -> tuple[dict[str, Path], list[Route]]:
    """A short name for each folder, and the directions of its model.

    Args:
        names: folders of models or runs.

    Raises:
        FormatError: a folder holds no model, or its description is damaged.
        ConfigError: a model is not a translator, or does not state its languages.
    """
    folders: dict[str, Path] = {}
    routes: list[Route] = []
    for name in names:
        config = read_folder_config(find_model_folder(name))
        label = _label(Path(name), folders)
        folders[label] = Path(name)
        routes += _routes(config, label, name)
    return folders, routes


def _label(path: Path, taken: Container[str]) -> str:
    """A short, unique name of a model."""
    name = path.resolve().name
    return next(
        label for n in count(1) if (label := name if n == 1 else f"{name}-{n}") not in taken
    )


def _routes(config: Mapping[str, Any], label: str, name: str) -> list[Route]:
    task = config.get("task", "translate")
    if task != "translate":
        raise ConfigError(f"{name} {OTHER_TASKS[task]} heed serve takes translators only.")
    targets = tuple(config.get("target_langs", ()))
    languages = config["source_lang"], config["target_lang"], targets
    directions = known_directions(*languages, as_directions(config.get("directions", [])) or ())
    if not directions:
        in_copy = (
            "Name them in a copy: heed quantize MODEL --out COPY --source-lang en --target-lang de"
        )
        again = "Train it again from files whose names end in their languages, such as train.de."
        raise ConfigError(
            f"{name} does not say which languages it translates, so requests cannot name them. "
            f"{again if targets else in_copy}"
        )
    return [Route(source=source, target=target, model=label) for source, target in directions]


def find_route(routes: Sequence[Route], direction: Direction) -> Route:
    """The first model for a direction, or the requested one.

    Args:
        routes: the served directions.
        direction: direction of a request; its source is a language code.

    Raises:
        Refusal: there is no such model, language or direction; lists the known ones.
    """
    if direction.model is not None:
        routes = [route for route in routes if route.model == direction.model]
        if not routes:
            raise no_model(direction.model)
    served = [(route.source, route.target) for route in routes]
    found = resolve_pair(direction.source, direction.target, served)
    if found is None:
        sources = [source for source, _ in served]
        source = resolve(direction.source, sources)
        if source is None:
            raise no_such("source", direction.source, sources)
        raise no_such("target", direction.target, [into for each, into in served if each == source])
    return routes[served.index(found)]


def no_model(model: str | None) -> Refusal:
    """The refusal for a model that is not served, or lacks the direction."""
    return Refusal(400, f"There is no model {model!r} here.", code="no_such_model", field="model")


def no_models() -> Refusal:
    """The refusal for a request that needs a model, on a server that only shows training runs."""
    return Refusal(404, "This server has no models.", code="no_models")


def no_such(field: str, code: str, served: Sequence[str]) -> Refusal:
    """The refusal for an unknown language.

    Args:
        field: `source` or `target`.
        code: code in the request.
        served: the served codes.
    """
    return Refusal(
        400,
        f"{field} must be one of {', '.join(dict.fromkeys(served))}, but is {code!r}.",
        code="no_such_language",
        field=field,
    )
