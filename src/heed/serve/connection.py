"""`Connection`: uvicorn's HTTP connection, with limits on a client's time and size.

A slow request gets 408, an oversized head 431, and a connection above the limit 503. A response
that the client does not read is cut off. `sweep` is called several times a second for every
connection, which costs less than a timer for each phase of each request.
"""

import asyncio
import json
from collections.abc import Callable, Collection
from enum import Enum
from typing import Any

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn.config import Config
from uvicorn.protocols.http.flow_control import FlowControl
from uvicorn.protocols.http.httptools_impl import (
    STATUS_LINE,
    HttpToolsProtocol,
    RequestResponseCycle,
)
from uvicorn.server import ServerState

from heed.serve.settings import Listen
from heed.serve.shapes.endpoint import WHEN_LEFT
from heed.serve.watch.requests import REFUSED_WITH

LINGER_S = 2.0
"""Seconds for reading the rest of a refused body, so that the client receives the response."""

LAST_REQUEST_S = 0.2
"""Seconds between the order to shut down and the end of an idle connection, so that a request on
its way is still read."""

SENTENCES = {
    400: "This is not an HTTP request.",
    408: "The request took too long to arrive.",
    431: "The request line and headers are too long.",
    501: "Transfer-Encoding must be chunked, and nothing else.",
    503: "Too many connections are open. Try again later.",
}


class Phase(Enum):
    """The event that a connection waits for."""

    IDLE = "a request"
    HEAD = "the rest of a request line and headers"
    BODY = "the rest of a body"
    ANSWER = "the server"


class Flow(FlowControl):
    """Flow control of a connection that reads nothing while requests wait for their turn.

    uvicorn reads on after each response, so a client could fill the memory with requests.

    Args:
        transport: the connection.
        waiting: the requests that wait.
    """

    def __init__(self, transport: asyncio.Transport, waiting: Collection[object]) -> None:
        super().__init__(transport)
        self._waiting = waiting

    def resume_reading(self) -> None:
        """Read on, unless a request waits."""
        if not self._waiting:
            super().resume_reading()


class Connection(HttpToolsProtocol):
    """One connection of a client.

    Args:
        listen: the limits.
        config: uvicorn's own argument.
        server_state: uvicorn's own argument.
        app_state: uvicorn's own argument.
        _loop: uvicorn's own argument.
    """

    def __init__(
        self,
        listen: Listen,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._listen = listen
        self._head_size = 0
        self._body_gap = 0
        self._n_body_parts = 0
        self._n_requests = 0
        self._refused_with = 0
        self._is_last = False
        self._is_lost = False
        self._on_leaving: Callable[[], object] | None = None
        self._write_deadline = 0.0
        self._enter(Phase.HEAD, listen.head_s)

    def _enter(self, phase: Phase, seconds: float = 0.0) -> None:
        self._phase = phase
        self._deadline = self.loop.time() + seconds if seconds else 0.0

    @property
    def _exchange(self) -> RequestResponseCycle | None:
        """The latest request with its response; None before the first."""
        return self.cycle

    @property
    def _is_answering(self) -> bool:
        return self._exchange is not None and not self.cycle.response_complete

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count the connection; refuse it if there are too many."""
        super().connection_made(transport)
        self.flow = Flow(transport, self.pipeline)
        if len(self.connections) > self._listen.connections:
            self._refuse(503)

    def connection_lost(self, exc: Exception | None) -> None:
        """The client has disconnected."""
        super().connection_lost(exc)
        self._is_lost = True
        self._leave()
        if self._exchange is not None:
            self._exchange.scope["state"].pop(WHEN_LEFT, None)  # else they form a reference cycle

    def when_left(self, call: Callable[[], object] | None) -> None:
        """Call a function when the client leaves before its response; None = stop watching."""
        self._on_leaving = call
        if call is not None:
            self.flow.resume_reading()  # a closed connection is noticed only by reading
            if self._is_lost:
                self.loop.call_soon(self._leave)

    def _leave(self) -> None:
        if self._on_leaving is not None:
            self._on_leaving()

    def data_received(self, data: bytes) -> None:
        """Parse received bytes."""
        if self._refused_with:
            return
        before = self._phase, self._n_requests, self._n_body_parts
        self._unset_keepalive_if_required()
        try:
            self._parse(memoryview(data))
        except HttpParserError as error:
            self.send_400_response(str(error))
        if self._phase is Phase.HEAD and self._n_requests == before[1]:
            # An endless header reaches no callback, so its bytes are counted here.
            self._head_size += len(data)
        elif (self._phase, self._n_requests, self._n_body_parts) == before:
            # Nor does an endless trailer, or extension of a chunk.
            self._body_gap += len(data)
        else:
            self._body_gap = 0
        if max(self._head_size, self._body_gap) > 2 * self._listen.head_bytes:
            self._refuse_length()

    def _refuse_length(self) -> None:
        if self._phase is Phase.BODY and not self._is_answering:
            self.transport.close()  # the response was sent before all of the body arrived
        elif not self._refused_with:
            self._refuse(431)

    def _parse(self, data: memoryview) -> None:
        """Parse bytes. The header Upgrade is ignored, as RFC 9110, section 7.8, allows.

        httptools stops after a head with it, and takes the body for data of another protocol.
        Java's HttpClient sends it by default, to change to HTTP/2.
        """
        while data:
            try:
                self.parser.feed_data(data)
            except HttpParserUpgrade as upgrade:
                if not self._is_upgrade:
                    return
                data = data[upgrade.args[0] :]
                self._begin_without_upgrade()
            else:
                return

    @property
    def _is_upgrade(self) -> bool:
        return self.parser.should_upgrade() and self.parser.get_method() != b"CONNECT"

    def _begin_without_upgrade(self) -> None:
        """Parse the head of the current request again, without the header Upgrade."""
        line = b"%s %s HTTP/%s" % (
            self.parser.get_method(),
            self.url,
            self.parser.get_http_version().encode(),
        )
        fields = (b"%s: %s" % each for each in self.headers if each[0] != b"upgrade")
        self.parser = HttpRequestParser(self)
        self.parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn does
        self.parser.feed_data(b"\r\n".join([line, *fields, b"", b""]))

    def on_message_begin(self) -> None:
        """A request line begins."""
        super().on_message_begin()
        self._head_size = 0
        self._enter(Phase.HEAD, self._listen.head_s)

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header. Trailers, which follow a body in chunks, are dropped.

        RFC 9110, section 6.5.1: else a trailer could bring a key, or the address of a client.
        """
        if self._phase is Phase.HEAD:
            super().on_header(name, value)

    def on_body(self, body: bytes) -> None:
        """Take a part of the body."""
        self._n_body_parts += 1
        super().on_body(body)

    def on_headers_complete(self) -> None:
        """The head is complete; start the application."""
        self._check_head()
        if self._is_upgrade:
            return
        if self.parser.get_http_version() == "1.0":
            self.expect_100_continue = False  # RFC 9110, section 10.1.1
        self.scope["state"][WHEN_LEFT] = self.when_left
        super().on_headers_complete()
        self._enter(Phase.BODY, self._listen.body_s)
        if self._is_last:
            self.cycle.keep_alive = False

    def _check_head(self) -> None:
        """Refuse a head that is too long, or does not say clearly where its body ends.

        Raises:
            ValueError: httptools raises it again in `data_received`.
        """
        size = len(self.url) + sum(len(name) + len(value) + 4 for name, value in self.headers)
        if size > self._listen.head_bytes:
            self._refuse_head(431)
        # RFC 9112, section 3.2.
        version = self.parser.get_http_version()
        n_hosts = sum(name == b"host" for name, _ in self.headers)
        if n_hosts > 1 or (not n_hosts and version == "1.1"):
            raise ValueError("An HTTP/1.1 request must have exactly one Host header.")
        # Section 6.1. httptools takes every list of codings that ends in `chunked` for chunks.
        values = [value for name, value in self.headers if name == b"transfer-encoding"]
        codings = [each.strip().lower() for each in b",".join(values).split(b",")]
        if values and (version == "1.0" or codings[-1] != b"chunked"):
            raise ValueError("Transfer-Encoding must end in chunked, and HTTP/1.0 has none.")
        if len(codings) > 1:
            self._refuse_head(501)

    def _refuse_head(self, status: int) -> None:
        self._refused_with = status
        raise ValueError(SENTENCES[status])

    def on_message_complete(self) -> None:
        """The body is complete."""
        if self._is_upgrade:
            return
        super().on_message_complete()
        self._n_requests += 1
        if self.cycle.response_complete:
            self._enter(Phase.IDLE, self._listen.idle_s)
        else:
            self._enter(Phase.ANSWER)

    def on_response_complete(self) -> None:
        """The response is written, perhaps before the body was read."""
        super().on_response_complete()
        if not self.transport.is_closing():
            self.flow.resume_reading()  # the last waiting request may have begun just now
        if self._is_answering:
            return  # to the next one of pipelined requests
        if self._phase is Phase.BODY:
            self._enter(Phase.BODY, LINGER_S)
        elif self._phase is Phase.ANSWER:
            self._enter(Phase.IDLE, self._listen.idle_s)

    def send_400_response(self, msg: str) -> None:
        """Respond to a request that is not HTTP, or that a callback refused."""
        self._refuse(self._refused_with or 400)

    def pause_writing(self) -> None:
        """The client does not read fast enough."""
        super().pause_writing()
        self._write_deadline = self.loop.time() + self._listen.write_s

    def resume_writing(self) -> None:
        """The client has read its data."""
        super().resume_writing()
        self._write_deadline = 0.0

    def shutdown(self) -> None:
        """Accept no further requests, except one that has begun or is on its way."""
        self._is_last = True
        if self._is_answering:
            self.cycle.keep_alive = False
        else:
            self.loop.call_later(LAST_REQUEST_S, self._close_if_idle)

    def _close_if_idle(self) -> None:
        is_new = self._phase is Phase.HEAD and not (self._head_size or self._n_requests)
        if (is_new or self._phase is Phase.IDLE) and not self.transport.is_closing():
            self.transport.close()

    def sweep(self, now: float) -> None:
        """Refuse or close a connection whose time limit is over.

        Args:
            now: `loop.time()`.
        """
        if self.transport.is_closing() and not self._write_deadline:
            self._write_deadline = now + self._listen.write_s
        if self._write_deadline and now > self._write_deadline:
            self.transport.abort()
        elif self._deadline and now > self._deadline and not self.transport.is_closing():
            self._expire()

    def _expire(self) -> None:
        if self._phase is Phase.IDLE:
            self.transport.close()
        elif self._phase is Phase.BODY and not self._is_answering:
            self.transport.close()  # the response was sent; the rest of the body was not needed
        elif self.pipeline or (self._phase is Phase.HEAD and self._is_answering):
            # The response to an earlier request comes first.
            self._deadline = self.loop.time() + self._listen.head_s
        else:
            self._refuse(408)

    def _refuse(self, status: int) -> None:
        self._refused_with = status
        if self._exchange is not None and not self._exchange.response_complete:
            if self._exchange.response_started:
                self.transport.close()
                return
            self._exchange.scope["state"][REFUSED_WITH] = status  # not 499: it has not left
            self._exchange.disconnected = True
            self._exchange.message_event.set()
            self._leave()
        body = json.dumps({"error": SENTENCES[status]}).encode()
        head = b"content-type: application/json\r\nconnection: close\r\n"
        if status == 503:
            head += b"retry-after: 1\r\n"
        self.transport.write(
            STATUS_LINE[status] + head + b"content-length: %d\r\n\r\n" % len(body) + body
        )
        self.transport.close()
