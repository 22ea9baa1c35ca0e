"""`Queue`: jobs that take turns, and the batches made from their parts.

Each batch begins with the next part of the job whose turn it is. It is filled with parts of similar
length from all jobs with the same call, one from each job in turn. So a request of one sentence
does not wait for a request of a thousand, and a short sentence does not wait for a long one. Parts
for a second search have their own turns and batches, which combine those of several searches.
Between two steps of a longer search, short requests are taken out of turn.

Not thread-safe: `Scheduler` holds a lock.
"""

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from heed.serve.work.job import Call, Errand, Part, Turns
from heed.translate.search import rows_of

LIKE_FACTOR, LIKE_OFFSET = 2, 8
"""Parts share a batch if none has more than twice as many tokens as another, plus eight."""


@dataclass(kw_only=True)
class Batch:
    """Parts that are searched together.

    Attributes:
        call: call of all their jobs.
        max_tokens: limit on source positions times hypotheses; a single part may exceed it.
        parts: at least one; the first one's length decides which others fit.
        is_again: whether this is their second search.
    """

    call: Call
    max_tokens: int
    parts: list[Part]
    is_again: bool = False

    def __post_init__(self) -> None:
        self._longest = max(part.n_tokens for part in self.parts)

    @property
    def n_positions(self) -> int:
        """Source positions times hypotheses, including padding."""
        return len(self.parts) * rows_of(self.call.options) * self._longest

    @property
    def n_jobs(self) -> int:
        """Number of requests that share it."""
        return len({id(part.job) for part in self.parts})

    @property
    def is_full(self) -> bool:
        """Whether even a part as long as the first one does not fit."""
        return not self.has_room(self.parts[0].n_tokens)

    def has_room(self, n_tokens: int) -> bool:
        """Whether a part of this length fits."""
        first = self.parts[0].n_tokens
        is_like = max(first, n_tokens) <= LIKE_FACTOR * min(first, n_tokens) + LIKE_OFFSET
        n_rows = (len(self.parts) + 1) * rows_of(self.call.options)
        return is_like and n_rows * max(self._longest, n_tokens) <= self.max_tokens

    def add(self, part: Part) -> None:
        """Add a part, for which there must be room."""
        part.segment.has_begun = True
        self.parts.append(part)
        self._longest = max(self._longest, part.n_tokens)


class Queue:
    """Jobs in the order of their turns.

    Args:
        batch_tokens: limit of a batch on source positions times hypotheses.

    Attributes:
        most_chars: characters of the waiting jobs, and of some that no longer wait.
        n_added: number of jobs that were ever added.
    """

    def __init__(self, *, batch_tokens: int) -> None:
        self._batch_tokens = batch_tokens
        self._jobs: deque[Turns | Errand] = deque()
        self.most_chars = 0
        self.n_added = 0

    @property
    def jobs(self) -> list[Turns | Errand]:
        """The jobs that wait for a turn."""
        self._forget()
        return list(self._jobs)

    @property
    def n_new(self) -> int:
        """Number of requests that wait for a turn of their first search."""
        return sum(not (isinstance(job, Turns) and job.is_again) for job in self.jobs)

    def add(self, job: Turns | Errand) -> None:
        """Add a job, whose first turn comes after all others."""
        self._jobs.append(job)
        self.most_chars += job.n_chars
        self.n_added += 1

    def take(self) -> Batch | Errand | None:
        """The next work of a thread; None if there is none."""
        self._forget()
        if not self._jobs:
            return None
        job = self._jobs.popleft()
        if isinstance(job, Errand):
            self.most_chars -= job.n_chars
            return job
        self._jobs.append(job)
        batch = self._begin(job)
        self.fill(batch)
        return batch

    def take_short(self, n_positions: int) -> Batch | None:
        """A batch of requests that wait with little work, out of turn; None if there are none.

        Short requests with the same call are taken together or not at all: many small batches take
        longer than one.

        Args:
            n_positions: limit on their work.
        """
        self._forget()
        waiting = (job for job in self._jobs if isinstance(job, Turns))
        short = [job for job in waiting if job.is_within(n_positions)]
        while short:
            first = short[0]
            alike = [job for job in short if _are_alike(job, first)]
            n_all = sum(job.n_positions for job in alike)
            if min(n_all, self._batch_tokens) <= n_positions:
                batch = self._begin(first)
                _fill(batch, alike)
                return batch
            short = [job for job in short if not _are_alike(job, first)]
        return None

    def fill(self, batch: Batch) -> None:
        """Add parts that fit, one from each job in turn."""
        waiting = (job for job in self._jobs if isinstance(job, Turns) and job.is_waiting)
        _fill(batch, [job for job in waiting if _are_alike(job, batch)])

    def _begin(self, job: Turns) -> Batch:
        """A batch with the next part of a job."""
        part = job.next_part()
        part.segment.has_begun = True
        return Batch(
            call=job.call, max_tokens=self._batch_tokens, parts=[part], is_again=job.is_again
        )

    def _forget(self) -> None:
        """Drop the jobs without waiting parts."""
        if not all(job.is_waiting for job in self._jobs):
            self._jobs = deque(job for job in self._jobs if job.is_waiting)
            self.most_chars = sum(job.n_chars for job in self._jobs)


def _are_alike(job: Turns, other: Turns | Batch) -> bool:
    """Whether their parts may share a batch."""
    return job.is_again == other.is_again and job.call == other.call


def _fill(batch: Batch, jobs: Iterable[Turns]) -> None:
    """Add parts of these jobs that fit, one from each in turn."""
    giving = offers = [_Offer(job, batch) for job in jobs]
    while giving and not batch.is_full:
        giving = [offer for offer in giving if offer.give()]
    for offer in offers:
        offer.settle()


class _Offer:
    """The waiting parts of a job, each offered once to a batch, in order.

    A part that does not fit now will not fit later, because the room of a batch only shrinks.
    """

    def __init__(self, job: Turns, batch: Batch) -> None:
        self._job = job
        self._batch = batch
        self._parts = iter(job.waiting)
        self._given: set[int] = set()

    def give(self) -> bool:
        """Add the next part that fits to the batch; False if there is none."""
        for part in self._parts:
            if part.segment.is_wanted and self._batch.has_room(part.n_tokens):
                self._batch.add(part)
                self._given.add(id(part))
                return True
        return False

    def settle(self) -> None:
        """Remove the added parts from the waiting ones."""
        if self._given:
            waiting = self._job.waiting
            self._job.waiting = deque(part for part in waiting if id(part) not in self._given)
