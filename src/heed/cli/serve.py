"""`heed serve`: translate over HTTP. Its settings come from flags, the environment and a file."""

import gc
import os
from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from heed.cli.command import (
    CommandGroup,
    Session,
    Threads,
    check_duration,
    command,
    naming_flags,
    options,
    read_overrides,
)
from heed.cli.models import find_model
from heed.cli.serve_keys import keys as keys_group
from heed.cli.terminal import echo
from heed.errors import ConfigError

if TYPE_CHECKING:
    from heed.serve.settings import ServeSettings

EXAMPLES = """
heed serve runs/en-de
heed serve runs/en-de runs/de-en --port 8080
heed serve --config serve.toml --set listen.grace_s=10
heed serve -m runs/en-de --dump-config > serve.toml
"""

SETTINGS = {
    "host": "listen.host",
    "port": "listen.port",
    "processes": "listen.processes",
    "certificate": "listen.certificate",
    "private_key": "listen.key",
    "threads": "work.threads",
    "timeout": "work.timeout_s",
    "memory": "memory.files",
    "glossary": "glossary.files",
    "keys": "access.keys",
    "per_minute": "access.per_minute",
    "log_format": "log.format",
    "log_level": "log.level",
}
"""Maps the parameter of a flag to the setting that it sets."""

ELSEWHERE = {
    "--workers": "--processes",
    "--ssl-certfile": "--certificate",
    "--ssl-keyfile": "--private-key",
    "--api-keys": "--keys",
    "--req-limit": "--per-minute",
}
"""Flags of uvicorn, gunicorn and LibreTranslate, and ours for the same."""

ENVIRONMENT = "HEED_SERVE_"
"""Prefix of environment variables: `HEED_SERVE_LISTEN_PORT` sets `listen.port`."""

model_option = options("Models")
listen_option = options("Network")
access_option = options("Access")
log_option = options("Settings and logs")


class ServeGroup(CommandGroup):
    """`heed serve`, whose models may also be arguments before the flags, without `-m`."""

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """The usage line: models and flags, or a command."""
        return ["[MODEL]... [OPTIONS]", f"| {' | '.join(self.commands)} ..."]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; words that are not a command are models."""
        words = list(takewhile(lambda word: not word.startswith("-"), args))
        if words and words[0] not in self.commands:
            args = [*(f"--model={word}" for word in words), *args[len(words) :]]
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            name = error.option_name
            if name not in ELSEWHERE:
                raise
            sentence = f"there is no option {name}; did you mean {ELSEWHERE[name]}?"
            raise click.UsageError(sentence, ctx) from None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command of this name, or an error that explains where models belong."""
        if args[0] not in self.commands:
            raise click.UsageError(
                f"{args[0]!r} comes after the flags. Put models before them: "
                f"heed serve {args[0]} …, or -m {args[0]}",
                ctx,
            )
        return super().resolve_command(ctx, args)


@command(
    "serve",
    "Translate over HTTP, for programs and in a web page.",
    examples=EXAMPLES,
    kind=ServeGroup,
)
@model_option(
    "-m --model models",
    str,
    "The same as MODEL: a model or run folder, or an installed model's name.",
    multiple=True,
    metavar="DIR|NAME",
)
@model_option(
    "--memory",
    str,
    "Translated pairs (.tsv, .csv, .tmx, .xliff, .po) to follow in similar sentences; with "
    "several directions, write en:de=FILE; may be given several times.",
    multiple=True,
    metavar="FILE",
)
@model_option(
    "--glossary",
    str,
    "Terms and their translations for all clients, as a glossary file; with several directions, "
    "write en:de=FILE; may be given several times.",
    multiple=True,
    metavar="FILE",
)
@model_option("--threads", Threads(1, 1024), "CPU threads; default: all cores.")
@model_option(
    "--timeout",
    str,
    "Time limit of a request, such as 30s.",
    metavar="DURATION",
    callback=check_duration,
)
@listen_option("--host", str, "Address; default 127.0.0.1: this machine only.")
@listen_option("--port", click.IntRange(0, 65535), "Port, default 5000; 0 takes any free port.")
@listen_option(
    "--processes",
    click.IntRange(1, 256),
    "Processes that share the weights: faster than --threads for small models.",
)
@listen_option("--certificate", str, "PEM file of a certificate, for HTTPS.", metavar="FILE")
@listen_option("--private-key", str, "PEM file of its private key.", metavar="FILE")
@access_option(
    "--keys",
    ("auto", "on", "off"),
    "Whether requests need a key; auto: yes, unless only this machine can connect.",
)
@access_option(
    "--per-minute", click.IntRange(0), "Texts per minute from one address; 0 = no limit."
)
@log_option("--log-format", ("plain", "json"), "Format of log lines.")
@log_option(
    "--log-level", ("debug", "info", "warning", "error"), "Lowest level of lines that are shown."
)
@log_option("--config", str, "TOML file of settings; flags override it.", metavar="FILE")
@log_option(
    "--set overrides",
    str,
    "One setting, such as listen.grace_s=10.",
    multiple=True,
    metavar="SECTION.KEY=VALUE",
)
@log_option("--dump-config", bool, "Print all settings as TOML and stop.")
@click.pass_context
@naming_flags(SETTINGS)
def serve(
    ctx: click.Context,
    /,
    models: tuple[str, ...],
    config: str | None,
    overrides: tuple[str, ...],
    dump_config: bool,
    **flags: Any,
) -> None:
    """Serve models to people, in a web page, and to programs, by the API of LibreTranslate,
    DeepL or heed itself.

    Each flag and each setting can also come from the environment: HEED_SERVE_PORT,
    HEED_SERVE_LISTEN_GRACE_S. A flag overrides the environment, which overrides the file.
    A variable holds one value; for a flag that may be repeated (HEED_SERVE_MODEL), one a line.
    """
    if ctx.invoked_subcommand is not None:
        return
    session: Session = ctx.obj
    settings = read_settings(ctx, models, config, overrides, flags)
    for variable in _unknown_variables(ctx.command):
        session.say(f"heed: {variable} is not a setting of heed serve and is ignored.")
    if dump_config:
        from heed.config import to_toml

        echo(to_toml(settings), nl=False)
        return
    if session.is_quiet:
        settings = replace(settings, log=replace(settings.log, level="error"))
    # Until the server is ready, there is no garbage to collect: only modules and models.
    gc.disable()
    from heed.serve.supervisor import shared_figures

    with shared_figures(settings.listen.processes):
        from heed.serve.run import serve as run

        code = run(settings, session.say)
    ctx.exit(code)


serve.add_command(keys_group)


def read_settings(
    ctx: click.Context,
    models: tuple[str, ...],
    config: str | None,
    overrides: tuple[str, ...],
    flags: Mapping[str, Any],
) -> "ServeSettings":
    """The settings of a command line.

    Args:
        ctx: click's context, which knows the flags that came from the environment.
        models: folders or names.
        config: a TOML file.
        overrides: each of the form `section.key=value`; the last of two for one setting holds.
        flags: the other flags, by the names of their parameters.

    Raises:
        ConfigError: names every setting that is unknown or wrong; or the file cannot be read.
        UsageError: no model is named, and not exactly one is installed.
    """
    from heed.config import build_config, read_toml
    from heed.serve.settings import ServeSettings

    if config and Path(config).resolve().is_fifo():  # `<(...)` is a pipe without a name: it ends
        raise ConfigError(f"{config} cannot be read: it is a named pipe, and not a file.")
    values: dict[str, Any] = read_toml(config) if config else {}
    from_file = {name for name, _ in _dotted(values)}
    given = {SETTINGS[name]: value for name, value in flags.items() if value not in (None, ())}
    typed = {
        SETTINGS[name]
        for name in flags
        if ctx.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
    # The later ones override the earlier ones: the environment, then the command line.
    later = [*_from_environment(values), *(one for one in given.items() if one[0] not in typed)]
    later += read_overrides(overrides, ctx.obj.say)
    later += [one for one in given.items() if one[0] in typed]
    for name, value in later:
        _put(values, name, value)
        from_file.discard(name)
    beside = Path(config).parent if config else Path()
    if models:
        values["models"] = [str(find_model(name)) for name in models]
    elif isinstance(values.get("models", []), list) and not values.get("models"):
        values["models"] = [str(find_model(None))]
    elif isinstance(values["models"], list):
        values["models"] = [_found_beside(name, beside) for name in values["models"]]
    not_from_file = [name for name, _ in _dotted(values) if name not in from_file]
    return build_config(ServeSettings, values, where=config or "", without=not_from_file)


def _found_beside(name: Any, folder: Path) -> Any:
    """The folder of a model named in a file, relative to that file's folder."""
    if not isinstance(name, str):
        return name  # a mistake that `build_config` describes
    return str(folder / name) if (folder / name).is_dir() else str(find_model(name))


def _from_environment(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The settings from environment variables such as `HEED_SERVE_LISTEN_PORT`."""
    from heed.config import parse_override
    from heed.serve.settings import ServeSettings

    for section in fields(ServeSettings):
        prefix = f"{ENVIRONMENT}{section.name.upper()}_"
        for variable, spelled in sorted(os.environ.items()):
            if variable.startswith(prefix) and spelled:
                key = variable.removeprefix(prefix).lower()
                yield parse_override(f"{section.name}.{key}={spelled}")


def _unknown_variables(command: click.Command) -> list[str]:
    """Environment variables that look like settings of the server but are not."""
    from heed.serve.settings import ServeSettings

    flags = {flag.lstrip("-") for param in command.params for flag in param.opts}
    known = {f"{ENVIRONMENT}{flag.replace('-', '_').upper()}" for flag in flags}
    groups = [*(section.name for section in fields(ServeSettings)), keys_group.name or ""]
    sections = tuple(f"{ENVIRONMENT}{name.upper()}_" for name in groups)
    found = (name for name in sorted(os.environ) if name.startswith(ENVIRONMENT))
    return [name for name in found if name not in known and not name.startswith(sections)]


def _put(values: dict[str, Any], name: str, value: Any) -> None:
    section, dot, key = name.partition(".")
    if not dot:
        values[section] = value
        return
    inner = values.setdefault(section, {})
    if not isinstance(inner, dict):
        raise ConfigError(f"{section} must be a section, but is {inner!r}.")
    inner[key] = value


def _dotted(values: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from ((f"{name}.{key}", inner) for key, inner in value.items())
        else:
            yield name, value
