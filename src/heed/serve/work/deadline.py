"""`Deadline`: when a request has to be answered, or is refused."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from heed.serve.refusal import Refusal


class Deadline:
    """A time from now, in the running event loop.

    Args:
        timeout_s: seconds until then.
    """

    def __init__(self, timeout_s: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._time = self._loop.time() + timeout_s

    @property
    def left_s(self) -> float:
        """Seconds that are left, at least 0."""
        return max(0.0, self._time - self._loop.time())

    @asynccontextmanager
    async def enforced(self) -> AsyncIterator[None]:
        """Cancel what is done here when the time is over.

        Raises:
            Refusal: the time is over (504).
        """
        try:
            async with asyncio.timeout_at(self._time):
                yield
        except TimeoutError:
            raise too_late() from None


def too_late() -> Refusal:
    """The refusal of a request that was not answered in time."""
    return Refusal(
        504,
        "The answer was not ready in time. Send less text at once, or try again later.",
        code="timeout",
    )
