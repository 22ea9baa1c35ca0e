"""Files of translated pairs, each for one direction, which guide the served models."""

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass

from heed.errors import ConfigError, DataError
from heed.serve.work.directions import Route

SETTING = "memory.files"
_SPELLED = re.compile(r"([A-Za-z0-9-]+):([A-Za-z0-9-]+)=(.+)", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class PairFile:
    """A file of pairs for a model.

    Attributes:
        path: of a `.tsv`, `.csv` or `.tmx`, also compressed.
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
            DataError: there is no such file.
        """
        found = self._stat()
        return repr((self, found.st_ino, found.st_size, found.st_mtime_ns))

    @property
    def size_bytes(self) -> int:
        """Its size; raises as `state` does."""
        return self._stat().st_size

    def _stat(self) -> os.stat_result:
        try:
            return os.stat(self.path)
        except OSError as error:
            raise DataError(f"{self.path} cannot be read: {error.strerror or error}.") from None


def pair_files(spelled: Sequence[str], routes: Sequence[Route]) -> dict[str, list[PairFile]]:
    """The files of each model that has any.

    Args:
        spelled: `FILE`, or `SOURCE:TARGET=FILE` for one of several directions.
        routes: the served directions; every model of a file's direction gets it.

    Raises:
        ConfigError: a direction is not served, or it is needed and missing.
    """
    found: dict[str, list[PairFile]] = {}
    for each in spelled:
        source, target, path = _read(each, routes)
        file = PairFile(path=path, source=source, target=target)
        for route in routes:
            if (route.source, route.target) == (source, target):
                found.setdefault(route.model, []).append(file)
    return found


def _read(spelled: str, routes: Sequence[Route]) -> tuple[str, str, str]:
    """Source, target and path of a file."""
    directions = list(dict.fromkeys((route.source, route.target) for route in routes))
    match = _SPELLED.fullmatch(spelled)
    if match is None and len(directions) == 1:
        return *directions[0], spelled
    served = ", ".join(f"{source}:{target}" for source, target in directions)
    if match is None:
        source, target = directions[0]
        raise ConfigError(
            f"{SETTING}: {spelled} must name its direction, because several are served ({served}): "
            f"{source}:{target}={spelled}."
        )
    if match.groups()[:2] not in directions:
        raise ConfigError(
            f"{SETTING}: the direction of {spelled} must be served, but only {served} "
            f"{'is' if len(directions) == 1 else 'are'}."
        )
    return match[1], match[2], match[3]
