"""Start the server: sockets first, then one process or several."""

import logging
import socket
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from heed.errors import ConfigError
from heed.machine.memory import share_one_heap
from heed.machine.threads import choose_threads, count_cores
from heed.serve.access.buckets import Buckets
from heed.serve.access.gate import keys_path
from heed.serve.access.keys import Keys
from heed.serve.expiry import warn_of_expiry
from heed.serve.languages import base_of
from heed.serve.listening import allow_open_files, open_sockets, read_certificate, url_of
from heed.serve.process import run_process
from heed.serve.refusal import Refusal
from heed.serve.request import Answer
from heed.serve.service import Service
from heed.serve.settings import ServeSettings
from heed.serve.shapes.storage import SILENT, START_S, Storage, check_store
from heed.serve.supervisor import supervise
from heed.serve.watch import logs
from heed.serve.watch.figures import Figures
from heed.serve.watch.signals import ignoring_hang_ups
from heed.serve.watch.systemd import READY, notify
from heed.serve.work.directions import Route, read_routes
from heed.serve.work.guides import read_guides
from heed.serve.work.models import read_models
from heed.serve.work.pools import call_aside
from heed.serve.work.scheduler import Scheduler, Searched

Say = Callable[[str], None]

log = logging.getLogger(__name__)


def make_service(settings: ServeSettings, figures: Figures | None = None) -> Service:
    """Read the models' descriptions and start the threads.

    Args:
        settings: settings of the server.
        figures: metrics that count batches and doubts.

    Raises:
        FormatError: a folder holds no model.
        ConfigError: a model is not a translator, or does not state its languages; the direction of
            a file of pairs or terms is not clear.
    """
    work, processes = settings.work, settings.listen.processes
    models = read_models(
        settings.models,
        memory_mb=work.memory_mb,
        memory_files=settings.memory.files,
        glossary_files=settings.glossary.files,
    )
    # Several processes share the cores.
    threads = work.threads or (max(1, count_cores() // processes) if processes > 1 else None)
    scheduler = Scheduler(
        n_threads=choose_threads(threads),
        batch_tokens=work.batch_tokens,
        gather_s=work.gather_ms / 1000,
        max_waiting_chars=work.max_waiting_chars,
        on_searched=partial(_count_batch, figures) if figures else None,
    )
    return Service(
        models,
        scheduler,
        settings,
        on_answered=partial(_count_doubts, figures) if figures else None,
    )


def _count_batch(figures: Figures, batch: Searched) -> None:
    figures.searched(
        n_requests=batch.n_jobs,
        fill=batch.fill,
        n_source_tokens=batch.n_src_tokens,
        n_target_tokens=batch.n_tgt_tokens,
        seconds=batch.seconds,
    )


def _count_doubts(figures: Figures, answers: Sequence[Answer]) -> None:
    for answer in answers:
        for doubt in answer.doubts:
            figures.doubted(doubt.kind)


@ignoring_hang_ups()
def serve(
    settings: ServeSettings, say: Say, *, on_ready: Callable[[str], None] | None = None
) -> int:
    """Listen and answer until SIGINT or SIGTERM; return the exit code.

    Args:
        settings: settings of the server.
        say: prints a line on standard error.
        on_ready: called with the server's address when it is ready. None = print the models and
            their directions first, and later that the server is ready.

    Raises:
        ConfigError: the address cannot be listened on, a model cannot be served, or the folder of
            the store cannot be used.
        FormatError: a folder holds no model, or a damaged one.
    """
    share_one_heap()  # before any thread starts
    logs.set_up(settings.log)
    say = logs.sayer(settings.log, say)
    routes = read_routes(settings.models)[1]
    # Raises an error for a file that fits no direction.
    read_guides(routes, memory=settings.memory.files, glossaries=settings.glossary.files)
    read_certificate(settings.listen)
    warn_of_expiry(settings.listen)
    check_store(settings.store)
    if settings.needs_keys:
        forget_revoked(settings)
    allow_open_files(settings.listen)
    sockets = open_sockets(settings.listen)
    url = url_of(settings.listen, sockets[0])
    if on_ready is None:
        for line in introduction(routes, url, needs_key=settings.needs_keys):
            say(line)
    is_ready = partial(_ready, say) if on_ready is None else partial(on_ready, url)
    if settings.listen.processes == 1:
        return run_one(settings, sockets[0], None, say, on_ready=is_ready)
    return supervise(
        partial(run_one, settings, buckets=Buckets(is_shared=True)),
        sockets,
        say,
        on_ready=is_ready,
        grace_s=settings.listen.grace_s,
    )


def forget_revoked(settings: ServeSettings) -> None:
    """Delete the glossaries of revoked keys, whose names are never used again.

    Raises:
        ConfigError: the file of keys cannot be used.
    """
    path = keys_path(settings.access)
    try:
        revoked = call_aside(partial(_revoked_in, path)).result(START_S)
    except TimeoutError:
        raise ConfigError(
            f"The disk of the file of keys {path} does not answer. Name another file with "
            "access.keys_file, or make this one readable."
        ) from None
    try:
        delete = partial(Storage(settings.store).delete_glossaries_of, revoked)
        n_deleted = call_aside(delete).result(START_S)
    except TimeoutError:
        log.warning("glossaries of revoked keys cannot be deleted: %s", SILENT)
    except Refusal as refusal:
        log.warning("glossaries of revoked keys cannot be deleted: %s", refusal.__cause__)
    else:
        if n_deleted:
            log.info("%d glossaries of revoked keys were deleted", n_deleted)


def _revoked_in(path: Path) -> list[str]:
    """The names of the revoked keys in a file."""
    keys = Keys(path)
    try:
        return [key.name for key in keys.all() if key.is_revoked]
    finally:
        keys.close()


def _ready(say: Say) -> None:
    say("heed: ready.")
    notify(READY)


def run_one(
    settings: ServeSettings,
    listener: socket.socket,
    parent: socket.socket | None,
    say: Say,
    on_ready: Callable[[], None],
    buckets: Buckets | None = None,
) -> int:
    """Serve in this process until a signal arrives; return the exit code.

    Args:
        settings: settings of the server.
        listener: the listening socket.
        parent: the process ends when its other end is closed; None = there is no supervisor.
        say: prints a line on standard error.
        on_ready: called after the first sentence is translated.
        buckets: quotas of the server's clients; None = this is its only process.

    Raises:
        HeedError: a model cannot be loaded.
    """
    figures = Figures() if settings.metrics.enabled else None
    return run_process(
        settings,
        lambda: make_service(settings, figures),
        listener,
        say=say,
        on_ready=on_ready,
        parent=parent,
        figures=figures,
        buckets=buckets,
    )


def introduction(routes: Sequence[Route], url: str, *, needs_key: bool) -> list[str]:
    """The first lines to print: the address, the models with their directions, and an example."""
    directions: dict[str, list[str]] = {}
    for route in routes:
        directions.setdefault(route.model, []).append(f"{route.source} → {route.target}")
    first = routes[0]
    text = "Hello" if base_of(first.source) == "en" else "TEXT"
    question = f'{{"q": "{text}", "source": "{first.source}", "target": "{first.target}"}}'
    key = " -H 'Authorization: Bearer KEY'" if needs_key else ""
    return [
        f"heed: {url}",
        *(f"  {model}: {', '.join(each)}" for model, each in directions.items()),
        *(["  requests need a key: heed serve keys add NAME"] if needs_key else ()),
        f"  try: curl {url}/translate{key} --json '{question}'",
    ]
