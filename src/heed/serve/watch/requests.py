"""`Watched`: give each request an id, a log line and metrics.

It also adds security headers to each response, and handles exceptions that nothing else has caught.
"""

import logging
import re
import secrets
import time
from dataclasses import dataclass, field

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from heed.serve.watch.condition import Condition
from heed.serve.watch.figures import Figures
from heed.serve.watch.logs import REQUESTS

REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
"""A client's own `X-Request-Id` is kept if it matches."""

CLIENT_GONE = 499
"""Status in log and metrics for a client that disconnected before its response."""

REFUSED_WITH = "refused_with"
"""Key, in a request's state, of the status with which the connection itself has refused it."""

QUIET = frozenset(("/health", "/ready", "/metrics"))
"""Routes that are polled constantly; their log lines have level debug."""

POLICY = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
"""Responses of the API may load nothing. The page has its own policy."""

HEADERS = (
    (b"content-security-policy", POLICY.encode()),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"no-store"),
)
"""Added to each response that does not have its own."""

log = logging.getLogger(REQUESTS)
errors = logging.getLogger(__name__)


@dataclass(kw_only=True)
class _Exchange:
    """A request and its response so far."""

    id: str
    began_at: float = field(default_factory=time.perf_counter)
    status: int = CLIENT_GONE


class Watched:
    """Wraps the whole application.

    Args:
        app: the application.
        condition: state of the process.
        figures: metrics that count requests.
    """

    def __init__(self, app: ASGIApp, *, condition: Condition, figures: Figures | None) -> None:
        self._app = app
        self._condition = condition
        self._figures = figures

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handle one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        exchange = _Exchange(id=request_id_of(scope))
        scope.setdefault("state", {})["request_id"] = exchange.id

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                exchange.status = message["status"]
                message["headers"] = self._headers(message, scope, exchange)
            await send(message)

        if self._figures:
            self._figures.began()
        try:
            await self._app(scope, receive, send_with_headers)
        except Exception as error:
            # The application's handler for all exceptions has already sent the response.
            errors.error("failed", exc_info=error, extra={"fields": {"id": exchange.id}})
            if exchange.status == CLIENT_GONE:
                raise
        finally:
            self._note(scope, exchange)

    def _headers(
        self, message: Message, scope: Scope, exchange: _Exchange
    ) -> list[tuple[bytes, bytes]]:
        headers: list[tuple[bytes, bytes]] = list(message.get("headers", []))
        present = {name.lower() for name, _ in headers}
        headers += (pair for pair in HEADERS if pair[0] not in present)
        headers.append((b"x-request-id", exchange.id.encode()))
        for name, value in scope["state"].get("headers", {}).items():
            headers.append((name.lower().encode(), value.encode()))
        if self._condition.is_draining and b"connection" not in present:
            headers.append((b"connection", b"close"))
        return headers

    def _note(self, scope: Scope, exchange: _Exchange) -> None:
        seconds = time.perf_counter() - exchange.began_at
        route = str(getattr(scope.get("route"), "path", "other"))
        code = scope["state"].get("code")
        status = scope["state"].get(REFUSED_WITH, exchange.status)
        if self._figures:
            self._figures.ended(scope["method"], route, status, seconds)
            if code is not None:
                self._figures.refused(code)
        level = logging.DEBUG if route in QUIET else logging.INFO
        if log.isEnabledFor(level):
            fields = {
                "method": scope["method"] if scope["method"].isalpha() else "other",
                "route": route,
                "status": status,
                "ms": round(seconds * 1000, 1),
                "id": exchange.id,
                **({"code": code} if code else {}),
            }
            log.log(level, "request", extra={"fields": fields})


def request_id_of(scope: Scope) -> str:
    """The client's own id, if it is short and plain; else a new one."""
    given = next((value for name, value in scope["headers"] if name == b"x-request-id"), b"")
    found = given.decode("latin-1")
    return found if REQUEST_ID.fullmatch(found) else secrets.token_hex(8)
