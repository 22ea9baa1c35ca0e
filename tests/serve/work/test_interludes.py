"""A long search gives way to short requests between two steps, and finds the same."""

import asyncio
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from tests.serve.conftest import make_model
from tests.serve.work.stand_ins import StandIn, make_job

from heed.decode.options import DecodeOptions
from heed.serve.work import interludes
from heed.serve.work.interludes import Interludes
from heed.serve.work.job import Call, Job
from heed.serve.work.queue import Batch
from heed.serve.work.results import Results
from heed.serve.work.scheduler import Scheduler, Searched
from heed.serve.work.search import search
from heed.translate.lines import Line
from heed.translate.parts import Chunk
from heed.translate.translator import Translator, load

FOREVER = 100_000
"""Steps of a search that no test can wait for."""


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A search gives way from its first step on, and looks after each."""
    monkeypatch.setattr(interludes, "AFTER_S", 0.0)
    monkeypatch.setattr(interludes, "PAUSE_S", 0.0)


@pytest.fixture
def scheduler() -> Iterator[Scheduler]:
    scheduler = Scheduler(n_threads=1, batch_tokens=64)
    yield scheduler
    scheduler.close(within_s=5)


async def text_of(job: Job) -> str:
    return (await asyncio.wait_for(job.results.get(0), 30)).text


async def begun(model: StandIn) -> None:
    while not model.has_begun.is_set():
        await asyncio.sleep(0.001)


def test_a_short_request_does_not_wait_for_a_long_search(scheduler: Scheduler) -> None:
    async def run() -> None:
        model = StandIn()
        long = make_job(model.call(beam_size=64), FOREVER)
        others = [make_job(model.call(beam_size=64), FOREVER) for _ in range(5)]
        scheduler.submit(long)
        await begun(model)
        for job in others:
            scheduler.submit(job)
        short = make_job(model.call(), 3, first_id=7)
        scheduler.submit(short)
        assert await text_of(short) == "7 7 7"
        assert len(model.batches) == 2  # the first long one still runs, the others wait
        for job in (long, *others):
            job.results.abandon()

    asyncio.run(run())


def test_a_long_search_goes_on_after_short_ones(scheduler: Scheduler) -> None:
    async def run() -> None:
        model = StandIn()
        long = make_job(model.call(beam_size=8), 200, first_id=9)
        scheduler.submit(long)
        await begun(model)
        for number in range(5):
            short = make_job(model.call(), 3, first_id=number)
            scheduler.submit(short)
            assert await text_of(short) == f"{number} {number} {number}"
        assert await text_of(long) == " ".join(["9"] * 200)

    asyncio.run(run())


def test_an_endless_stream_of_short_requests_leaves_a_long_one_its_share(
    scheduler: Scheduler,
) -> None:
    async def run() -> None:
        model, n_answered = StandIn(), 0
        long = make_job(model.call(), 100, first_id=9)
        scheduler.submit(long)
        await begun(model)

        async def ask_again_and_again() -> None:
            nonlocal n_answered
            while True:
                short = make_job(model.call(length_penalty=2.0), 4)
                scheduler.submit(short)
                await text_of(short)
                n_answered += 1

        asking = [asyncio.create_task(ask_again_and_again()) for _ in range(3)]
        assert await text_of(long) == " ".join(["9"] * 100)
        assert 1 <= n_answered <= 3 * 100 / 4  # of three requests in a batch of as many steps
        for task in asking:
            task.cancel()

    asyncio.run(run())


def test_a_client_that_leaves_frees_a_search_between_steps_of_another(
    scheduler: Scheduler,
) -> None:
    async def run() -> None:
        model = StandIn()
        long = make_job(model.call(beam_size=64), FOREVER)
        scheduler.submit(long)
        await begun(model)
        model.has_begun.clear()
        inner = make_job(model.call(), 2 * 30, first_id=1)
        scheduler.submit(inner)
        await begun(model)
        inner.results.abandon()
        after = make_job(model.call(), 1, first_id=2)
        scheduler.submit(after)
        assert await text_of(after) == "2"
        assert all(ids[0] != 1 or len(ids) == 60 for batch in model.batches for ids in batch)
        long.results.abandon()
        last = make_job(model.call(beam_size=64), 2, first_id=3)
        scheduler.submit(last)
        assert await text_of(last) == "3 3"

    asyncio.run(run())


def test_an_error_between_steps_is_only_its_own_requests(scheduler: Scheduler) -> None:
    async def run() -> None:
        model = StandIn()

        def fault(chunks: Sequence[Chunk]) -> None:
            if chunks[0].src_ids[0] == 5:
                raise ZeroDivisionError

        model.fault = fault
        long = make_job(model.call(beam_size=8), 100, first_id=9)
        scheduler.submit(long)
        await begun(model)
        short = make_job(model.call(), 2, first_id=5)
        scheduler.submit(short)
        with pytest.raises(Exception, match="internal error"):
            await text_of(short)
        assert await text_of(long) == " ".join(["9"] * 100)

    asyncio.run(run())


def test_the_time_of_short_searches_is_not_that_of_the_long_one() -> None:
    counted: list[Searched] = []
    scheduler = Scheduler(n_threads=1, batch_tokens=64, on_searched=counted.append)

    async def run() -> None:
        model = StandIn()
        long = make_job(model.call(beam_size=64), 40, first_id=9)
        scheduler.submit(long)
        await begun(model)
        short = make_job(model.call(), 30)
        scheduler.submit(short)
        await text_of(short)
        await text_of(long)
        await asyncio.to_thread(scheduler.close)

    begun_at = time.monotonic()
    asyncio.run(run())
    passed = time.monotonic() - begun_at
    assert [one.n_src_tokens for one in counted] == [30, 40]
    assert sum(one.seconds for one in counted) <= passed


def test_a_search_gives_way_by_what_it_did_itself() -> None:
    asked: list[int] = []
    n_added = 0

    def search(n_positions: int) -> int:
        asked.append(n_positions)
        return 100 if n_positions >= 50 else 0

    between = Interludes(n_added=lambda: n_added, may_begin=lambda: True, search=search)
    for _ in range(40):
        between.step(10)
    # Nothing new: it looks again when it has twice as much to give.
    assert asked[:5] == [5, 10, 20, 40, 80]
    assert between.n_given <= between.n_done
    before = len(asked)
    n_added += 1
    between.step(10)
    assert len(asked) == before + 1


def test_a_search_gives_way_for_no_longer_than_it_took_itself() -> None:
    now = 0.0
    given_at: list[float] = []

    def search(n_positions: int) -> int:
        nonlocal now
        given_at.append(now)
        now += 10  # a small batch: few positions, much time
        return 1

    between = Interludes(n_added=int, may_begin=lambda: True, search=search, clock=lambda: now)
    for _ in range(40):
        now += 1
        between.step(64)
    assert given_at == [1, 20, 40, 60, 80]
    assert now - between.seconds == 40


def test_a_search_gives_way_only_after_some_time_and_looks_rarely(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(interludes, "AFTER_S", 20)
    monkeypatch.setattr(interludes, "PAUSE_S", 5)
    now, looked_at = 0, []

    def n_added() -> int:
        looked_at.append(now)
        return now

    between = Interludes(
        n_added=n_added, may_begin=lambda: False, search=lambda n: 0, clock=lambda: now
    )
    for now in range(1, 40):  # noqa: B007 (the clock reads it)
        between.step(1)
    assert looked_at == [20, 25, 30, 35]
    assert between.n_done == 39


@pytest.fixture(scope="module", params=["engine", "torch"])
def translator(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Translator:
    folder = tmp_path_factory.mktemp("interludes") / "model"
    return load(make_model(folder, "en", "de"), threads=1, runtime=request.param)


@pytest.mark.parametrize("options", [{"beam_size": 16}, {"beam_size": 1}, {"sample": True}])
def test_translations_have_the_bits_of_those_made_alone(
    translator: Translator, options: dict[str, Any]
) -> None:
    n_between = 0

    def job_of(text: str, max_length: int) -> Job:
        chunks = translator.reader.parts(Line(text), 0, translator.reader.tag(None))
        chosen = DecodeOptions(**{"max_length": max_length, "seed": 3, **options})
        call = Call(translator=translator, model="model", options=chosen)
        return Job(call, [chunks], n_chars=1, results=Results(1, timeout_s=60))

    def search_all(job: Job, between: Interludes) -> None:
        batch = Batch(call=job.call, max_tokens=4096, parts=[*job.waiting])
        search(batch, lambda *_: None, between)

    async def run() -> None:
        def search_short(n_positions: int) -> int:
            nonlocal n_between
            n_between += 1
            short.append(job_of("A man.", 8))
            search_all(short[-1], quiet)
            return 1

        quiet = Interludes(n_added=int, may_begin=lambda: False, search=search_short)
        eager = Interludes(
            n_added=int, may_begin=lambda: True, search=search_short, clock=lambda: 0.0
        )
        short = [job_of("A man.", 8)]
        long = [job_of("Two dogs play in the snow.", 60) for _ in range(2)]
        search_all(short[0], quiet)
        search_all(long[0], quiet)
        search_all(long[1], eager)
        found = [await job.results.get(0) for job in (*short, *long)]
        assert found == [found[0]] * len(short) + [found[-1]] * 2

    asyncio.run(run())
    assert n_between > 20
