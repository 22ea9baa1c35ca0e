"""Run the server: sockets first, then one process or several."""

import socket
from collections.abc import Callable, Sequence

from heed.machine.threads import choose_threads, count_cores
from heed.serve.listening import check_certificate, open_sockets, url_of
from heed.serve.process import run_process
from heed.serve.service import Service
from heed.serve.settings import ServeSettings
from heed.serve.work.directions import Route, read_routes
from heed.serve.work.models import read_models
from heed.serve.work.scheduler import Scheduler

Say = Callable[[str], None]


def make_service(settings: ServeSettings) -> Service:
    """Read the models' descriptions and start the threads.

    Raises:
        FormatError: a folder holds no model.
        ConfigError: a model is not a translator, or does not say its languages.
    """
    work, processes = settings.work, settings.listen.processes
    models = read_models(settings.models, memory_mb=work.memory_mb)
    # Several processes share the cores.
    threads = work.threads or (max(1, count_cores() // processes) if processes > 1 else None)
    scheduler = Scheduler(
        n_threads=choose_threads(threads),
        batch_tokens=work.batch_tokens,
        gather_s=work.gather_ms / 1000,
        max_waiting_chars=work.max_waiting_chars,
    )
    return Service(models, scheduler, settings)


def serve(settings: ServeSettings, say: Say) -> int:
    """Listen and answer until SIGINT or SIGTERM; return the exit code.

    Args:
        settings: of the server.
        say: prints a line on standard error.

    Raises:
        ConfigError: the address cannot be listened on, or a model cannot be served.
        FormatError: a folder holds no model, or a damaged one.
    """
    routes = read_routes(settings.models)[1]
    check_certificate(settings.listen)
    sockets = open_sockets(settings.listen)
    for line in introduction(routes, url_of(settings.listen, sockets[0])):
        say(line)
    return _run_one(settings, sockets[0], say)


def _run_one(settings: ServeSettings, listener: socket.socket, say: Say) -> int:
    return run_process(
        settings,
        lambda: make_service(settings),
        listener,
        say=say,
        on_ready=lambda: say("heed: ready."),
    )


def introduction(routes: Sequence[Route], url: str) -> list[str]:
    """What is printed at first: the address, the models with their directions, a line to try."""
    directions: dict[str, list[str]] = {}
    for route in routes:
        directions.setdefault(route.model, []).append(f"{route.source} → {route.target}")
    first = routes[0]
    question = f'{{"q": "Hello", "source": "{first.source}", "target": "{first.target}"}}'
    return [
        f"heed: {url}",
        *(f"  {model}: {', '.join(each)}" for model, each in directions.items()),
        f"  try: curl {url}/translate --json '{question}'",
    ]
