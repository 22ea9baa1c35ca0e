"""`Figures`: the Prometheus metrics of `/metrics`. No label holds a text, a key or an address.

Several processes write their metrics into shared files, so that each can report for all of them;
prometheus_client does this if `SHARED` is set before it is imported.
"""

import os

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    generate_latest,
)
from prometheus_client.multiprocess import MultiProcessCollector

SHARED = "PROMETHEUS_MULTIPROC_DIR"
"""prometheus_client's environment variable for the folder of the files."""

SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
SHARES = (0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
REQUESTS = (1, 2, 4, 8, 16, 32, 64)
METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))


class Figures:
    """All metrics of a server process."""

    def __init__(self) -> None:
        self._registry = registry = CollectorRegistry()
        self._requests = Histogram(
            "heed_request_seconds",
            "Time from a request's headers to the end of its answer.",
            ("method", "route", "status"),
            buckets=SECONDS,
            registry=registry,
        )
        self._in_work = Gauge(
            "heed_requests_in_work",
            "Requests that are being answered.",
            registry=registry,
            multiprocess_mode="livesum",
        )
        self._refused = Counter(
            "heed_refused", "Requests answered with an error.", ("code",), registry=registry
        )
        self._waiting = Gauge(
            "heed_waiting_characters",
            "Characters of the requests in the queue.",
            registry=registry,
            multiprocess_mode="livesum",
        )
        self._models = Gauge(
            "heed_models_open", "Models in memory.", registry=registry, multiprocess_mode="livemax"
        )
        self._fill = Histogram(
            "heed_batch_fill",
            "Share of the largest batch that a batch had.",
            buckets=SHARES,
            registry=registry,
        )
        self._sharing = Histogram(
            "heed_batch_requests",
            "Requests that shared a batch.",
            buckets=REQUESTS,
            registry=registry,
        )
        self._search_seconds = Counter(
            "heed_search_seconds", "Time of searches, added up.", registry=registry
        )
        self._source_tokens = Counter(
            "heed_source_tokens", "Source tokens searched.", registry=registry
        )
        self._target_tokens = Counter("heed_target_tokens", "Tokens written.", registry=registry)
        self._cache = Counter(
            "heed_cache_segments",
            "Sentences looked for in the cache.",
            ("result",),
            registry=registry,
        )
        self._doubts = Counter("heed_doubts", "Places of doubt.", ("kind",), registry=registry)
        self._counted = {"hit": 0, "miss": 0}
        # `labels` would validate and format its arguments at each call.
        self._of_request: dict[tuple[str, str, int], Histogram] = {}
        if SHARED not in os.environ:
            ProcessCollector(registry=registry)
            PlatformCollector(registry=registry)

    def began(self) -> None:
        """Count a new request."""
        self._in_work.inc()

    def ended(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request that was answered, or whose client disconnected.

        Args:
            method: HTTP method.
            route: the path with `{name}` for its variable parts.
            status: status of the response.
            seconds: time since its headers arrived.
        """
        self._in_work.dec()
        key = method if method in METHODS else "other", route, status
        if key not in self._of_request:
            self._of_request[key] = self._requests.labels(*map(str, key))
        self._of_request[key].observe(seconds)

    def refused(self, code: str) -> None:
        """Count an error response."""
        self._refused.labels(code or "other").inc()

    def searched(
        self,
        *,
        n_requests: int,
        fill: float,
        n_source_tokens: int,
        n_target_tokens: int,
        seconds: float,
    ) -> None:
        """Count a finished batch. May be called in any thread."""
        self._fill.observe(fill)
        self._sharing.observe(n_requests)
        self._source_tokens.inc(n_source_tokens)
        self._target_tokens.inc(n_target_tokens)
        self._search_seconds.inc(seconds)

    def doubted(self, kind: str) -> None:
        """Count a doubtful place in a translation."""
        self._doubts.labels(kind).inc()

    def look(self, *, n_waiting_chars: int, n_models: int, n_hits: int, n_misses: int) -> None:
        """Copy the counts of the queue, the models and the cache."""
        self._waiting.set(n_waiting_chars)
        self._models.set(n_models)
        for result, count in (("hit", n_hits), ("miss", n_misses)):
            self._cache.labels(result).inc(count - self._counted[result])
            self._counted[result] = count

    def text(self) -> bytes:
        """All metrics, of all processes, in Prometheus's text format."""
        if folder := os.environ.get(SHARED):
            registry = CollectorRegistry()
            MultiProcessCollector(registry, path=folder)  # type: ignore[no-untyped-call]
            return generate_latest(registry)
        return generate_latest(self._registry)
