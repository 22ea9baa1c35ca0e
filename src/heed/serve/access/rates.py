"""`Rates`: the rate limit of each client, with one token bucket for each."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

from heed.serve.access.buckets import Buckets, Filling


@dataclass(frozen=True, kw_only=True)
class Taken:
    """The result of a request for tokens.

    Attributes:
        is_allowed: whether there were enough tokens; they are then taken.
        limit: texts per minute.
        remaining: number of texts that would be allowed now.
        reset_s: seconds until the bucket is full again.
        wait_s: seconds until this request would be allowed.
    """

    is_allowed: bool
    limit: int
    remaining: int
    reset_s: int
    wait_s: int

    def headers(self) -> dict[str, str]:
        """The headers of the response."""
        found = {
            "RateLimit-Limit": str(self.limit),
            "RateLimit-Remaining": str(self.remaining),
            "RateLimit-Reset": str(self.reset_s),
        }
        return found if self.is_allowed else {**found, "Retry-After": str(self.wait_s)}


class Rates:
    """Token buckets: a bucket fills evenly; a request takes one token for each text.

    A request larger than a full bucket is allowed when the bucket is full, and leaves a debt.

    Args:
        burst: tokens of a full bucket, as a share of those of a minute.
        buckets: the storage; None = for this process only.
        clock: seconds, the same in all processes; tests replace it.
    """

    def __init__(
        self,
        *,
        burst: float = 1.0,
        buckets: Buckets | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._burst = burst
        self._buckets = buckets or Buckets()
        self._clock = clock

    def take(self, client: str, n_texts: int, *, per_minute: int) -> Taken:
        """Take `n_texts` tokens for a request, if there are enough."""
        size = max(1.0, per_minute * self._burst)
        speed = per_minute / 60
        needed = min(float(n_texts), size)
        left, is_allowed, wait_s = size, False, 0

        def spend(filling: Filling | None) -> Filling:
            nonlocal left, is_allowed, wait_s
            now = self._clock()
            if filling is not None:
                left = min(size, filling[0] + (now - filling[1]) * speed)
            is_allowed = left >= needed - 1e-9
            wait_s = 0 if is_allowed else math.ceil((needed - left) / speed)
            left -= n_texts if is_allowed else 0
            return left, now

        self._buckets.change(client, spend)
        return Taken(
            is_allowed=is_allowed,
            limit=per_minute,
            remaining=max(0, math.floor(left + 1e-9)),
            reset_s=math.ceil((size - left) / speed),
            wait_s=wait_s,
        )
