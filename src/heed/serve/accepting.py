"""`Accepting`: accepts connections with TLS and limits handshakes; ends accepting with and without.

The event loop's own servers tell of a connection with TLS only after its handshake, for which they
allow a minute. So clients that never complete one would be neither counted nor limited.
"""

import asyncio
import logging
import socket
import ssl
from collections.abc import Callable, Sized
from contextlib import suppress

from heed.serve.settings import Listen

RETRY_S = 1.0
"""Pause after an error of the system, such as too many open files."""

AT_ONCE = 64
"""Connections accepted in one turn of the event loop."""

LAST_HANDSHAKES_S = 1.0
"""Seconds for completing handshakes after the end of listening."""

log = logging.getLogger(__name__)


class Accepting:
    """Accepts the connections of a listening socket. Call all methods in the event loop.

    Args:
        listener: the socket, which does not block.
        make: makes the protocol of a connection.
        opened: the connections with a complete handshake.
        listen: the limits.
        tls: certificate and key; None = the server speaks HTTP without TLS.

    Attributes:
        tls: as above; another certificate counts for further connections.
    """

    def __init__(
        self,
        listener: socket.socket,
        make: Callable[[], asyncio.Protocol],
        opened: Sized,
        listen: Listen,
        tls: ssl.SSLContext | None,
    ) -> None:
        self._listener = listener.dup()
        self._make = make
        self._opened = opened
        self._most = listen.connections
        self.tls = tls
        self._handshake_s = listen.head_s if tls else None
        self._begun: set[asyncio.Task[None]] = set()
        self._running: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Accept connections from now on."""
        self._running = asyncio.get_running_loop().create_task(self._run())

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, _ = await loop.sock_accept(self._listener)
            except ConnectionError:
                continue  # the client has left already
            except OSError as error:
                log.warning("a connection could not be accepted: %s", error.strerror)
                await asyncio.sleep(RETRY_S)
                continue
            self._begin(accepted)
            with suppress(OSError):  # mostly BlockingIOError: no more are waiting
                for _ in range(AT_ONCE):
                    self._begin(self._listener.accept()[0])

    async def close(self) -> None:
        """Accept what waits in the kernel's queue, stop listening, and complete handshakes.

        Clients in the queue are connected already. Every other copy of the socket may be closed
        before: this one keeps them.
        """
        if self._running is not None:
            self._running.cancel()
        with suppress(OSError):
            while True:
                self._begin(self._listener.accept()[0])
        self._listener.close()
        if self._begun:
            await asyncio.wait(self._begun, timeout=LAST_HANDSHAKES_S)
        for late in self._begun:
            late.cancel()

    def _begin(self, accepted: socket.socket) -> None:
        """Begin a connection; with TLS, close it instead if there are too many.

        Without TLS, `make`'s protocol refuses it in words. With TLS, these would cost a handshake.
        """
        if self.tls is not None and len(self._opened) + len(self._begun) >= self._most:
            accepted.close()
            return
        task = asyncio.get_running_loop().create_task(self._connect(accepted))
        self._begun.add(task)
        task.add_done_callback(self._begun.discard)

    async def _connect(self, accepted: socket.socket) -> None:
        accepted.setblocking(False)
        with suppress(OSError):  # the client has left, is too slow, or does not speak TLS
            await asyncio.get_running_loop().connect_accepted_socket(
                self._make, accepted, ssl=self.tls, ssl_handshake_timeout=self._handshake_s
            )
