"""`heed distill`: train a small, fast student on the translations of a trained model.

`compress/distill.py` makes the translations; training, display and pausing are those of
`heed train` (`train.py`).
"""

import math
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, replace
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
from heed.cli.models import find_model
from heed.cli.stopping import stop_signals
from heed.cli.terminal import echo
from heed.cli.train import OVERRIDE, SETTINGS, choose_heads, finish, start
from heed.errors import ConfigError, UsageError

if TYPE_CHECKING:
    from heed.compress.distill import Lesson
    from heed.train.recipe.asked import Asked

EXAMPLES = """
heed distill run/ --out student/ --time 30m
heed distill run/ --src more.en --out student/ --time 2h
heed distill run/ --with run2/ --with run3/ --out student/ --time 2h
heed distill run/ --out student/ --time 30m --preset tiny training.learning_rate=0.002
"""


@dataclass(frozen=True, kw_only=True)
class DistillFlags:
    """The flags of `heed distill`, except for teacher and folder.

    Attributes:
        src: files to translate instead of the teacher's own corpus.
        beside: models that translate together with the teacher.
        dev_src: source lines of the development set.
        dev_tgt: their translations.
        target_lang: the only target language; None = all of the teacher's.
        time: limit of the whole command, such as `30m`; None = not given.
        max_steps: limit of the student's steps; None = not given.
        seed: seed of the student; None = not given.
        threads: CPU threads; None = all cores.
        device: `auto`, `cpu` or `cuda`.
        preset: the student's size; None = derived from the teacher's.
        beam_size: beam of the teacher's search.
    """

    src: tuple[str, ...]
    beside: tuple[str, ...]
    dev_src: tuple[str, ...]
    dev_tgt: tuple[str, ...]
    target_lang: str | None
    time: str | None
    max_steps: int | None
    seed: int | None
    threads: int | None
    device: str
    preset: str | None
    beam_size: int

    @property
    def dev(self) -> list[str]:
        """The files of the development set, source and target in turn."""
        return [path for two in zip(self.dev_src, self.dev_tgt, strict=True) for path in two]


data_option = options("Data")
run_option = options("Run")
model_option = options("Model")


@command("distill", "Train a small, fast student from a model.", examples=EXAMPLES)
@click.argument("teacher")
@click.argument("overrides", nargs=-1, metavar="[SECTION.KEY=VALUE]...")
@data_option("--src", str, "Text to translate instead of its own.", multiple=True, metavar="FILE")
@data_option(
    "--dev-src", str, "Development set, to choose the best student.", multiple=True, metavar="FILE"
)
@data_option("--dev-tgt", str, "Its human translation.", multiple=True, metavar="FILE")
@data_option(
    "-t --target-lang",
    str,
    "Learn only this target language, if there are several.",
    metavar="CODE",
)
@run_option("--out", str, "Run folder; becomes the student's model folder.", metavar="RUN")
@run_option(
    "--time",
    str,
    "Wall-clock limit of the whole command, such as 90s or 2h; default: 30m, or none with "
    "--max-steps.",
    metavar="DURATION",
    callback=check_duration,
)
@run_option("--max-steps", int, "Limit of optimizer steps.")
@run_option("--seed", int, "The same seed gives the same weights on the same machine.")
@run_option("--threads", Threads(1, 1024), "CPU threads; default: all cores.")
@run_option("--device", str, "auto, cpu or cuda.", default="auto")
@model_option(
    "--with beside",
    str,
    "Another model, which translates together with TEACHER; may be given several times.",
    multiple=True,
    metavar="MODEL",
)
@model_option(
    "--preset",
    ("student", "tiny", "small", "base", "big"),
    "Size of the student; default: the teacher's, with two thirds of its decoder layers.",
)
@model_option(
    "-b --beam-size", click.IntRange(1, 64), "Beam size of the teacher's search.", default=5
)
@click.pass_obj
@naming_flags(SETTINGS)
@as_one(DistillFlags, "flags")
def distill(
    session: Session,
    /,
    teacher: str,
    overrides: tuple[str, ...],
    out: str | None,
    flags: DistillFlags,
) -> None:
    """Let TEACHER translate its training text, and train a student on the translations.

    Translating takes at most two fifths of the time; for the rest of the text the student learns
    the corpus's own translations. It shares the teacher's pieces and development pairs, and
    starts from the teacher's weights if only its depth differs. After any interruption the same
    command continues. At the end RUN is rounded to int8 and compared with TEACHER.
    """
    if not out:
        raise UsageError("Missing --out: where to write the student, e.g. --out student/")
    if pieces := [text for text in overrides if text.startswith("tokenizer.")]:
        raise UsageError(f"{pieces[0]} cannot be set: the student uses its teacher's pieces.")
    if any(text.startswith("data.teachers") for text in overrides):
        raise UsageError("data.teachers cannot be set: the student has its teacher already.")
    if unknown := [text for text in overrides if not OVERRIDE.fullmatch(text)]:
        raise UsageError(f"{unknown[0]} must be like section.key=value; text goes after --src.")
    if len(flags.dev_src) != len(flags.dev_tgt):
        raise UsageError("--dev-src and --dev-tgt go together: one of each, or neither.")
    if "-" in (*flags.src, *flags.dev_src, *flags.dev_tgt):
        raise UsageError("--src must be a file: it is read again when an interrupted run goes on.")
    from heed.compress.distill import training_seconds

    run, folder = Path(out), find_model(teacher)
    asked, time_s = _asked(folder, flags, overrides, session.say)
    training_seconds(time_s, 0.0, {})  # refuses a time in which nothing could be learned
    lesson, is_new = _lesson(session, folder, run, flags, asked, time_s)
    if not asked.get("training.parent"):
        session.say(
            "The student starts from random weights: the teacher's can be copied only if they are "
            "float32 and the two models differ only in depth."
        )
    tokenizer = {"vocab_from": str(lesson.folder), **lesson.tokenizer}
    asked = asked.plus_all({"tokenizer": tokenizer})
    if time_s is not None:
        asked = asked.plus("training.time_s", _left_s(time_s, lesson, run))
    if not lesson.dev:
        session.say(
            "No development pairs: the best student is the one most like the teacher. For a better "
            "choice, give pairs with --dev-src and --dev-tgt."
        )
    sitting = replace(session, started_at=time.monotonic()) if is_new else session
    outcome, stop_signal = start(
        sitting, asked, lesson.corpus, out, at_end=choose_heads, given_s=time_s
    )
    if outcome.is_finished:
        _compare(lesson, run, flags)
    finish(session, outcome, out, stop_signal)


def _asked(
    teacher: Path, flags: DistillFlags, overrides: tuple[str, ...], say: Callable[[str], None]
) -> "tuple[Asked, float | None]":
    """The student's settings, and the time limit in seconds; None = limited by steps."""
    from heed.compress.distill import inherited_settings
    from heed.compress.student import student_settings
    from heed.train.recipe.asked import Asked
    from heed.train.recipe.choose import time_limit
    from heed.train.recipe.recipe import draft

    given = {"max_steps": flags.max_steps, "seed": flags.seed, "threads": flags.threads}
    training = {key: value for key, value in given.items() if value is not None}
    # A teacher's text is regular: label smoothing and a wide beam do not help.
    asked = Asked(
        {
            "data": inherited_settings(teacher),
            "training": {**training, "device": flags.device, "label_smoothing": 0.0},
            "decoding": {"beam_size": 1},
        }
    )
    if flags.preset:
        asked = asked.plus("preset", flags.preset)
    for name, value in read_overrides(overrides, say):
        asked = asked.plus(name, value)
    asked = student_settings(asked, teacher)
    draft(asked)  # report errors in the settings before the teacher translates
    if flags.time:
        asked = asked.plus("training.time_s", flags.time)
    time_s = time_limit(asked)
    return asked if time_s is None else asked.without("training.time_s"), time_s


def _left_s(time_s: float, lesson: "Lesson", run: Path) -> float:
    """The time left for the student; little if it has learned more than the limit allows.

    Raises:
        ConfigError: no time is left to begin with.
    """
    from heed.compress.distill import training_seconds
    from heed.train.run.setup import has_learned

    try:
        return training_seconds(time_s, lesson.seconds, lesson.scores) or 1.0
    except ConfigError:
        if not has_learned(run):
            raise
        return 1.0


def _lesson(
    session: Session,
    teacher: Path,
    out: Path,
    flags: DistillFlags,
    asked: "Asked",
    time_s: float | None,
) -> "tuple[Lesson, bool]":
    """The teacher's translations, and whether this call completed them."""
    from heed.compress.distill import begin, find_sources, made_from, recall, teach
    from heed.disk.files import lock
    from heed.train.recipe.recipe import draft
    from heed.train.run.calibrate import open_quickly

    beside = [find_model(name) for name in flags.beside]
    wanted = made_from(teacher, flags.src, flags.dev, **_choices(flags, beside))
    _require_place(out, flags)
    progress = _Progress(session)
    with stop_signals(progress.say) as stop, ExitStack() as held:
        if lesson := recall(out, wanted):
            return lesson, False
        # Without its memory, which would answer with the training pairs themselves.
        translator, dtype = open_quickly(
            [teacher, *beside], flags.threads, device=flags.device, memory=False
        )
        config = draft(asked).data
        sources = find_sources(teacher, translator, flags.src, flags.dev, flags.target_lang, config)
        held.enter_context(lock(out))  # makes the folder: an error above leaves none
        if lesson := recall(out, wanted):  # another process completed it in the meantime
            return lesson, False
        begin(out, wanted)
        progress.begin()
        stop.only_note()
        lesson = teach(
            translator,
            sources,
            out,
            time_s=time_s,
            started_at=session.started_at,
            beam_size=flags.beam_size,
            dtype=dtype,
            should_stop=lambda: bool(stop.received),
            report=progress,
        )
        progress.close()
    if stop.received:  # perhaps while the last portion was translated
        session.say("Paused; finished translations are kept. Repeat the command to continue.")
        sys.exit(128 + stop.received[0])
    assert lesson
    session.say(_summary(lesson))
    return lesson, True


def _require_place(out: Path, flags: DistillFlags) -> None:
    """Refuse a run folder that is used otherwise, or has no room, or would overwrite a text.

    Raises:
        RunError: says which.
        UsageError: names the text.
    """
    from heed.compress.distill import OWN_FILES, require_own
    from heed.train.recipe.folder import OWN_PATHS, TEACHER, require_outside, require_room

    require_own(out)
    require_room(out)
    lesson_files = (f"{TEACHER}/{name}" for name in OWN_FILES)
    require_outside(out, [*flags.src, *flags.dev], (*OWN_PATHS, *lesson_files))


def _choices(flags: DistillFlags, beside: list[Path]) -> dict[str, Any]:
    """The options that determine the translations; a folder keeps them."""
    from heed.train.start.finetune import model_hash

    found = {"beam size": flags.beam_size, "target language": flags.target_lang}
    return found | {
        f"teacher {n}": model_hash(str(path))[:12] for n, path in enumerate(beside, start=2)
    }


def _summary(lesson: "Lesson") -> str:
    real = f", {lesson.n_real:,} keep the corpus's own" if lesson.n_real else ""
    done = f"{lesson.n_translated:,} sentences in {lesson.seconds:.0f} s"
    return f"The teacher translated {done}{real}."


class _Progress:
    """Show the progress of translating on one live line; without a terminal, every ten seconds."""

    def __init__(self, session: Session) -> None:
        from heed.cli.progress import Display

        self.display = None if session.is_quiet else Display("chrf")

    def __call__(self, event: dict[str, Any]) -> None:
        from heed.train.step.events import duration

        left = event["left_s"]
        most = "" if math.isinf(left) else f", {duration(max(0.0, left))} left at most"
        self._show(event["done"], event["of"], f"sentences{most}")

    def begin(self) -> None:
        """Show that the first portion is being translated."""
        self._show(0, None, "")

    def _show(self, done: int, of: int | None, unit: str) -> None:
        from heed.data.progress import phase

        if self.display:
            phase(self.display, "the teacher translates", done=done, of=of, unit=unit)

    def say(self, message: str) -> None:
        """Print a line, above the live one."""
        if self.display:
            self.display.line(message)

    def close(self) -> None:
        if self.display:
            self.display.close()


def _compare(lesson: "Lesson", out: Path, flags: DistillFlags) -> None:
    """Round the student to int8 and print its scores and speed beside the teacher's."""
    from heed.compress.distill import measure, read_dev, round_off
    from heed.disk.files import lock
    from heed.disk.portions import Portions
    from heed.train.run.calibrate import open_quickly

    try:
        with lock(out):
            Portions(lesson.folder).remove()  # left by a kill
            round_off(out)
    except ConfigError as error:
        echo(f"The student keeps its float32 weights: {error}", err=True)
    if not lesson.dev:
        return
    student, dtype = open_quickly(out, flags.threads, device=flags.device, memory=False)
    scores = {**measure(student, read_dev(lesson)), "dtype": dtype}
    found = {"teacher": lesson.scores, "student": scores}
    echo("development lines, greedily    chrF2    BLEU   words/s")
    for name, scores in found.items():
        chrf, bleu, speed = (scores[key] for key in ("chrf", "bleu", "words_per_s"))
        kind = ", int8" if scores.get("dtype") == "int8" else ""  # an older heed kept no type
        echo(f"{name + kind:>27}    {chrf:5.2f}   {bleu:5.2f}  {speed:8,.0f}")
    old, new = found.values()
    echo(
        f"The student keeps {new['chrf'] / max(old['chrf'], 1e-9):.1%} of the teacher's chrF2, "
        f"{new['words_per_s'] / old['words_per_s']:.1f} times as fast."
    )
