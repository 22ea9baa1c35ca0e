"""A folder of files that is complete or absent, with a manifest of checksums.

`bundle/bundle.py` stores models so, `train/run/checkpoint.py` checkpoints.
"""

import ctypes
import os
import re
import shutil
import stat
import zlib
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from heed.disk.files import (
    TEMPORARY,
    Contents,
    as_run_error,
    cleanup_on_error,
    crc32,
    fault_point,
    make_directory,
    map_bytes,
    parse_json,
    read_bytes,
    sync_directory,
    temporary_beside,
    to_json,
    write_atomically,
    write_synced,
)
from heed.errors import FormatError

MANIFEST = "manifest.json"
CARD = "README.md"
"""Text for people, who may edit it: written with the other files, but not listed or compared."""
PENDING = ".next"
"""Suffix of new content until the manifest lists it; see `update_directory`."""
MANIFEST_VERSION = 1
MAX_MANIFEST_BYTES = 64 << 20
_REMEDY = "Take a fresh copy of its folder."
# Names a manifest may list: plain ones, so that no manifest can name files outside its folder.
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,120}")
# More than one suffix where the file itself is a temporary one.
_TEMPORARY_NAME = re.compile(rf"(.+?)(?:{re.escape(TEMPORARY)}[0-9a-f]{{8}})+", re.DOTALL)


@dataclass(frozen=True, kw_only=True)
class Entry:
    """The manifest's entry for one file."""

    size: int
    crc32: str
    sha256: str

    @classmethod
    def of(cls, data: bytes) -> "Entry":
        """Measure `data`."""
        import hashlib  # Reading compares CRC-32 and does not load OpenSSL.

        sha256 = hashlib.sha256(data).hexdigest()
        return cls(size=len(data), crc32=f"{zlib.crc32(data):08x}", sha256=sha256)


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The last file written into a folder: a list of its files, and the writer's metadata."""

    files: dict[str, Entry]
    metadata: dict[str, Any]

    @property
    def checked(self) -> dict[str, Entry]:
        """The files to compare. Manifests of heed 0.1 also list the card."""
        return {name: entry for name, entry in self.files.items() if name != CARD}

    def to_bytes(self) -> bytes:
        """Canonical JSON that carries its own CRC-32."""
        body: dict[str, Any] = {
            "manifest_version": MANIFEST_VERSION,
            "files": {name: vars(entry) for name, entry in sorted(self.files.items())},
            "metadata": self.metadata,
        }
        return to_json({**body, "crc32": f"{zlib.crc32(to_json(body)):08x}"})

    @classmethod
    def from_bytes(cls, data: bytes, path: Path) -> "Manifest":
        """Read and check; `path` is only for messages.

        Raises:
            FormatError: it is not a manifest, or not exactly the one that was written.
        """
        try:
            parsed = parse_json(data, path)
        except FormatError as error:
            raise FormatError(f"{error} {_REMEDY}") from None
        try:
            version = parsed["manifest_version"]
            files = {name: Entry(**entry) for name, entry in parsed["files"].items()}
            manifest = cls(files=files, metadata=parsed["metadata"])
        except (AttributeError, KeyError, TypeError):
            raise FormatError(f"{path} is damaged: it is not a manifest. {_REMEDY}") from None
        if type(version) is not int or version != MANIFEST_VERSION:
            raise FormatError(
                f"{path} has manifest version {version}; this heed reads {MANIFEST_VERSION}. "
                "Use the heed that wrote it, or a newer one."
            )
        if not isinstance(manifest.metadata, dict):
            raise FormatError(f"{path} is damaged: its metadata is not a JSON object. {_REMEDY}")
        for name, entry in files.items():
            if not _PLAIN_NAME.fullmatch(name):
                raise FormatError(f"{path} lists {name!r}, which is not a plain file name.")
            if (type(entry.size), type(entry.crc32), type(entry.sha256)) != (int, str, str):
                raise FormatError(
                    f"{path}: of {name}, size must be a whole number and crc32 and sha256 must be "
                    f"strings, but they are {entry.size!r}, {entry.crc32!r} and {entry.sha256!r}."
                )
        # Written canonically, so any other spelling is damage: this detects every flipped bit.
        if manifest.to_bytes() != data:
            raise FormatError(f"{path} is damaged: its own checksum does not match. {_REMEDY}")
        return manifest


def write_directory(
    path: str | os.PathLike[str],
    files: Mapping[str, bytes],
    metadata: Mapping[str, Any] | None = None,
) -> Manifest:
    """Make the folder `path` with `files` and a manifest, atomically.

    Each file is synced, the manifest is written last, then the folder gets its name. What is
    already at `path`, a folder with all its contents or anything else, is replaced.

    Raises:
        RunError: the disk is full or read-only, or permission is denied; no partial folder is left.
    """
    target = Path(path)
    manifest = _measure(files, metadata)
    contents = {**files, MANIFEST: manifest.to_bytes()}
    temporary = temporary_beside(target)
    with as_run_error(target, sum(map(len, contents.values()))), cleanup_on_error(temporary):
        make_directory(target.parent)
        temporary.mkdir()
        fault_point()
        for name, data in contents.items():
            write_synced(temporary / name, data)
        sync_directory(temporary)
        if os.path.lexists(target):
            _exchange(temporary, target)
        else:
            os.replace(temporary, target)
        fault_point()
        sync_directory(target.parent)
        _discard(temporary)
    fault_point()
    return manifest


def update_directory(
    path: str | os.PathLike[str],
    files: Mapping[str, bytes],
    metadata: Mapping[str, Any] | None = None,
    *,
    others: Mapping[str, Entry] | None = None,
) -> Manifest:
    """Put `files` and a manifest into a folder that also holds other things.

    At every moment the folder matches its manifest, the old or the new one. Files that are not
    listed yet are written first. New content of a listed file is written under a temporary name.
    Then the manifest is replaced, and then the new content gets its name; until then, readers use
    the temporary name. A file that already holds these bytes is not written again.

    Args:
        path: the folder; made if missing.
        files: content by name.
        metadata: for the manifest.
        others: further files of the folder, which the manifest lists as they are.

    Raises:
        RunError: the disk is full or read-only, or permission is denied; the folder is unchanged.
    """
    target = Path(path)
    manifest = _measure(files, metadata, others or {})
    make_directory(target)
    finish_update(target, files)
    listed = _listed(target)
    try:
        for name, data in files.items():
            if not _holds(target / name, data):
                beside = PENDING if name in listed else ""
                write_atomically(target / f"{name}{beside}", data)
        write_atomically(target / MANIFEST, manifest.to_bytes())
    finally:
        finish_update(target, files)
    return manifest


def finish_update(path: str | os.PathLike[str], names: Iterable[str] = ()) -> None:
    """Complete an update that was killed after the manifest was replaced, else remove its files.

    Args:
        path: the folder.
        names: files that the update may have written, beside those that the manifest lists.

    Raises:
        RunError: the disk is read-only, or permission is denied.
    """
    target = Path(path)
    listed = _listed(target)
    for name in sorted({*listed, *names, MANIFEST}):
        pending = target / f"{name}{PENDING}"
        with as_run_error(target / name):
            for written in (name, pending.name):
                for temporary in target.glob(f"{written}{TEMPORARY}" + "[0-9a-f]" * 8):
                    temporary.unlink()
            if name in listed and _is_intact(pending, listed[name]):
                os.replace(pending, target / name)
                fault_point()
                sync_directory(target)
            else:
                pending.unlink(missing_ok=True)


def read_manifest(path: str | os.PathLike[str]) -> Manifest:
    """Read the manifest of a folder.

    Raises:
        FormatError: it is missing (the folder was never finished) or damaged.
    """
    location = Path(path) / MANIFEST
    if not location.exists():
        raise FormatError(f"{location} is missing: {path} was not completely written.")
    return Manifest.from_bytes(read_bytes(location, max_bytes=MAX_MANIFEST_BYTES), location)


def read_directory(
    path: str | os.PathLike[str],
    names: Iterable[str] | None = None,
    manifest: Manifest | None = None,
) -> tuple[Manifest, dict[str, bytes]]:
    """Read files of a folder into memory, each compared with the manifest.

    Args:
        path: the folder.
        names: which files, all that the manifest lists by default; unlisted ones are left out.
        manifest: the folder's, if it was read before.

    Raises:
        FormatError: names the file, and whether it is missing, cut short or damaged.
    """
    folder = Path(path)
    manifest = manifest or read_manifest(folder)
    wanted = manifest.checked if names is None else [n for n in names if n in manifest.files]
    contents = {}
    for name in wanted:
        location = _location(folder / name, manifest.files[name])
        contents[name] = read_bytes(location)
        _check_data(location, manifest.files[name], contents[name])
    return manifest, contents


def map_file(path: Path, manifest: Manifest) -> Contents:
    """Map a file that the manifest of its folder lists, compared with it; see `map_bytes`.

    Raises:
        FormatError: it is missing, cut short or damaged.
    """
    location = _location(path, manifest.files[path.name])
    data = map_bytes(location)
    _check_data(location, manifest.files[path.name], data)
    return data


def verify_directory(path: str | os.PathLike[str]) -> Manifest:
    """Verify size, CRC-32 and SHA-256 of every file that the manifest lists, in constant memory.

    Raises:
        FormatError: names the first file that is missing, cut short, damaged or changed.
    """
    folder = Path(path)
    manifest = read_manifest(folder)
    for name, entry in manifest.checked.items():
        _check_file(_location(folder / name, entry), entry)
    return manifest


def remove_directory(path: str | os.PathLike[str]) -> None:
    """Remove a folder; a crash during this leaves a temporary name, never a partial folder.

    A network disk keeps a file that another process reads, and its folder. The temporary name then
    stays until `remove_temporaries`.

    Raises:
        RunError: the disk is read-only, or permission is denied.
    """
    target = Path(path)
    doomed = temporary_beside(target)
    with as_run_error(target):
        os.replace(target, doomed)
        fault_point()
        sync_directory(target.parent)
        _discard(doomed)
        fault_point()


def is_temporary(name: str, of: Iterable[str]) -> bool:
    """Whether `name` is a temporary file of a killed writer of one of these files or folders.

    Args:
        name: without its folder.
        of: names, `*` standing for any characters.
    """
    match = _TEMPORARY_NAME.fullmatch(name)
    return match is not None and any(fnmatchcase(match[1], pattern) for pattern in of)


def remove_temporaries(directory: str | os.PathLike[str], of: Iterable[str]) -> None:
    """Remove temporary files of killed writers from `directory`. The caller holds the run's lock.

    Args:
        directory: other files in it stay, even a user's files that end in `.tmp-…`.
        of: names of the files and folders that these writers write, as `is_temporary` takes them.
    """
    patterns = tuple(of)
    for leftover in Path(directory).glob(f"*{TEMPORARY}*"):
        if is_temporary(leftover.name, patterns):
            _discard(leftover)


def _discard(path: Path) -> None:
    """Remove what is there; of a link only itself. `shutil.rmtree` waits forever for a pipe."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        with suppress(OSError):
            path.unlink()


def _exchange(new: Path, old: Path) -> None:
    """Swap the names of two folders, in one step if the system can, else in two."""
    try:
        renameat2 = ctypes.CDLL(None, use_errno=True).renameat2
        here, swap = -100, 2  # AT_FDCWD, RENAME_EXCHANGE of <linux/fs.h>
        if renameat2(here, os.fsencode(new), here, os.fsencode(old), swap) == 0:
            return
    except (AttributeError, OSError, TypeError):  # not Linux
        pass
    aside = temporary_beside(old)
    try:
        os.replace(old, aside)
        os.replace(new, old)
    except BaseException:
        if aside.exists() and not old.exists():
            os.replace(aside, old)
        raise
    os.replace(aside, new)


def _measure(
    files: Mapping[str, bytes],
    metadata: Mapping[str, Any] | None,
    others: Mapping[str, Entry] | None = None,
) -> Manifest:
    for name in files:
        assert _PLAIN_NAME.fullmatch(name) and name != MANIFEST, name
    entries = {name: Entry.of(data) for name, data in files.items() if name != CARD}
    return Manifest(files={**(others or {}), **entries}, metadata=dict(metadata or {}))


def _listed(folder: Path) -> dict[str, Entry]:
    """The files that the manifest of a folder lists; none, if it is missing or damaged."""
    try:
        return read_manifest(folder).checked
    except FormatError:
        return {}


def _location(path: Path, entry: Entry) -> Path:
    """The path of a listed file: `path`, or its temporary name after a killed update."""
    pending = path.with_name(f"{path.name}{PENDING}")
    if _is_intact(pending, entry):
        return pending
    _check_size(path, entry)
    return path


def _is_intact(path: Path, entry: Entry) -> bool:
    try:
        _check_file(path, entry)
    except FormatError:
        return False
    return True


def _holds(path: Path, data: bytes) -> bool:
    """Whether a file has exactly this content."""
    try:
        return read_bytes(path, max_bytes=len(data)) == data
    except FormatError:
        return False


def _check_file(path: Path, entry: Entry) -> None:
    _check_size(path, entry)
    try:
        _check_crc(path, entry, entry.size, crc32(path))
        if _sha256(path) != entry.sha256:
            raise FormatError(f"{path} was changed: its SHA-256 does not match.")
    except OSError as error:
        raise FormatError(f"{path} cannot be read: {error.strerror}.") from error


def _sha256(path: Path) -> str:
    import hashlib

    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _check_size(path: Path, entry: Entry) -> None:
    try:
        status = path.stat()
    except OSError:
        raise FormatError(f"{path} is missing.") from None
    if not stat.S_ISREG(status.st_mode):
        raise FormatError(f"{path} is not a regular file.")
    if status.st_size != entry.size:
        what = "cut short" if status.st_size < entry.size else "too long"
        raise FormatError(f"{path} is {what}: {status.st_size} bytes instead of {entry.size}.")


def _check_data(path: Path, entry: Entry, data: Contents) -> None:
    _check_crc(path, entry, len(data), zlib.crc32(data))


def _check_crc(path: Path, entry: Entry, size: int, checksum: int) -> None:
    if size != entry.size or f"{checksum:08x}" != entry.crc32:
        raise FormatError(
            f"{path} is damaged: its checksum does not match {MANIFEST}. Take a fresh copy."
        )
