"""The application: all routes, and every error as a response in the format of its API."""

import http
from collections.abc import Sequence
from functools import partial
from typing import Any

from starlette.applications import Starlette
from starlette.datastructures import URLPath
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Match, NoMatchFound, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from heed.serve import operating
from heed.serve.access.buckets import Buckets
from heed.serve.access.gate import Gate
from heed.serve.access.hosts import OwnNames, names_of
from heed.serve.access.usage import Usage
from heed.serve.inside.runs import Runs
from heed.serve.inside.searches import Searches
from heed.serve.inside.tables import Tables
from heed.serve.inside.traces import Traces
from heed.serve.operating import look_at
from heed.serve.page import files as page
from heed.serve.refusal import Refusal
from heed.serve.service import Service
from heed.serve.settings import origin_in_ascii
from heed.serve.shapes.endpoint import (
    CLIENT_CLOSED_REQUEST,
    TIMEOUT,
    error_response,
    routes_of,
)
from heed.serve.shapes.keyless import Keyless
from heed.serve.shapes.table import ENDPOINTS, style_of
from heed.serve.watch.condition import Condition
from heed.serve.watch.figures import Figures
from heed.serve.watch.requests import Watched

SENTENCES = {
    404: "There is nothing at this address; the page /docs lists all that there is.",
    405: "This address does not allow this method; the Allow header lists those it does.",
    500: "The server failed to answer this request. See its log for the reason.",
}


def make_app(
    service: Service,
    condition: Condition | None = None,
    figures: Figures | None = None,
    buckets: Buckets | None = None,
) -> ASGIApp:
    """The ASGI application of a service.

    Args:
        service: translates.
        condition: state of the process; None = always ready.
        figures: metrics for `/metrics`; None = there is no such path.
        buckets: quotas of the clients and their usage; None = this process has its own.
    """
    condition = condition or Condition(is_ready=True)
    buckets = buckets or Buckets()
    settings = service.settings
    routes = [
        *routes_of(ENDPOINTS, service),
        *operating.routes(condition, figures, settings.metrics, partial(look_at, service, figures)),
        *page.routes(settings.limits.chars, _screens(service)),
    ]
    app = Starlette(
        routes=[_FixedPaths(routes), *routes],
        exception_handlers={
            Refusal: _refused,
            HTTPException: _http_error,
            ClientDisconnect: _left,
            Exception: _failed,
        },
    )
    app.state.usage = Usage(buckets)
    app.state.gate = Gate(settings, buckets)
    app.state.keyless = Keyless(settings.limits.keyless_bytes)
    is_allowed, n_kept = settings.shows_inside, settings.inside.traces
    app.state.traces = Traces(service, is_allowed=is_allowed, n_kept=n_kept)
    app.state.searches = Searches(service, is_allowed=is_allowed, n_kept=n_kept)
    app.state.tables = Tables(service.models)
    app.state.runs = Runs(
        settings.inside.runs,
        token=settings.inside.token,
        is_allowed=settings.shows_inside,
        condition=condition,
    )
    # A redirect would repeat the client's Host header.
    app.router.redirect_slashes = False
    shared = _with_origins(app, settings.access.origins)
    names = names_of(settings)
    named = shared if names is None else OwnNames(shared, names, refuse=_other_name)
    return Watched(named, condition=condition, figures=figures)


class _FixedPaths(BaseRoute):
    """Finds a route by its path in one step, where Starlette would try one after another.

    Args:
        routes: the routes; those with parameters in their paths are left to Starlette.
    """

    def __init__(self, routes: Sequence[Route]) -> None:
        self._routes = {route.path: route for route in routes if not route.param_convertors}

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Whether a route matches a request; the request then refers to that route."""
        route = None if scope.get("root_path") else self._routes.get(scope["path"])
        if route is None:
            return Match.NONE, {}
        match, found = route.matches(scope)
        return match, {**found, "route": route}

    def url_path_for(self, name: str, /, **path_params: Any) -> URLPath:
        """Not supported here: the routes themselves know their addresses."""
        raise NoMatchFound(name, path_params)

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond with the route that was found."""
        await scope["route"].handle(scope, receive, send)


def _screens(service: Service) -> page.Shown:
    """The screens of the page. A server for training runs may have no models."""
    settings, runs = service.settings, service.settings.inside.runs
    return page.Shown(
        models=bool(service.routes) or not runs,
        inside=settings.shows_inside,
        runs=bool(runs) and settings.shows_inside,
    )


def _with_origins(app: ASGIApp, origins: Sequence[str]) -> ASGIApp:
    """Allow pages of these origins, and no others, to read responses in a browser."""
    if not origins:
        return app
    return CORSMiddleware(
        app,
        allow_origins=[origin_in_ascii(origin) for origin in origins],
        allow_methods=("GET", "POST", "PUT", "PATCH", "DELETE"),
        allow_headers=("Authorization", "Content-Type", "X-API-Key", "X-Request-Id", TIMEOUT),
        expose_headers=(
            "X-Request-Id",
            "Retry-After",
            "RateLimit-Limit",
            "RateLimit-Remaining",
            "RateLimit-Reset",
            "Content-Disposition",
        ),
    )


async def _other_name(scope: Scope, receive: Receive, send: Send) -> None:
    """Refuse a request that was sent to another host name."""
    sentence = (
        "This server does not answer under the name in the Host header. Use its address or "
        "localhost, or list the name in its setting access.hosts."
    )
    refusal = Refusal(421, sentence, code="misdirected_request")
    response = await _refused(Request(scope, receive), refusal)
    await response(scope, receive, send)


async def _refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, Refusal)
    request.state.code = error.code
    return error_response(error, request, style_of(request.url.path))


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    phrase = http.HTTPStatus(error.status_code).phrase
    refusal = Refusal(
        error.status_code,
        SENTENCES.get(error.status_code, f"{phrase}."),
        code=phrase.lower().replace(" ", "_"),
        headers=error.headers,
    )
    return await _refused(request, refusal)


async def _left(_: Request, error: Exception) -> Response:
    """The client closed the connection before its body was complete; nobody reads this response."""
    return Response(status_code=CLIENT_CLOSED_REQUEST)


async def _failed(request: Request, error: Exception) -> Response:
    return await _refused(request, Refusal(500, SENTENCES[500], code="internal_error"))
