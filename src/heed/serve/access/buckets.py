"""`Buckets`: what is left to each client, in memory that the processes of a server share."""

import mmap
import os
import secrets
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from hashlib import blake2b

N_WAYS = 16
"""Buckets of a set. A client may have any bucket of its set, which its name chooses."""
N_SETS = 1 << 13
"""Together 131,072 buckets of 32 bytes; memory is taken only for those that are used."""
NAME_BYTES = 16

PATIENCE_S = 0.05
"""A change waits no longer for a process that is stopped in the middle of its own: meanwhile the
event loop stands still."""
IMPATIENT_S = 1.0
"""After one has waited in vain, so long no other waits."""
_PAUSE_S = 0.0005

_BUCKET = struct.Struct(f"{NAME_BYTES}sdd")
_FILLING = struct.Struct(f"{NAME_BYTES}xdd")
_SET_BYTES = N_WAYS * _BUCKET.size

Filling = tuple[float, float]
"""What was left in a bucket, and the time of that."""


class Buckets:
    """A table of fixed size. Where a set is full, the bucket changed longest ago is forgotten.

    It holds no names, but hashes with a secret that is nowhere but in memory, so nobody can choose
    names that fall into one set. A process that is killed leaves no lock behind, for the kernel
    takes back locks of files, and at worst one bucket that is half written. For one that is stopped
    the others wait `PATIENCE_S` at most. Then they change the bucket without the lock: of changes
    at the same instant one may be forgotten, and the stopped process may forget those made while
    it stood, of that one client. So a client is allowed a little too much, and never is blocked.

    Args:
        is_shared: processes that are forked from this one change it too.
        n_sets: a power of 2.
    """

    def __init__(self, *, is_shared: bool = False, n_sets: int = N_SETS) -> None:
        self._secret = secrets.token_bytes(32)
        self._n_sets = n_sets
        self._waits_again_at = 0.0
        self._file = _file_in_memory(n_sets * _SET_BYTES) if is_shared else -1
        self._table = mmap.mmap(self._file, n_sets * _SET_BYTES)

    def change(self, client: str, change: Callable[[Filling | None], Filling]) -> None:
        """Change the bucket of a client; no other process that runs changes it meanwhile.

        Args:
            client: any name.
            change: what is to be in the bucket, from what is in it; None = it is a new one.
        """
        name = blake2b(client.encode(), digest_size=NAME_BYTES, key=self._secret).digest()
        begin = int.from_bytes(name[:4]) % self._n_sets * _SET_BYTES
        is_locked = self._file >= 0 and self._lock(begin)
        try:
            found = self._table[begin : begin + _SET_BYTES]
            place = found.find(name)
            if place < 0:
                filling = change(None)
                place = _BUCKET.size * _oldest(found)
            else:
                filling = change(_FILLING.unpack_from(found, place))
            # At once, so that who reads without the lock finds an old bucket or a new one.
            place += begin
            self._table[place : place + _BUCKET.size] = _BUCKET.pack(name, *filling)
        finally:
            if is_locked:
                _unlock(self._file, begin)

    def _lock(self, begin: int) -> bool:
        """Whether the lock of a set was got in time."""
        if _try_to_lock(self._file, begin):
            return True
        now = time.monotonic()
        if now < self._waits_again_at:
            return False
        give_up = now + PATIENCE_S
        while time.monotonic() < give_up:
            time.sleep(_PAUSE_S)
            if _try_to_lock(self._file, begin):
                return True
        self._waits_again_at = time.monotonic() + IMPATIENT_S
        return False


def _oldest(buckets: bytes) -> int:
    """The number of the bucket in a set that was changed longest ago; an empty one never was."""
    times = [time for _, time in _FILLING.iter_unpack(buckets)]
    return times.index(min(times))


def _file_in_memory(size: int) -> int:
    """The descriptor of a file without a name."""
    if sys.platform == "linux":
        file = os.memfd_create("heed-rates")
    else:
        with tempfile.TemporaryFile() as temporary:
            file = os.dup(temporary.fileno())
    os.ftruncate(file, size)
    return file


if sys.platform != "win32":  # where there is no fork, and so nothing to share
    import fcntl

    def _try_to_lock(file: int, begin: int) -> bool:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, begin)
        except (BlockingIOError, PermissionError):  # which of them, POSIX leaves open
            return False
        return True

    def _unlock(file: int, begin: int) -> None:
        fcntl.lockf(file, fcntl.LOCK_UN, 1, begin)
