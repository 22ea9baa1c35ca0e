"""Threads search for all requests; faults, departures and full queues stay with their requests."""

import asyncio
import logging
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence

import pytest
from tests.serve.work.stand_ins import StandIn, make_job

from heed.errors import DataError
from heed.serve.refusal import Refusal
from heed.serve.work.job import Errand, Job
from heed.serve.work.results import Results
from heed.serve.work.scheduler import Scheduler, Searched
from heed.translate.parts import Chunk

Start = Callable[..., Scheduler]


@pytest.fixture
def start() -> Iterator[Start]:
    started: list[Scheduler] = []

    def begin(**settings: object) -> Scheduler:
        scheduler = Scheduler(**{"n_threads": 1, "batch_tokens": 64, **settings})
        started.append(scheduler)
        return scheduler

    yield begin
    for scheduler in started:
        scheduler.close(within_s=5)


async def texts_of(job: Job) -> list[str]:
    return [(await job.results.get(place)).text for place in range(len(job.results))]


async def begun(model: StandIn) -> None:
    """Wait until a search has begun."""
    while not model.has_begun.is_set():
        await asyncio.sleep(0.001)


def test_each_job_gets_its_own_in_order(start: Start) -> None:
    async def run() -> None:
        scheduler, model = start(n_threads=2), StandIn()
        jobs = [make_job(model.call(), 3, 9, 1, first_id=number) for number in range(20)]
        for job in jobs:
            scheduler.submit(job)
        for number, job in enumerate(jobs):
            wanted = [" ".join([str(number)] * length) for length in (3, 9, 1)]
            assert await texts_of(job) == wanted

    asyncio.run(run())


def test_an_error_is_only_its_own_requests(start: Start) -> None:
    def fault(chunks: Sequence[Chunk]) -> None:
        if any(chunk.src_ids[0] == 2 for chunk in chunks):
            raise DataError("Line 1 is in no language.")

    async def run() -> None:
        scheduler, model = start(), StandIn()
        model.fault = fault
        model.gate.clear()
        scheduler.submit(make_job(model.call(), 2, first_id=9))  # the others gather behind it
        await begun(model)
        jobs = [make_job(model.call(), 3, 3, first_id=number) for number in (1, 2, 3)]
        for job in jobs:
            scheduler.submit(job)
        model.gate.set()
        assert await texts_of(jobs[0]) == ["1 1 1"] * 2
        assert await texts_of(jobs[2]) == ["3 3 3"] * 2
        with pytest.raises(Refusal, match="in no language") as caught:
            await texts_of(jobs[1])
        assert caught.value.status == 400
        assert {ids[0] for ids in model.batches[1]} == {1, 2, 3}  # they did share a batch

    asyncio.run(run())


def test_a_thread_survives_what_nobody_expected(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        scheduler, model = start(), StandIn()

        def fault(chunks: Sequence[Chunk]) -> None:
            raise ZeroDivisionError("canary-text")

        model.fault = fault
        job = make_job(model.call(), 3)
        scheduler.submit(job)
        with pytest.raises(Refusal, match="internal error") as caught:
            await texts_of(job)
        assert caught.value.status == 500
        model.fault = lambda chunks: None
        after = make_job(model.call(), 2, first_id=5)
        scheduler.submit(after)
        assert await texts_of(after) == ["5 5"]

    with caplog.at_level(logging.INFO):
        asyncio.run(run())
    assert "ZeroDivisionError" in caplog.text
    assert "canary-text" not in caplog.text


def test_who_leaves_frees_the_work_within_a_step(start: Start) -> None:
    async def run() -> None:
        scheduler, model = start(), StandIn()
        long = make_job(model.call(), 2000)
        scheduler.submit(long)
        await begun(model)
        long.results.abandon()
        n_steps = model.n_steps
        after = make_job(model.call(), 2, first_id=5)
        scheduler.submit(after)
        assert await texts_of(after) == ["5 5"]
        assert model.n_steps <= n_steps + 2 + 2  # one or two of the old, two of the new

    asyncio.run(run())


def test_a_deadline_frees_the_work(start: Start) -> None:
    async def run() -> None:
        scheduler, model = start(), StandIn()
        long = make_job(model.call(), 100_000, timeout_s=0.02)
        scheduler.submit(long)
        with pytest.raises(Refusal, match="not ready in time") as caught:
            await texts_of(long)
        assert caught.value.status == 504
        after = make_job(model.call(), 2, first_id=5)
        scheduler.submit(after)
        assert await texts_of(after) == ["5 5"]
        assert model.n_steps < 1000

    asyncio.run(run())


def test_a_waiting_thread_does_not_hold_what_it_did_last(start: Start) -> None:
    async def run() -> None:
        scheduler, model = start(), StandIn()
        job = make_job(model.call(), 10)
        part, n_done = weakref.ref(job.segments[0]), scheduler.n_done
        scheduler.submit(job)
        await texts_of(job)
        while scheduler.n_done == n_done:
            await asyncio.sleep(0.001)
        del job
        await asyncio.sleep(0)
        assert part() is None

    asyncio.run(run())


def test_a_full_queue_refuses_and_says_when_to_come_back(start: Start) -> None:
    async def run() -> None:
        scheduler, model = start(max_waiting_chars=100), StandIn()
        first = make_job(model.call(), 10)
        scheduler.submit(first)
        await texts_of(first)
        model.has_begun.clear()
        model.gate.clear()
        large = make_job(model.call(), 500)
        scheduler.submit(large)  # larger than the queue, but nobody else is there
        await begun(model)
        jobs = [make_job(model.call(), 50) for _ in range(3)]
        scheduler.submit(jobs[0])
        scheduler.submit(jobs[1])
        assert scheduler.n_waiting_chars == 100
        with pytest.raises(Refusal, match="Try again later") as caught:
            scheduler.submit(jobs[2])
        assert caught.value.status == 503
        assert 1 <= int(caught.value.headers["Retry-After"]) <= 60
        jobs[0].results.abandon()
        scheduler.submit(jobs[2])
        model.gate.set()
        await texts_of(jobs[2])
        for job in (large, jobs[1]):
            job.results.abandon()

    asyncio.run(run())


def test_an_idle_server_answers_at_once_and_a_busy_one_gathers(start: Start) -> None:
    async def run() -> None:
        scheduler, model = start(gather_s=30.0), StandIn()
        jobs = [make_job(model.call(), 10, first_id=number) for number in range(8)]
        scheduler.submit(jobs[0])
        await asyncio.wait_for(texts_of(jobs[0]), 10)
        model.has_begun.clear()
        model.gate.clear()
        scheduler.submit(jobs[1])
        await begun(model)
        scheduler.submit(jobs[2])
        scheduler.submit(jobs[3])
        model.gate.set()
        # Three requests were in work when this one ended: the two that wait get a third.
        await asyncio.wait_for(texts_of(jobs[1]), 10)
        scheduler.submit(jobs[4])
        for job in jobs[2:5]:
            await asyncio.wait_for(texts_of(job), 10)
        for job in jobs[5:]:
            scheduler.submit(job)
            await asyncio.sleep(0.01)
        for job in jobs[5:]:  # long before `gather_s`: there is nobody else to wait for
            await asyncio.wait_for(texts_of(job), 10)
        assert [len(batch) for batch in model.batches] == [1, 1, 3, 3]

    asyncio.run(run())


def test_a_batch_does_not_wait_for_clients_that_have_gone(start: Start) -> None:
    async def run() -> None:
        scheduler, model = start(gather_s=0.05), StandIn()
        for n_clients in (3, 1):
            jobs = [make_job(model.call(), 10, first_id=number) for number in range(n_clients)]
            for job in jobs:
                scheduler.submit(job)
            for job in jobs:
                await asyncio.wait_for(texts_of(job), 10)

    asyncio.run(run())


def test_second_searches_of_several_batches_come_together(start: Start) -> None:
    counted: list[Searched] = []

    async def run() -> None:
        scheduler, model = start(batch_tokens=8, on_searched=counted.append), StandIn()
        model.doubtful = {4}
        model.gate.clear()
        jobs = [make_job(model.call(), 4, first_id=number) for number in range(4)]
        jobs += [make_job(model.call(), 3, first_id=number) for number in (4, 5)]
        for job in jobs:
            scheduler.submit(job)
            await begun(model)
        model.gate.set()
        assert [await texts_of(job) for job in jobs] == [
            *([f"{number} {number} {number} {number} again"] for number in range(4)),
            *([f"{number} {number} {number}"] for number in (4, 5)),
        ]
        await asyncio.to_thread(scheduler.close)
        assert sorted(map(len, model.second)) == [2, 2]

    asyncio.run(run())
    assert sum(one.n_parts for one in counted) == 6
    assert sum(one.n_src_tokens for one in counted) == 4 * 4 + 2 * 3


def test_an_answer_without_doubt_does_not_wait_for_second_searches(start: Start) -> None:
    async def run() -> None:
        scheduler, model = start(batch_tokens=4096), StandIn()
        may_go_on = threading.Event()
        model.doubtful = {3}

        def fault(chunks: Sequence[Chunk]) -> None:
            if model.second:
                may_go_on.wait()

        model.fault = fault
        model.gate.clear()
        jobs = [make_job(model.call(), length, first_id=1) for length in (9, 2, 3, 4)]
        for job in jobs:
            scheduler.submit(job)
            await begun(model)
        model.gate.set()
        for job, length in ((jobs[1], 2), (jobs[3], 4)):
            assert await asyncio.wait_for(texts_of(job), 10) == [" ".join(["1"] * length)]
        may_go_on.set()
        assert await texts_of(jobs[2]) == ["1 1 1 again"]
        assert len(model.batches) == 2  # the three were in one

    asyncio.run(run())


def test_who_leaves_before_a_second_search_frees_it(start: Start) -> None:
    async def run() -> None:
        scheduler, model = start(), StandIn()
        model.doubtful = {3}
        model.gate.clear()
        leaving, other = (make_job(model.call(), 3, first_id=number) for number in (1, 2))

        def fault(chunks: Sequence[Chunk]) -> None:
            if len(model.batches) == 2:
                leaving.results.is_wanted = False

        model.fault = fault
        scheduler.submit(leaving)
        await begun(model)
        scheduler.submit(other)
        model.gate.set()
        assert await texts_of(other) == ["2 2 2 again"]
        assert model.second == [[[2] * 3]]

    asyncio.run(run())


def test_an_error_in_a_second_search_is_only_its_own_requests(start: Start) -> None:
    async def run() -> None:
        scheduler, model = start(), StandIn()
        model.doubtful = {3}

        def fault(chunks: Sequence[Chunk]) -> None:
            if model.second and any(chunk.src_ids[0] == 2 for chunk in chunks):
                raise DataError("Line 1 is in no language.")

        model.fault = fault
        model.gate.clear()
        jobs = [make_job(model.call(), 3, first_id=number) for number in (1, 2, 3)]
        for job in jobs:
            scheduler.submit(job)
        model.gate.set()
        assert await texts_of(jobs[0]) == ["1 1 1 again"]
        assert await texts_of(jobs[2]) == ["3 3 3 again"]
        with pytest.raises(Refusal, match="in no language"):
            await texts_of(jobs[1])

    asyncio.run(run())


def test_closing_finishes_what_is_queued(start: Start) -> None:
    async def run() -> None:
        scheduler, model = start(), StandIn()
        jobs = [make_job(model.call(), 40, first_id=number) for number in range(5)]
        for job in jobs:
            scheduler.submit(job)
        await asyncio.to_thread(scheduler.close)
        for number, job in enumerate(jobs):
            assert await texts_of(job) == [" ".join([str(number)] * 40)]
        with pytest.raises(Refusal, match="is shutting down"):
            scheduler.submit(make_job(model.call(), 1))

    asyncio.run(run())


def test_closing_gives_up_what_takes_too_long(start: Start) -> None:
    async def run() -> None:
        scheduler, model = start(), StandIn()
        jobs = [make_job(model.call(), 100_000) for _ in range(2)]
        for job in jobs:
            scheduler.submit(job)
        await begun(model)
        await asyncio.to_thread(scheduler.close, 0.01)
        for job in jobs:
            with pytest.raises(Refusal, match="was shut down") as caught:
                await texts_of(job)
            assert caught.value.status == 503

    asyncio.run(run())


def test_errands_are_done_on_the_same_threads(start: Start) -> None:
    async def run() -> None:
        scheduler = start()
        results: Results[str] = Results(1, timeout_s=30)
        scheduler.submit(
            Errand(lambda is_wanted: threading.current_thread().name, n_chars=1, results=results)
        )
        assert (await results.get(0)).startswith("heed-search")

        def broken(is_wanted: Callable[[], bool]) -> None:
            raise DataError("The prefix is too long.")

        failing: Results[None] = Results(1, timeout_s=30)
        scheduler.submit(Errand(broken, n_chars=1, results=failing))
        with pytest.raises(Refusal, match="prefix is too long"):
            await failing.get(0)

    asyncio.run(run())


def test_batches_are_counted(start: Start) -> None:
    counted: list[Searched] = []

    async def run() -> None:
        scheduler, model = start(on_searched=counted.append), StandIn()
        job = make_job(model.call(), 16, 16)
        scheduler.submit(job)
        await texts_of(job)
        await asyncio.to_thread(scheduler.close)

    asyncio.run(run())
    (one,) = counted
    assert (one.n_jobs, one.n_parts, one.n_src_tokens, one.fill) == (1, 2, 32, 0.5)
    assert one.seconds > 0
