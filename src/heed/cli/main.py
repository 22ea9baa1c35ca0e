"""The program `heed`: its commands, and the message and exit code of each error.

A command is imported when it is called, so `heed --help` never loads torch. Exit codes: 0 done,
1 failed, 2 wrong usage, 130 Ctrl-C, 141 broken pipe, 143 terminated.
"""

import gc
import importlib
import os
import sys
import traceback
from collections.abc import Sequence
from difflib import get_close_matches

import click
from click.core import ParameterSource

from heed import __version__
from heed.cli.command import Option, Session
from heed.cli.stopping import Stopped
from heed.cli.terminal import discard, echo, replace_closed_streams, write_any_character
from heed.errors import FULL_DISK, HeedError, MissingExtraError, WorkerError
from heed.machine.threads import process_rank

COMMANDS: dict[str, dict[str, tuple[str, str]]] = {
    "Everyday": {
        "train": ("heed.cli.train:train", "Train a translator, language model or classifier."),
        "translate": ("heed.cli.translate:translate", "Translate lines of text."),
        "translate-file": (
            "heed.cli.translate_file:translate_file",
            "Translate a page, a document or subtitles.",
        ),
        "evaluate": ("heed.cli.evaluate:evaluate", "Compare translations with references."),
        "check": ("heed.cli.check:check", "Find doubtful translations in a file."),
        "serve": ("heed.cli.serve:serve", "Translate over HTTP, for programs and in a web page."),
        "demo": ("heed.cli.demo:demo", "Train and try a small translator in two minutes."),
    },
    "Inspection": {
        "score": ("heed.cli.score:score", "Log-probability of given translations."),
        "generate": ("heed.cli.texts:generate", "Continue a text with a language model."),
        "fill": ("heed.cli.texts:fill", "Fill the gaps of a text."),
        "classify": ("heed.cli.texts:classify", "Label texts."),
        "next-word": ("heed.cli.look:next_word", "Show the most probable next tokens."),
        "align": ("heed.cli.look:align", "Show attention between text and translation."),
        "choose-heads": (
            "heed.cli.look:choose_heads",
            "Find and store the heads that align best.",
        ),
        "calibrate": (
            "heed.cli.doubting:calibrate",
            "Learn when translations are doubtful.",
        ),
        "inspect": ("heed.cli.inspect:inspect", "Look inside a model, in a web page."),
        "vectors": (
            "heed.cli.vectors:vectors",
            "Learn word vectors; print neighbors and analogies.",
        ),
        "show": ("heed.cli.show:show", "Draw a model's tables of positions and pieces."),
    },
    "Tools": {
        "models": (
            "heed.cli.models:models",
            "List, describe, verify or delete the models on this machine.",
        ),
        "quantize": ("heed.cli.quantize:quantize", "Round a model to int8: small and fast."),
        "prune": ("heed.cli.prune:prune", "Remove the least important heads and features."),
        "distill": ("heed.cli.distill:distill", "Train a small, fast student from a model."),
        "doctor": ("heed.cli.doctor:doctor", "Show versions, processor and optional parts."),
        "completion": ("heed.cli.completion:completion", "Print a completion script for a shell."),
        "spm-train": ("heed.cli.spm:spm_train", "Train a SentencePiece model (as spm_train)."),
        "spm-encode": ("heed.cli.spm:spm_encode", "Text to pieces or ids (as spm_encode)."),
        "spm-decode": ("heed.cli.spm:spm_decode", "Pieces or ids to text (as spm_decode)."),
    },
}
"""Group → command → its module and summary, so that listing the commands imports none."""

EXAMPLES = """
  heed demo                                  train and try a small translator in 2 minutes
  heed train --src train.en --tgt train.de --out run/
  heed translate -m run/ < news.en > news.de
"""


COMPLETION_VARIABLE = "_HEED_COMPLETE"
"""The environment variable by which the shell requests completions."""

EXTRAS = {
    "torch": "train",
    "sacrebleu": "train",
    "starlette": "serve",
    "uvicorn": "serve",
    "prometheus_client": "serve",
    "matplotlib": "plot",
}
"""Maps a package to the extra that installs it."""

PLAIN = {
    "is not a valid integer range": "is not a whole number",
    "is not a valid integer": "is not a whole number",
    "is not a valid float range": "is not a number",
    "is not a valid float": "is not a number",
}
"""Maps click's words about numbers to plainer ones."""


class LazyGroup(click.Group):
    """A group that lists its commands by name and imports one only when it is called."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """All names, in the order of the help page."""
        return [name for group in COMMANDS.values() for name in group]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        for group in COMMANDS.values():
            if cmd_name in group:
                module, attribute = group[cmd_name][0].split(":")
                command: click.Command = getattr(importlib.import_module(module), attribute)
                return command
        return None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command of this name, or an error that names the nearest one."""
        args = [args[0].replace("_", "-"), *args[1:]]
        if self.get_command(ctx, args[0]) is None:
            hint = _nearest(args[0], self.list_commands(ctx))
            raise click.UsageError(f"there is no command {args[0]!r}{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_help(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write examples first, then the commands in groups."""
        self.format_usage(ctx, formatter)
        self.format_help_text(ctx, formatter)
        with formatter.section("Examples"):
            formatter.write(EXAMPLES.strip("\n") + "\n")
        for title, group in COMMANDS.items():
            with formatter.section(title):
                formatter.write_dl([(name, summary) for name, (_, summary) in group.items()])
        self.format_options(ctx, formatter)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the group's own options, without click's list of commands."""
        click.Command.format_options(self, ctx, formatter)


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.version_option(__version__, prog_name="heed", message="%(prog)s %(version)s")
def heed() -> None:
    """Train a translator from parallel text, translate with it, and look inside every step."""


def main() -> None:
    """The program's entry point; never returns."""
    replace_closed_streams()
    write_any_character()
    if instruction := os.environ.get(COMPLETION_VARIABLE):
        from click.shell_completion import shell_complete

        sys.exit(shell_complete(heed, {}, "heed", COMPLETION_VARIABLE, instruction))
    try:
        exit_code = run(sys.argv[1:])
    except Stopped as stopped:
        # Python's own shutdown takes seconds once torch is loaded.
        os._exit(int(stopped.code or 0))
    # The final garbage collection takes a sixth of the time of a short call.
    gc.freeze()
    sys.exit(exit_code)


def run(args: Sequence[str]) -> int:
    """Run one command line and return its exit code."""
    # If several processes train together, only the first one prints.
    is_follower = args[:1] == ["train"] and process_rank() > 0
    session = Session(is_quiet=is_follower)
    if not args:
        run(["--help"])
        return 2
    try:
        with heed.make_context("heed", list(args), obj=session, auto_envvar_prefix="HEED") as ctx:
            heed.invoke(ctx)
            sys.stdout.flush()
        return 0
    except click.exceptions.Exit as wish:
        return wish.exit_code
    except (KeyboardInterrupt, click.Abort):
        return 130
    except BrokenPipeError:
        # Python would print another error when it flushes at exit.
        discard(sys.stdout)
        return 141
    except Exception as error:
        words, exit_code = explain(error)
        if session.is_debug:
            echo(traceback.format_exc(), err=True, nl=False)
        if not (is_follower and _is_of_all(error)):
            echo(f"heed: {words}", err=True)
        return exit_code


def explain(error: Exception) -> tuple[str, int]:
    """The message and the exit code of an error."""
    if isinstance(error, HeedError):
        return str(error), error.exit_code
    if isinstance(error, click.NoSuchOption):
        command = error.ctx.command if error.ctx else heed
        name = error.option_name.replace("_", "-")
        arguments = [param.name for param in command.params if isinstance(param, click.Argument)]
        if (argument := name.lstrip("-")) in arguments:
            words = f"there is no option {name}: give {argument.upper()} without it."
            return f"{words}{_see_help(error)}", 2
        known = [name for param in command.params for name in param.opts if name[:1] == "-"]
        return f"there is no option {name}{_nearest(name, known)}{_see_help(error)}", 2
    if isinstance(error, click.ClickException):
        message = error.format_message()
        if isinstance(error, click.MissingParameter):
            message = " ".join(message.split())  # choices are on lines of their own
        for words, plain in PLAIN.items():
            message = message.replace(words, plain)
        message = f"{message[:1].lower()}{message[1:].rstrip('.')}"
        end = "" if message.endswith("?") else "."
        return f"{_variable(error)}{message}{end}{_see_help(error)}", error.exit_code
    if isinstance(error, OSError) and not error.filename and error.errno in FULL_DISK:
        # Errors of all other outputs name their file.
        return f"standard output cannot be written: {error.strerror}.", 1
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror or error}", 1
    if isinstance(error, MemoryError):
        return (
            "out of memory. Give less at once, such as fewer or shorter lines, a smaller "
            "--batch-size (heed translate) or training.batch_tokens (heed train).",
            1,
        )
    if isinstance(error, ModuleNotFoundError) and error.name in EXTRAS:
        missing = MissingExtraError("This command", EXTRAS[error.name], package=error.name)
        return str(missing), missing.exit_code
    name = type(error).__name__
    return (
        f"internal error: {name}: {error}. This is a bug in heed; rerun with --debug to see where.",
        1,
    )


def _is_of_all(error: Exception) -> bool:
    """Whether all processes of a distributed run have this error, or lost the one that has it."""
    is_known = isinstance(error, HeedError | click.ClickException)
    return is_known and not isinstance(error, WorkerError)


def _nearest(word: str, known: Sequence[str]) -> str:
    near = get_close_matches(word, known, n=1)
    return f"; did you mean {near[0]}?" if near else "."


def _variable(error: click.ClickException) -> str:
    """The environment variable with a wrong option value, as the start of a message."""
    if not isinstance(error, click.BadParameter) or error.ctx is None:
        return ""
    param = error.param
    if not isinstance(param, Option) or param.name is None:
        return ""
    if error.ctx.get_parameter_source(param.name) is not ParameterSource.ENVIRONMENT:
        return ""
    name = param.variable(error.ctx)
    return f"{name}: " if name else ""


def _see_help(error: click.ClickException) -> str:
    ctx = error.ctx if isinstance(error, click.UsageError) else None
    return f" See {ctx.command_path} --help." if ctx else ""
