"""`heed inspect`: the page that looks into a model, on a server of its own for this machine."""

import webbrowser
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import click

from heed.cli.command import Session, command, options
from heed.cli.models import find_model

if TYPE_CHECKING:
    from heed.serve.settings import ServeSettings

EXAMPLES = """
heed inspect -m run/ "纽约是一座城市"
heed inspect -m run/ "纽约是一座城市" "New York is a city" --screen steps
heed inspect run/
"""
SCREENS = ("attention",)

option = options("Options")


@command("inspect", "Look into a model, in a page.", examples=EXAMPLES)
@click.argument("text", required=False)
@click.argument("translation", required=False)
@option(
    "-m --model models",
    str,
    "Model or run folder, or an installed model's name; may be given several times.",
    multiple=True,
    metavar="DIR|NAME",
)
@option("--screen", SCREENS, "Which screen opens.", default=SCREENS[0])
@option("--port", click.IntRange(0, 65535), "Port of 127.0.0.1; 0 takes a free one.", default=0)
@option("--open/--no-open open_browser", bool, "Open a browser.", default=True)
@click.pass_context
def inspect(
    ctx: click.Context,
    /,
    text: str | None,
    translation: str | None,
    models: tuple[str, ...],
    screen: str,
    port: int,
    open_browser: bool,
) -> None:
    """Open a page that shows how a model translates TEXT: every tensor, probability and hypothesis.

    With TRANSLATION, all positions of that translation are computed in one pass. A folder in the
    place of TEXT is a model. The page answers only programs of this machine, until Ctrl-C.
    """
    session: Session = ctx.obj
    if text and not models and Path(text).is_dir():
        models, text = (text,), None
    settings = settings_of(models, port)
    if session.is_quiet:
        settings = replace(settings, log=replace(settings.log, level="error"))
    looked = {"text": text or "", "translation": translation or ""}
    query = urlencode({name: value for name, value in looked.items() if value})
    address = f"/#/{screen}{'?' if query else ''}{query}"

    def show(url: str) -> None:
        session.say(f"heed: {url}{address}")
        if open_browser:
            webbrowser.open(url + address)

    from heed.serve.run import serve

    ctx.exit(serve(settings, session.say, on_ready=show))


def settings_of(models: tuple[str, ...], port: int) -> "ServeSettings":
    """A server of these models, or of the only one installed, for this machine only."""
    from heed.serve.settings import Inside, Listen, Log, ServeSettings

    return ServeSettings(
        models=tuple(str(find_model(name)) for name in models or (None,)),
        listen=Listen(port=port),
        log=Log(level="warning"),
        inside=Inside(enabled="on"),
    )
