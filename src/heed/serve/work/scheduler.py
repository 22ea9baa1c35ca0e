"""`Scheduler`: threads that search the lines of all requests in shared batches.

`queue.py` decides whose turn it is, and `interludes.py` when a long search gives way to a short
one. The result of a line does not depend on its batch.
"""

import math
import threading
import time
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from heed.serve.refusal import Refusal
from heed.serve.work.interludes import MOST_DEPTH, Interludes
from heed.serve.work.job import Errand, Job, Part, second_turns
from heed.serve.work.queue import Batch, Queue
from heed.serve.work.results import Results
from heed.serve.work.search import do, search
from heed.serve.work.speeds import Speeds

MAX_RETRY_S = 60
"""Largest number of seconds in Retry-After."""

_SMOOTHING = 0.1
"""Weight of the latest batch in the average speed."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Searched:
    """Statistics of one batch.

    Attributes:
        n_jobs: number of requests that shared it.
        n_parts: number of sentences that need no further search.
        n_src_tokens: their source tokens.
        n_tgt_tokens: their target tokens, without alternatives.
        fill: its share of the largest batch, 0 to 1.
        seconds: time from its start to its end.
    """

    n_jobs: int
    n_parts: int
    n_src_tokens: int
    n_tgt_tokens: int
    fill: float
    seconds: float


class Scheduler:
    """Runs jobs on `n_threads` threads.

    Args:
        n_threads: number of batches that are searched at the same time.
        batch_tokens: limit of a batch on source positions times hypotheses.
        gather_s: a batch waits at most this long for the number of requests at the last one's end.
        max_waiting_chars: limit on the characters of all jobs in the queue.
        on_searched: called after each batch, in the thread that searched it.
        thread_name: how the names of its threads begin.

    Attributes:
        speeds: speeds of the models.
        n_done: number of batches and errands done.
    """

    def __init__(
        self,
        *,
        n_threads: int,
        batch_tokens: int,
        gather_s: float = 0.0,
        max_waiting_chars: int = 1 << 40,
        on_searched: Callable[[Searched], None] | None = None,
        thread_name: str = "heed-search",
    ) -> None:
        self._gather_s = gather_s
        self._max_waiting_chars = max_waiting_chars
        self._on_searched = on_searched
        self._queue = Queue(batch_tokens=batch_tokens)
        self._changed = threading.Condition()
        self._unfinished: weakref.WeakSet[Results[Any]] = weakref.WeakSet()
        self._is_closing = False
        self._n_expected = 0
        self._n_idle = 0
        self._speed = 0.0  # positions per second, of one thread
        self.speeds = Speeds()
        self.n_done = 0
        self._threads = [
            threading.Thread(target=self._work, name=f"{thread_name}-{number}", daemon=True)
            for number in range(n_threads)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def n_waiting_chars(self) -> int:
        """Characters of the jobs in the queue."""
        with self._changed:
            return sum(job.n_chars for job in self._queue.jobs)

    def submit(self, job: Job | Errand) -> None:
        """Queue a job; its `results` tell when it is done.

        Raises:
            Refusal: the queue is full, or the server is shutting down.
        """
        with self._changed:
            self._require_open()
            self._require_room(job)
            self._queue.add(job)
            self._unfinished.add(job.results)
            self._changed.notify()

    def watch(self, results: Results[Any]) -> None:
        """Refuse results from jobs of other requests, too, when the server shuts down.

        Raises:
            Refusal: the server is shutting down already.
        """
        with self._changed:
            self._require_open()
            self._unfinished.add(results)

    def _require_open(self) -> None:
        if self._is_closing:
            raise Refusal(503, "The server is shutting down.", code="shutting_down")

    def close(self, within_s: float | None = None) -> None:
        """Finish the queued work and end the threads.

        Args:
            within_s: seconds after which the remaining work is abandoned; None = no such limit.
        """
        end = None if within_s is None else time.monotonic() + within_s
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join(None if end is None else max(0.0, end - time.monotonic()))
        for results in list(self._unfinished):
            results.fail(Refusal(503, "The server was shut down.", code="shutting_down"))

    def _require_room(self, job: Job | Errand) -> None:
        if self._queue.most_chars + job.n_chars <= self._max_waiting_chars:
            return
        waiting = self._queue.jobs
        n_chars = sum(each.n_chars for each in waiting)
        # A job larger than the whole queue is accepted when the queue is empty.
        if not waiting or n_chars + job.n_chars <= self._max_waiting_chars:
            return
        n_positions = sum(each.n_positions for each in waiting)
        speed = self._speed * len(self._threads)
        wait_s = math.ceil(n_positions / speed) if speed else 1
        raise Refusal(
            503,
            "The server is overloaded. Try again later.",
            code="busy",
            headers={"Retry-After": str(min(max(1, wait_s), MAX_RETRY_S))},
        )

    def _work(self) -> None:
        while (work := self._next()) is not None:
            if isinstance(work, Errand):
                do(work)
            else:
                self._search(work)
            del work  # otherwise it stays in memory until the next one
            with self._changed:
                self.n_done += 1

    def _search(self, batch: Batch, depth: int = 0) -> int:
        """Search a batch, and short ones between its steps; the positions computed."""
        between = Interludes(
            n_added=lambda: self._queue.n_added,
            # An idle thread was notified of all that waits.
            may_begin=lambda: depth < MOST_DEPTH and not self._n_idle,
            search=lambda n_positions: self._search_short(n_positions, depth + 1),
        )
        search(batch, self._note, between)
        return between.n_done + between.n_given

    def _search_short(self, n_positions: int, depth: int) -> int:
        """Search requests of at most so many positions; 0 if there are none."""
        with self._changed:
            batch = self._queue.take_short(n_positions)
        if batch is None:
            return 0
        n_computed = self._search(batch, depth)
        with self._changed:
            self.n_done += 1
        return max(1, n_computed)

    def _next(self) -> Batch | Errand | None:
        with self._changed:
            while (work := self._queue.take()) is None:
                if self._is_closing:
                    return None
                self._n_idle += 1
                self._changed.wait()
                self._n_idle -= 1
            if isinstance(work, Batch) and not self._is_closing:
                self._gather(work)
            return work

    def _gather(self, batch: Batch) -> None:
        """Wait briefly for the number of requests that there were when the last batch ended."""
        end = time.monotonic() + self._gather_s
        while not batch.is_again and batch.n_jobs < self._n_expected and not batch.is_full:
            if (left := end - time.monotonic()) <= 0:
                break
            self._changed.wait(left)
            self._queue.fill(batch)
        if self._queue.jobs:  # this thread may have consumed another thread's notification
            self._changed.notify()

    def _note(self, batch: Batch, again: list[Part], n_tgt_tokens: int, seconds: float) -> None:
        """Update the statistics after a batch, before any client has its answer."""
        with self._changed:
            for turns in second_turns(again):
                self._queue.add(turns)
                self._changed.notify()
            # Clients that get an answer usually send another request.
            n_answered = batch.n_jobs - len({id(part.job) for part in again})
            self._n_expected = n_answered + self._queue.n_new
            speed = batch.n_positions / max(seconds, 1e-6)
            share = _SMOOTHING if self._speed else 1.0
            self._speed += share * (speed - self._speed)
            self.speeds.add(batch.call.model, n_tokens=n_tgt_tokens, seconds=seconds)
        if self._on_searched is not None:
            n_tokens = sum(part.n_tokens for part in batch.parts)
            self._on_searched(
                Searched(
                    n_jobs=batch.n_jobs,
                    n_parts=len(batch.parts) - len(again),
                    n_src_tokens=n_tokens - sum(part.n_tokens for part in again),
                    n_tgt_tokens=n_tgt_tokens,
                    fill=min(1.0, batch.n_positions / batch.max_tokens),
                    seconds=seconds,
                )
            )
