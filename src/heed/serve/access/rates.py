"""`Rates`: how many texts each client may still ask for: one token bucket for each, bounded."""

import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Taken:
    """What became of a request.

    Attributes:
        is_allowed: there were enough tokens, and they were taken.
        limit: texts a minute.
        remaining: texts that may be asked for at once now.
        reset_s: seconds until the bucket is full again.
        wait_s: seconds until this request would be allowed.
    """

    is_allowed: bool
    limit: int
    remaining: int
    reset_s: int
    wait_s: int

    def headers(self) -> dict[str, str]:
        """The headers of the answer."""
        found = {
            "RateLimit-Limit": str(self.limit),
            "RateLimit-Remaining": str(self.remaining),
            "RateLimit-Reset": str(self.reset_s),
        }
        return found if self.is_allowed else {**found, "Retry-After": str(self.wait_s)}


class Rates:
    """A bucket fills evenly; a request takes as many tokens as it has texts.

    A request larger than a full bucket is allowed when it is full, and leaves a debt.

    Args:
        burst: tokens of a full bucket, as a share of a minute's.
        max_clients: buckets kept; the one used longest ago is forgotten first.
        clock: seconds, for tests.
    """

    def __init__(
        self,
        *,
        burst: float = 1.0,
        max_clients: int = 100_000,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._burst = burst
        self._max_clients = max_clients
        self._clock = clock
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, client: str, n_texts: int, *, per_minute: int) -> Taken:
        """Take tokens for a request of so many texts, if there are enough."""
        now = self._clock()
        size = max(1.0, per_minute * self._burst)
        speed = per_minute / 60
        left, since = self._buckets.pop(client, (size, now))
        left = min(size, left + (now - since) * speed)
        needed = min(float(n_texts), size)
        is_allowed = left >= needed - 1e-9
        wait_s = 0 if is_allowed else math.ceil((needed - left) / speed)
        left -= n_texts if is_allowed else 0
        self._buckets[client] = left, now
        while len(self._buckets) > self._max_clients:
            self._buckets.popitem(last=False)
        return Taken(
            is_allowed=is_allowed,
            limit=per_minute,
            remaining=max(0, math.floor(left + 1e-9)),
            reset_s=math.ceil((size - left) / speed),
            wait_s=wait_s,
        )
