"""The facts from which a folder was prepared, to reuse it or to report what has changed.

`prepare.py` decides which facts count and keeps them in its report.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from heed.data.lines import STDIN, require_file, suffix_of
from heed.disk.files import crc32
from heed.errors import DataError, RunError

_FILE = re.compile(r"(.*), (\d+ bytes, checksum [0-9a-f]{8}.*)", re.DOTALL)
"""A file's name and its other facts."""


def file_facts(name: str) -> str:
    """Facts that identify a file, and differ if one line of it changes.

    They begin with its name, which is for messages; `require_same` compares the rest.

    Raises:
        DataError: it is missing, or a pipe or a device, which cannot be read again.
    """
    require_file(name)
    if not Path(name).is_file():
        raise DataError(
            f"{name} must be a regular file, because heed reads a corpus more than once, but is a "
            "pipe or a device. Save it to a file first; .gz, .xz and .zst can be read as they are. "
            "A table of both languages may also come from standard input: heed train -"
        )
    return f"{name}, {Path(name).stat().st_size} bytes, checksum {crc32(name):08x}"


@contextmanager
def unchanged(names: Iterable[str]) -> Iterator[None]:
    """Refuse a file that changes while the block reads it, as one that is still being written.

    The facts about it and what was read of it would not belong together.

    Raises:
        DataError: names the file; also instead of a DataError of the block.
    """
    before = {name: _state(name) for name in names if name != STDIN}
    try:
        yield
        error = None
    except DataError as raised:
        error = raised
    for name, state in before.items():
        if _state(name) != state:
            raise DataError(
                f"{name} was changed while it was read. Wait until it is complete, and run the "
                "same command again."
            ) from error
    if error:
        raise error


def _state(name: str) -> tuple[int, ...]:
    """What changes when a file is written or replaced; empty if it is not there."""
    try:
        status = os.stat(name)
    except OSError:
        return ()
    return status.st_ino, status.st_size, status.st_mtime_ns


def spelled_settings(section: str, config: Any) -> dict[str, str]:
    """The settings of a dataclass by their dotted names."""
    return {f"{section}.{key}": str(value) for key, value in asdict(config).items()}


def _content(fact: Any) -> Any:
    """A fact; of a file, whether it is CSV, in place of its name."""
    if not isinstance(fact, str) or not (found := _FILE.fullmatch(fact)):
        return fact
    return suffix_of(found[1]) == ".csv", found[2]


def require_same(found: Any, wanted: Mapping[str, str], directory: Path) -> None:
    """Refuse a folder that was made from something else.

    A file may have another name or be in another folder than before: its content counts.

    Raises:
        RunError: names each fact that changed, before and now.
    """
    before = found if isinstance(found, dict) else {}
    changes = [
        f"{key} was {before.get(key, 'absent')}, but is {wanted.get(key, 'absent')}"
        for key in sorted({*before, *wanted})
        if _content(before.get(key)) != _content(wanted.get(key))
    ]
    if not changes:
        return
    raise RunError(
        f"{directory} was prepared from other data or settings: {'; '.join(changes)}. Use another "
        "--out, or restore the old files and settings."
    )
