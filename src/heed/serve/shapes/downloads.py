"""Translated files to be fetched: stored in a folder for a limited time, under random names."""

import asyncio
import errno
import logging
import re
import time
import uuid
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path

from heed.disk.files import TEMPORARY, make_directory, write_atomically
from heed.errors import HeedError
from heed.serve.refusal import Refusal
from heed.serve.service import Service
from heed.serve.settings import Store
from heed.serve.shapes.storage import THREADS, folder_of
from heed.serve.shapes.stored import beside_store
from heed.serve.work.results import call_soon

FOLDER = "files"
_NAME = re.compile(r"[0-9a-f]{32}(-[0-9a-f]{64})?(?:-([0-9a-f]{8}))?\.[\w.-]+")
_UNFINISHED = re.compile(re.escape(TEMPORARY) + r"[0-9a-f]+\Z")
UNFINISHED_S = 600.0
"""After so many seconds, a file that is not complete is not written any more."""
LATE_S = 1.0
"""Seconds from the end of a file's time to its deletion."""
OWN_USER_ONLY = 0o700

log = logging.getLogger(__name__)


async def keep_file(
    service: Service, name: str, content: bytes, *, lock: str = "", owner: str = ""
) -> str:
    """Store a file, and delete it when its time is over; arguments and result as in `keep`.

    Raises:
        Refusal: as `keep`; or the disk of the store does not answer (504).
    """
    store, loop = service.settings.store, asyncio.get_running_loop()

    def keep() -> str:
        kept = Downloads(store).keep(name, content, lock=lock, owner=owner)
        # Here, because a slow disk may store a file after the end of its request.
        call_soon(loop, _forget_later, store)
        return kept

    return await beside_store(service, keep)


def _forget_later(settings: Store) -> None:
    downloads, loop = Downloads(settings), asyncio.get_running_loop()
    loop.call_later(settings.file_s + LATE_S, loop.run_in_executor, THREADS, downloads.forget)


async def forget_files(settings: Store) -> None:
    """Delete the files of an earlier process when their time is over; return when none is left."""
    downloads, loop = Downloads(settings), asyncio.get_running_loop()
    while (left_s := await loop.run_in_executor(THREADS, downloads.forget)) is not None:
        await asyncio.sleep(left_s + LATE_S)


class Downloads:
    """Stored files, shared by all processes.

    Args:
        settings: folder, maximum number and lifetime.

    Methods raise `Refusal` (503) if the folder cannot be used.
    """

    def __init__(self, settings: Store) -> None:
        self._settings = settings

    def keep(self, name: str, content: bytes, *, lock: str = "", owner: str = "") -> str:
        """Store a file, and delete files that are too old or too many.

        Of too many, those of the owner with the most are deleted, the oldest first.

        Args:
            name: name of the file, without folders.
            content: its bytes.
            lock: hexadecimal hash of a secret that is required to fetch it.
            owner: name of the client's key or a hash of its address.

        Returns:
            A name for fetching it.
        """
        mark = _mark_of(owner)
        kept = f"{'-'.join(filter(None, [uuid.uuid4().hex, lock, mark]))}.{name}"
        try:
            folder = self._folder()
            make_directory(folder)
            folder.chmod(OWN_USER_ONLY)
            self._forget(folder, [mark])
            write_atomically(folder / kept, content)
        except (OSError, HeedError) as error:
            raise _unusable(error) from error
        return kept

    def read(self, name: str) -> tuple[str, bytes] | None:
        """The file's original name and its bytes; None if it does not exist."""
        if not _NAME.fullmatch(name):
            return None
        path = self._folder() / name
        try:
            if self._is_old(path):
                return None
            return name.partition(".")[2], path.read_bytes()
        except OSError as error:
            if error.errno in (errno.ENOENT, errno.ENAMETOOLONG):
                return None
            raise _unusable(error) from error

    def find(self, id: str, lock: str) -> str | None:
        """The name of a file that was stored with this lock; None if it does not exist."""
        prefixes = f"{id}-{lock}.", f"{id}-{lock}-"
        try:
            found = [each for each in self._folder().iterdir() if each.name.startswith(prefixes)]
            return found[0].name if found and not self._is_old(found[0]) else None
        except OSError:
            return None

    def _is_old(self, path: Path) -> bool:
        return time.time() - path.stat().st_mtime > self._settings.file_s

    def _folder(self) -> Path:
        return folder_of(self._settings) / FOLDER

    def forget(self) -> float | None:
        """Delete files that are too old, if the folder can be used.

        Returns:
            Seconds until the next file is too old; None = there is none.
        """
        with suppress(OSError, HeedError):
            times = self._forget(self._folder())
            return max(0.0, min(times) + self._settings.file_s - time.time()) if times else None
        return None

    def _forget(self, folder: Path, new: Sequence[str] = ()) -> list[float]:
        """Delete files that are too old or too many, as other threads and processes do too.

        Args:
            folder: of the files.
            new: the marks of files that will be added.

        Returns:
            When each of the other files was stored, in seconds since 1970.
        """
        now = time.time()
        found = []
        for path in folder.iterdir():
            try:
                changed = path.stat().st_mtime
            except FileNotFoundError:
                continue  # deleted or renamed meanwhile
            if not _UNFINISHED.search(path.name):
                found.append((changed, path))
            elif now - changed > UNFINISHED_S:
                path.unlink(missing_ok=True)
        kept = [each for each in sorted(found) if now - each[0] <= self._settings.file_s]
        n_of = Counter([*new, *(_mark_in(path) for _, path in kept)])
        while kept and n_of.total() > self._settings.files:
            most = max(n_of.values())
            surplus = next(each for each in kept if n_of[_mark_in(each[1])] == most)
            kept.remove(surplus)
            n_of[_mark_in(surplus[1])] -= 1
        for each in set(found) - set(kept):
            each[1].unlink(missing_ok=True)
        return [changed for changed, _ in kept]


def _mark_of(owner: str) -> str:
    """The part of a file's name that tells its owner's files from those of others."""
    return blake2b(owner.encode(), digest_size=4).hexdigest() if owner else ""


def _mark_in(path: Path) -> str:
    match = _NAME.fullmatch(path.name)
    return match[2] or "" if match else ""


def _unusable(error: OSError | HeedError) -> Refusal:
    """Refuse a request, and log the reason without paths: the client has named its file."""
    cause = error if isinstance(error, OSError) else error.__cause__
    reason = cause.strerror if isinstance(cause, OSError) else error
    log.error("the folder of translated files cannot be used: %s", reason)
    return Refusal(503, "The server cannot store files now.", code="no_store")
