"""`Queue`: jobs that take turns, and the batches made of their parts.

Each batch begins with the next part of the job whose turn it is, and is filled with parts of like
length of all jobs with the same call, one of each job in turn. So a request of one sentence does
not wait for a request of a thousand, nor a short sentence for a long one. Parts that are searched
for the second time have turns and batches of their own, in which those of several first searches
come together.

Not thread-safe: `Scheduler` holds a lock.
"""

from collections import deque
from dataclasses import dataclass

from heed.serve.work.job import Call, Errand, Part, Turns
from heed.translate.search import rows_of

LIKE_FACTOR, LIKE_OFFSET = 2, 8
"""Parts share a batch if none has more than twice as many tokens, and eight, as another."""


@dataclass(kw_only=True)
class Batch:
    """Parts that are searched together.

    Attributes:
        call: of all their jobs.
        max_tokens: most source positions times hypotheses, unless one part alone has more.
        parts: at least one; the first one's length decides which others fit.
        is_again: they are searched for the second time.
    """

    call: Call
    max_tokens: int
    parts: list[Part]
    is_again: bool = False

    def __post_init__(self) -> None:
        self._longest = max(part.n_tokens for part in self.parts)

    @property
    def n_positions(self) -> int:
        """Source positions times hypotheses, padding included."""
        return len(self.parts) * rows_of(self.call.options) * self._longest

    @property
    def n_jobs(self) -> int:
        """Requests that share it."""
        return len({id(part.job) for part in self.parts})

    @property
    def is_full(self) -> bool:
        """Whether not even a part as long as the first one fits."""
        return not self.has_room(self.parts[0].n_tokens)

    def has_room(self, n_tokens: int) -> bool:
        """Whether a part of this length fits."""
        first = self.parts[0].n_tokens
        is_like = max(first, n_tokens) <= LIKE_FACTOR * min(first, n_tokens) + LIKE_OFFSET
        n_rows = (len(self.parts) + 1) * rows_of(self.call.options)
        return is_like and n_rows * max(self._longest, n_tokens) <= self.max_tokens

    def add(self, part: Part) -> None:
        """One more part, for which there is room."""
        part.segment.has_begun = True
        self.parts.append(part)
        self._longest = max(self._longest, part.n_tokens)


class Queue:
    """Jobs in the order of their turns.

    Args:
        batch_tokens: most source positions times hypotheses of a batch.

    Attributes:
        most_chars: characters of the jobs that wait, and of some that do not any more.
    """

    def __init__(self, *, batch_tokens: int) -> None:
        self._batch_tokens = batch_tokens
        self._jobs: deque[Turns | Errand] = deque()
        self.most_chars = 0

    @property
    def jobs(self) -> list[Turns | Errand]:
        """Those that wait for a turn."""
        self._forget()
        return list(self._jobs)

    @property
    def n_new(self) -> int:
        """Requests that wait for a turn, those that wait for a second search left out."""
        return sum(not (isinstance(job, Turns) and job.is_again) for job in self.jobs)

    def add(self, job: Turns | Errand) -> None:
        """A new job gets its first turn after all others."""
        self._jobs.append(job)
        self.most_chars += job.n_chars

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
        part = job.next_part()
        part.segment.has_begun = True
        batch = Batch(
            call=job.call, max_tokens=self._batch_tokens, parts=[part], is_again=job.is_again
        )
        self.fill(batch)
        return batch

    def fill(self, batch: Batch) -> None:
        """Add parts that fit, one of each job in turn."""
        offers = [
            _Offer(job, batch)
            for job in self._jobs
            if isinstance(job, Turns)
            and job.is_again == batch.is_again
            and job.is_waiting
            and job.call == batch.call
        ]
        giving = offers
        while giving and not batch.is_full:
            giving = [offer for offer in giving if offer.give()]
        for offer in offers:
            offer.settle()

    def _forget(self) -> None:
        """Drop the jobs that wait for nothing more."""
        if not all(job.is_waiting for job in self._jobs):
            self._jobs = deque(job for job in self._jobs if job.is_waiting)
            self.most_chars = sum(job.n_chars for job in self._jobs)


class _Offer:
    """The waiting parts of a job, offered to a batch in order, each once.

    A part that does not fit now fits no later: the room of a batch only shrinks.
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
        """What was given does not wait any more."""
        if self._given:
            waiting = self._job.waiting
            self._job.waiting = deque(part for part in waiting if id(part) not in self._given)
