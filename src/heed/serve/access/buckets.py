"""`Buckets`: the remaining quota of each client, in memory shared by a server's processes."""

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
"""Buckets in a set. The hash of a client's name chooses its set; any bucket of it may be used."""
N_SETS = 1 << 13
"""Together 131,072 buckets of 32 bytes; the kernel allocates only the pages in use."""
NAME_BYTES = 16

PATIENCE_S = 0.05
"""Longest wait for the lock of a process that was stopped during a change: the event loop is
blocked meanwhile."""
IMPATIENT_S = 1.0
"""Time without waiting, in this process, after a wait has failed."""
_PAUSE_S = 0.0005

_BUCKET = struct.Struct(f"{NAME_BYTES}sdd")
_FILLING = struct.Struct(f"{NAME_BYTES}xdd")
_SET_BYTES = N_WAYS * _BUCKET.size

Filling = tuple[float, float]
"""The level of a bucket, and the time at which it was measured."""


class Buckets:
    """A table of fixed size. In a full set, the bucket changed longest ago is reused.

    It holds no names, only hashes with a secret key in memory, so nobody can choose names that fall
    into one set. A killed process leaves no lock behind, because the kernel releases file locks; at
    worst it leaves one bucket half written. For a stopped process, the others wait at most
    `PATIENCE_S`. Then they change the bucket without the lock: one of two simultaneous changes of
    that client may be lost, and so may changes made while the process was stopped. So a client may
    get a little more than its quota, and is never blocked.

    Args:
        is_shared: forked child processes change it, too.
        n_sets: number of sets, a power of 2.
    """

    def __init__(self, *, is_shared: bool = False, n_sets: int = N_SETS) -> None:
        self._secret = secrets.token_bytes(32)
        self._n_sets = n_sets
        self._waits_again_at = 0.0
        self._file = _file_in_memory(n_sets * _SET_BYTES) if is_shared else -1
        self._table = mmap.mmap(self._file, n_sets * _SET_BYTES)

    def mark(self, client: str) -> str:
        """A hash of a client's name, which only processes with this table can compute."""
        return blake2b(client.encode(), digest_size=NAME_BYTES, key=self._secret).hexdigest()

    def change(self, client: str, change: Callable[[Filling | None], Filling]) -> None:
        """Change the bucket of a client; no other running process changes it meanwhile.

        Args:
            client: any name.
            change: returns the new content of the bucket for the old one; None = it is new.
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
            # In one write, so that a reader without the lock finds the old bucket or the new one.
            place += begin
            self._table[place : place + _BUCKET.size] = _BUCKET.pack(name, *filling)
        finally:
            if is_locked:
                _unlock(self._file, begin)

    def _lock(self, begin: int) -> bool:
        """Try to lock a set; return whether it worked in time."""
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
    """The index of the bucket in a set that was changed longest ago; empty ones come first."""
    times = [time for _, time in _FILLING.iter_unpack(buckets)]
    return times.index(min(times))


def _file_in_memory(size: int) -> int:
    """The descriptor of an anonymous file."""
    if sys.platform == "linux":
        file = os.memfd_create("heed-rates")
    else:
        with tempfile.TemporaryFile() as temporary:
            file = os.dup(temporary.fileno())
    os.ftruncate(file, size)
    return file


if sys.platform != "win32":  # Windows has no fork, so nothing to share
    import fcntl

    def _try_to_lock(file: int, begin: int) -> bool:
        try:
            fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, begin)
        except (BlockingIOError, PermissionError):  # POSIX allows either error
            return False
        return True

    def _unlock(file: int, begin: int) -> None:
        fcntl.lockf(file, fcntl.LOCK_UN, 1, begin)
