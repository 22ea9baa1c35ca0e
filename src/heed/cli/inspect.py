"""`heed inspect`: a page that shows the inside of a model, from a server for this machine only."""

import os
import secrets
import webbrowser
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

import click

from heed.bundle.outputs import require_not_read
from heed.cli.command import (
    BEHIND_BARE,
    Session,
    Share,
    Text,
    as_one,
    command,
    options,
    typed_flags,
)
from heed.cli.models import find_model, model_files
from heed.cli.runs import is_run, print_training, read_runs, why_not_served
from heed.cli.traced import AUTO, USES, VIEWS, VIEWS_OF, Shown
from heed.cli.traced import show as show_text
from heed.errors import UsageError

if TYPE_CHECKING:
    from heed.serve.settings import ServeSettings

EXAMPLES = """
heed inspect -m run/ "纽约是一座城市"
heed inspect -m run/ "纽约是一座城市" "New York is a city" --screen steps
heed inspect run/
heed inspect -m run/ "纽约是一座城市" --attention --probabilities
heed inspect -m run/ "纽约是一座城市" --tree --beam-size 4
heed inspect -m run/ "纽约是一座城市" --sample 0.9 --seed 7
heed inspect -m run/ "纽约是一座城市" --steps
heed inspect -m run/ "纽约是一座城市" --tensor decoder.0.cross_attention.weights --out weights.csv
heed inspect -m run/ "纽约是一座城市" --trace trace.safetensors
heed inspect -m run/ "纽约是一座城市" --html city.html
heed inspect run/ --training
heed inspect -m run-1/ -m run-2/ --screen training
"""
OF_PAGE = ("screen", "port", "open_browser")
OF_SEARCH = ("beam_size", "every_step", "no_memory")
OUTPUTS = {"as_table": "--training", "html": "--html", **VIEWS}
"""Maps the parameter of each output other than the page to its flag."""
SCREENS = ("attention", "steps", "decoding", "causes", "positions", "training")

option = options("Options")
text_option = options("As text, without a page")


class TextOrFolder(Text):
    """A text that a model reads, or a folder, whose name may have any bytes."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text; the name of a folder as it is."""
        return str(value) if os.path.isdir(value) else super().convert(value, param, ctx)


@command("inspect", "Look inside a model, in a web page.", examples=EXAMPLES)
@click.argument("text", type=TextOrFolder(), required=False)
@click.argument("translation", type=Text(), required=False)
@option(
    "-m --model models",
    str,
    "Model or run folder, or an installed model's name; may be repeated; default: $HEED_MODEL.",
    multiple=True,
    metavar="DIR|NAME",
)
@option("--screen", SCREENS, "Screen to open; default: training during a run, else attention.")
@option("--port", click.IntRange(0, 65535), "Port of 127.0.0.1; 0 takes any free port.", default=0)
@option("--open/--no-open open_browser", bool, "Open a browser.", default=True)
@text_option("--training as_table", bool, "Print the state of the training of runs.")
@text_option("--tree", bool, "Draw the search tree.")
@text_option(
    "--sample",
    Share(),
    "Draw a translation with this top-p; list how many tokens each step could draw.",
    metavar="P",
)
@text_option(
    "--attention",
    (AUTO, *USES),
    "Draw an attention map; auto, the default: cross, or else what the model has.",
    bare=AUTO,
)
@text_option("--layer", int, "Layer of the map, from 0 or from the end.", default=-1)
@text_option(
    "--head",
    click.IntRange(0),
    "Head of the map; several: their mean; default: the mean of all.",
    multiple=True,
)
@text_option("--words", bool, "Show words in the map instead of pieces.")
@text_option("--probabilities", bool, "Print the probability of each token of the translation.")
@text_option("--steps", bool, "List all tensors: names, axes, formulas.")
@text_option("--tensor", str, "Print one tensor.", metavar="NAME")
@text_option("--out", str, "Write that tensor, as .csv or .npy.", metavar="FILE")
@text_option("--trace trace_path", str, "Write all tensors, as safetensors.", metavar="FILE")
@text_option("--html", str, "Write the page as one file that needs no server.", metavar="FILE")
@text_option("--every-step", bool, "Trace every step of the search too.")
@text_option("--beam-size", click.IntRange(1), "Beam size of the search.")
@text_option("--no-memory", bool, "Do not use the training pairs that the model remembers.")
@text_option("--seed", int, "Seed of the sample.", default=0)
@text_option("-t --target-lang", str, "Target language, for a model with several.")
@as_one(Shown, "shown")
@click.pass_context
def inspect(
    ctx: click.Context,
    /,
    text: str | None,
    translation: str | None,
    models: tuple[str, ...],
    screen: str | None,
    as_table: bool,
    port: int,
    open_browser: bool,
    html: str | None,
    shown: Shown,
) -> None:
    """Open a page that shows how a model translates TEXT: every tensor, probability and hypothesis.

    With TRANSLATION, all positions of that translation are computed in one pass. A TEXT of several
    lines is read as one batch. A folder in place of TEXT is a model. Only programs on this machine
    can open the page; Ctrl-C ends it. Some views work in the terminal too, for every kind of model.
    For run folders, the page also shows the training, during and after it.
    """
    session: Session = ctx.obj
    if text and not models and os.path.isdir(text):  # Path refuses a long text
        models, text, translation = (text,), translation, None
    elif text:
        text = Text().convert(text, None, ctx)
    models = models or tuple(filter(None, [os.environ.get("HEED_MODEL")]))
    require_effect(ctx, text, translation)
    _remark_on_kind(ctx, text, translation)
    if as_table:
        print_training(models)
        return
    for path in filter(None, [shown.out, shown.trace_path, html]):
        require_not_read(path, model_files(models[0] if models else None))
    if shown.is_asked:
        if len(models) > 1:
            raise UsageError("Text output takes one model only.")
        show_text(session, shown, find_model(models[0] if models else None), text, translation)
        return
    settings = settings_of(models, port)
    if html is not None:
        write_html(session, html, settings, text, translation, shown.target_lang)
        return
    if text and not settings.models:
        session.say(f"heed: TEXT is not shown: {why_not_served(settings.inside.runs[0])}")
    if session.is_quiet:
        settings = replace(settings, log=replace(settings.log, level="error"))
    screen = screen or first_screen(settings)
    token = settings.inside.token
    looked = {"text": text or "", "translation": translation or "", "token": token}
    query = urlencode({name: value for name, value in looked.items() if value})
    address = f"/#/{screen}{'?' if query else ''}{query}"

    def show(url: str) -> None:
        session.say(f"heed: {url}{address}")
        if open_browser:
            webbrowser.open(url + address)

    from heed.serve.run import serve

    ctx.exit(serve(settings, session.say, on_ready=show))


def require_effect(ctx: click.Context, text: str | None, translation: str | None) -> None:
    """Refuse views that exclude each other, and options without effect in the requested view.

    Raises:
        UsageError: names the option, and the view it is for.
    """
    outputs = {name: flag for name, flag in OUTPUTS.items() if _is_given(ctx.params[name])}
    first, *others = (*outputs.values(), "")
    if len(outputs) > 1 and not set(VIEWS) >= outputs.keys():
        raise UsageError(f"Give either {first} or {others[0]}, not both.")
    if "as_table" in outputs and text is not None:
        raise UsageError("--training prints the state of runs: leave out TEXT.")
    for name, flag in typed_flags(ctx).items():
        if ctx.params[name] == "":
            raise UsageError(f"{flag} needs a value, but is empty.")
        if (views := VIEWS_OF.get(name)) and outputs.keys().isdisjoint(views):
            *more, last = (OUTPUTS[view] for view in views)
            spelled = f"{', '.join(more)} or {last}" if more else last
            raise UsageError(f"{flag} has an effect only with {spelled}.")
        if name in OF_PAGE and outputs:
            raise UsageError(f"{flag} is for the page, which {first} does not open.")
        if name in OF_SEARCH and translation is not None:
            raise UsageError(f"{flag} needs a search: leave out TRANSLATION.")


def _remark_on_kind(ctx: click.Context, text: str | None, translation: str | None) -> None:
    """Print a remark if the word behind --attention is read as text: a kind may be meant."""
    word = ctx.meta.get(BEHIND_BARE, {}).get("attention")
    # One text is always needed, so a word that is the only one is no kind.
    role = {text: "TEXT", translation: "TRANSLATION"}.get(word)
    if word and role and translation is not None and len(word.split()) == 1:
        kinds = f"{', '.join(USES[:-1])} or {USES[-1]}"
        ctx.obj.say(f"heed: {word} is read as {role}: --attention takes {kinds}.")


def _is_given(value: object) -> bool:
    """Whether a view is requested; a `--sample` of 0 is."""
    return value is not None and value is not False


def write_html(
    session: Session,
    path: str,
    settings: "ServeSettings",
    text: str | None,
    translation: str | None,
    target_lang: str | None,
) -> None:
    """Write the page for one sentence as one file.

    Raises:
        UsageError: there is no sentence, or more than one model.
    """
    if text is None:
        raise UsageError("Give the TEXT that the model reads.")
    if not settings.models:
        raise UsageError(f"--html needs a translator: {why_not_served(settings.inside.runs[0])}")
    if len(settings.models) > 1:
        raise UsageError("--html takes one model only.")
    from heed.serve.export import write_page

    n_bytes = write_page(path, settings, text, translation, target=target_lang)
    session.say(f"heed: {path} has {n_bytes / 1e6:.2f} MB; open it in a browser.")


def settings_of(models: tuple[str, ...], port: int) -> "ServeSettings":
    """Settings of a server for these models, or for the only one installed, on this machine only.

    A run's training is shown too; the run may not have a model yet.
    """
    from heed.serve.settings import Inside, Listen, Log, ServeSettings

    folders = [str(find_model(name)) for name in models or (None,)]
    runs = tuple(folder for folder in folders if is_run(folder))
    return ServeSettings(
        models=tuple(each for each in folders if each not in runs or not why_not_served(each)),
        listen=Listen(port=port),
        log=Log(level="warning"),
        inside=Inside(enabled="on", runs=runs, token=secrets.token_urlsafe(16) if runs else ""),
    )


def first_screen(settings: "ServeSettings") -> str:
    """The screen to open: training if a run is in training or there is nothing else."""
    is_live = any(run.is_held for run in read_runs(settings.inside.runs))
    return "training" if is_live or not settings.models else SCREENS[0]
