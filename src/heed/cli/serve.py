"""`heed serve`: translate over HTTP."""

from dataclasses import replace

import click

from heed.cli.command import Session, Threads, command, options
from heed.cli.models import find_model

EXAMPLES = """
heed serve -m runs/en-de
heed serve -m runs/en-de -m runs/de-en --port 8080
"""

model_option = options("Models")
listen_option = options("Network")


@command("serve", "Translate over HTTP.", examples=EXAMPLES)
@model_option(
    "-m --model models",
    str,
    "Model or run folder, or an installed model's name; may be given several times.",
    multiple=True,
    metavar="DIR|NAME",
)
@model_option("--threads", Threads(1, 1024), "CPU threads; default: all cores.")
@listen_option("--host", str, "Address; 127.0.0.1 is this machine only.")
@listen_option("--port", click.IntRange(0, 65535), "Port; 0 takes a free one.")
@click.pass_obj
def serve(
    session: Session,
    /,
    models: tuple[str, ...],
    threads: int | None,
    host: str | None,
    port: int | None,
) -> None:
    """Serve models to programs that speak the API of LibreTranslate."""
    from heed.serve.run import serve as run
    from heed.serve.settings import ServeSettings

    settings = ServeSettings(models=tuple(str(find_model(name)) for name in models or (None,)))
    listen = settings.listen
    listen = replace(
        listen,
        host=listen.host if host is None else host,
        port=listen.port if port is None else port,
    )
    work = replace(settings.work, threads=threads or 0)
    session.say(f"heed: http://{listen.host}:{listen.port}")
    run(replace(settings, listen=listen, work=work))
