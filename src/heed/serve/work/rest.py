"""`Rest`: return the memory of an idle server to the system.

Without this a server would keep its peak memory until it ends: the engine keeps the memory of its
batches for the next ones, and glibc's heap keeps what large requests and traces have freed.
"""

import time
from collections.abc import Callable

from heed.engine.library import give_back_memory
from heed.machine.memory import give_back_freed_memory

IDLE_S = 10.0
"""Seconds without a search before the memory of batches is returned; the next batch needs some
milliseconds to allocate it again."""

BUSY_S = 60.0
"""Seconds between two returns of the heap's free memory while the server is busy."""


class Rest:
    """Checks regularly whether memory should be returned.

    Args:
        n_done: returns the number of batches and tasks done so far.
        clock: seconds; tests replace it.
    """

    def __init__(
        self, n_done: Callable[[], int], *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._n_done = n_done
        self._clock = clock
        self._n_seen = n_done()
        self._since = self._given_back_at = clock()
        self._is_resting = False

    def look(self) -> None:
        """Return memory if it is time; called about once a second."""
        now, n_done = self._clock(), self._n_done()
        if n_done != self._n_seen:
            self._n_seen, self._since, self._is_resting = n_done, now, False
        if self._is_resting:
            return
        self._is_resting = now - self._since >= IDLE_S
        if self._is_resting:
            give_back_memory()
        if self._is_resting or now - self._given_back_at >= BUSY_S:
            self._given_back_at = now
            give_back_freed_memory()
