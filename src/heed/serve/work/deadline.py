"""`Deadline`: the time by which a request must be answered, or else is refused."""

import asyncio
from collections.abc import Callable
from types import TracebackType

from heed.serve.refusal import Refusal


class Deadline:
    """A time relative to now, in the running event loop.

    Args:
        timeout_s: seconds from now.
    """

    def __init__(self, timeout_s: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._time = self._loop.time() + timeout_s

    @property
    def left_s(self) -> float:
        """Remaining seconds, at least 0."""
        return max(0.0, self._time - self._loop.time())

    def enforced(self) -> "Enforced":
        """A block that is canceled and refused (504) after the deadline."""
        return Enforced(self._time)


class Enforced:
    """`asyncio.timeout_at` that raises a `Refusal`. It is a class because a generator costs more.

    Args:
        time: the deadline, by the event loop's clock.
    """

    def __init__(self, time: float) -> None:
        self._timeout = asyncio.timeout_at(time)

    async def __aenter__(self) -> None:
        """Start the clock."""
        await self._timeout.__aenter__()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Refuse a request that was canceled by the deadline.

        Raises:
            Refusal: the time is over (504).
        """
        try:
            await self._timeout.__aexit__(kind, error, trace)
        except TimeoutError:
            raise too_late() from None


def too_late() -> Refusal:
    """The refusal for a request that was not answered in time."""
    return Refusal(
        504,
        "The answer was not ready in time. Send less text at once, or try again later.",
        code="timeout",
    )


def require_wanted(is_wanted: Callable[[], bool]) -> None:
    """End work that no client waits for.

    Raises:
        Refusal: `is_wanted` returns False (504).
    """
    if not is_wanted():
        raise Refusal(504, "The client no longer waits for this response.", code="unwanted")
