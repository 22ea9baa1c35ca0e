"""A JSON-lines file that another process appends to, read a little at a time.

Its content is not trusted: it may come from any source, and its writer may be killed at any byte.
"""

import errno
import os
import stat
from pathlib import Path
from typing import Any

from heed.disk.files import parse_json
from heed.errors import FormatError

MAX_LINE_BYTES = 1 << 20
"""Most bytes of a line; longer lines are skipped."""

MAX_READ_BYTES = 32 << 20
"""Most bytes read in one call, so that a call takes a second at most."""


class GrowingLines:
    """The objects of a JSON-lines file, each given once.

    A last line without its newline is read later, when it is complete. Lines that are not objects
    are counted and skipped.

    Attributes:
        n_unreadable: lines skipped since the file was last opened.

    Args:
        path: the file; it may be missing, and may be replaced by another.
    """

    def __init__(self, path: Path) -> None:
        self.n_unreadable = 0
        self._path = path
        self._identity: tuple[int, int] | None = None
        self._offset = 0
        self._waiting = b""
        self._is_passing_over = False

    def read(self) -> tuple[bool, list[dict[str, Any]]]:
        """The objects that were appended since the last call.

        Returns:
            Whether the file was replaced or cut, so that earlier objects are void; and the objects.
        """
        try:
            descriptor = os.open(self._path, os.O_RDONLY | _NO_SURPRISES)
        except OSError as error:
            is_gone = error.errno == errno.ENOENT
            return self._begin(None) if is_gone and self._identity is not None else False, []
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            os.close(descriptor)
            return False, []
        with open(descriptor, "rb") as file:
            identity = (status.st_dev, status.st_ino)
            is_anew = identity != self._identity or status.st_size < self._offset
            if is_anew:
                self._begin(identity)
            file.seek(self._offset)
            data = file.read(MAX_READ_BYTES)
        self._offset += len(data)
        return is_anew, self._objects(data)

    def _begin(self, identity: tuple[int, int] | None) -> bool:
        self.n_unreadable, self._offset, self._waiting = 0, 0, b""
        self._identity, self._is_passing_over = identity, False
        return True

    def _objects(self, data: bytes) -> list[dict[str, Any]]:
        *lines, rest = (self._waiting + data).split(b"\n")
        found = []
        for line in lines:
            if self._is_passing_over:
                self._is_passing_over = False  # this is the end of a line that was too long
                continue
            if len(line) > MAX_LINE_BYTES:
                self.n_unreadable += 1
                continue
            try:
                found.append(parse_json(line, self._path))
            except FormatError:
                self.n_unreadable += 1
        if len(rest) > MAX_LINE_BYTES or self._is_passing_over:
            self.n_unreadable += not self._is_passing_over
            rest, self._is_passing_over = b"", True
        self._waiting = rest
        return found


# A link may lead out of the folder, and opening a named pipe would block forever.
_NO_SURPRISES = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
