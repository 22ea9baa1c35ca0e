"""Checks on output paths: a command overwrites neither its input nor files of other programs."""

import os
import stat
import sys
from collections.abc import Iterable
from pathlib import Path

from heed.disk.files import require_writable
from heed.errors import FormatError, RunError, UsageError

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


def are_one_file(output: str, other: str) -> bool:
    """Whether two outputs are, or will be, one file: by name, by a link, or by redirection."""
    if written := _identity(output, sys.stdout):
        return written == _identity(other, sys.stdout)
    # A device or a pipe has no content that could be overwritten.
    is_other_kind = output != STANDARD and os.path.exists(output)
    return not is_other_kind and os.path.realpath(output) == os.path.realpath(other)


def require_replaceable(out: str, inputs: Iterable[str], *, is_forced: bool) -> Path:
    """Refuse an output folder in which files would be lost.

    A new or an empty folder is fine. A folder with a heed model and nothing else must be forced.

    Args:
        out: the output folder.
        inputs: files and folders that are read.
        is_forced: an existing model may be replaced.

    Returns:
        Its path; if `out` is a link, that of the link's target, so that the link stays.

    Raises:
        UsageError: an input is in the folder, or it is the current folder.
        RunError: the folder holds something else, or a model and is not forced, or it cannot be
            written.
    """
    from heed.bundle.find import CHECKPOINTS

    target = Path(os.path.realpath(out))
    if target.parent.name == CHECKPOINTS:
        raise RunError(f"{out} lies among the checkpoints of a run. Use another --out.")
    if not target.exists():
        if os.path.islink(out):
            raise RunError(f"{out} is a link to {target}, which is missing. Use another --out.")
        require_writable(target)
        return target
    if not target.is_dir():
        raise RunError(f"{out} must be a folder, but is not. Use another --out.")
    for path in inputs:
        real = Path(os.path.realpath(path))
        if real.exists() and target.samefile(real):
            raise UsageError(f"{out} is the input folder, which is read. Use another --out.")
        if any(parent.exists() and target.samefile(parent) for parent in (real, *real.parents)):
            raise UsageError(f"{out} holds {path}, which this command reads. Use another --out.")
    if target.samefile("."):
        raise UsageError(
            f"{out} is the current folder, which cannot be replaced. Use another --out, or run the "
            "command in another folder."
        )
    if foreign := _foreign(target):
        raise RunError(
            f"{out} must be a new folder, but holds {foreign}, which is not part of a heed model. "
            "Use another --out."
        )
    if any(target.iterdir()) and not is_forced:
        raise RunError(
            f"{out} holds a model already. Replace it with --force, or use another --out."
        )
    require_writable(target)
    return target


def _foreign(folder: Path) -> str | None:
    """The name of an entry that no model folder has, or of any entry if there is no model."""
    from heed.bundle.find import CONFIG, MODEL_FILES
    from heed.disk.folders import MANIFEST, PENDING, read_manifest

    entries = sorted(folder.iterdir())
    for entry in entries:
        name = entry.name.removesuffix(PENDING)
        if name not in (*MODEL_FILES, MANIFEST) or entry.is_symlink() or not entry.is_file():
            return entry.name
    try:
        is_model = not entries or CONFIG in read_manifest(folder).files
    except FormatError:
        is_model = False
    return None if is_model else entries[0].name


def _identity(path: str, stream: object) -> tuple[int, int] | None:
    """Device and inode of a regular file; None for anything else, which cannot be overwritten."""
    try:
        status = os.fstat(stream.fileno()) if path == STANDARD else os.stat(path)  # type: ignore[attr-defined]
    except (AttributeError, OSError, ValueError):  # closed, missing, or not a file
        return None
    return (status.st_dev, status.st_ino) if stat.S_ISREG(status.st_mode) else None
