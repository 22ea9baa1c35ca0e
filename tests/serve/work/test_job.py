"""A segment is searched once for all who wait for it, and belongs to each of them."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from functools import wraps
from typing import Any

import pytest
from tests.serve.work.stand_ins import StandIn, make_job

from heed.errors import DataError
from heed.serve.refusal import Refusal
from heed.serve.work.results import Results
from heed.serve.work.scheduler import Scheduler
from heed.translate.parts import Chunk
from heed.translate.result import Translation


@pytest.fixture
def scheduler() -> Iterator[Scheduler]:
    made = Scheduler(n_threads=1, batch_tokens=64)
    yield made
    made.close(within_s=5)


def in_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    @wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        asyncio.run(test(*arguments, **named))

    return run


def waiting(timeout_s: float = 30.0) -> Results[Translation]:
    """Another request, for one segment."""
    return Results(1, timeout_s=timeout_s)


@in_loop
async def test_who_leaves_takes_the_search_from_nobody_else(scheduler: Scheduler) -> None:
    model, other = StandIn(), waiting()
    model.gate.clear()
    job = make_job(model.call(), 3, 9, first_id=1)
    scheduler.submit(job)
    while not model.has_begun.is_set():
        await asyncio.sleep(0.001)
    job.segments[0].join(other, 0)
    job.results.abandon()
    model.gate.set()
    assert (await other.get(0)).text == "1 1 1"
    assert model.n_steps == 3  # the longer one is nobody's any more


@in_loop
async def test_what_waits_for_a_turn_stays_for_who_has_joined(scheduler: Scheduler) -> None:
    model, other = StandIn(), waiting()
    model.gate.clear()
    scheduler.submit(make_job(model.call(), 2, first_id=9))
    while not model.has_begun.is_set():
        await asyncio.sleep(0.001)
    job = make_job(model.call(), 3, 9, 4, first_id=1)
    scheduler.submit(job)
    job.segments[1].join(other, 0)
    job.results.abandon()
    model.gate.set()
    assert (await other.get(0)).text == " ".join(["1"] * 9)
    assert model.batches == [[[9] * 2], [[1] * 9]]


@in_loop
async def test_a_deadline_is_only_its_own_requests(scheduler: Scheduler) -> None:
    model, other = StandIn(), waiting()
    job = make_job(model.call(), 50, first_id=1, timeout_s=0.01)
    scheduler.submit(job)
    job.segments[0].join(other, 0)
    with pytest.raises(Refusal, match="not ready in time"):
        await job.results.get(0)
    assert (await other.get(0)).text == " ".join(["1"] * 50)
    assert model.n_steps == 50


@in_loop
async def test_an_error_of_another_segment_is_only_its_own_requests(scheduler: Scheduler) -> None:
    def fault(chunks: Sequence[Chunk]) -> None:
        if any(len(chunk.src_ids) == 4 for chunk in chunks):
            raise DataError("Line 1 is in no language.")

    model, other = StandIn(), waiting()
    model.fault = fault
    model.gate.clear()
    job = make_job(model.call(), 3, 4, first_id=1)
    scheduler.submit(job)
    job.segments[0].join(other, 0)
    model.gate.set()
    assert (await other.get(0)).text == "1 1 1"
    with pytest.raises(Refusal, match="in no language"):
        await job.results.get(1)


@in_loop
async def test_an_error_of_a_shared_segment_reaches_all_who_wait(scheduler: Scheduler) -> None:
    def fault(chunks: Sequence[Chunk]) -> None:
        raise DataError("Line 1 is in no language.")

    model, other = StandIn(), waiting()
    model.fault = fault
    model.gate.clear()
    job = make_job(model.call(), 3)
    scheduler.submit(job)
    job.segments[0].join(other, 0)
    model.gate.set()
    for results in (job.results, other):
        with pytest.raises(Refusal, match="in no language"):
            await results.get(0)
    assert not job.segments[0].may_be_joined(1)


@in_loop
async def test_nobody_waits_for_the_turns_of_a_longer_request() -> None:
    long, short = (make_job(StandIn().call(), *[5] * count) for count in (10, 1))
    assert not long.segments[9].may_be_joined(1)
    assert long.segments[9].may_be_joined(10)
    assert short.segments[0].may_be_joined(1)
    long.segments[9].has_begun = True  # it is in the batch that is searched now
    assert long.segments[9].may_be_joined(1)
    long.results.abandon()
    assert not long.segments[9].may_be_joined(10)  # a thread may be dropping it


@in_loop
async def test_the_end_of_the_server_reaches_who_has_joined(scheduler: Scheduler) -> None:
    model, other = StandIn(), waiting()
    job = make_job(model.call(), 100_000)
    scheduler.submit(job)
    job.segments[0].join(other, 0)
    scheduler.watch(other)
    while not model.has_begun.is_set():
        await asyncio.sleep(0.001)
    await asyncio.to_thread(scheduler.close, 0.01)
    with pytest.raises(Refusal, match="was shut down"):
        await other.get(0)
    with pytest.raises(Refusal, match="is shutting down"):
        scheduler.watch(waiting())
