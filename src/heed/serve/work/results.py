"""`Results`: results that a request awaits in the event loop, and that threads deliver."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Generic, TypeVar

from heed.serve.refusal import Refusal
from heed.serve.work.deadline import too_late

Found = TypeVar("Found")


class Results(Generic[Found]):
    """The results of one request, each awaited by its index. Create it in the event loop.

    `bring` and `fail` may be called from any thread, the other methods in the event loop.

    Args:
        count: number of results.
        timeout_s: seconds until the request is refused (504).

    Attributes:
        is_wanted: whether a client still waits; the threads check it after every step.
        loop: the event loop.
    """

    def __init__(self, count: int, *, timeout_s: float) -> None:
        self.is_wanted = count > 0
        self.loop = asyncio.get_running_loop()
        self._futures: list[asyncio.Future[Found]] = [
            self.loop.create_future() for _ in range(count)
        ]
        self._n_missing = count
        self._timer = self.loop.call_later(timeout_s, self._expire)
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
        """Deliver results, by their indices; from any thread."""
        if not call_soon(self.loop, self.take, found):
            self.is_wanted = False

    def fail(self, refusal: Refusal) -> None:
        """Refuse all missing results; from any thread."""
        self.is_wanted = False
        call_soon(self.loop, self.refuse, refusal)

    def abandon(self) -> None:
        """Abandon the results, because no client waits for them."""
        self.is_wanted = False
        self._timer.cancel()

    def take(self, found: Mapping[int, Found]) -> None:
        """Deliver results, by their indices; in the event loop."""
        for index, result in found.items():
            if not self._futures[index].done():
                self._futures[index].set_result(result)
                self._n_missing -= 1
        if not self._n_missing:
            self.abandon()

    def refuse(self, refusal: Refusal) -> None:
        """Refuse all missing results; in the event loop."""
        self.abandon()
        for future in self._futures:
            if not future.done():
                future.set_exception(refusal)
                future.exception()  # mark it as retrieved, even if nothing awaits this future

    def _expire(self) -> None:
        self.refuse(too_late())


def call_soon(
    loop: asyncio.AbstractEventLoop, function: Callable[[Any], None], argument: object
) -> bool:
    """Call a function in the event loop; False if that is closed."""
    try:
        loop.call_soon_threadsafe(function, argument)
    except RuntimeError:
        return False
    return True
