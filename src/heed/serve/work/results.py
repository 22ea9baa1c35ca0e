"""`Results`: what a request waits for in the event loop, and threads bring."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Generic, TypeVar

from heed.serve.refusal import Refusal
from heed.serve.work.deadline import too_late

Found = TypeVar("Found")


class Results(Generic[Found]):
    """The results of one request, each awaited by its index. Made in the event loop.

    `bring` and `fail` may be called from any thread, the rest in the event loop.

    Args:
        count: how many results there will be.
        timeout_s: seconds until the request is refused (504).

    Attributes:
        is_wanted: whether somebody still waits for one; read by the threads after every step.
    """

    def __init__(self, count: int, *, timeout_s: float) -> None:
        self.is_wanted = count > 0
        self._loop = asyncio.get_running_loop()
        self._futures: list[asyncio.Future[Found]] = [
            self._loop.create_future() for _ in range(count)
        ]
        self._n_missing = count
        self._timer = self._loop.call_later(timeout_s, self._expire)
        if not count:
            self._timer.cancel()

    def __len__(self) -> int:
        return len(self._futures)

    async def get(self, index: int) -> Found:
        """Wait for a result.

        Raises:
            Refusal: the request failed, or its time is over.
        """
        return await self._futures[index]

    def bring(self, found: Mapping[int, Found]) -> None:
        """Results, by their index."""
        bring_all([(self, found)])

    def fail(self, refusal: Refusal) -> None:
        """Refuse what is still missing."""
        self.is_wanted = False
        _call_soon(self._loop, self._refuse, refusal)

    def abandon(self) -> None:
        """Nobody waits any more."""
        self.is_wanted = False
        self._timer.cancel()

    def _take(self, found: Mapping[int, Found]) -> None:
        for index, result in found.items():
            if not self._futures[index].done():
                self._futures[index].set_result(result)
                self._n_missing -= 1
        if not self._n_missing:
            self.abandon()

    def _refuse(self, refusal: Refusal) -> None:
        self.abandon()
        for future in self._futures:
            if not future.done():
                future.set_exception(refusal)
                future.exception()  # seen, even if nobody awaits this one

    def _expire(self) -> None:
        self._refuse(too_late())


def bring_all(brought: Iterable[tuple[Results[Any], Mapping[int, Any]]]) -> None:
    """Results of several requests, by their index; an event loop is woken once for all of them."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[Results[Any], Mapping[int, Any]]]] = {}
    for results, found in brought:
        by_loop.setdefault(results._loop, []).append((results, found))
    for loop, together in by_loop.items():
        if not _call_soon(loop, _take_all, together):
            for results, _ in together:
                results.is_wanted = False


def _take_all(together: Iterable[tuple[Results[Any], Mapping[int, Any]]]) -> None:
    for results, found in together:
        results._take(found)


def _call_soon(
    loop: asyncio.AbstractEventLoop, function: Callable[[Any], None], argument: object
) -> bool:
    """Call a function in the event loop; False if that is closed, and nobody waits."""
    try:
        loop.call_soon_threadsafe(function, argument)
    except RuntimeError:
        return False
    return True
