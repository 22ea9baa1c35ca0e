"""Requests to a run in progress: save a checkpoint now, or save and stop.

Whoever may write into the run folder may ask: a file, `control.json`, is looked for after each step
and removed once it is read. Signals are in `cli/stopping.py`.
"""

import os
from contextlib import suppress
from enum import IntEnum
from pathlib import Path

from heed.disk.files import parse_json, read_bytes, to_json, write_atomically
from heed.errors import FormatError

CONTROL_FILE = "control.json"
MAX_BYTES = 1000
"""Of a request; anything longer is none."""


class Request(IntEnum):
    """What a run is asked to do after the step it is in; the larger one includes the smaller."""

    NONE = 0
    SAVE = 1
    STOP = 2


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
        """The request that waits, which is then forgotten; two microseconds if there is none."""
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
