"""Clients of an HTTP server that cost little: many keep-alive connections in one loop.

Each client sends a request, waits for the answer, and sends the next. Requests are bytes made
beforehand, an answer is read no further than its status and its length, and the client's own CPU
time is reported: it tells whether the clients or the server were measured. Not here: what is asked
for, and tables (`serve.py`).
"""

import re
import selectors
import socket
import time
from collections.abc import Iterator
from dataclasses import dataclass, field

LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)\r\n", re.IGNORECASE)
WAIT_S = 120.0
"""A server that says nothing for so long is stuck."""


@dataclass(kw_only=True)
class Outcome:
    """What came of a load.

    Attributes:
        wall_s: until the last answer.
        client_cpu_s: of this process.
        latencies_s: of every request that was answered with status 200.
        n_lost: requests whose connection ended without an answer.
        refused: status of every other answer.
    """

    wall_s: float = 0.0
    client_cpu_s: float = 0.0
    latencies_s: list[float] = field(default_factory=list)
    n_lost: int = 0
    refused: list[int] = field(default_factory=list)


class Client:
    """One connection, and the request that it waits for."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._answer = bytearray()
        self._length = 0
        self.sent_at = 0.0

    def send(self, request: bytes) -> None:
        """Ask."""
        self._answer.clear()
        self._length = 0
        self.sent_at = time.perf_counter()
        self.socket.sendall(request)

    def receive(self) -> bool:
        """Read what is there; whether the answer is complete.

        Raises:
            ConnectionError: the server hung up before.
        """
        data = self.socket.recv(1 << 18)
        if not data:
            raise ConnectionResetError
        self._answer += data
        if not self._length:
            end = self._answer.find(b"\r\n\r\n")
            if end < 0:
                return False
            found = LENGTH.search(self._answer, 0, end + 2)
            if found is None:
                raise SystemExit(f"an answer without a length: {bytes(self._answer[:end])!r}")
            self._length = end + 4 + int(found[1])
        return len(self._answer) >= self._length

    @property
    def status(self) -> int:
        """Of the answer."""
        return int(self._answer[9:12])

    @property
    def body(self) -> bytes:
        """Of the answer."""
        return bytes(self._answer[self._answer.find(b"\r\n\r\n") + 4 :])


def request_of(path: str, body: bytes) -> bytes:
    """A POST of JSON."""
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


def ask(port: int, request: bytes) -> tuple[int, bytes]:
    """Status and body of one answer on a connection of its own."""
    client = Client(port)
    with client.socket:
        client.send(request)
        while not client.receive():
            pass
        return client.status, client.body


class Load:
    """`n_clients` clients at once.

    Args:
        port: of the server on this machine.
        requests: what they send in turn; must not end.
        n_clients: connections.
    """

    def __init__(self, port: int, requests: Iterator[bytes], n_clients: int) -> None:
        self._requests = requests
        self._selector = selectors.DefaultSelector()
        for _ in range(n_clients):
            client = Client(port)
            self._selector.register(client.socket, selectors.EVENT_READ, client)
        self._started_at, self._cpu_s = time.perf_counter(), time.process_time()
        for key in list(self._selector.get_map().values()):
            key.data.send(next(requests))

    def finish(self, seconds: float) -> Outcome:
        """Go on for `seconds` since the start; then wait for the last answers, and hang up."""
        found = Outcome()
        while self._selector.get_map():
            ready = self._selector.select(WAIT_S)
            if not ready:
                raise SystemExit(f"no answer in {WAIT_S:g} s")
            for key, _ in ready:
                self._go_on(key.data, found, self._started_at + seconds)
        found.wall_s = time.perf_counter() - self._started_at
        found.client_cpu_s = time.process_time() - self._cpu_s
        self._selector.close()
        return found

    def _go_on(self, client: Client, found: Outcome, until: float) -> None:
        try:
            if not client.receive():
                return
        except ConnectionError:
            found.n_lost += 1
            self._hang_up(client)
            return
        now = time.perf_counter()
        if client.status == 200:
            found.latencies_s.append(now - client.sent_at)
        else:
            found.refused.append(client.status)
        if now < until:
            client.send(next(self._requests))
        else:
            self._hang_up(client)

    def _hang_up(self, client: Client) -> None:
        self._selector.unregister(client.socket)
        client.socket.close()
