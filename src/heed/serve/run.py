"""Run the server: the models, the threads that search, and uvicorn."""

import uvicorn

from heed.machine.threads import choose_threads
from heed.serve.app import make_app
from heed.serve.service import Service
from heed.serve.settings import ServeSettings
from heed.serve.work.models import read_models
from heed.serve.work.scheduler import Scheduler

CHARS_OF_A_TOKEN = 4
"""About so many characters are a token, where it need not be exact."""


def make_service(settings: ServeSettings) -> Service:
    """Read the models' descriptions and start the threads.

    Raises:
        FormatError: a folder holds no model.
        ConfigError: a model is not a translator, or does not say its languages.
    """
    models = read_models(settings.models)
    scheduler = Scheduler(
        n_threads=choose_threads(settings.work.threads or None),
        batch_chars=settings.work.batch_tokens * CHARS_OF_A_TOKEN,
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
