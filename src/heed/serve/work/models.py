"""`Models`: the served models, loaded at their first use.

A model stays loaded while it is in use. With a memory limit, the least recently used one is
unloaded. `versions.py` loads models and notices changes of their folders.
"""

import asyncio
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from heed.errors import HeedError
from heed.serve.refusal import Refusal
from heed.serve.work.directions import Route, read_routes
from heed.serve.work.guides import NO_GUIDES, Guides, read_guides
from heed.serve.work.versions import Opened, open_version, spelled, version_of
from heed.translate.translator import Translator

CHECK_S = 1.0
"""Shortest time in seconds between two checks of a model's folder for a new version."""

log = logging.getLogger(__name__)


class Models:
    """The models of a server. All methods may be called from any thread.

    Args:
        folders: maps a name to a folder.
        routes: the directions; of several models for one direction, the first is preferred.
        memory_bytes: limit for all loaded models, exceeded only if more are in use at once;
            0 = no limit.
        guides: maps the name of a model to the files that guide it.
        clock: seconds, for tests.
    """

    def __init__(
        self,
        folders: Mapping[str, Path],
        routes: Sequence[Route],
        *,
        memory_bytes: int = 0,
        guides: Mapping[str, Guides] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.routes = tuple(routes)
        self.folders = dict(folders)
        self._memory_bytes = memory_bytes
        self._guides = dict(guides or {})
        self._clock = clock
        self._open: dict[str, Opened] = {}  # the most recently used one is last
        self._n_users: Counter[str] = Counter()
        self._opening: dict[str, Future[Opened]] = {}
        self._checked: dict[str, float] = {}
        self._refused: dict[str, str] = {}
        self._lock = threading.Lock()
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="heed-models")

    def open(self, name: str) -> Translator:
        """The translator of this name; it is loaded from disk the first time."""
        return self._opened(name).result().translator

    def use(self, name: str) -> "Use":
        """A block in which a model stays loaded; the first time, a thread loads it from disk.

        Raises:
            Refusal: on entering the block, if the model cannot be loaded (503).
        """
        return Use(self, name)

    def is_open(self, name: str) -> bool:
        """Whether a model is in memory."""
        return name in self._open

    def refresh(self) -> None:
        """Check the folders of loaded models now; changed models are loaded again."""
        for name in list(self._open):
            self._reader.submit(self._replace_if_changed, name)

    def close(self) -> None:
        """End the thread that loads models."""
        self._reader.shutdown(cancel_futures=True)

    def _begin_use(self, name: str) -> None:
        with self._lock:
            self._n_users[name] += 1

    def _end_use(self, name: str) -> None:
        with self._lock:
            self._n_users[name] -= 1
            self._make_room()

    async def _current(self, name: str) -> Opened:
        with self._lock:
            opened = self._used(name)
        if opened is not None:
            self._look_for_change(name)
            return opened
        opening = self._opened(name)
        try:
            # Shielded, because other requests may wait for the same model.
            opened = await asyncio.shield(asyncio.wrap_future(opening))
        except (HeedError, OSError, MemoryError) as error:
            raise Refusal(
                503, f"The model {name} cannot be read at the moment.", code="model_unavailable"
            ) from error
        self._look_for_change(name)
        return opened

    def _opened(self, name: str) -> Future[Opened]:
        with self._lock:
            if opened := self._used(name):
                done: Future[Opened] = Future()
                done.set_result(opened)
                return done
            if name not in self._opening:
                self._opening[name] = self._reader.submit(self._read, name)
            return self._opening[name]

    def _used(self, name: str) -> Opened | None:
        """A model in memory, marked as the most recently used; the caller holds the lock."""
        if opened := self._open.pop(name, None):
            self._open[name] = opened
        return opened

    def _read(self, name: str) -> Opened:
        try:
            opened = self._open_version(name)
        except Exception as error:
            log.error("the model %s cannot be read: %s", name, error)
            raise
        else:
            with self._lock:
                self._open[name] = opened
                self._checked[name] = self._clock()
                self._make_room(newest=name)
            return opened
        finally:
            with self._lock:
                del self._opening[name]

    def _open_version(self, name: str) -> Opened:
        """Load a model, which must have the directions that the server announced at its start."""
        opened = open_version(self.folders[name], name, self._guides.get(name, NO_GUIDES))
        served = [(route.source, route.target) for route in self.routes if route.model == name]
        opened.require_languages(spelled(served))
        return opened

    def _make_room(self, newest: str = "") -> None:
        """Unload models that are not in use, the least recently used first, until all fit."""
        if not self._memory_bytes:
            return
        for name in [name for name in self._open if name != newest and not self._n_users[name]]:
            if sum(opened.size_bytes for opened in self._open.values()) <= self._memory_bytes:
                return
            del self._open[name]
            log.info("the model %s was closed to free memory", name)

    def _look_for_change(self, name: str) -> None:
        now = self._clock()
        with self._lock:
            if now - self._checked[name] < CHECK_S:
                return
            self._checked[name] = now
        self._reader.submit(self._replace_if_changed, name)

    def _replace_if_changed(self, name: str) -> None:
        """Load a changed model; the old one is used until the new one is complete."""
        version = ""
        try:
            old = self._open.get(name)
            version = version_of(self.folders[name], self._guides.get(name, NO_GUIDES))
            if old is None or version in (old.version, self._refused.get(name)):
                return
            opened = self._open_version(name)
        except Exception as error:  # also MemoryError: there are two versions in memory
            if self._refused.get(name) != version:
                log.error("the new version of the model %s was rejected: %s", name, error)
            self._refused[name] = version
            return
        with self._lock:
            if name in self._open:
                self._open[name] = opened
        log.info("the model %s was replaced by its new version", name)


class Use:
    """A model in use. It is a class because a generator costs more.

    Args:
        models: all models.
        name: name of the model.
    """

    def __init__(self, models: Models, name: str) -> None:
        self._models = models
        self._name = name

    async def __aenter__(self) -> Opened:
        """Load the model."""
        self._models._begin_use(self._name)
        try:
            return await self._models._current(self._name)
        except BaseException:
            self._models._end_use(self._name)
            raise

    async def __aexit__(self, *_: object) -> None:
        """Release the model, which may then be unloaded."""
        self._models._end_use(self._name)


def read_models(
    names: Sequence[str],
    *,
    memory_mb: int = 0,
    memory_files: Sequence[str] = (),
    glossary_files: Sequence[str] = (),
) -> Models:
    """The models of these folders, none of them loaded yet.

    Args:
        names: folders of models or runs.
        memory_mb: limit for all loaded models; 0 = no limit.
        memory_files: pairs that guide them, as `read_guides` reads them.
        glossary_files: terms that guide them, in the same form.

    Raises:
        FormatError: a folder holds no model, or its description is damaged.
        ConfigError: a model is not a translator, or does not state its languages; the direction of
            a file is not clear.
    """
    folders, routes = read_routes(names)
    guides = read_guides(routes, memory=memory_files, glossaries=glossary_files)
    return Models(folders, routes, memory_bytes=memory_mb << 20, guides=guides)
