"""`heed models`: the installed models; and the search for the model of any command.

A model is a folder. One under `HEED_HOME/models` can be named without its path. None is downloaded.
"""

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from heed.cli.command import Session, Threads, as_one, command, decorated, long_flag, options
from heed.cli.terminal import echo, visible
from heed.disk.home import home
from heed.errors import ConfigError, FormatError, RunError, UsageError
from heed.machine.device import DTYPES, RUNTIMES
from heed.text.languages import as_directions, implied_target, source_languages, spelled_direction

if TYPE_CHECKING:
    from heed.decode.options import DecodeOptions
    from heed.translate.lines import LineReader
    from heed.translate.translator import Translator


option = options("Model")
output_option = options("Options")

threads_option = option("--threads", Threads(1, 1024), "CPU threads; default: all cores.")
device_option = option("--device", str, "auto, cpu, cuda or cuda:N.", default="auto")
dtype_option = option("--dtype", DTYPES, "Number type to compute in.", default="auto")


@dataclass(frozen=True, kw_only=True)
class ModelFlags:
    """The values of `model_options`, or of `one_model_options`.

    Attributes:
        model: folder or name; None = not given.
        beside: folders or names of models that translate together with it.
        source_lang: code; None = not given.
        target_lang: code; None = not given.
        runtime: `auto`, `engine` or `torch`.
        dtype: number type to compute in.
        shortlist: whether to use the model's shortlist.
        device: `auto`, `cpu`, `cuda` or `cuda:N`.
        threads: CPU threads; None = all cores.
    """

    model: str | None
    beside: tuple[str, ...] = ()
    source_lang: str | None
    target_lang: str | None
    runtime: str
    dtype: str
    shortlist: bool
    device: str
    threads: int | None

    @property
    def names(self) -> str:
        """The names of the models, as a report has them."""
        return " + ".join([self.model or "model", *self.beside])


_ONE_MODEL = (
    as_one(ModelFlags, "opening"),
    threads_option,
    device_option,
    option(
        "--shortlist/--no-shortlist",
        bool,
        "Restrict target pieces to the model's shortlist, if it has one.",
        default=True,
    ),
    dtype_option,
    option(
        "--runtime",
        RUNTIMES,
        "engine = heed's own, for CPUs; torch; auto = the faster one.",
        default="auto",
    ),
    option("-t --target-lang --to-lang", str, "Target language.", metavar="CODE"),
    option(
        "-s -f --source-lang --from-lang",
        str,
        "Source language; the model must support it.",
        metavar="CODE",
    ),
)
_WITH = option(
    "--with beside",
    str,
    "Another model, which translates together with it; may be given several times.",
    multiple=True,
    metavar="MODEL",
)
_MODEL = option(
    "-m --model",
    str,
    "Model or run folder, or an installed model's name; default: $HEED_MODEL.",
    metavar="DIR|NAME",
    envvar=["HEED_MODEL"],
)


def model_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a command that loads models; they arrive as argument `opening`."""
    return decorated(function, (*_ONE_MODEL, _WITH, _MODEL))


def one_model_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of a command that stores something in the model that it loads."""
    return decorated(function, (*_ONE_MODEL, _MODEL))


def load_translator(session: Session, opening: ModelFlags) -> "tuple[Translator, str | None]":
    """Load the model that `model_options` describe.

    Returns:
        The translator, and the target language or None. A model of both directions needs only
        the source language.

    Raises:
        UsageError: no model is named, and not exactly one is installed.
        ConfigError: there is no such model, it reads another language, models of unequal
            vocabularies are to translate together, or the device does not support the number type.
    """
    folder = find_model(opening.model)
    from heed.translate.translator import load

    translator = load(
        [folder, *map(find_model, opening.beside)],
        device=opening.device,
        dtype=opening.dtype,
        runtime=opening.runtime,
        threads=opening.threads,
        shortlist=opening.shortlist,
    )
    if not getattr(translator.model, "is_native", True):
        session.say("heed: the engine is not compiled here, so NumPy is used, which is slow.")
    return translator, _checked_target(folder, translator.reader, opening)


def _checked_target(folder: str | Path, reader: "LineReader", opening: ModelFlags) -> str | None:
    """The target language that the flags ask for or imply, or None.

    Raises:
        ConfigError: the model reads another language, or translates it into others.
    """
    languages = reader.source_lang, reader.target_langs, reader.directions
    asked, target_lang = opening.source_lang, opening.target_lang
    known = source_languages(*languages)
    if not asked or not known:
        return target_lang
    if asked not in known:
        raise ConfigError(
            f"{folder} translates from {' and '.join(known)}, not from {asked}. "
            "Choose another model with -m, or leave --source-lang out."
        )
    target_lang = target_lang or implied_target(asked, *languages)
    targets = [target for source, target in reader.directions if source == asked]
    _, wanted = reader.direction(asked, target_lang)
    if reader.directions and wanted not in targets:
        raise ConfigError(
            f"{folder} translates {asked} into {', '.join(targets)}, not into {wanted}. "
            "Choose one of these with --target-lang."
        )
    if target_lang == asked and not targets:
        raise ConfigError(f"--source-lang and --target-lang are both {asked}.")
    return target_lang


def languages_of(
    translator: "Translator | None", source_lang: str | None, target_lang: str | None
) -> tuple[str, str]:
    """The languages of the sources and of the translations, given or the model's; "" = unknown."""
    if translator is None:
        return source_lang or "", target_lang or ""
    return translator.reader.direction(source_lang, target_lang)


def checked_search(base: "DecodeOptions", given: dict[str, Any]) -> dict[str, Any]:
    """The search options in `given`, fields of `DecodeOptions`, that are not None.

    Args:
        base: the options that apply where none is given.
        given: the values of flags.

    Raises:
        UsageError: one of them is invalid; names its flag.
    """
    from heed.decode.options import options_from

    given = {name: value for name, value in given.items() if value is not None}
    try:
        options_from(base, given)
    except ConfigError as error:
        params = click.get_current_context().command.params
        flags = {param.name: long_flag(param) for param in params if param.name in given}
        words = re.sub(r"decoding\.(\w+)", lambda key: flags.get(key[1], key[0]), str(error))
        raise UsageError(words) from None
    return given


def model_files(*names: str | None) -> list[str]:
    """The files that `load_translator` reads for these models, and the others in their folders.

    Raises:
        UsageError: no model is named, and not exactly one is installed.
        ConfigError: there is no such model.
        FormatError: the folder holds no model.
    """
    folders = [find_model(name) for name in names]
    from heed.bundle.find import find_model_folder

    return [str(path) for folder in folders for path in find_model_folder(folder).iterdir()]


def installed() -> dict[str, Path]:
    """Maps the name of every installed model to its folder; empty without a home folder."""
    try:
        folder = home() / "models"
    except ConfigError:
        return {}
    if not folder.is_dir():
        return {}
    found = sorted(entry for entry in folder.iterdir() if (entry / "config.json").is_file())
    return {entry.name: entry for entry in found}


def find_model(name: str | None) -> Path:
    """The folder of a model given by path or by name, or of the only installed one."""
    if name == "":  # an unset variable of a shell
        raise UsageError("The name of the model is empty. Name its folder, such as run/.")
    models = installed()
    if name is None:
        if len(models) == 1:
            return next(iter(models.values()))
        found = f" Installed: {', '.join(models)}." if models else ""
        raise UsageError(f"Which model? Name its folder: -m run/, or set HEED_MODEL.{found}")
    if Path(name).is_dir():
        return Path(name)
    if name in models:
        return models[name]
    if Path(name).exists():
        from heed.bundle.find import find_model_folder

        return find_model_folder(name)  # says why a file is not a model
    from heed.bundle.find import models_beside

    beside = [str(Path(name).parent / each) for each in models_beside(Path(name))]
    near = get_close_matches(name, [*models, *beside], n=1)
    hint = f"; did you mean {near[0]}?" if near else ". Train one with: heed train --out run/ …"
    raise ConfigError(f"There is no model folder {name}{hint}")


@command("list", "List installed models.")
@output_option("--json as_json", bool, "Print JSON.")
@click.pass_obj
def list_models(session: Session, as_json: bool) -> None:
    """List the models under HEED_HOME/models."""
    models = installed()
    configs: dict[str, dict[str, Any]] = {}
    broken: dict[str, str] = {}
    for name, folder in models.items():
        try:
            configs[name] = _config(folder)
        except FormatError as error:
            broken[name] = str(error)
    if as_json:
        errors = {name: {"error": words} for name, words in broken.items()}
        echo(json.dumps(configs | errors, ensure_ascii=False))
        return
    for name in models:
        state = f"broken: {broken[name]}" if name in broken else _kind(configs[name])
        echo(f"{name}\t{state}")
    if not models:
        session.say(f"No models in {home() / 'models'}. Copy or link a run folder there.")


@command("show", "Describe one model.", examples="heed models show run/")
@click.argument("name")
@output_option("--json as_json", bool, "Print the whole config.json.")
def show(name: str, as_json: bool) -> None:
    """Describe one model: languages or task, shape, files and their sizes."""
    from heed.bundle.find import CONFIG, find_model_folder

    folder = find_model(name)
    if not (folder / CONFIG).is_file():  # of a run that goes on, the best checkpoint
        folder = find_model_folder(folder)
    config = _config(folder)
    if as_json:
        echo(json.dumps(config, ensure_ascii=False, indent=2))
        return
    echo(f"folder     {folder}")
    if (task := config.get("task", "translate")) == "translate":
        echo(f"languages  {_direction(config)}")
    else:
        echo(f"task       {task}")
    if labels := config.get("labels"):
        echo(f"labels     {', '.join(labels)}")
    for key, value in config["model"].items():
        echo(f"{key:<22} {value}")
    for file in sorted(folder.iterdir()):
        if file.is_file():
            echo(f"{file.stat().st_size:>12,}  {file.name}")


@command(
    "verify", "Check a model's files against its checksums.", examples="heed models verify run/"
)
@click.argument("name")
def verify(name: str) -> None:
    """Compare each file of a model with the size and SHA-256 in its manifest."""
    from heed.bundle.find import find_model_folder
    from heed.disk.folders import verify_directory

    folder = find_model_folder(find_model(name))
    manifest = verify_directory(folder)
    for file, entry in manifest.checked.items():
        echo(f"{entry.sha256}  {file}")


@command("rm", "Delete an installed model.")
@click.argument("name")
@output_option("--yes", bool, "Do not ask for confirmation.")
@click.pass_obj
def remove(session: Session, name: str, yes: bool) -> None:
    """Delete a model from HEED_HOME/models; folders elsewhere are never changed."""
    from heed.train.recipe.folder import foreign_file

    models = installed()
    if name not in models:
        near = get_close_matches(name, list(models), n=1)
        hint = f"; did you mean {near[0]}?" if near else f" in {home() / 'models'}."
        raise ConfigError(f"There is no installed model {name}{hint}")
    folder = models[name]
    if not folder.is_symlink() and (foreign := foreign_file(folder)):
        raise RunError(
            f"{folder} holds {foreign}, which heed did not write. Move that file to another place, "
            "or delete the folder yourself."
        )
    _require_unlocked(folder)
    if not yes:
        _confirm(visible(f"Delete {folder}?"))
        _require_unlocked(folder)
    if folder.is_symlink():
        folder.unlink()
    else:
        shutil.rmtree(folder)
    session.say(f"Deleted {folder}.")


def _require_unlocked(folder: Path) -> None:
    """Refuse a run in which a process trains; a link may be deleted during training."""
    from heed.disk.files import locked_by

    if not folder.is_symlink() and (pid := locked_by(folder)):
        raise RunError(
            f"another process (pid {pid}) is training in {folder}. Wait for it, or stop it, before "
            "you delete the model."
        )


def _confirm(question: str) -> None:
    """Go on after a yes only.

    Raises:
        click.Abort: the answer is no, or Ctrl-C.
        UsageError: standard input ends without an answer.
    """
    try:
        click.confirm(question, abort=True, err=True)
    except click.Abort as error:
        if not isinstance(error.__context__, EOFError):
            raise
        echo("", err=True)  # ends the line of the question
        raise UsageError(
            "there is no answer on standard input: give --yes to delete without a question."
        ) from None


@click.group(
    "models",
    commands=[list_models, show, verify, remove],
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.pass_context
def models(ctx: click.Context) -> None:
    """List, describe, verify or delete the models on this machine."""
    if ctx.invoked_subcommand is None:
        ctx.invoke(list_models)


def _direction(config: dict[str, Any]) -> str:
    languages = config["source_lang"], config["target_lang"], config.get("target_langs", ())
    return spelled_direction(*languages, as_directions(config.get("directions", [])) or ())


def _kind(config: dict[str, Any]) -> str:
    """The direction of a translator, or the task of another model."""
    task: str = config.get("task", "translate")
    return _direction(config).replace(" ", "") if task == "translate" else task


def _config(folder: Path) -> dict[str, Any]:
    from heed.bundle.bundle import read_folder_config  # slow, and not needed to find a model

    return read_folder_config(folder)
