"""`Scheduler`: the lines of all requests in common batches, on a few threads.

A thread takes lines of the request that waits longest, and of all others that want the same of the
same model, up to a number of characters. What it takes is searched together; the results of a line
do not depend on its batch.
"""

import asyncio
import threading
from collections import deque

from heed.errors import HeedError
from heed.serve.work.job import Job
from heed.translate.result import Translation

Taken = list[tuple[Job, int]]
"""A batch: for each line its job and its index there."""


class Scheduler:
    """Runs jobs on `n_threads` threads.

    Args:
        n_threads: batches that are searched at the same time.
        batch_chars: characters of a batch, unless one line has more.
    """

    def __init__(self, *, n_threads: int, batch_chars: int) -> None:
        self._batch_chars = batch_chars
        self._jobs: deque[Job] = deque()
        self._changed = threading.Condition()
        self._is_closing = False
        self._threads = [
            threading.Thread(target=self._work, name=f"heed-search-{number}", daemon=True)
            for number in range(n_threads)
        ]
        for thread in self._threads:
            thread.start()

    async def run(self, job: Job) -> list[Translation]:
        """Translate all lines of a job, in order; canceling the call abandons the job."""
        if not job.lines:
            return []
        with self._changed:
            self._jobs.append(job)
            self._changed.notify()
        try:
            return await job.done
        except asyncio.CancelledError:
            job.is_abandoned = True
            raise

    def close(self) -> None:
        """Finish the batches in work and end the threads."""
        with self._changed:
            self._is_closing = True
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while (batch := self._next_batch()) is not None:
            self._search(batch)

    def _next_batch(self) -> Taken | None:
        with self._changed:
            while True:
                while self._jobs and not (self._jobs[0].is_wanted and self._jobs[0].waiting):
                    self._jobs.popleft()
                if self._jobs:
                    return self._take(self._jobs[0])
                if self._is_closing:
                    return None
                self._changed.wait()

    def _take(self, first: Job) -> Taken:
        batch: Taken = []
        room = self._batch_chars
        for job in self._jobs:
            if job.translator is not first.translator or job.call != first.call:
                continue
            while job.waiting and job.is_wanted:
                n_chars = len(job.lines[job.waiting[0]].text)
                if batch and n_chars > room:
                    return batch
                batch.append((job, job.waiting.popleft()))
                room -= n_chars
        return batch

    def _search(self, batch: Taken) -> None:
        (job, _), call = batch[0], batch[0][0].call
        try:
            found = job.translator.translate(
                [each.lines[index] for each, index in batch],
                target_lang=call.target_lang,
                alignment=call.alignment,
                alternatives=call.alternatives,
                **dict(call.options),
            )
        except HeedError as error:
            for each in _jobs_of(batch):
                each.done.get_loop().call_soon_threadsafe(_fail, each, error)
            return
        for (each, index), translation in zip(batch, found, strict=True):
            each.results[index] = translation
        for each in _jobs_of(batch):
            if all(result is not None for result in each.results):
                each.done.get_loop().call_soon_threadsafe(_finish, each)


def _jobs_of(batch: Taken) -> list[Job]:
    return list({id(job): job for job, _ in batch}.values())


def _finish(job: Job) -> None:
    if not job.done.done():
        job.done.set_result([result for result in job.results if result is not None])


def _fail(job: Job, error: HeedError) -> None:
    if not job.done.done():
        job.done.set_exception(error)
