"""Requests to a run in progress: save a checkpoint now, or save and stop.

A request is a file in the run folder, `control.json`. The run looks for it after each step and
removes it once it is read. Signals are in `cli/stopping.py`.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from enum import IntEnum
from pathlib import Path

from heed.disk.files import parse_json, read_bytes, to_json, write_atomically
from heed.errors import FormatError

CONTROL_FILE = "control.json"
MAX_BYTES = 1000
"""Largest size of a request; a longer file is ignored."""


class Request(IntEnum):
    """A request that a run serves after its current step; a larger one includes the smaller."""

    NONE = 0
    SAVE = 1
    STOP = 2


class Paused(Exception):
    """Raised between two steps, by long preparations of an epoch, after a request to stop."""


def ask(run: Path, request: Request) -> None:
    """Leave a request for the process that trains in a run folder.

    Raises:
        RunError: the folder cannot be written.
    """
    write_atomically(run / CONTROL_FILE, to_json({"request": request.name.lower()}))


class ControlFile:
    """The requests of a run folder.

    Args:
        run: the run folder.
    """

    def __init__(self, run: Path) -> None:
        self._path = run / CONTROL_FILE
        self._name = os.fspath(self._path)

    def take(self) -> Request:
        """The pending request, which is then removed; two microseconds if there is none."""
        if not os.access(self._name, os.F_OK):
            return Request.NONE
        try:
            asked = parse_json(read_bytes(self._path, max_bytes=MAX_BYTES), self._path)
        except FormatError:
            asked = {}
        with suppress(OSError):
            self._path.unlink()
        name = str(asked.get("request", "")).upper()
        return Request[name] if name in Request.__members__ else Request.NONE


class Requests:
    """The requests by a signal and by the file, which long work between two steps may look at too.

    Args:
        should_stop: whether a signal has come.
        take: takes a request from the file.
    """

    def __init__(self, should_stop: Callable[[], bool], take: Callable[[], Request]) -> None:
        self._should_stop, self._take = should_stop, take
        self._pending = Request.NONE

    def take(self) -> Request:
        """The pending request, which is then served."""
        self._look()
        found, self._pending = self._pending, Request.NONE
        return found

    def is_stop(self) -> bool:
        """Whether the run is to stop; any request stays pending."""
        self._look()
        return self._pending == Request.STOP

    def _look(self) -> None:
        if self._pending != Request.STOP:
            found = Request.STOP if self._should_stop() else self._take()
            self._pending = max(self._pending, found)
