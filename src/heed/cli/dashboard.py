"""The server process that shows a training run in a browser; it ends with the run.

`python -m heed.cli.dashboard` is that process. It gets its sockets and its run as arguments, and
its token from the environment, which other users of the machine cannot read.
"""

import importlib.util
import os
import secrets
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING
from urllib.parse import urlencode

from heed.errors import MissingExtraError

if TYPE_CHECKING:
    from heed.serve.settings import ServeSettings

TOKEN = "HEED_DASHBOARD_TOKEN"
NICE = 5
"""The niceness of the server, so that training has priority."""

LAST_S = 10.0
"""Seconds for the last responses; then the process is killed."""


@contextmanager
def dashboard(run: str, port: int, say: Callable[[str], None]) -> Iterator[None]:
    """Serve the page of a run until the block ends.

    Args:
        run: the run folder; it may not exist yet.
        port: port of 127.0.0.1; 0 = any free port.
        say: prints the address.

    Raises:
        MissingExtraError: the server's packages are not installed.
        ConfigError: the port is in use.
    """
    if importlib.util.find_spec("starlette") is None or importlib.util.find_spec("uvicorn") is None:
        raise MissingExtraError("--dashboard", "serve")
    from heed.serve.listening import open_sockets, url_of
    from heed.serve.settings import Listen

    token, listen = secrets.token_urlsafe(16), Listen(port=port)
    listener = open_sockets(listen)[0]
    ours, theirs = socket.socketpair()
    with listener, theirs:
        url = url_of(listen, listener)
        numbers = (listener.fileno(), theirs.fileno())
        process = subprocess.Popen(
            # -P: Python does not import modules from the current folder.
            [sys.executable, "-P", "-m", __name__, *map(str, numbers), os.path.abspath(run)],
            pass_fds=numbers,
            env={**os.environ, TOKEN: token},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C must reach training only; this process ends after it
        )
    say(f"Watch it at {url}/{address_of_training(token=token)}")
    try:
        yield
    finally:
        ours.close()
        try:
            process.wait(LAST_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def address_of_training(**params: str) -> str:
    """The address of the training screen, relative to the page."""
    return f"#/training?{urlencode(params)}"


def settings_of(run: str, token: str) -> "ServeSettings":
    """Settings of a server for one run and no models, on this machine only."""
    from heed.serve.settings import Inside, Log, Metrics, ServeSettings, Work

    return ServeSettings(
        work=Work(threads=1),
        log=Log(level="error"),
        metrics=Metrics(enabled=False),
        inside=Inside(enabled="on", runs=(run,), token=token),
    )


def serve_beside(listener: int, link: int, run: str) -> int:
    """Serve until the other end of the link is closed; return the exit code.

    Args:
        listener: file descriptor of the listening socket.
        link: file descriptor of a socket whose other end is held by the training process.
        run: the run folder.
    """
    os.nice(NICE)
    settings = settings_of(run, os.environ.pop(TOKEN))
    from heed.serve.run import run_one
    from heed.serve.watch import logs

    logs.set_up(settings.log)
    parent = socket.socket(fileno=link)
    with socket.socket(fileno=listener) as listening, parent:
        return run_one(settings, listening, parent, lambda _: None, on_ready=lambda: None)


if __name__ == "__main__":
    sys.exit(serve_beside(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]))
