"""Run the server: the models, the threads that search, and uvicorn."""

import uvicorn

from heed.machine.threads import choose_threads
from heed.serve.app import make_app
from heed.serve.service import Service
from heed.serve.settings import ServeSettings
from heed.serve.work.models import read_models
from heed.serve.work.scheduler import Scheduler


def make_service(settings: ServeSettings) -> Service:
    """Read the models' descriptions and start the threads.

    Raises:
        FormatError: a folder holds no model.
        ConfigError: a model is not a translator, or does not say its languages.
    """
    work = settings.work
    models = read_models(settings.models, memory_mb=work.memory_mb)
    scheduler = Scheduler(
        n_threads=choose_threads(work.threads or None),
        batch_tokens=work.batch_tokens,
        gather_s=work.gather_ms / 1000,
        max_waiting_chars=work.max_waiting_chars,
    )
    return Service(models, scheduler, settings)


def serve(settings: ServeSettings) -> None:
    """Listen and answer until SIGINT or SIGTERM."""
    service = make_service(settings)
    for route in service.routes:
        service.models.open(route.model)
    uvicorn.run(
        make_app(service),
        host=settings.listen.host,
        port=settings.listen.port,
        log_level="warning",
        access_log=False,
        server_header=False,
    )
