"""The run folder: the names of heed's files in it, and which folders a run may write into.

`run/run.py` says what the files hold.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import fields
from fnmatch import fnmatchcase
from pathlib import Path

from heed.bundle.find import CHECKPOINTS, MODEL_FILES
from heed.data.lines import STDIN
from heed.data.prepared import DATA, REPORT_FILE
from heed.data.prepared import OWN_FILES as DATA_FILES
from heed.disk.files import LOCK, is_locked, parse_json, read_bytes
from heed.disk.folders import MANIFEST, PENDING, is_temporary, remove_directory
from heed.errors import ConfigError, DataError, FormatError, RunError, UsageError
from heed.train.recipe.files import ASKED_FILE, RECIPE_FILE, RESOLVED_FILE
from heed.train.recipe.recipe import Recipe
from heed.train.step.control import CONTROL_FILE
from heed.train.step.events import METRICS_FILE, TENSORBOARD

PARENT_FILE = "parent.json"
BACK_FILE = "back-translated.bin"
FACTS_FILE = "back-translated.json"
"""Written last: marks completion, and names the epoch from which it is used."""
TEACHER = "teacher"
"""In the folder of a student's run: the files of `heed distill`."""
MADE_FROM = "made-from.json"
TEACHERS = "teachers"
"""In the run folder: the runs and translations of its teachers (`train/teachers`)."""
SPENT = "spent.json"
"""Written first: the seconds that they took."""

OWN_FILES = (
    *(ASKED_FILE, RECIPE_FILE, RESOLVED_FILE, METRICS_FILE, PARENT_FILE, LOCK, MANIFEST),
    CONTROL_FILE,
    *MODEL_FILES,
    *(f"{name}{PENDING}" for name in (MANIFEST, *MODEL_FILES)),
)
OWN_PATHS = (
    *OWN_FILES,
    *(f"{DATA}/{name}" for name in (*DATA_FILES, BACK_FILE, FACTS_FILE)),
    *(f"{folder}/*" for folder in (CHECKPOINTS, TENSORBOARD)),
)
"""In the run folder, all files that training writes and removes; `*` stands for any characters."""
_SECTIONS = {"preset", *(section.name for section in fields(Recipe))}


def require_run_folder(out: Path) -> None:
    """Refuse a folder that holds anything but a run, or a run that could not write its files.

    Raises:
        RunError: names what is in it.
    """
    if not _is_run(out):
        require_unused(out, "a run of heed to continue")
    require_room(out)


def require_room(out: Path) -> None:
    """Refuse a folder where a run writes a file, and the reverse: else it fails at its end.

    Raises:
        RunError: names it.
    """
    for name in OWN_FILES:
        path = out / name
        if path.exists() and not path.is_file() and name != ASKED_FILE:  # that has its own remedy
            raise RunError(f"{path} must be a file, but is not. Remove it and run again.")
    for name in (DATA, CHECKPOINTS):
        require_folder(out / name)


def require_folder(path: Path) -> None:
    """Refuse a file, or a link to nothing, where a run makes a folder.

    Raises:
        RunError: names it.
    """
    if os.path.lexists(path) and not path.is_dir():
        raise RunError(f"{path} must be a folder, but is not. Remove it and run again.")


@contextmanager
def discard_if_not_begun(out: Path) -> Iterator[None]:
    """Remove the run folder if a fault of the corpus or of a setting ends the call before training.

    Only a folder that did not exist before is removed, with the parents that were made for it.

    Args:
        out: the run folder.
    """
    made = [path for path in (out, *out.parents) if not path.exists()]
    try:
        yield
    except (ConfigError, DataError):
        if out in made and out.is_dir() and not is_locked(out) and not _has_begun(out):
            # Another process may use a parent by now.
            with suppress(OSError, RunError):
                remove_directory(out)
                for path in made[1:]:
                    path.rmdir()
        raise


def _has_begun(out: Path) -> bool:
    """Whether training may have begun: there is a recipe of the run or of a teacher."""
    return next(out.rglob(RECIPE_FILE), None) is not None


def require_unused(out: Path, other: str) -> None:
    """Refuse a folder with other files than those left by a run that was killed at its start.

    Args:
        out: the folder; it may be missing.
        other: another possible kind of the folder, for the message.

    Raises:
        RunError: names what is in it.
    """
    if not out.is_dir():
        if out.exists() or out.is_symlink():
            raise RunError(f"{out} must be a folder, but is not. Use another --out.")
        return
    found = [entry for entry in sorted(out.iterdir()) if not _is_of_a_beginning(entry)]
    if found:
        raise RunError(
            f"{out} must be a new folder or {other}, but holds {found[0].name}. Use another --out."
        )


def require_outside(out: Path, files: Iterable[str], own: Iterable[str] = OWN_PATHS) -> None:
    """Refuse to read from files that a run writes itself.

    Args:
        out: the run folder.
        files: paths; standard input is skipped.
        own: paths below `out`, `*` standing for any characters.

    Raises:
        UsageError: names the file.
    """
    # `Path.resolve` raises an error for a link to itself, which is refused elsewhere.
    patterns, folder = tuple(own), Path(os.path.realpath(out))
    for file in files:
        path = Path(os.path.realpath(file))
        if file == STDIN or not path.is_relative_to(folder):
            continue
        name = path.relative_to(folder).as_posix()
        if any(fnmatchcase(name, pattern) for pattern in patterns):
            raise UsageError(
                f"{file} is a file that heed writes in {out} itself. Copy it to another place and "
                "read it from there."
            )


def foreign_file(folder: Path) -> str | None:
    """A file below a model or run folder that heed does not write there, or None."""
    own = (*OWN_PATHS, f"{TEACHER}/*", f"{TEACHERS}/*")
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        is_folder = path.is_dir() and not path.is_symlink()
        is_own = is_temporary(path.name, OWN_FILES) or any(fnmatchcase(name, each) for each in own)
        if not is_folder and not is_own:
            return name
    return None


def _is_run(out: Path) -> bool:
    """Whether one of the files that heed writes early and keeps is there, as heed writes it."""
    asked = _json(out / ASKED_FILE)
    return (
        (asked is not None and set(asked) <= _SECTIONS)
        or "fingerprint" in (_json(out / DATA / REPORT_FILE) or {})
        or "seconds" in (_json(out / TEACHERS / SPENT) or {})
        or "teacher" in (_json(out / TEACHER / MADE_FROM) or {})
    )


def _json(path: Path) -> dict[str, object] | None:
    try:
        return parse_json(read_bytes(path), path)
    except FormatError:
        return None


def _is_of_a_beginning(entry: Path) -> bool:
    """Whether this entry is left by a run that was killed before its first file was complete."""
    first = {TEACHER: MADE_FROM, TEACHERS: SPENT}.get(entry.name)
    if first and entry.is_dir():
        return all(is_temporary(inner.name, (first,)) for inner in entry.iterdir())
    return entry.name == LOCK or is_temporary(entry.name, (ASKED_FILE,))
