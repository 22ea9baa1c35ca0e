"""TLS handshakes are limited in number and in time, and those begun are completed at the end."""

import asyncio
import errno
import os
import shutil
import signal
import socket
import ssl
import time
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.serve.conftest import expire, make_certificate
from tests.serve.program import QUESTION, Program, posted, read_all

from heed.serve import accepting
from heed.serve.accepting import Accepting
from heed.serve.settings import Listen

Files = tuple[str, str]


def with_tls(model: str, files: Files, *settings: str) -> Program:
    more = [part for each in settings for part in ("--set", each)]
    return Program("-m", model, "--certificate", files[0], "--private-key", files[1], *more)


def ask(program: Program, files: Files) -> bytes:
    """A whole response over TLS; b"" = the server closed the connection before."""
    trusting = ssl.create_default_context(cafile=files[0])
    try:
        with trusting.wrap_socket(program.connect(), server_hostname="127.0.0.1") as client:
            client.sendall(posted(QUESTION, "Connection: close"))
            return read_all(client)
    except ConnectionError:
        return b""


def hang_up(program: Program, words: str, *, n_times: int) -> None:
    """Send SIGHUP, and wait until each process has written words into the log."""
    os.kill(program.pid, signal.SIGHUP)
    deadline = time.monotonic() + 60
    while sum(words in line for line in program.lines) < n_times and time.monotonic() < deadline:
        time.sleep(0.01)


def test_handshakes_count_as_connections(en_de: str, certificate: Files) -> None:
    settings = "listen.connections=3", "listen.head_s=600"
    with with_tls(en_de, certificate, *settings) as program, ExitStack() as held:
        first, *_ = [held.enter_context(program.connect()) for _ in range(3)]
        assert ask(program, certificate) == b""
        first.close()
        deadline = time.monotonic() + 60
        while not (answer := ask(program, certificate)) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert answer.startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("more", [(), ("listen.processes=2",)])
def test_a_renewed_certificate_is_read_at_sighup(
    en_de: str, certificate: Files, tmp_path: Path, more: tuple[str, ...]
) -> None:
    files = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    for old, new in zip(certificate, files, strict=True):
        shutil.copy(old, new)
    with with_tls(en_de, files, *more) as program:
        assert ask(program, files).startswith(b"HTTP/1.1 200")
        make_certificate(*files)
        with pytest.raises(ssl.SSLCertVerificationError):
            ask(program, files)
        hang_up(program, "the certificate was read again", n_times=1 + len(more))
        assert ask(program, files).startswith(b"HTTP/1.1 200")
        Path(files[1]).write_text("nothing")
        hang_up(program, "The old certificate stays in use.", n_times=1 + len(more))
        assert ask(program, files).startswith(b"HTTP/1.1 200")
        assert program.stop() == 0


@pytest.mark.parametrize("more", [(), ("listen.processes=2",)])
def test_an_expired_certificate_is_named_at_the_start_and_at_sighup(
    en_de: str, tmp_path: Path, more: tuple[str, ...]
) -> None:
    files = str(tmp_path / "cert.pem"), str(tmp_path / "key.pem")
    make_certificate(*files)
    expire(files[0])
    with with_tls(en_de, files, *more) as program:
        words = f"the certificate {files[0]} has expired; clients refuse it since 2020-01-02 03:04"
        hang_up(program, "the certificate was read again", n_times=1 + len(more))
        hang_up(program, words, n_times=3 + 2 * len(more))
        assert sum(words in line for line in program.lines) == 3 + 2 * len(more), program.lines
        assert program.stop() == 0


@pytest.mark.parametrize("sent", [b"", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"])
def test_a_handshake_that_does_not_end_is_cut_off(
    en_de: str, certificate: Files, sent: bytes
) -> None:
    """The event loop's own limit is a minute; a client here gives up after half of it."""
    with with_tls(en_de, certificate, "listen.head_s=0.3") as program:
        with program.connect() as client:
            client.sendall(sent)
            assert read_all(client) == b""
        assert ask(program, certificate).startswith(b"HTTP/1.1 200")
        assert program.stop() == 0
        assert not any("rror" in line or "exception" in line for line in program.lines)


Begin = Callable[[Accepting, socket.socket], Awaitable[Any]]


def in_loop(files: Files, begin: Begin, most: int = 5) -> list[bytes]:
    """What connections received while `begin` ran with an open `Accepting` and its listener."""
    received: list[bytes] = []

    class Heard(asyncio.Protocol):
        def data_received(self, data: bytes) -> None:
            received.append(data)

    async def run() -> None:
        tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        tls.load_cert_chain(*files)
        with socket.create_server(("127.0.0.1", 0)) as listener:
            listener.setblocking(False)
            await begin(Accepting(listener, Heard, (), Listen(connections=most), tls), listener)

    asyncio.run(run())
    return received


def shake(client: socket.socket, files: Files) -> None:
    """Complete a handshake, and send a word."""
    trusting = ssl.create_default_context(cafile=files[0])
    with trusting.wrap_socket(client, server_hostname="127.0.0.1") as secured:
        secured.sendall(b"hello")


def test_handshakes_that_have_begun_are_completed(
    certificate: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accepting, "LAST_HANDSHAKES_S", 60)

    async def begin(begun: Accepting, listener: socket.socket) -> None:
        begun.start()
        clients = [socket.create_connection(listener.getsockname(), timeout=30) for _ in range(2)]
        await asyncio.sleep(0.1)
        clients.append(socket.create_connection(listener.getsockname(), timeout=30))
        closing = asyncio.create_task(begun.close())
        shaking = [asyncio.to_thread(shake, client, certificate) for client in clients]
        await asyncio.gather(closing, *shaking)

    assert in_loop(certificate, begin) == [b"hello"] * 3


def test_at_the_end_silent_clients_are_cut_off(
    certificate: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accepting, "LAST_HANDSHAKES_S", 0.05)

    async def begin(begun: Accepting, listener: socket.socket) -> None:
        with socket.create_connection(listener.getsockname(), timeout=30) as client:
            await begun.close()
            assert await asyncio.to_thread(read_all, client) == b""

    assert in_loop(certificate, begin) == []


def test_accepting_goes_on_after_an_error_of_the_system(
    certificate: Files, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(accepting, "RETRY_S", 0.0)

    async def begin(begun: Accepting, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        accept = loop.sock_accept
        errors = [OSError(errno.EMFILE, "Too many open files"), ConnectionAbortedError()]

        async def failing(of: socket.socket) -> Any:
            if errors:
                raise errors.pop()
            return await accept(of)

        monkeypatch.setattr(loop, "sock_accept", failing)
        begun.start()
        client = socket.create_connection(listener.getsockname(), timeout=30)
        await asyncio.to_thread(shake, client, certificate)
        await begun.close()

    assert in_loop(certificate, begin) == [b"hello"]
    assert caplog.messages == ["a connection could not be accepted: Too many open files"]
