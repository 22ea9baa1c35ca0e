"""Crash-safe files: after a kill, a full disk or a power failure a file is the old or the new one.

Folders are in `folders.py`.
"""

import errno
import itertools
import json
import math
import mmap
import os
import shutil
import signal
import stat
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import IO, Any

from heed.errors import FULL_DISK, FormatError, HeedError, RunError

LOCK = "run.lock"
TEMPORARY = ".tmp-"
CHUNK_BYTES = 1 << 20
LOOK_S = 0.05
"""Longer than a process takes to test whether a folder is locked."""
Contents = bytes | mmap.mmap
"""The content of a file, in memory or mapped."""

_fault_points = itertools.count(1)


def fault_point() -> None:
    """Kill the process by SIGKILL if this is the `HEED_FAULT`-th such point that it reaches.

    The tests kill a save at every point in turn.
    """
    wanted = os.environ.get("HEED_FAULT")
    if wanted and next(_fault_points) == int(wanted):
        os.kill(os.getpid(), signal.SIGKILL)


def write_atomically(
    path: str | os.PathLike[str], data: bytes, *, follow_links: bool = False
) -> None:
    """Write `data` to `path` atomically.

    Missing parent folders are made. A symbolic link is replaced, not written through, unless
    `follow_links` (see `atomic_writer`).

    Raises:
        RunError: the disk is full or read-only, or permission is denied; the old file stays.
    """
    with atomic_writer(path, needed_bytes=len(data), follow_links=follow_links) as file:
        _write_in_halves(file, data)


@contextmanager
def atomic_writer(
    path: str | os.PathLike[str], *, needed_bytes: int | None = None, follow_links: bool = False
) -> Iterator[IO[bytes]]:
    """Stream into a file that appears at `path` only when the block ends without an exception.

    Args:
        path: where the file will be.
        needed_bytes: its final size if known, for the message on a full disk.
        follow_links: a symbolic link at `path` stays, the file it points to is replaced, and its
            permissions stay. Only for a path that the user typed: links in a model folder are not
            trusted.

    Raises:
        RunError: the disk is full or read-only, or permission is denied; the old file stays.
    """
    target = Path(os.path.realpath(path) if follow_links else path)
    if not target.is_symlink():
        _require_file(target, path)
    temporary = temporary_beside(target)
    with as_run_error(target, needed_bytes), cleanup_on_error(temporary):
        make_directory(target.parent)
        with open(temporary, "xb") as file:
            fault_point()
            if follow_links and target.exists():
                with suppress(OSError):  # some network file systems have no permissions
                    shutil.copymode(target, temporary)
            yield file
            _sync(file)
        os.replace(temporary, target)
        fault_point()
        sync_directory(target.parent)
    fault_point()


def require_writable(path: str | os.PathLike[str]) -> None:
    """Refuse a path at which no file or folder can be made; for a check before long work.

    A temporary file is made beside it, or in its nearest existing parent, and removed.

    Raises:
        RunError: the disk is full or read-only, or permission is denied.
    """
    target = Path(path)
    try:
        temporary = temporary_beside(_nearest_existing(target.parent) / target.name)
        temporary.touch(exist_ok=False)
        temporary.unlink()
    except OSError as error:
        raise RunError(_refusal(target, error, None)) from error


def require_writable_file(path: str | os.PathLike[str]) -> None:
    """Refuse a path at which `atomic_writer` with `follow_links` would fail, before long work.

    Raises:
        RunError: something other than a file is there, the disk is full or read-only, or permission
            is denied.
    """
    target = Path(os.path.realpath(path))
    _require_file(target, path)
    require_writable(target)


def _require_file(target: Path, path: str | os.PathLike[str]) -> None:
    """Refuse a target that exists and is not a file; `path` is its name for the message."""
    if target.exists() and not target.is_file():
        raise RunError(f"cannot write {path}: the path exists and is not a file.")


def write_synced(path: Path, data: bytes) -> None:
    """Write a new file and sync it; the caller renames it and handles errors."""
    with open(path, "xb") as file:
        _write_in_halves(file, data)
        _sync(file)


def _write_in_halves(file: IO[bytes], data: bytes) -> None:
    middle = len(data) // 2
    file.write(data[:middle])
    file.flush()
    fault_point()
    file.write(data[middle:])


def _sync(file: IO[bytes]) -> None:
    file.flush()
    fault_point()
    os.fsync(file.fileno())
    fault_point()


def make_directory(path: Path) -> None:
    """Make `path` and its missing parents, and sync the name of each."""
    if not path.is_dir():
        make_directory(path.parent)
        with as_run_error(path), suppress(FileExistsError):
            path.mkdir()
            sync_directory(path.parent)


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
    with _opened(path) as file:
        size = os.fstat(file.fileno()).st_size
        if max_bytes is not None and size > max_bytes:
            raise FormatError(f"{path} has {size} bytes; the limit is {max_bytes}.")
        return file.read()


def map_bytes(path: Path) -> Contents:
    """Map a whole regular file: nothing is copied, and processes share its memory.

    It does not change when another file is renamed to its path, as heed does. Truncating it in
    place (`cp` onto it) kills the processes that have it mapped, by SIGBUS.

    Returns:
        The mapping, read-only; bytes if the disk cannot map files, or the file is empty.

    Raises:
        FormatError: it is missing, not a regular file, or unreadable.
    """
    with _opened(path) as file:
        try:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError):
            return file.read()


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    try:
        with open(path, "rb", opener=_open_regular) as file:
            yield file
    except FileNotFoundError:
        raise FormatError(f"{path} is missing.") from None
    except OSError as error:
        raise FormatError(f"{path} cannot be read: {error.strerror or error}.") from error


def _open_regular(path: str, flags: int) -> int:
    """Open without blocking: a named pipe in a model folder would otherwise block forever."""
    descriptor = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "it is not a regular file")
    return descriptor


def to_json(value: Any, *, indent: int | None = 2) -> bytes:
    """JSON as UTF-8 with a final newline; any str survives, NaN and infinity are refused."""
    text = json.dumps(value, indent=indent, ensure_ascii=False, allow_nan=False)
    # A lone surrogate (from an undecodable file name) becomes \udcXX, as JSON escapes it.
    return text.encode("utf-8", "backslashreplace") + b"\n"


def parse_json(data: bytes, path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read one JSON object strictly: no NaN, no infinity, no duplicate key, no excessive nesting.

    Args:
        data: UTF-8.
        path: its file, for messages.

    Raises:
        FormatError: tells the mistake.
    """
    try:
        value = strict_json(data.decode("utf-8"))
    except RecursionError:
        raise FormatError(f"{path} is not valid JSON: nested too deeply.") from None
    except ValueError as error:
        raise FormatError(f"{path} is not valid JSON: {error}.") from None
    if not isinstance(value, dict):
        raise FormatError(f"{path} must hold a JSON object, but holds {type(value).__name__}.")
    return value


def strict_json(text: str) -> Any:
    """The value of a JSON text.

    Args:
        text: JSON without repeated keys, NaN, or numbers too large for a float.

    Raises:
        ValueError: it is not such a text; tells the mistake.
        RecursionError: it is nested too deeply.
    """
    return json.loads(
        text, object_pairs_hook=_unique_keys, parse_constant=_refuse_number, parse_float=_finite
    )


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {key!r} is repeated")
        found[key] = value
    return found


def _refuse_number(text: str) -> float:
    raise ValueError(f"{text} is not a valid JSON number")


def _finite(text: str) -> float:
    if math.isinf(number := float(text)):
        raise ValueError(f"{text} is too large for a number")
    return number


def append_json_line(path: str | os.PathLike[str], value: Any) -> None:
    """Append one line to a JSON-lines log and flush it; an incomplete last line is removed.

    Raises:
        RunError: the disk is full or read-only, or permission is denied.
    """
    target = Path(path)
    line = to_json(value, indent=None)
    with as_run_error(target, len(line)), _open_own(target) as file:
        complete = _complete_length(file)
        if complete != file.seek(0, os.SEEK_END):
            file.truncate(complete)
        fault_point()
        file.write(line)
        file.flush()
        fault_point()


def read_json_lines(path: str | os.PathLike[str]) -> Iterator[dict[str, Any]]:
    """Yield the objects of a JSON-lines log; an incomplete last line, without newline, is ignored.

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


def drop_damaged_lines(path: str | os.PathLike[str]) -> int:
    """Remove complete lines that are not JSON objects from a log; returns how many.

    Lines are not synced one by one: after a power failure, one may be lost and later ones not.
    """
    *lines, incomplete = Path(path).read_bytes().split(b"\n")
    sound = [line for line in lines if _is_object(line)]
    if len(sound) < len(lines):
        write_atomically(path, b"\n".join([*sound, incomplete]))
    return len(lines) - len(sound)


def _is_object(line: bytes) -> bool:
    try:
        parse_json(line, "")
    except FormatError:
        return False
    return True


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


@contextmanager
def lock(directory: str | os.PathLike[str]) -> Iterator[None]:
    """Lock a run folder for this process; the system releases the lock when the process ends.

    Raises:
        RunError: another process has locked it, or the folder cannot be written.
    """
    import fcntl

    make_directory(folder := Path(directory))
    with ExitStack() as stack:
        with as_run_error(folder / LOCK):
            file = stack.enter_context(_open_own(folder / LOCK))
            try:
                _take(file, fcntl.LOCK_EX)
            except BlockingIOError:
                raise RunError(
                    f"another process (pid {_pid_in(file)}) is training in {directory}. "
                    "Wait for it, stop it, or choose another run folder."
                ) from None
            except OSError as error:
                raise RunError(
                    f"{directory} is on a disk without locks ({error.strerror}), so that two "
                    "processes might train in it. Choose a run folder on another disk."
                ) from error
            file.truncate(0)
            os.write(file.fileno(), f"{os.getpid()}\n".encode())  # a buffer would fail at its end
        yield


def is_locked(directory: str | os.PathLike[str]) -> bool:
    """Whether a process has locked a run folder; nothing is written."""
    import fcntl

    path = Path(directory) / LOCK
    if path.is_symlink():
        return False
    try:
        with _opened(path) as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)  # for a moment; `_take` waits for it
    except FormatError as error:
        return isinstance(error.__cause__, BlockingIOError)
    return False


def locked_by(directory: str | os.PathLike[str]) -> str:
    """The pid of the process that has locked a run folder, or "unknown"; "" if none has."""
    if not is_locked(directory):
        return ""
    with _opened(Path(directory) / LOCK) as file:
        return _pid_in(file)


def _pid_in(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(20).decode("ascii", "replace").strip() or "unknown"


def _take(file: IO[bytes], kind: int) -> None:
    """Lock a file, at the second attempt if another process is just testing the lock."""
    import fcntl

    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        time.sleep(LOOK_S)
        fcntl.flock(file, kind | fcntl.LOCK_NB)


def _open_own(path: Path) -> IO[bytes]:
    """Open a file of a run folder to read and append; a symbolic link in its place is removed."""
    if path.is_symlink():
        path.unlink()
    _require_file(path, path)
    no_follow = getattr(os, "O_NOFOLLOW", 0)
    return open(path, "ab+", opener=lambda name, flags: os.open(name, flags | no_follow, 0o666))


def temporary_beside(path: Path) -> Path:
    """A new name in the same folder, so that a rename stays on one disk."""
    return path.with_name(f"{path.name}{TEMPORARY}{os.urandom(4).hex()}")


def sync_directory(path: Path) -> None:
    """Sync renames in `path` to disk (does nothing on systems that cannot open folders)."""
    if os.name != "posix":
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        # Some network file systems cannot sync a folder; this is ignored.
        if error.errno != errno.EINVAL:
            raise
    finally:
        os.close(descriptor)


@contextmanager
def cleanup_on_error(temporary: Path) -> Iterator[None]:
    """Leave nothing at `temporary` when the block ends with an exception."""
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
def as_run_error(path: Path, needed_bytes: int | None = None) -> Iterator[None]:
    """Turn an OSError about a path under `path` into a RunError with a remedy."""
    try:
        yield
    except HeedError:
        raise
    except OSError as error:
        # Inside `atomic_writer` the caller may also read; errors of other files are not converted.
        if error.filename is not None and not _is_ours(error.filename, path):
            raise
        raise RunError(_refusal(path, error, needed_bytes)) from error


def _is_ours(filename: Any, path: Path) -> bool:
    return os.fsdecode(filename).startswith((str(path), str(path.parent)))


def _refusal(path: Path, error: OSError, needed_bytes: int | None) -> str:
    reason = f"cannot write {path}: {error.strerror or error}."
    needs = "" if needed_bytes is None else f"it needs {needed_bytes} bytes, "
    if error.errno == errno.EFBIG:
        more = f"{needs or 'it is '}more than a file may have here (ulimit -f)."
        return f"{reason} {more.capitalize()} Raise that limit, or use another disk."
    if error.errno in FULL_DISK:
        free = shutil.disk_usage(_nearest_existing(path)).free
        return f"{reason} {needs.capitalize()}{free} bytes are free. Make room and run again."
    if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return f"{reason} Choose a writable folder."
    return reason


def _nearest_existing(path: Path) -> Path:
    return next(p for p in (path, *path.absolute().parents) if p.exists())
