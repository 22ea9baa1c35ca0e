"""Requests of operators: `/ready` and `/metrics`; `/health` belongs to LibreTranslate's API."""

import hmac
from collections.abc import Callable

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from heed.serve.refusal import Refusal
from heed.serve.service import Service
from heed.serve.settings import Metrics
from heed.serve.shapes.json_answer import JsonAnswer
from heed.serve.watch.condition import Condition
from heed.serve.watch.figures import Figures


def routes(
    condition: Condition, figures: Figures | None, metrics: Metrics, look: Callable[[], None]
) -> list[Route]:
    """The routes for operators.

    Args:
        condition: state of the process.
        figures: metrics for `/metrics`; None = there is no such path.
        metrics: settings for access to them.
        look: updates the metrics.
    """

    async def ready(_: Request) -> Response:
        if condition.takes_requests:
            return JsonAnswer({"status": "ready"})
        why = "draining" if condition.is_draining else "loading"
        return JsonAnswer({"status": why}, 503, headers={"Retry-After": "1"})

    async def shown(http: Request) -> Response:
        assert figures is not None
        _require_token(http, metrics.token)
        look()
        return Response(figures.text(), media_type=CONTENT_TYPE_LATEST)

    found = [Route("/ready", ready, name="/ready")]
    return [*found, Route("/metrics", shown, name="/metrics")] if figures else found


def look_at(service: Service, figures: Figures | None) -> None:
    """Copy the counters of queue, models and cache into the metrics."""
    if figures is None:
        return
    models = service.models
    figures.look(
        n_waiting_chars=service.scheduler.n_waiting_chars,
        n_models=sum(map(models.is_open, models.folders)),
        n_hits=service.cache.n_hits,
        n_misses=service.cache.n_misses,
    )


def _require_token(http: Request, token: str) -> None:
    scheme, _, given = http.headers.get("authorization", "").partition(" ")
    is_right = hmac.compare_digest(given.strip().encode(), token.encode())
    if token and not (scheme.lower() == "bearer" and is_right):
        raise Refusal(
            401,
            "/metrics needs the token in metrics.token, sent as Authorization: Bearer.",
            code="invalid_token",
            headers={"WWW-Authenticate": "Bearer"},
        )
