"""The names under which a server answers.

A page can have its own host name resolve to the address of this machine (DNS rebinding). To a
browser its requests then stay within one origin, so it may read the responses. The name that it
must send in the Host header tells.
"""

import socket
from collections.abc import Collection
from ipaddress import ip_address

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from heed.serve.access.addresses import peer_of
from heed.serve.settings import ServeSettings, host_in_ascii

PRIVATE = (".localhost", ".local", ".internal", ".home.arpa")
"""Endings of names that no public name server resolves. Source: RFC 6761, 6762, 8375, and ICANN's
resolution of 2024-07-29."""


def names_of(settings: ServeSettings) -> Collection[str] | None:
    """The public names under which a server answers, besides addresses and private names.

    Returns:
        None = any name: none is listed, and requests need a key, come through a proxy, or may come
        from other machines.
    """
    access, listen = settings.access, settings.listen
    if access.hosts:
        return frozenset(map(host_in_ascii, access.hosts))
    if settings.needs_keys or listen.trusted_proxies or not listen.is_loopback:
        return None
    return frozenset((socket.gethostname().lower(),))


def is_answered(host: str, names: Collection[str]) -> bool:
    """Whether a server answers a request with this Host header; "" = it had none."""
    name = peer_of(host).lower().rstrip(".")
    if "." not in name or name.endswith(PRIVATE) or name in names:
        return True
    try:
        ip_address(name)
    except ValueError:
        return False
    return True


class OwnNames:
    """An application that answers under its own names only.

    Args:
        app: the application.
        names: its public names.
        refuse: responds to requests with another name.
    """

    def __init__(self, app: ASGIApp, names: Collection[str], refuse: ASGIApp) -> None:
        self._app, self._names, self._refuse = app, names, refuse

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Respond to a request."""
        is_http = scope["type"] == "http"
        host = Headers(scope=scope).get("host", "") if is_http else ""
        app = self._app if is_answered(host, self._names) else self._refuse
        await app(scope, receive, send)
