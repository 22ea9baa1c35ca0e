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
from dataclasses import dataclass
from pathlib import Path

from heed.errors import FormatError, HeedError
from heed.serve.refusal import Refusal
from heed.serve.work.directions import Route, read_routes
from heed.serve.work.guides import NO_GUIDES, Guides, read_guides
from heed.serve.work.pools import end_pools
from heed.serve.work.versions import Opened, files_state, open_version, spelled, version_of
from heed.translate.translator import Translator

CHECK_S = 1.0
"""Shortest time in seconds between two checks of a model's folder for a new version."""

RETRY_S = 5.0
"""Seconds after which a model that could not be read is tried again although no file changed."""

log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class _Failed:
    """A model that could not be read. It holds no exception, whose frames would hold the weights.

    Attributes:
        state: of its files, from before it was read.
        reason: the message of the error.
        version: of a model that is to replace another; "" if it has none.
        until: time by the clock until which requests for it are refused.
    """

    state: object
    reason: str
    version: str = ""
    until: float = 0.0


class Models:
    """The models of a server. All methods may be called from any thread.

    Attributes:
        on_loaded: functions to call whenever a model has been loaded, in the thread that loads.

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
        self.on_loaded: list[Callable[[], None]] = []
        self._memory_bytes = memory_bytes
        self._guides = dict(guides or {})
        self._clock = clock
        self._open: dict[str, Opened] = {}  # the most recently used one is last
        self._n_users: Counter[str] = Counter()
        self._opening: dict[str, Future[Opened]] = {}
        self._checked: dict[str, float] = {}
        self._failed: dict[str, _Failed] = {}
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

    def is_outdated(self, name: str, translator: Translator) -> bool:
        """Whether a model has been loaded again since this translator of it was."""
        opened = self._open.get(name)
        return opened is not None and opened.translator is not translator

    def refresh(self) -> None:
        """Check the folders of loaded models now; changed models are loaded again."""
        for name in list(self._open):
            self._reader.submit(self._replace_if_changed, name)

    def close(self, within_s: float | None = None) -> bool:
        """End the thread that loads models; arguments and result as of `end_pools`."""
        return end_pools(self._reader, within_s=within_s)

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
            failed, state = self._failed.get(name), self._state(name)
            if failed and failed.state == state and self._clock() < failed.until:
                raise FormatError(failed.reason)
            opened = self._read_now(name, state)
        finally:
            with self._lock:
                del self._opening[name]
        return opened

    def _read_now(self, name: str, state: object) -> Opened:
        try:
            opened = self._open_version(name)
        except Exception as error:
            log.error("the model %s cannot be read: %s", name, error)
            until = self._clock() + RETRY_S
            self._failed[name] = _Failed(state=state, reason=str(error), until=until)
            raise
        self._failed.pop(name, None)
        with self._lock:
            self._open[name] = opened
            self._checked[name] = self._clock()
            self._make_room(newest=name)
        self._tell()
        return opened

    def _tell(self) -> None:
        for drop_outdated in self.on_loaded:
            drop_outdated()

    def _state(self, name: str) -> object:
        return files_state(self.folders[name], self._guides.get(name, NO_GUIDES))

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
        version, failed, state = "", self._failed.get(name), self._state(name)
        try:
            old = self._open.get(name)
            version = version_of(self.folders[name], self._guides.get(name, NO_GUIDES))
            is_known = failed is not None and (failed.version, failed.state) == (version, state)
            if old is None or version == old.version or is_known:
                return
            opened = self._open_version(name)
        except Exception as error:  # also MemoryError: there are two versions in memory
            # Files that are copied one by one change again and again, with the same manifest.
            if failed is None or failed.version != version:
                log.error("the new version of the model %s was rejected: %s", name, error)
            self._failed[name] = _Failed(state=state, reason=str(error), version=version)
            return
        self._failed.pop(name, None)
        with self._lock:
            if name in self._open:
                self._open[name] = opened
        self._tell()
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
