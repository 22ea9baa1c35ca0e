"""`heed train`: parallel text in, a model folder out.

Flags and `section.key=value` become `Asked` settings; `train/run/run.py` does the rest.
"""

import os
import re
import signal
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from heed.cli.command import (
    Session,
    Threads,
    as_one,
    check_duration,
    command,
    naming_flags,
    options,
    read_overrides,
)
from heed.cli.corpus import OWN_FLAGS, CorpusFlags, corpus_from, text_from
from heed.cli.models import find_model
from heed.cli.remarks import remarks_on
from heed.cli.stopping import stop_signals
from heed.cli.terminal import echo
from heed.errors import UsageError

if TYPE_CHECKING:
    from heed.data.corpus import Corpus
    from heed.train.recipe.asked import Asked
    from heed.train.run.run import Outcome
    from heed.train.step.events import Report

EXAMPLES = """
heed train --src train.en --tgt train.de --out run/
heed train --src train.en --tgt train.de --dev-src val.en --dev-tgt val.de --time 60m --out run/
heed train corpus.tmx --source-lang en --target-lang de --out run/
heed train corpus.tsv.gz --out run/ --preset tiny training.learning_rate=0.001 model.dropout=0.2
zcat *.tsv.gz | heed train - --source-lang en --target-lang de --out run/
heed train --src train.en --tgt train.de --both-directions --out run/
heed train --src train.en --tgt train.de --mono-tgt more.de --out run/
heed train --src law.en --tgt law.de --from run/ --out law/
heed train --preset small --dump-config > recipe.toml
heed train corpus.tsv.gz --out run/ --dashboard
heed train --task lm --text book.txt --out run/ tokenizer.kind=char
heed train --task classify --labeled reviews.tsv --out run/
"""

data_option = options("Data")
run_option = options("Run")
model_option = options("Model")

SETTINGS = {
    "time": "training.time_s",
    "max_steps": "training.max_steps",
    "checkpoint_every": "training.checkpoint_every",
    "seed": "training.seed",
    "both_directions": "data.both_directions",
    "teachers": "data.teachers",
    "parent": "training.parent",
    "threads": "training.threads",
    "device": "training.device",
    "vocab_size": "tokenizer.vocab_size",
    "preset": "preset",
    "task": "task",
}
"""Maps a flag to the setting that it sets."""


OVERRIDE = re.compile(r"[a-z_]+\.[a-z0-9_]+=.*", re.DOTALL)


@command("train", "Train a translator, language model or classifier.", examples=EXAMPLES)
@click.argument("arguments", nargs=-1, metavar="[CORPUS]... [SECTION.KEY=VALUE]...")
@data_option(
    "--task",
    ("translate", "lm", "mlm", "classify"),
    "Task: translation, the next token of a text, masked words, or labels.",
)
@data_option("--text", str, "Text for --task lm and mlm.", multiple=True, metavar="FILE")
@data_option(
    "--labeled --labelled",  # codespell:ignore labelled
    str,
    "Lines of a label, a tab and a text, for --task classify.",
    multiple=True,
    metavar="FILE",
)
@data_option(
    "--dev-labeled --dev-labelled",  # codespell:ignore labelled
    str,
    "The same, to choose the best model.",
    multiple=True,
    metavar="FILE",
)
@data_option("--src", str, "Source side, one sentence per line.", multiple=True, metavar="FILE")
@data_option("--tgt", str, "Its translation, line by line.", multiple=True, metavar="FILE")
@data_option(
    "--columns",
    str,
    "Columns of a table, such as 2,3 or en,de; default: detected.",
    metavar="SRC,TGT",
)
@data_option(
    "--dev-src", str, "Development set, to choose the best model.", multiple=True, metavar="FILE"
)
@data_option("--dev-tgt", str, "Its translation.", multiple=True, metavar="FILE")
@data_option("--source-lang", str, "Language code; needed for TMX and XLIFF.", metavar="CODE")
@data_option("--target-lang", str, "Language code; needed for TMX and XLIFF.", metavar="CODE")
@data_option("--mono-src", str, "More text in the source language.", multiple=True, metavar="FILE")
@data_option("--mono-tgt", str, "More text in the target language.", multiple=True, metavar="FILE")
@data_option(
    "--both-directions",
    bool,
    "One model for both directions, src to tgt and tgt to src.",
    default=None,
)
@data_option(
    "--teachers",
    click.IntRange(0, 12),
    "Train N other models first, and learn also from their translations of the corpus.",
)
@run_option("--out", str, "Run folder; becomes the model folder.", metavar="RUN")
@run_option(
    "--time",
    str,
    "Wall-clock limit, such as 90s or 2h; default: 30m, or none with --max-steps.",
    metavar="DURATION",
    callback=check_duration,
)
@run_option("--max-steps", int, "Limit of optimizer steps.")
@run_option("--checkpoint-every", int, "Steps between checkpoints; default: by time.")
@run_option("--seed", int, "The same seed gives the same weights on the same machine.")
@run_option("--threads", Threads(1, 1024), "CPU threads; default: all cores.")
@run_option("--device", str, "auto, cpu or cuda.")
@run_option("--tensorboard", bool, "Also write TensorBoard scalars into RUN/tensorboard.")
@run_option(
    "--dashboard",
    click.IntRange(0, 65535),
    "Show the run in a browser, at a port of 127.0.0.1; without a value: any free port.",
    bare="0",
    metavar="[PORT]",
)
@model_option(
    "--preset",
    ("tiny", "small", "base", "big", "student"),
    "Model size; default: chosen by data and time.",
)
@model_option("--from parent", str, "Start from this model, with its shape.", metavar="DIR|NAME")
@model_option("--vocab-size", int, "Size of the vocabulary; default: chosen by the corpus.")
@model_option(
    "--config", str, "TOML file of settings; flags and overrides override it.", metavar="FILE"
)
@model_option(
    "--dump-config",
    ("minimal", "full"),
    "Print settings as TOML and stop: those you set, or all; without a value: full.",
    bare="full",
)
@click.pass_obj
@naming_flags(SETTINGS)
@as_one(CorpusFlags, "texts")
def train(
    session: Session,
    /,
    arguments: tuple[str, ...],
    texts: CorpusFlags,
    out: str | None,
    tensorboard: bool,
    dashboard: int | None,
    config: str | None,
    dump_config: str | None,
    **settings: Any,
) -> None:
    """Train a translator from two parallel files, TSV, CSV, TMX, XLIFF or PO files, or a folder.

    --task lm trains a language model on running text; mlm, a model that fills gaps in lines;
    classify, a classifier.

    In a folder, files named dev… or val… choose the best model, and files named test… are ignored.

    A flag overrides SECTION.KEY=VALUE, which overrides the file of --config. Of two values for one
    SECTION.KEY the last holds, with a remark.

    The corpus - is TSV from standard input. After any interruption, the same command continues at
    the next batch. RUN becomes a model folder; it can translate even before training ends.
    """
    if settings["parent"]:
        settings["parent"] = str(find_model(settings["parent"]))
    overrides = [text for text in arguments if OVERRIDE.fullmatch(text)]
    _require_override_or_file(arguments)
    weak = _flags_from_environment()
    asked = settings_from(config, settings, overrides, from_environment=weak, say=session.say)
    if texts.mono_src or texts.mono_tgt:
        # Back-translation needs a model for the opposite direction.
        asked = asked.over({"data": {"both_directions": True}})
    if dump_config:
        echo(dump(asked, dump_config), nl=False)
        return
    files = [text for text in arguments if not OVERRIDE.fullmatch(text)]
    task = asked.get("task", "translate")
    if task in OWN_FLAGS:
        if settings["both_directions"]:
            raise UsageError("--both-directions is for translation only: leave it out.")
        corpus = text_from(texts, files, task)
    else:
        corpus = corpus_from(texts, files, say=session.say)
    if not out:
        raise UsageError("Missing --out: where to write the model, e.g. --out run/")
    remarks = remarks_on(corpus, asked, Path(out))
    with _shown(session, out, dashboard):
        outcome, stop_signal = start(
            session, asked, corpus, out, tensorboard, at_end=choose_heads, remarks=remarks
        )
        finish(session, outcome, out, stop_signal)


def _require_override_or_file(arguments: Sequence[str]) -> None:
    """Refuse a setting that is not written as one and would be taken for a file.

    Raises:
        UsageError: gives the form that is probably meant.
    """
    for text, *others in (arguments[place : place + 3] for place in range(len(arguments))):
        if OVERRIDE.fullmatch(text) or text == "-" or os.path.exists(text):
            continue
        if others and others[0].startswith("="):  # blanks around the sign
            text += "".join(others if others[0] == "=" else others[:1])
        name, equals, value = text.partition("=")
        if equals and "/" not in name and (setting := _nearest_setting(name)):
            meant = f"{setting}=" if "." in setting else f"--{setting} "
            raise UsageError(
                f"{text} is neither a file nor a setting: did you mean {meant}{value.strip()}?"
            )


def _nearest_setting(name: str) -> str:
    """The setting that a name probably means, or ""."""
    from heed.config import setting_names
    from heed.train.recipe.recipe import Recipe

    spelled = name.strip().lower().replace("-", "_")
    if spelled in SETTINGS:
        return SETTINGS[spelled]
    known = setting_names(Recipe)
    if spelled in known:
        return spelled
    keys = {each.rpartition(".")[2]: each for each in reversed(known)}
    near = get_close_matches(spelled.rpartition(".")[2], keys, n=1, cutoff=0.8)
    return keys[near[0]] if near else ""


def _shown(session: Session, out: str, port: int | None) -> AbstractContextManager[None]:
    """Show the run in a browser during training, if requested; of several processes, one does."""
    from heed.machine.threads import process_rank

    if port is None or process_rank() != 0:
        return nullcontext()
    from heed.cli.dashboard import dashboard

    return dashboard(out, port, session.say)


def _once(texts: Sequence[str], say: Callable[[str], object]) -> "Report":
    """Says some texts when the corpus has been read, and neither it nor a setting was refused."""
    from heed.data.prepare import READING

    waiting = [*texts]

    def report(event: dict[str, Any]) -> None:
        is_reading = event["kind"] == "note" or event.get("phase") == READING
        while waiting and not is_reading:
            say(waiting.pop(0))

    return report


def start(
    session: Session,
    asked: "Asked",
    corpus: "Corpus",
    out: str,
    use_tensorboard: bool = False,
    *,
    at_end: Callable[[Path], object] = lambda out: None,
    given_s: float | None = None,
    remarks: Sequence[str] = (),
) -> tuple["Outcome", int | None]:
    """Run training with a display; the first signal pauses it, the second one ends it at once.

    Before the first step there is nothing to save, so the first signal ends the process. `at_end`
    is called with the folder of a run that has ended, while it is locked. `given_s` is the time
    limit as the user gave it, if `asked` has only the rest of it. `remarks` are printed once the
    corpus has been read.

    Returns:
        The outcome, and the signal that stopped the run or None.
    """
    from heed.cli.progress import Display
    from heed.machine.threads import is_one_of_several, process_rank
    from heed.train.recipe.choose import BY_TASK
    from heed.train.recipe.folder import discard_if_not_begun
    from heed.train.step.events import fan_out, tensorboard

    usual = BY_TASK.get(str(asked.get("task", "")), {}).get("training", {}).get("metric", "chrf")
    display = Display(asked.get("training.metric", usual))
    reports: list[Report] = [] if session.is_quiet else [display]
    say = _silent if session.is_quiet else display.line
    is_leader = process_rank() == 0
    # When one of several processes fails, torchrun sends SIGTERM to the others. The leader must
    # still report its own error, too.
    with stop_signals(None if is_one_of_several() else say) as stop:
        from heed.train.teachers.run import train_with_teachers

        if use_tensorboard and is_leader:
            reports.append(tensorboard(Path(out)))
        if remarks:
            reports.append(_once(remarks, say))
        try:
            with discard_if_not_begun(Path(out)) if is_leader else nullcontext():
                outcome = train_with_teachers(
                    asked,
                    corpus,
                    Path(out),
                    report=fan_out(*reports),
                    should_stop=lambda: bool(stop.received),
                    before_step=stop.only_note,
                    before_end=stop.only_complete,
                    at_end=at_end,
                    started_at=session.started_at,
                    given_s=given_s,
                )
        finally:
            if not session.is_quiet:
                display.close()
    return outcome, stop.received[0] if stop.received else None


def _silent(message: str) -> None:
    """Print nothing."""


def finish(session: Session, outcome: "Outcome", out: str, stop_signal: int | None) -> None:
    """Print how a run ended and the next command; a paused run exits with its signal's code."""
    step = outcome.progress.step
    if outcome.is_finished:
        ended = f"{out} is finished, at step {step}."
        if outcome.was_finished:
            ended = (
                f"{out} was finished already, at step {step}. It ended at {outcome.limits}. "
                f"{outcome.further or 'To continue, run the same command with a higher limit.'}"
            )
        session.say(f"{ended} {outcome.usage}")
        return
    of = f" of {outcome.teacher}" if outcome.teacher else ""
    session.say(f"Paused and saved at step {step}{of}. To continue, run the same command again.")
    sys.exit(128 + (stop_signal or signal.SIGTERM))


def choose_heads(out: Path) -> None:
    """Store the best-aligning heads of a finished run."""
    from heed.explain.attention.choice import choose_after_training

    choose_after_training(out)


def settings_from(
    path: str | None,
    flags: Mapping[str, Any],
    overrides: list[str],
    *,
    from_environment: Collection[str] = (),
    say: Callable[[str], None] = lambda message: None,
) -> "Asked":
    """All settings given by the user; a later value overrides an earlier one.

    Their order: the file, the environment, overrides, flags.

    Args:
        path: the settings file; None = none.
        flags: the flags in `SETTINGS`; None = not given.
        overrides: of the form `section.key=value`.
        from_environment: flags whose values come from the environment.
        say: prints a remark.

    Raises:
        ConfigError: the file is missing, is not TOML or has a value where a section belongs, or
            an override is malformed.
    """
    from heed.config import read_toml
    from heed.train.recipe.asked import Asked
    from heed.train.recipe.recipe import resolve

    asked = Asked(read_toml(path), where=path) if path else Asked()
    sections = {name.split(".")[0] for name in SETTINGS.values() if "." in name}
    if not all(isinstance(asked.get(section, {}), dict) for section in sections):
        resolve(asked)  # reports this mistake in the file and all others
    given = [name for name in SETTINGS if flags.get(name) is not None]
    weak = [(SETTINGS[name], flags[name]) for name in given if name in from_environment]
    strong = [(SETTINGS[name], flags[name]) for name in given if name not in from_environment]
    for setting, value in [*weak, *read_overrides(overrides, say), *strong]:
        asked = asked.plus(setting, value)
    return asked


def _flags_from_environment() -> set[str]:
    ctx = click.get_current_context()
    environment = click.core.ParameterSource.ENVIRONMENT
    return {name for name in SETTINGS if ctx.get_parameter_source(name) is environment}


def dump(asked: "Asked", kind: str) -> str:
    """Settings as TOML for `--config`: `minimal`, those given by the user; `full`, all of them.

    Raises:
        ConfigError: a setting is unknown or impossible.
    """
    from heed.config import to_toml
    from heed.train.recipe.recipe import resolve

    recipe = resolve(asked)
    if kind == "minimal":
        return to_toml(asked.values)
    lines = to_toml(recipe).splitlines(keepends=True)
    # The corpus decides the sizes of the vocabularies; fixed sizes might not fit another one.
    return "".join(line for line in lines if not re.match(r"(src|tgt)_vocab_size = ", line))
