"""Where a command may write: never onto a file that it reads, under whatever name.

Not here: how bytes reach the disk (`files.py`, `folders.py`).
"""

import os
import stat
import sys
from collections.abc import Iterable

from heed.errors import UsageError

STANDARD = "-"
"""Standard input among inputs, standard output as an output."""


def require_not_read(output: str | os.PathLike[str], inputs: Iterable[str]) -> None:
    """Refuse an output that is also an input: by name, by a link, or by redirection.

    Args:
        output: a path; `-` is standard output.
        inputs: paths; `-` is standard input.

    Raises:
        UsageError: names both.
    """
    target = _identity(os.fspath(output), sys.stdout)
    if target is None:
        return
    for path in inputs:
        if _identity(path, sys.stdin) == target:
            written = "standard output" if os.fspath(output) == STANDARD else os.fspath(output)
            read = "standard input" if path == STANDARD else path
            raise UsageError(
                f"{written} and {read} are the same file: it would be overwritten while it is "
                "read. Write to another file."
            )


def _identity(path: str, stream: object) -> tuple[int, int] | None:
    """Device and inode of a regular file; None for anything else, which cannot be overwritten."""
    try:
        status = os.fstat(stream.fileno()) if path == STANDARD else os.stat(path)  # type: ignore[attr-defined]
    except (AttributeError, OSError, ValueError):  # closed, missing, or no file behind it
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None
