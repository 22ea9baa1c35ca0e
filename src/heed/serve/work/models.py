"""`Models`: the models that are served, opened when they are first used.

A model stays open while it is used; under a memory limit the one used least recently is closed.
`versions.py` opens them and notices when a folder has changed.
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
from heed.serve.work.versions import Opened, open_version, version_of
from heed.translate.translator import Translator

CHECK_S = 1.0
"""At most this often is a model's folder looked at for a new version."""

log = logging.getLogger(__name__)


class Models:
    """The models of a server. All methods may be called from any thread.

    Args:
        folders: name → folder of each.
        routes: the directions they translate; of several models for one, the first is preferred.
        memory_bytes: models open at the same time take at most this much, unless more are in use;
            0 = no limit.
        clock: seconds, for tests.
    """

    def __init__(
        self,
        folders: Mapping[str, Path],
        routes: Sequence[Route],
        *,
        memory_bytes: int = 0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.routes = tuple(routes)
        self.folders = dict(folders)
        self._memory_bytes = memory_bytes
        self._clock = clock
        self._open: dict[str, Opened] = {}  # the one used last comes last
        self._n_users: Counter[str] = Counter()
        self._opening: dict[str, Future[Opened]] = {}
        self._checked: dict[str, float] = {}
        self._refused: dict[str, str] = {}
        self._lock = threading.Lock()
        self._reader = ThreadPoolExecutor(1, thread_name_prefix="heed-models")

    def open(self, name: str) -> Translator:
        """The translator of this name; reads it from disk the first time."""
        return self._opened(name).result().translator

    def use(self, name: str) -> "Use":
        """A block in which a model stays open; read from disk, in a thread, the first time.

        Raises:
            Refusal: when the block is entered: it cannot be read (503).
        """
        return Use(self, name)

    def is_open(self, name: str) -> bool:
        """Whether it is in memory."""
        return name in self._open

    def refresh(self) -> None:
        """Look now whether the folders of open models have changed; new ones are read and used."""
        for name in list(self._open):
            self._reader.submit(self._replace_if_changed, name)

    def close(self) -> None:
        """End the thread that reads models."""
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
            # Shielded, because others may wait for the same model.
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
        """A model in memory, now the one used last; the caller has the lock."""
        if opened := self._open.pop(name, None):
            self._open[name] = opened
        return opened

    def _read(self, name: str) -> Opened:
        try:
            opened = open_version(self.folders[name], name)
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

    def _make_room(self, newest: str = "") -> None:
        """Close models that nobody uses, the least recently used first, until they fit."""
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
        """Open a changed model beside the old one, which answers until the new one is whole."""
        version = ""
        try:
            old = self._open.get(name)
            version = version_of(self.folders[name])
            if old is None or version in (old.version, self._refused.get(name)):
                return
            opened = open_version(self.folders[name], name)
            opened.require_same_languages(old)
        except (HeedError, OSError) as error:
            if self._refused.get(name) != version:
                log.error("the model %s has changed, and is refused: %s", name, error)
            self._refused[name] = version
            return
        with self._lock:
            if name in self._open:
                self._open[name] = opened
        log.info("the model %s was replaced by its new version", name)


class Use:
    """A model that is used. A class, because a generator costs more.

    Args:
        models: it and others.
        name: of the model.
    """

    def __init__(self, models: Models, name: str) -> None:
        self._models = models
        self._name = name

    async def __aenter__(self) -> Opened:
        """Open it."""
        self._models._begin_use(self._name)
        try:
            return await self._models._current(self._name)
        except BaseException:
            self._models._end_use(self._name)
            raise

    async def __aexit__(self, *_: object) -> None:
        """From now on it may be closed."""
        self._models._end_use(self._name)


def read_models(names: Sequence[str], *, memory_mb: int = 0) -> Models:
    """The models of these folders, none of them opened yet.

    Args:
        names: folders of models or runs.
        memory_mb: models open at the same time take at most this much; 0 = no limit.

    Raises:
        FormatError: a folder holds no model, or its description is damaged.
        ConfigError: a model is not a translator, or does not say its languages.
    """
    folders, routes = read_routes(names)
    return Models(folders, routes, memory_bytes=memory_mb << 20)
