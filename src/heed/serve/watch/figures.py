"""`Figures`: what `/metrics` shows to Prometheus. No label holds a text, a key or an address.

Several processes write their figures into files that all of them read, so that any of them answers
for all; prometheus_client does that where `SHARED` is set before it is imported.
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
"""The variable of prometheus_client that names the folder of the files."""

SECONDS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30)
SHARES = (0.1, 0.25, 0.5, 0.75, 0.9, 1.0)
REQUESTS = (1, 2, 4, 8, 16, 32, 64)
METHODS = frozenset(("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"))


class Figures:
    """All figures of a server process."""

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
        # `labels` checks and spells its arguments anew at each call.
        self._of_request: dict[tuple[str, str, int], Histogram] = {}
        if SHARED not in os.environ:
            ProcessCollector(registry=registry)
            PlatformCollector(registry=registry)

    def began(self) -> None:
        """A request has come."""
        self._in_work.inc()

    def ended(self, method: str, route: str, status: int, seconds: float) -> None:
        """A request is answered, or its client has gone.

        Args:
            method: of HTTP.
            route: the path with `{name}` in the place of what the client chose.
            status: of the answer.
            seconds: since its headers came.
        """
        self._in_work.dec()
        key = method if method in METHODS else "other", route, status
        if key not in self._of_request:
            self._of_request[key] = self._requests.labels(*map(str, key))
        self._of_request[key].observe(seconds)

    def refused(self, code: str) -> None:
        """A request got an error."""
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
        """A batch is done. Called in any thread."""
        self._fill.observe(fill)
        self._sharing.observe(n_requests)
        self._source_tokens.inc(n_source_tokens)
        self._target_tokens.inc(n_target_tokens)
        self._search_seconds.inc(seconds)

    def doubted(self, kind: str) -> None:
        """An answer has a doubtful place."""
        self._doubts.labels(kind).inc()

    def look(self, *, n_waiting_chars: int, n_models: int, n_hits: int, n_misses: int) -> None:
        """Take over what others count: the queue, the models and the cache."""
        self._waiting.set(n_waiting_chars)
        self._models.set(n_models)
        for result, count in (("hit", n_hits), ("miss", n_misses)):
            self._cache.labels(result).inc(count - self._counted[result])
            self._counted[result] = count

    def text(self) -> bytes:
        """All figures, of all processes, in Prometheus's text format."""
        if folder := os.environ.get(SHARED):
            registry = CollectorRegistry()
            MultiProcessCollector(registry, path=folder)  # type: ignore[no-untyped-call]
            return generate_latest(registry)
        return generate_latest(self._registry)
