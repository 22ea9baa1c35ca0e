"""Options, help pages and defaults shared by all commands.

A command is written with `@command(...)` and `options(group)`. `main.py` turns errors into exit
codes.
"""

import itertools
import math
import os
import re
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from functools import wraps
from typing import Any

import click
from click.core import ParameterSource

from heed.cli.terminal import echo
from heed.errors import ConfigError, DataError, UsageError
from heed.machine.threads import count_cores, too_many_threads

Decorator = Callable[..., Any]

NEVER_EMPTY = ("FILE", "FOLDER", "RUN", "MODEL", "DIR|NAME", "V", "CODE")
"""Placeholders of options whose values are names of files, folders, models and languages."""

BEHIND_BARE = "heed.behind_bare"
"""In click's `ctx.meta`: parameter of a choice without its optional value → the next argument."""

METAVARS = ((int, "N"), (click.IntRange, "N"), (float, "X"))
"""Placeholders for kinds of values on the help page."""


@dataclass
class Session:
    """The state shared by all commands of one call.

    Attributes:
        is_debug: show the traceback of an error.
        is_quiet: print only errors.
        started_at: `time.monotonic()` at the start of the call, before any heavy import.
    """

    is_debug: bool = False
    is_quiet: bool = False
    started_at: float = field(default_factory=time.monotonic)

    def say(self, message: str) -> None:
        """Print a message on standard error; standard output is for data."""
        if not self.is_quiet:
            echo(message, err=True)


class Threads(click.IntRange):
    """A number of threads; more than the number of cores are reduced to it, with a remark."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """The number of threads, at most the number of cores."""
        asked = int(super().convert(value, param, ctx))
        if remark := too_many_threads(asked):
            if ctx and isinstance(ctx.obj, Session):
                ctx.obj.say(f"--threads: {remark}")
            return count_cores()
        return asked


class Share(click.FloatRange):
    """A number from 0 to 1."""

    def __init__(self) -> None:
        super().__init__(0, 1)

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """The number; refuses "nan", which Python would accept."""
        number = float(super().convert(value, param, ctx))
        if math.isnan(number):
            self.fail(f"{value!r} is not a number.", param, ctx)
        return number


class Text(click.ParamType[str]):
    """A text that a model reads."""

    name = "text"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """The text, whatever the locale; refuses bytes that are not UTF-8, as for files."""
        try:
            return str(value).encode("utf-8", "surrogateescape").decode("utf-8")
        except (UnicodeEncodeError, UnicodeDecodeError) as error:
            self.fail(f"it is not valid UTF-8 (byte {error.start + 1}).", param, ctx)


class Option(click.Option):
    """An option that belongs to a group of the help page.

    Args:
        *args: the flags and other arguments of click's options.
        group: the heading of the group.
        bare: the value of an option (a choice or a number) that is given without one; None = it
            must be given.
        **attributes: click's own keyword arguments.
    """

    def __init__(
        self, *args: Any, group: str = "Options", bare: str | None = None, **attributes: Any
    ) -> None:
        super().__init__(*args, **attributes)
        self.group = group
        self.bare = bare

    def variable(self, ctx: click.Context) -> str:
        """The environment variable `HEED_<COMMAND>_<FLAG>` that is set for a long flag, or "" ."""
        flags = [flag.lstrip("-") for flag in self.opts if flag.startswith("--")]
        names = [f"{ctx.auto_envvar_prefix}_{flag.replace('-', '_').upper()}" for flag in flags]
        return next((name for name in names if os.environ.get(name)), "")

    def resolve_envvar_value(self, ctx: click.Context) -> str | None:
        """The value of the flag's variable, else of `envvar`."""
        if name := self.variable(ctx):
            return os.environ[name]
        # click's own rule uses the name of the parameter, not the flag that a user types.
        return click.Parameter.resolve_envvar_value(self, ctx)

    def value_from_envvar(self, ctx: click.Context) -> Any:
        """The value of the variable; of an option that may be repeated, each line is a value."""
        if not self.multiple:
            return super().value_from_envvar(ctx)
        # click splits it at blanks, which names of files have.
        lines = (self.resolve_envvar_value(ctx) or "").split("\n")
        return [line for line in lines if line.strip()] or None

    def type_cast_value(self, ctx: click.Context, value: Any) -> Any:
        """The value; refuses an empty name, which an unset variable of a shell gives."""
        found = super().type_cast_value(ctx, value)
        if self.metavar in NEVER_EMPTY and "" in (found if self.multiple else (found,)):
            raise click.BadParameter("the name is empty.", ctx=ctx, param=self)
        return found


def long_flag(param: click.Parameter) -> str:
    """The first long flag of an option, as in `--beam-size`."""
    return next(flag for flag in param.opts if flag.startswith("--"))


def typed_flags(ctx: click.Context) -> dict[str, str]:
    """The command's own flags on the command line, by the names of their parameters.

    Options from environment variables are left out: a variable may stay set for all calls.
    """
    typed = {}
    for param in ctx.command.params:
        source = ctx.get_parameter_source(param.name or "")
        is_own = isinstance(param, click.Option) and param.expose_value
        if is_own and param.name and source is ParameterSource.COMMANDLINE:
            is_off = param.secondary_opts and ctx.params[param.name] is False
            typed[param.name] = param.secondary_opts[0] if is_off else long_flag(param)
    return typed


class Command(click.Command):
    """A command whose help opens with examples and groups its options."""

    def __init__(self, *args: Any, examples: str = "", **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.examples = examples
        self.params += [_debug_option(), _quiet_option()]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Read the arguments; the next one is an optional value only if it can be one.

        Raises:
            UsageError: an option of one value is given more than once; names its flag.
        """
        args = list(self._with_bare_values(ctx, args))
        rest = super().parse_args(ctx, [*args])  # click empties the list
        if not ctx.resilient_parsing:
            self._require_once(ctx, args)
        return rest

    def _require_once(self, ctx: click.Context, args: list[str]) -> None:
        _, _, given = self.make_parser(ctx).parse_args(args)
        for param, count in Counter(given).items():
            takes_one = isinstance(param, Option) and not (param.is_flag or param.multiple)
            if takes_one and count > 1:
                raise click.UsageError(
                    f"{long_flag(param)} takes one value, but is given more than once", ctx
                )

    def _with_bare_values(self, ctx: click.Context, args: list[str]) -> Iterator[str]:
        optional = {
            flag: param
            for param in self.params
            if isinstance(param, Option) and param.bare
            for flag in param.opts
        }
        for argument, follower in itertools.pairwise([*args, ""]):
            option = optional.get(argument.replace("_", "-"))
            has_value = option and _may_be_of(option.type, follower)
            if option and isinstance(option.type, click.Choice) and not has_value:
                ctx.meta.setdefault(BEHIND_BARE, {})[option.name] = follower
            yield f"{argument}={option.bare}" if option and not has_value else argument

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write usage, purpose, examples, then options group by group."""
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        if self.examples:
            with formatter.section("Examples"):
                for line in self.examples.strip().splitlines():
                    formatter.write(f"  {line.strip()}\n" if line.strip() else "\n")
        self.format_options(ctx, formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write a section for each group, in the order of first appearance."""
        shown = [
            (param.group if isinstance(param, Option) else "Other", record)
            for param in self.get_params(ctx)
            if isinstance(param, click.Option)
            and (record := param.get_help_record(ctx)) is not None
        ]
        order = {group: rank for rank, group in enumerate(dict.fromkeys(g for g, _ in shown))}
        shown.sort(key=lambda item: (item[0] == "Other", order[item[0]]))
        for group, records in itertools.groupby(shown, key=lambda item: item[0]):
            with formatter.section(group):
                formatter.write_dl([record for _, record in records])


def _may_be_of(kind: "click.ParamType[Any]", text: str) -> bool:
    """Whether a text can be the optional value of an option: a number, or one of its choices.

    So can a misspelled choice, which is then refused.
    """
    if isinstance(kind, click.Choice):
        return bool(get_close_matches(text, kind.choices, n=1, cutoff=0.8))
    return isinstance(kind, click.IntRange) and text.isdecimal()


class CommandGroup(Command, click.Group):
    """A command that has subcommands and can also be called itself."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the groups of options, then the commands."""
        Command.format_options(self, ctx, formatter)
        self.format_commands(ctx, formatter)


def command(
    name: str,
    summary: str,
    *,
    examples: str = "",
    kind: type[Command] = Command,
    **settings: Any,
) -> Decorator:
    """A command of heed; underscores and dashes are the same in its flags.

    Args:
        name: the command's name.
        summary: its line in the list of commands; the docstring is the longer help.
        examples: command lines that work, one a line.
        kind: `CommandGroup` for a command with subcommands.
        **settings: click's context settings.
    """
    return click.command(
        name,
        cls=kind,
        short_help=summary,
        examples=examples,
        **({"invoke_without_command": True} if issubclass(kind, CommandGroup) else {}),
        context_settings={
            "token_normalize_func": lambda token: token.replace("_", "-"),
            "help_option_names": ["-h", "--help"],
            "max_content_width": 100,
            **settings,
        },
    )


def options(group: str) -> Callable[..., Decorator]:
    """Return a function that makes options of one group of the help page.

    Its arguments are the flags in one string (a word without dashes names the parameter), a kind
    (`bool` = a switch, a tuple of words = a choice, anything else as in click) and the help text.
    """

    def option(flags: str, kind: Any, text: str, **attributes: Any) -> Decorator:
        if kind is bool:
            attributes = {"is_flag": True, **attributes}
        else:
            kind = click.Choice(kind) if isinstance(kind, tuple) else kind
            metavar = next(
                (name for of, name in METAVARS if kind is of or isinstance(kind, of)), None
            )
            attributes = {"type": kind, "metavar": metavar, "show_default": True, **attributes}
        return click.option(*flags.split(), cls=Option, group=group, help=text, **attributes)

    return option


def as_one(kind: type[Any], name: str) -> Decorator:
    """Pass the flags that are fields of the dataclass `kind` to a command as one argument.

    Args:
        kind: the dataclass; its fields have the names of the flags' parameters. A field without a
            flag keeps its default.
        name: the argument's name.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*args: Any, **flags: Any) -> Any:
            given = [field.name for field in fields(kind) if field.name in flags]
            group = kind(**{each: flags.pop(each) for each in given})
            return function(*args, **{name: group}, **flags)

        return call

    return decorate


def decorated(function: Callable[..., Any], decorators: Iterable[Decorator]) -> Callable[..., Any]:
    """Apply decorators to a function, the first one first."""
    for decorate in decorators:
        function = decorate(function)
    return function


def naming_flags(settings: Mapping[str, str]) -> Decorator:
    """Make an error about a setting name the flag that set it, or that would set a missing one.

    Args:
        settings: maps the parameter of a flag to the setting, as messages name it.
    """

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @wraps(function)
        def call(*args: Any, **values: Any) -> Any:
            try:
                return function(*args, **values)
            except (ConfigError, DataError) as error:
                words = _with_flags(str(error), settings)
                if words == str(error):
                    raise
                raise UsageError(words) from error

        return call

    return decorate


def _with_flags(words: str, settings: Mapping[str, str]) -> str:
    """A message in which flags stand for their settings."""
    ctx = click.get_current_context()
    typed = typed_flags(ctx)
    for param in ctx.command.params:
        if (name := param.name or "") not in settings:
            continue
        flag, setting = long_flag(param), re.escape(settings[name])
        if name not in typed:
            words = re.sub(rf"(?m)^( *){setting}(?= is missing)", rf"\1{flag}", words)
            continue
        value = re.escape(str(ctx.params[name]))
        words = re.sub(rf"\b{setting}(?= {value}[ :])", flag, words)
        unit = ", in seconds," if setting.endswith("_s") else ""
        words = re.sub(rf"\b{setting}(?= must\b)", flag + unit, words)
    return words


def read_overrides(
    texts: Iterable[str], say: Callable[[str], None] = lambda message: None
) -> list[tuple[str, Any]]:
    """Names and values of settings of the form `section.key=value`.

    Args:
        texts: the settings; of several values for one, the last holds.
        say: prints a remark if there are such.

    Raises:
        ConfigError: one has another form.
    """
    from heed.config import parse_override

    found: dict[str, Any] = {}
    for name, value in map(parse_override, texts):
        if name in found and found[name] != value:
            say(f"{name} is given more than once: {value} replaces {found[name]}.")
        found[name] = value
    return list(found.items())


def check_duration(_: click.Context, param: click.Parameter, value: str | None) -> str | None:
    """A click callback that checks an option's duration, such as `90s`."""
    from heed.config import parse_duration

    try:
        parse_duration("0" if value is None else value)
    except ConfigError as error:
        raise click.BadParameter(str(error)) from None
    return value


def _debug_option() -> Option:
    return Option(
        ["--debug", "--traceback"],
        group="Other",
        is_flag=True,
        expose_value=False,
        callback=lambda ctx, _, value: _remember(ctx, "is_debug", value),
        help="On an error, show the traceback.",
    )


def _quiet_option() -> Option:
    return Option(
        ["-q", "--quiet"],
        group="Other",
        is_flag=True,
        is_eager=True,  # before any option that may print a remark
        expose_value=False,
        callback=lambda ctx, _, value: _remember(ctx, "is_quiet", value),
        help="No progress and no remarks, only errors.",
    )


def _remember(ctx: click.Context, name: str, value: bool) -> None:
    session = ctx.ensure_object(Session)
    setattr(session, name, value or getattr(session, name))
