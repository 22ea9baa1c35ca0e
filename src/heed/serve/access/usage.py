"""`Usage`: the characters that each key has translated, counted by all processes of a server."""

import time

from heed.serve.access.buckets import Buckets, Filling


class Usage:
    """Counts characters by key since the server started.

    Args:
        buckets: the storage, which rate limits use too, under other names.
    """

    def __init__(self, buckets: Buckets) -> None:
        self._buckets = buckets

    def add(self, key: str, n_chars: int = 0) -> int:
        """Add characters to a key's count, and return the new count.

        Args:
            key: its name; empty on a server without keys.
            n_chars: characters of a request's texts.
        """
        total = n_chars

        def grow(filling: Filling | None) -> Filling:
            nonlocal total
            total += int(filling[0]) if filling else 0
            return total, time.monotonic()

        self._buckets.change(f"usage {key}", grow)
        return total
