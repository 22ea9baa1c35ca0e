"""Files that guide the served models: translated pairs, and terms; each file for one direction."""

import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass

from heed.errors import ConfigError, DataError
from heed.serve.work.directions import Route

MEMORY = "memory.files"
GLOSSARY = "glossary.files"
_SPELLED = re.compile(r"([A-Za-z0-9-]+):([A-Za-z0-9-]+)=(.+)", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class GuideFile:
    """A file of pairs or terms for a model.

    Attributes:
        path: of pairs a `.tsv`, `.csv` or `.tmx`, also compressed; of terms a glossary file.
        source: language code of the sources.
        target: language code of the translations.
    """

    path: str
    source: str
    target: str

    @property
    def state(self) -> str:
        """A text that differs after every change of the file.

        Raises:
            DataError: there is no such file, or it is not a regular one.
        """
        found = self._stat()
        return repr((self, found.st_ino, found.st_size, found.st_mtime_ns))

    @property
    def size_bytes(self) -> int:
        """Its size; raises as `state` does."""
        return self._stat().st_size

    def _stat(self) -> os.stat_result:
        try:
            found = os.stat(self.path)
        except OSError as error:
            raise DataError(f"{self.path} cannot be read: {error.strerror or error}.") from None
        if not stat.S_ISREG(found.st_mode):  # reading a pipe would never end
            raise DataError(f"{self.path} cannot be read: it is not a regular file.")
        return found


@dataclass(frozen=True, kw_only=True)
class Guides:
    """The files that guide a model.

    Attributes:
        memory: translated pairs to follow.
        glossaries: terms; of several files of a direction, the first one with a term counts.
    """

    memory: tuple[GuideFile, ...] = ()
    glossaries: tuple[GuideFile, ...] = ()

    @property
    def state(self) -> str:
        """A text that differs after every change of a file; "" = there are no files.

        Raises:
            DataError: a file does not exist, or is not a regular one.
        """
        memory = "".join(file.state for file in self.memory)
        terms = "".join(file.state for file in self.glossaries)
        return f"{memory}\n{terms}" if terms else memory

    @property
    def size_bytes(self) -> int:
        """The size of all files; raises as `state` does."""
        return sum(file.size_bytes for file in (*self.memory, *self.glossaries))


NO_GUIDES = Guides()


def read_guides(
    routes: Sequence[Route], *, memory: Sequence[str] = (), glossaries: Sequence[str] = ()
) -> dict[str, Guides]:
    """The files of each model.

    Args:
        routes: the served directions; every model of a file's direction gets it.
        memory: files of pairs: `FILE`, or `SOURCE:TARGET=FILE` for one of several directions.
        glossaries: files of terms, in the same form.

    Raises:
        ConfigError: a direction is not served, or it is needed and missing.
    """
    pairs, terms = _by_model(memory, routes, MEMORY), _by_model(glossaries, routes, GLOSSARY)
    return {
        route.model: Guides(
            memory=tuple(pairs.get(route.model, ())), glossaries=tuple(terms.get(route.model, ()))
        )
        for route in routes
    }


def _by_model(
    spelled: Sequence[str], routes: Sequence[Route], setting: str
) -> dict[str, list[GuideFile]]:
    """The files of a setting, by the models that they are for."""
    found: dict[str, list[GuideFile]] = {}
    for each in spelled:
        source, target, path = _read(each, routes, setting)
        file = GuideFile(path=path, source=source, target=target)
        for route in routes:
            if (route.source, route.target) == (source, target):
                found.setdefault(route.model, []).append(file)
    return found


def _read(spelled: str, routes: Sequence[Route], setting: str) -> tuple[str, str, str]:
    """Source, target and path of a file."""
    directions = list(dict.fromkeys((route.source, route.target) for route in routes))
    if not directions:
        raise ConfigError(f"{setting}: {spelled} is for a model, but no model is served.")
    match = _SPELLED.fullmatch(spelled)
    if match is None and len(directions) == 1:
        return *directions[0], spelled
    served = ", ".join(f"{source}:{target}" for source, target in directions)
    if match is None:
        source, target = directions[0]
        raise ConfigError(
            f"{setting}: {spelled} must name its direction, because several are served ({served}): "
            f"{source}:{target}={spelled}."
        )
    if match.groups()[:2] not in directions:
        raise ConfigError(
            f"{setting}: the direction of {spelled} must be served, but only {served} "
            f"{'is' if len(directions) == 1 else 'are'}."
        )
    return match[1], match[2], match[3]
