"""`Interludes`: searches of short requests between two steps of a longer search, in its thread.

Without them, a request of one word waits as long as the longest batch takes, which is seconds if it
has a wide beam and a long text. A search keeps all its state in objects of its own, so it goes on
with the same bits.
"""

import time
from collections.abc import Callable

MOST_DEPTH = 2
"""A short search may give way to a shorter one, which gives way to none."""

SHARE = 2
"""A search gives way to requests of at most this part of the work that it has done itself."""

AFTER_S = 0.2
"""Seconds before a search gives way. Most end sooner, and batches that are split are slower: if
each search gave way at once, eight clients with single sentences had 292 answers a second, not 322.
"""

PAUSE_S = 0.005
"""Seconds before it looks for short requests again."""


class Interludes:
    """Counts the work of a search, and decides when it gives way.

    Work is counted in positions: one for each source, hypothesis and step. A search gives way only
    if it has done more work, and has taken more time, than the shorter ones that it gave way to
    (small batches take more time for a position). So these take at most about half of the time.
    For one thread only.

    Args:
        n_added: returns the number of jobs that were ever queued.
        may_begin: whether no idle thread will take the waiting requests.
        search: searches requests of at most so many positions, if there are any; returns the
            positions that it computed.
        clock: seconds; tests replace it.

    Attributes:
        n_done: positions of the search itself.
        n_given: positions of the searches that it gave way to.
        seconds: time of these.
    """

    def __init__(
        self,
        *,
        n_added: Callable[[], int],
        may_begin: Callable[[], bool],
        search: Callable[[int], int],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._n_added = n_added
        self._may_begin = may_begin
        self._search = search
        self._clock = clock
        self._begun = clock()
        self._looks_at = self._begun + AFTER_S
        self._n_seen = -1
        self._n_left_then = 0
        self.n_done = 0
        self.n_given = 0
        self.seconds = 0.0

    def step(self, n_rows: int) -> None:
        """Count a step of one source; search short requests, if it is time.

        Args:
            n_rows: number of its hypotheses.
        """
        self.n_done += n_rows
        now = self._clock()
        if now < self._looks_at:
            return
        self._looks_at = now + PAUSE_S
        n_left, n_added = self.n_done - self.n_given, self._n_added()
        # The queue is read only if there may be something new in it for this search.
        if n_added == self._n_seen and n_left < 2 * self._n_left_then:
            return
        if n_left <= 0 or not self._may_begin():
            return
        if 2 * self.seconds > now - self._begun:
            return
        self._n_seen, self._n_left_then = n_added, n_left
        if n_searched := self._search(n_left // SHARE):
            self.n_given += n_searched
            self.seconds += self._clock() - now
            self._n_seen = -1  # others may wait
