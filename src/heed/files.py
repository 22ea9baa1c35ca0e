"""Bytes to disk and back, so that a kill, a full disk or a power cut leaves the old or the new.

Not here: what the bytes mean. Nothing else in heed opens a file for writing that must survive.
Read on in `train/checkpoint.py` and `bundle.py`, which write folders with `write_directory`.
"""

import errno
import hashlib
import itertools
import json
import os
import re
import secrets
import shutil
import signal
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from heed.errors import FormatError, HeedError, RunError

MANIFEST = "manifest.json"
MANIFEST_VERSION = 1
MAX_JSON_BYTES = 64 << 20
CHUNK_BYTES = 1 << 20
# Names a manifest may list: plain ones, so that no folder can make us read outside itself.
_PLAIN_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,120}")
_TEMPORARY = ".tmp-"

_fault_points = itertools.count(1)


def fault_point() -> None:
    """Die here by SIGKILL if this is the `HEED_FAULT`-th such point the process reaches.

    The tests kill a save at every point in turn: a promise about crashes is worth what its
    crash test is worth.
    """
    wanted = os.environ.get("HEED_FAULT")
    if wanted and next(_fault_points) == int(wanted):
        os.kill(os.getpid(), signal.SIGKILL)


# --- one file -------------------------------------------------------------------------------


def write_atomically(path: str | os.PathLike[str], data: bytes) -> None:
    """Put `data` at `path`, whole or not at all.

    Missing parent folders are made. A symbolic link is written through.

    Raises:
        RunError: the disk is full, read-only or not ours; the old file is untouched.
    """
    with atomic_writer(path, needed_bytes=len(data)) as file:
        half = len(data) // 2
        file.write(data[:half])
        if half:
            file.flush()
            fault_point()
        file.write(data[half:])


@contextmanager
def atomic_writer(
    path: str | os.PathLike[str], *, needed_bytes: int | None = None
) -> Iterator[IO[bytes]]:
    """Stream into a file that appears at `path` only when the block ends without an exception.

    Args:
        path: where the file will be.
        needed_bytes: its final size if known, for the message on a full disk.

    Raises:
        RunError: the disk is full, read-only or not ours; the old file is untouched.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not target.is_file():
        raise RunError(f"cannot write {path}: something that is not a file is in its place.")
    temporary = _temporary_beside(target)
    with _explained(target, needed_bytes), _removed_on_failure(temporary):
        make_directory(target.parent)
        with open(temporary, "xb") as file:
            fault_point()
            yield file
            file.flush()
            fault_point()
            os.fsync(file.fileno())
        fault_point()
        os.replace(temporary, target)
        fault_point()
        _sync_directory(target.parent)
    fault_point()


def make_directory(path: Path) -> None:
    """Make `path` and its missing parents, each one's name safely on disk."""
    if not path.is_dir():
        make_directory(path.parent)
        with _explained(path), suppress(FileExistsError):
            path.mkdir()
            _sync_directory(path.parent)


def crc32(source: str | os.PathLike[str] | bytes) -> int:
    """CRC-32 of bytes in memory or of a file, which is read in pieces."""
    if isinstance(source, bytes):
        return zlib.crc32(source)
    checksum = 0
    with open(source, "rb") as file:
        while piece := file.read(CHUNK_BYTES):
            checksum = zlib.crc32(piece, checksum)
    return checksum


def read_bytes(path: Path, *, max_bytes: int | None = None) -> bytes:
    """Read a whole regular file.

    Raises:
        FormatError: it is missing, not a regular file, unreadable, or larger than `max_bytes`.
    """
    try:
        with open(path, "rb", opener=_open_regular) as file:
            size = os.fstat(file.fileno()).st_size
            if max_bytes is not None and size > max_bytes:
                raise FormatError(f"{path} has {size} bytes; at most {max_bytes} make sense here.")
            return file.read()
    except FileNotFoundError:
        raise FormatError(f"{path} is missing.") from None
    except OSError as error:
        raise FormatError(f"{path} cannot be read: {error.strerror or error}.") from error


def _open_regular(path: str, flags: int) -> int:
    """Open without waiting: a named pipe in a model folder would otherwise stop us for ever."""
    descriptor = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a regular file")
    return descriptor


# --- a folder with a manifest ---------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Entry:
    """What the manifest says of one file."""

    size: int
    crc32: str
    sha256: str

    @classmethod
    def of(cls, data: bytes) -> "Entry":
        """Measure `data`."""
        sha256 = hashlib.sha256(data).hexdigest()
        return cls(size=len(data), crc32=f"{zlib.crc32(data):08x}", sha256=sha256)


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The last file written into a folder: what must be in it, and what the writer adds."""

    files: dict[str, Entry]
    metadata: dict[str, Any]

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
        parsed = parse_json(data, path)
        try:
            version = parsed["manifest_version"]
            files = {name: Entry(**entry) for name, entry in parsed["files"].items()}
            manifest = cls(files=files, metadata=parsed["metadata"])
        except (AttributeError, KeyError, TypeError):
            raise FormatError(f"{path} is damaged: it is not a manifest.") from None
        if version != MANIFEST_VERSION:
            raise FormatError(
                f"{path} has manifest version {version}; this heed reads {MANIFEST_VERSION}. "
                "Use the heed that wrote it, or a newer one."
            )
        for name in files:
            if not _PLAIN_NAME.fullmatch(name):
                raise FormatError(f"{path} lists {name!r}, which is not a plain file name.")
        # Written canonically, so any other spelling is damage: this notices every flipped bit.
        if manifest.to_bytes() != data:
            raise FormatError(f"{path} is damaged: its own checksum does not match.")
        return manifest


def write_directory(
    path: str | os.PathLike[str],
    files: Mapping[str, bytes],
    metadata: Mapping[str, Any] | None = None,
) -> Manifest:
    """Make the folder `path` with `files` and a manifest, whole or not at all.

    Each file is synced, the manifest is written last, then the folder gets its name. A folder
    already at `path` is replaced; a crash between those two renames leaves neither.

    Raises:
        RunError: the disk is full, read-only or not ours; no partial folder stays behind.
    """
    target = Path(path)
    manifest = _measure(files, metadata)
    contents = {**files, MANIFEST: manifest.to_bytes()}
    temporary = _temporary_beside(target)
    with _explained(target, sum(map(len, contents.values()))), _removed_on_failure(temporary):
        make_directory(target.parent)
        temporary.mkdir()
        fault_point()
        for name, data in contents.items():
            write_atomically(temporary / name, data)
        if target.exists():
            remove_directory(target)
        os.replace(temporary, target)
        fault_point()
        _sync_directory(target.parent)
    fault_point()
    return manifest


def update_directory(
    path: str | os.PathLike[str],
    files: Mapping[str, bytes],
    metadata: Mapping[str, Any] | None = None,
) -> Manifest:
    """Put `files` and a manifest into a folder that also holds other things.

    The manifest goes first and comes back last: while it is missing, the folder is unfinished.

    Raises:
        RunError: the disk is full, read-only or not ours; the folder may be unfinished.
    """
    target = Path(path)
    manifest = _measure(files, metadata)
    with _explained(target):
        (target / MANIFEST).unlink(missing_ok=True)
        fault_point()
    for name, data in {**files, MANIFEST: manifest.to_bytes()}.items():
        write_atomically(target / name, data)
    return manifest


def read_manifest(path: str | os.PathLike[str]) -> Manifest:
    """Read the manifest of a folder.

    Raises:
        FormatError: it is missing (the folder was never finished) or damaged.
    """
    location = Path(path) / MANIFEST
    if not location.exists():
        raise FormatError(f"{location} is missing: {path} was not completely written.")
    return Manifest.from_bytes(read_bytes(location, max_bytes=MAX_JSON_BYTES), location)


def read_directory(
    path: str | os.PathLike[str], names: Iterable[str] | None = None
) -> tuple[Manifest, dict[str, bytes]]:
    """Read files of a folder into memory, each compared with the manifest.

    Args:
        path: the folder.
        names: which files, all that the manifest lists by default; unlisted ones are left out.

    Raises:
        FormatError: names the file, and whether it is missing, cut short or damaged.
    """
    folder = Path(path)
    manifest = read_manifest(folder)
    wanted = manifest.files if names is None else [n for n in names if n in manifest.files]
    contents = {}
    for name in wanted:
        entry = manifest.files[name]
        _check_size(folder / name, entry)
        data = read_bytes(folder / name)
        _check_crc(folder / name, entry, len(data), zlib.crc32(data))
        contents[name] = data
    return manifest, contents


def verify_directory(path: str | os.PathLike[str], *, deep: bool = False) -> Manifest:
    """Compare every file the manifest lists with what is there, in constant memory.

    Args:
        path: the folder.
        deep: also compare SHA-256, against a change made on purpose.

    Raises:
        FormatError: names the first file that is missing, cut short or damaged.
    """
    folder = Path(path)
    manifest = read_manifest(folder)
    for name, entry in manifest.files.items():
        _check_size(folder / name, entry)
        _check_crc(folder / name, entry, entry.size, crc32(folder / name))
        if deep:
            with open(folder / name, "rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
            if found != entry.sha256:
                raise FormatError(f"{folder / name} was changed: its SHA-256 does not match.")
    return manifest


def remove_directory(path: str | os.PathLike[str]) -> None:
    """Remove a folder; a crash meanwhile leaves a temporary name, never half a folder.

    Raises:
        RunError: the disk is read-only or not ours.
    """
    target = Path(path)
    doomed = _temporary_beside(target)
    with _explained(target):
        os.replace(target, doomed)
        fault_point()
        _sync_directory(target.parent)
        shutil.rmtree(doomed)
        fault_point()


def remove_temporaries(directory: str | os.PathLike[str]) -> None:
    """Remove what killed writers left in `directory`. Call it with the run's lock held."""
    for leftover in Path(directory).glob(f"*{_TEMPORARY}*"):
        if leftover.is_dir() and not leftover.is_symlink():
            shutil.rmtree(leftover, ignore_errors=True)
        else:
            with suppress(OSError):
                leftover.unlink()


def _measure(files: Mapping[str, bytes], metadata: Mapping[str, Any] | None) -> Manifest:
    for name in files:
        assert _PLAIN_NAME.fullmatch(name) and name != MANIFEST, name
    entries = {name: Entry.of(data) for name, data in files.items()}
    return Manifest(files=entries, metadata=dict(metadata or {}))


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


def _check_crc(path: Path, entry: Entry, size: int, checksum: int) -> None:
    if size != entry.size or f"{checksum:08x}" != entry.crc32:
        raise FormatError(
            f"{path} is damaged: its checksum does not match {MANIFEST}. Take a fresh copy."
        )


# --- JSON -----------------------------------------------------------------------------------


def to_json(value: Any, *, indent: int | None = 2) -> bytes:
    """JSON as UTF-8 with a final newline; any str survives, NaN and infinity are refused."""
    text = json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)
    # A lone surrogate (an odd file name) becomes \udcXX, which is also how JSON spells it.
    return text.encode("utf-8", "backslashreplace") + b"\n"


def parse_json(data: bytes, path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read one JSON object strictly: no NaN, no infinity, no key twice, no bottomless nesting.

    Args:
        data: UTF-8.
        path: where it came from, for messages.

    Raises:
        FormatError: says what is wrong.
    """
    try:
        value = json.loads(
            data.decode("utf-8"),
            object_pairs_hook=_unique_keys,
            parse_constant=_refuse_number,
            parse_float=_finite,
        )
    except RecursionError:
        raise FormatError(f"{path} is not valid JSON: nested too deeply.") from None
    except ValueError as error:
        raise FormatError(f"{path} is not valid JSON: {error}.") from None
    if not isinstance(value, dict):
        raise FormatError(f"{path} must hold a JSON object, but holds {type(value).__name__}.")
    return value


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key!r} stands twice")
        found[key] = value
    return found


def _refuse_number(text: str) -> float:
    raise ValueError(f"{text} is not a number JSON knows")


def _finite(text: str) -> float:
    number = float(text)
    return number if abs(number) < float("inf") else _refuse_number(text)


def append_json_line(path: str | os.PathLike[str], value: Any) -> None:
    """Add one line to a JSON-lines log and hand it to the system; a torn last line is cut off.

    Raises:
        RunError: the disk is full, read-only or not ours.
    """
    target = Path(path)
    line = to_json(value, indent=None)
    with _explained(target, len(line)), open(target, "ab+") as file:
        complete = _complete_length(file)
        if complete != file.seek(0, os.SEEK_END):
            file.truncate(complete)
        fault_point()
        file.write(line)
        file.flush()
        fault_point()


def read_json_lines(path: str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
    """Yield the objects of a JSON-lines log; a last line without its newline was cut: ignored.

    Raises:
        FormatError: a complete line is not a JSON object; names the line.
    """
    with open(path, "rb") as file:
        for number, line in enumerate(file, start=1):
            if line.endswith(b"\n"):
                yield parse_json(line, f"{path} line {number}")


def cut_json_lines(path: str | os.PathLike[str], keep: Callable[[dict[str, Any]], bool]) -> None:
    """Drop the lines for which `keep` is False, as after going back to an older checkpoint."""
    kept = [to_json(value, indent=None) for value in read_json_lines(path) if keep(value)]
    write_atomically(path, b"".join(kept))


def _complete_length(file: IO[bytes]) -> int:
    """Bytes up to and including the last newline."""
    end = file.seek(0, os.SEEK_END)
    while end > 0:
        start = max(0, end - CHUNK_BYTES)
        file.seek(start)
        newline = file.read(end - start).rfind(b"\n")
        if newline >= 0:
            return start + newline + 1
        end = start
    return 0


# --- one process at a time ------------------------------------------------------------------


@contextmanager
def lock(directory: str | os.PathLike[str]) -> Iterator[None]:
    """Hold a run folder for this process alone; the system lets go when the process ends.

    Raises:
        RunError: another process holds it, or the folder cannot be written.
    """
    import fcntl

    folder = Path(directory)
    make_directory(folder)
    with _explained(folder), open(folder / "run.lock", "a+b") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            pid = file.read(20).decode("ascii", "replace").strip() or "unknown"
            raise RunError(
                f"another process (pid {pid}) is training in {directory}. "
                "Wait for it, stop it, or choose another run folder."
            ) from None
        file.truncate(0)
        file.write(f"{os.getpid()}\n".encode())
        file.flush()
        yield


# --- what they share ------------------------------------------------------------------------


def _temporary_beside(path: Path) -> Path:
    return path.with_name(f"{path.name}{_TEMPORARY}{secrets.token_hex(4)}")


def _sync_directory(path: Path) -> None:
    """Make renames in `path` outlive a power cut (a no-op where folders cannot be opened)."""
    if os.name != "posix":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network file systems cannot sync a folder; there is nothing better to do there.
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(descriptor)


@contextmanager
def _removed_on_failure(temporary: Path) -> Iterator[None]:
    try:
        yield
    except BaseException:
        if temporary.is_dir():
            shutil.rmtree(temporary, ignore_errors=True)
        else:
            with suppress(OSError):
                temporary.unlink()
        raise


@contextmanager
def _explained(path: Path, needed_bytes: int | None = None) -> Iterator[None]:
    """Turn the system's refusals under `path` into a RunError that says what would help."""
    try:
        yield
    except HeedError:
        raise
    except OSError as error:
        # Inside `atomic_writer` the caller may also read: its own failures are not ours to tell.
        foreign = error.filename is not None and not _is_ours(error.filename, path)
        if foreign:
            raise
        raise RunError(_refusal(path, error, needed_bytes)) from error


def _is_ours(filename: Any, path: Path) -> bool:
    return os.fsdecode(filename).startswith((str(path), str(path.parent)))


def _refusal(path: Path, error: OSError, needed_bytes: int | None) -> str:
    reason = f"cannot write {path}: {error.strerror or error}."
    if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        free = shutil.disk_usage(_nearest_existing(path)).free
        needs = "" if needed_bytes is None else f"it needs {needed_bytes} bytes, "
        return f"{reason} {needs.capitalize()}{free} bytes are free. Make room and run again."
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"{reason} Choose a folder that this user may write to."
    return reason


def _nearest_existing(path: Path) -> Path:
    return next(p for p in (path, *path.absolute().parents) if p.exists())
