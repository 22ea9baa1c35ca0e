"""`Watched`: gives each request an id, and each answer its headers."""

import re
import secrets

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from heed.serve.watch.condition import Condition

REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
"""A client's own `X-Request-Id` is kept if it looks like this."""

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The page loads its own files and nothing else."""

HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-store",
}
"""Added to each answer that does not have its own."""


class Watched:
    """Around all of the application.

    Args:
        app: the rest.
        condition: of the process.
    """

    def __init__(self, app: ASGIApp, *, condition: Condition) -> None:
        self._app = app
        self._condition = condition

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request_id = request_id_of(Headers(scope=scope))
        scope.setdefault("state", {})["request_id"] = request_id

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                present = {name.lower() for name, _ in message.get("headers", [])}
                added = {**HEADERS, "x-request-id": request_id, **scope["state"].get("headers", {})}
                if self._condition.is_draining:
                    added["connection"] = "close"
                message["headers"] = [
                    *message.get("headers", []),
                    *(
                        (name.lower().encode(), value.encode())
                        for name, value in added.items()
                        if name.lower().encode() not in present
                    ),
                ]
            await send(message)

        await self._app(scope, receive, send_with_headers)


def request_id_of(headers: Headers) -> str:
    """The client's own id, if it is short and plain, else a new one."""
    given = headers.get("x-request-id", "")
    return given if REQUEST_ID.fullmatch(given) else secrets.token_hex(8)
