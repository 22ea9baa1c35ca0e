"""`Rest`: a server that has nothing to do gives back the memory of what it did.

Without this it would hold, until it ends, the most that any moment needed: the engine keeps the
memory of its batches for the next, and the heap of glibc what large requests and traces left free.
"""

import time
from collections.abc import Callable

from heed.engine.library import give_back_memory
from heed.machine.memory import give_back_freed_memory

IDLE_S = 10.0
"""So long nothing was searched, and the memory of batches goes back; the next batch takes it anew,
which costs it some milliseconds."""

BUSY_S = 60.0
"""So often the heap's free memory goes back meanwhile."""


class Rest:
    """Looks now and then whether it is time.

    Args:
        n_done: how many batches and errands were done so far.
        clock: seconds; another one for tests.
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
        """Give memory back if it is time; called about once a second."""
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
