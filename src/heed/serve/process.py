"""One server process: it loads the models, answers requests, and drains before it ends.

SIGTERM and SIGINT: `/ready` returns 503 at once; connections are still accepted for a moment; then
the socket closes, and every request in flight is answered. Another signal ends it at once.
SIGHUP: models whose folders have changed are reloaded, and the certificate is read again.
"""

import asyncio
import functools
import gc
import logging
import os
import signal
import socket
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import uvicorn

from heed.errors import ConfigError
from heed.serve.accepting import Accepting
from heed.serve.access import keys
from heed.serve.access.buckets import Buckets
from heed.serve.app import make_app
from heed.serve.connection import Connection
from heed.serve.expiry import warn_of_expiry
from heed.serve.listening import begin_no_more, read_certificate
from heed.serve.operating import look_at
from heed.serve.request import Request
from heed.serve.service import Service
from heed.serve.settings import Listen, ServeSettings
from heed.serve.shapes.downloads import forget_files
from heed.serve.shapes.storage import THREADS
from heed.serve.watch.condition import Condition
from heed.serve.watch.figures import Figures
from heed.serve.watch.signals import REPEATED_S, STOP_SIGNALS
from heed.serve.watch.systemd import STOPPING, notify
from heed.serve.work.pools import end_pools
from heed.serve.work.rest import Rest

LAST_CALL_S = 0.3
"""Seconds between a signal and the end of listening. Responses meanwhile ask clients to reconnect,
so that none sends a request into a closing connection."""

HANDSHAKE_S = 0.1
"""Seconds for completing connections that have begun, before the socket closes."""

END_S = 0.5
"""Seconds for threads to end, after all requests were answered or cut off."""

SWEEPS = 4
"""Number of sweeps over connections within the shortest time limit."""

NEW_OBJECTS = 20_000
"""Number of new objects that triggers a garbage collection. Requests create no cycles, but
hundreds of objects each while they wait. With Python's 700 the collector takes a third of the time
of the event loop."""

Say = Callable[[str], None]

log = logging.getLogger(__name__)


def run_process(
    settings: ServeSettings,
    make_service: Callable[[], Service],
    listener: socket.socket,
    *,
    say: Say,
    on_ready: Callable[[], None],
    parent: socket.socket | None = None,
    figures: Figures | None = None,
    buckets: Buckets | None = None,
) -> int:
    """Serve until a signal arrives; return the exit code.

    Args:
        settings: settings of the server.
        make_service: reads the models' descriptions.
        listener: the listening socket.
        say: prints a line on standard error.
        on_ready: called after the first sentence is translated.
        parent: its other end is held by the supervisor; the process ends when that is closed.
        figures: metrics for `/metrics`.
        buckets: quotas of the server's clients; None = this is its only process.

    Raises:
        HeedError: a model cannot be loaded.
    """
    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        process = _Process(settings, make_service(), say, figures, buckets)
        code = runner.run(process.serve(listener, on_ready, parent))
        if not process.end_threads():
            say(
                "heed: a thread is still busy, perhaps with a disk that does not answer; the "
                "process ends without it."
            )
            logging.shutdown()
            os._exit(code)
    return code


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    if sys.platform == "win32":
        return None
    import uvloop

    return uvloop.new_event_loop


class _Process:
    def __init__(
        self,
        settings: ServeSettings,
        service: Service,
        say: Say,
        figures: Figures | None,
        buckets: Buckets | None,
    ) -> None:
        self.figures = figures
        self.settings = settings
        self.service = service
        self.say = say
        self.condition = Condition()
        self.draining_since = 0.0
        self.is_supervised = False
        self.closing: asyncio.Task[None] | None = None
        self.renewing: asyncio.Task[None] | None = None
        self.tls = read_certificate(settings.listen)
        self.workers = ThreadPoolExecutor(thread_name_prefix="heed-aside")
        self.server = uvicorn.Server(
            uvicorn_config(settings.listen, make_app(service, self.condition, figures, buckets))
        )

    async def serve(
        self,
        listener: socket.socket,
        on_ready: Callable[[], None],
        parent: socket.socket | None,
    ) -> int:
        asyncio.get_running_loop().set_default_executor(self.workers)
        # uvicorn accepts connections, but not with TLS, where it does not count handshakes.
        uses_tls = self.tls is not None
        serving = asyncio.create_task(self.server.serve(sockets=[] if uses_tls else [listener]))
        while not (self.server.started or serving.done()):
            await asyncio.sleep(0)
        self.listener, self.accepting = listener, self._accepting(listener)
        if uses_tls:
            self.accepting.start()
        self._take_signals(parent)
        sweeping = asyncio.create_task(self._sweep())
        forgetting = asyncio.create_task(forget_files(self.settings.store))
        warming = asyncio.create_task(warm_up(self.service))
        await asyncio.wait((serving, warming), return_when=asyncio.FIRST_COMPLETED)
        if warming.done():
            warming.result()
            self.condition.is_ready = True
            on_ready()
            _calm_collector()
        await serving
        sweeping.cancel()
        forgetting.cancel()
        warming.cancel()
        return self._exit_code()

    def _accepting(self, listener: socket.socket) -> Accepting:
        listen, server = self.settings.listen, self.server
        state = server.server_state
        return Accepting(
            listener,
            lambda: Connection(listen, server.config, state, {}),
            state.connections,
            listen,
            self.tls,
        )

    def _take_signals(self, parent: socket.socket | None) -> None:
        loop = asyncio.get_running_loop()
        # uvicorn's own handlers would end the process by the signal, not with code 0.
        for number in STOP_SIGNALS:
            with suppress(NotImplementedError):  # Windows
                loop.add_signal_handler(number, self._stop, number)
        if sys.platform != "win32":
            loop.add_signal_handler(signal.SIGHUP, self._refresh)
        if parent is not None:
            self.is_supervised = True
            loop.add_reader(parent, self._stop_with, parent)

    def _refresh(self) -> None:
        self.service.models.refresh()
        if self.tls is not None:
            self.renewing = asyncio.get_running_loop().create_task(self._renew())

    async def _renew(self) -> None:
        """Read the certificate again; if that fails, the old one stays in use."""
        try:
            self.accepting.tls = await asyncio.to_thread(read_certificate, self.settings.listen)
        except ConfigError as error:
            log.error("%s The old certificate stays in use.", error)
        else:
            log.info("the certificate was read again")
            await asyncio.to_thread(warn_of_expiry, self.settings.listen)

    def _stop_with(self, parent: socket.socket) -> None:
        """The other end was closed: drain, but only once, because the event repeats."""
        asyncio.get_running_loop().remove_reader(parent)
        self._stop(signal.SIGTERM)

    def _stop(self, number: int) -> None:
        if self.draining_since:
            # A signal to a group of processes comes twice: also from the supervisor, which itself
            # ends this process if another one arrives.
            if not self.is_supervised and time.monotonic() - self.draining_since > REPEATED_S:
                self.say("heed: stopped at once.")
                os._exit(128 + number)
            return
        self.draining_since = time.monotonic()
        self.condition.is_draining = True
        notify(STOPPING)
        loop = asyncio.get_running_loop()
        self.closing = loop.create_task(self._close())

    async def _close(self) -> None:
        await asyncio.sleep(LAST_CALL_S)
        begin_no_more(self.listener)
        await asyncio.sleep(HANDSHAKE_S)
        for server in self.server.servers:
            server.close()
        self.listener.close()
        await self.accepting.close()
        self.server.should_exit = True

    async def _sweep(self) -> None:
        listen = self.settings.listen
        pause = min(listen.head_s, listen.body_s, listen.write_s, listen.idle_s, 4.0) / SWEEPS
        loop = asyncio.get_running_loop()
        rest = Rest(lambda: self.service.scheduler.n_done)
        while True:
            await asyncio.sleep(pause)
            look_at(self.service, self.figures)
            rest.look()
            for connection in list(self.server.server_state.connections):
                assert isinstance(connection, Connection)
                connection.sweep(loop.time())

    def _exit_code(self) -> int:
        state = self.server.server_state
        if not (state.connections or state.tasks):
            return 0
        self.say(
            f"heed: requests were still unanswered {self.settings.listen.grace_s:g} s after the "
            "signal and were cut off. Allow more time with listen.grace_s."
        )
        return 1

    def end_threads(self) -> bool:
        """End all threads; return whether they have ended in time."""
        has_ended = self.service.close(within_s=END_S)
        return end_pools(self.workers, THREADS, keys.THREAD, within_s=END_S) and has_ended


def uvicorn_config(listen: Listen, app: object) -> uvicorn.Config:
    """The configuration of uvicorn; its own logging, headers and proxies are off."""
    return uvicorn.Config(
        app,  # type: ignore[arg-type]
        http=functools.partial(Connection, listen),  # type: ignore[arg-type]
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        timeout_keep_alive=round(listen.idle_s + 1),
        timeout_graceful_shutdown=listen.grace_s,  # type: ignore[arg-type]
    )


def _calm_collector() -> None:
    """Exclude modules and models from garbage collection, and collect less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(NEW_OBJECTS)
    gc.enable()


async def warm_up(service: Service) -> None:
    """Load every model and translate a word with each."""
    first = {route.model: route for route in reversed(service.routes)}
    for name, route in first.items():
        await asyncio.to_thread(service.models.open, name)  # its errors are more specific
        request = Request(texts=["a"], source=route.source, target=route.target, model=name)
        await service.translate(request)
