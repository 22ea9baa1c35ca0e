"""The server process beside a training run that shows it in a browser; it ends with the run.

`python -m heed.cli.dashboard` is that process: it gets its sockets and its run as arguments, and
its token, which other users of the machine must not see, from the environment.
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
"""Training goes first."""

LAST_S = 10.0
"""Seconds for the last answers; then the process is ended."""


@contextmanager
def dashboard(run: str, port: int, say: Callable[[str], None]) -> Iterator[None]:
    """Serve the page of a run as long as the block lasts.

    Args:
        run: the run folder; it may be missing yet.
        port: of 127.0.0.1; 0 = a free one.
        say: prints the address.

    Raises:
        MissingExtraError: what the server needs is not installed.
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
            # -P: whatever lies in the current folder is not imported.
            [sys.executable, "-P", "-m", __name__, *map(str, numbers), os.path.abspath(run)],
            pass_fds=numbers,
            env={**os.environ, TOKEN: token},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for training; this process ends after it
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
    """The address of the training screen below that of the page."""
    return f"#/training?{urlencode(params)}"


def settings_of(run: str, token: str) -> "ServeSettings":
    """A server of one run and no models, for this machine only."""
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
        link: file descriptor of the socket whose other end training holds.
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
