"""What a request waits for arrives, fails or expires."""

import asyncio
import threading

import pytest

from heed.serve.refusal import Refusal
from heed.serve.work.results import Results


def test_results_come_from_another_thread_in_any_order() -> None:
    async def run() -> list[str]:
        results: Results[str] = Results(3, timeout_s=30)
        threading.Thread(target=results.bring, args=({2: "c", 0: "a"},)).start()
        assert [await results.get(0), await results.get(2)] == ["a", "c"]
        assert results.is_wanted
        threading.Thread(target=results.bring, args=({1: "b"},)).start()
        await results.get(1)
        assert not results.is_wanted
        return [await results.get(place) for place in range(len(results))]

    assert asyncio.run(run()) == ["a", "b", "c"]


def test_a_failure_refuses_what_is_missing_only() -> None:
    async def run() -> None:
        results: Results[str] = Results(2, timeout_s=30)
        results.bring({0: "a"})
        results.fail(Refusal(500, "broken"))
        assert await results.get(0) == "a"
        with pytest.raises(Refusal, match="broken"):
            await results.get(1)
        assert not results.is_wanted

    asyncio.run(run())


def test_time_is_up_in_words() -> None:
    async def run() -> None:
        results: Results[str] = Results(1, timeout_s=0.01)
        with pytest.raises(Refusal, match="not ready in time") as caught:
            await results.get(0)
        assert caught.value.status == 504
        assert not results.is_wanted
        results.bring({0: "late"})  # changes nothing

    asyncio.run(run())


def test_threads_may_outlive_the_event_loop() -> None:
    async def run() -> Results[str]:
        return Results(1, timeout_s=30)

    results = asyncio.run(run())
    results.bring({0: "a"})
    assert not results.is_wanted
