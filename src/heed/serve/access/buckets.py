"""`Buckets`: what is left to each client, in memory that the processes of a server share."""

import mmap
import os
import secrets
import struct
import sys
import tempfile
from collections.abc import Callable
from hashlib import blake2b

N_WAYS = 16
"""Buckets of a set. A client may have any bucket of its set, which its name chooses."""
N_SETS = 1 << 13
"""Together 131,072 buckets of 32 bytes; memory is taken only for those that are used."""
NAME_BYTES = 16

_BUCKET = struct.Struct(f"{NAME_BYTES}sdd")
_FILLING = struct.Struct(f"{NAME_BYTES}xdd")
_SET_BYTES = N_WAYS * _BUCKET.size

Filling = tuple[float, float]
"""What was left in a bucket, and the time of that."""


class Buckets:
    """A table of fixed size. Where a set is full, the bucket changed longest ago is forgotten.

    It holds no names, but hashes with a secret that is nowhere but in memory, so nobody can choose
    names that fall into one set. A process that is killed leaves no lock behind, for the kernel
    takes back locks of files, and at worst one bucket that is half written.

    Args:
        is_shared: processes that are forked from this one change it too.
        n_sets: a power of 2.
    """

    def __init__(self, *, is_shared: bool = False, n_sets: int = N_SETS) -> None:
        self._secret = secrets.token_bytes(32)
        self._n_sets = n_sets
        self._file = _file_in_memory(n_sets * _SET_BYTES) if is_shared else -1
        self._table = mmap.mmap(self._file, n_sets * _SET_BYTES)

    def change(self, client: str, change: Callable[[Filling | None], Filling]) -> None:
        """Change the bucket of a client; no other process changes it meanwhile.

        Args:
            client: any name.
            change: what is to be in the bucket, from what is in it; None = it is a new one.
        """
        name = blake2b(client.encode(), digest_size=NAME_BYTES, key=self._secret).digest()
        begin = int.from_bytes(name[:4]) % self._n_sets * _SET_BYTES
        if self._file >= 0:
            _lock(self._file, begin)
        try:
            found = self._table[begin : begin + _SET_BYTES]
            place = found.find(name)
            if place < 0:
                filling = change(None)
                place = _BUCKET.size * _oldest(found)
            else:
                filling = change(_FILLING.unpack_from(found, place))
            _BUCKET.pack_into(self._table, begin + place, name, *filling)
        finally:
            if self._file >= 0:
                _unlock(self._file, begin)


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

    def _lock(file: int, begin: int) -> None:
        fcntl.lockf(file, fcntl.LOCK_EX, 1, begin)

    def _unlock(file: int, begin: int) -> None:
        fcntl.lockf(file, fcntl.LOCK_UN, 1, begin)
