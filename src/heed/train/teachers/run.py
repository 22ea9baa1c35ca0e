"""A run with teachers: they are trained and translate the corpus, then its own model is trained.

A teacher of the run's direction gives each source another translation, one of the opposite
direction gives each translation another source. The run learns from these pairs and the real ones.
Source: Nguyen et al. 2020, "Data Diversification: A Simple Strategy for Neural Machine
Translation".

`teachers/` in the run folder holds the cleaned corpus (`data/`, and as text), the run folder of
each teacher, and its pairs; `spent.json` is the time that all this took.
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from heed.bundle.find import step_folders
from heed.data.clean import amount
from heed.data.corpus import Corpus, names_of, tagged_languages
from heed.data.lines import STDIN, require_file
from heed.data.prepared import DATA, Prepared
from heed.data.progress import phase
from heed.data.readers import Pair, ParallelFiles
from heed.data.vocabularies import require_tags, take_over_vocabs
from heed.data.written import write_parallel, written_parallel
from heed.disk.files import lock, parse_json, read_bytes, to_json, write_atomically
from heed.disk.folders import remove_temporaries
from heed.disk.portions import Portions
from heed.errors import ConfigError, RunError
from heed.machine.seeds import derived_random
from heed.machine.threads import is_one_of_several
from heed.train.recipe.asked import Asked
from heed.train.recipe.choose import time_limit
from heed.train.recipe.files import RECIPE_FILE
from heed.train.recipe.folder import (
    OWN_PATHS,
    SPENT,
    TEACHERS,
    require_folder,
    require_outside,
    require_run_folder,
)
from heed.train.recipe.recipe import Draft, draft, load_recipe
from heed.train.recipe.settings import require_same_asked
from heed.train.run.calibrate import load_quickly
from heed.train.run.run import Outcome, run_training
from heed.train.run.setup import has_learned
from heed.train.start.embeddings import require_way
from heed.train.start.finetune import open_parent
from heed.train.step.control import ControlFile, Requests
from heed.train.step.events import Event, Report, duration, exact_duration
from heed.train.tasks.table import TASKS
from heed.train.teachers.plan import Teacher, seconds_of_each, teacher_settings, teachers_of
from heed.translate.doubts.judge import is_doubtful

PORTION = 512
"""Sentences translated and saved together."""

LEAST_S = 60
"""Seconds of training without which a teacher has nothing to teach."""

SIDES = ("source", "target")
"""The names of unknown languages."""


def train_with_teachers(
    asked: Asked,
    corpus: Corpus,
    out: Path,
    *,
    report: Report,
    should_stop: Callable[[], bool] = lambda: False,
    before_step: Callable[[], None] = lambda: None,
    before_end: Callable[[], None] = lambda: None,
    at_end: Callable[[Path], object] = lambda out: None,
    started_at: float | None = None,
    given_s: float | None = None,
) -> Outcome:
    """Like `run_training`, after as many teachers as `data.teachers` says.

    The time limit is that of everything. An interrupted call continues like any other run.

    Raises:
        ConfigError: teachers are not possible with this corpus or task, a setting of the run itself
            is impossible, or no time is left.
        DataError, RunError: as `run_training`.
    """
    started_at = time.monotonic() if started_at is None else started_at
    before = draft(asked)
    train = partial(
        run_training,
        out=out,
        report=report,
        should_stop=should_stop,
        before_step=before_step,
        before_end=before_end,
        at_end=at_end,
    )
    if not before.data.teachers:
        _require_never_begun(out)
        return train(asked, corpus, started_at=started_at, given_s=given_s)
    _require_possible(before, corpus)
    if not has_learned(out):
        _require_time(asked, before.data.teachers)
    _require_possible_afterwards(before, asked, corpus, out)
    require_run_folder(out)
    require_outside(out, corpus.files, (*OWN_PATHS, f"{TEACHERS}/*"))
    with lock(out):
        _require_same(out, asked)
        stops = _or_requested(out, should_stop)
        folder = out / TEACHERS
        calls = before_step, before_end
        teachers = _Teachers(asked, before, corpus, folder, report, stops, *calls, started_at)
        paused = teachers.run()
    if paused:
        return paused
    settings, given_s = teachers.settings_after()
    if teachers.have_worked:
        report({"kind": "note", "text": "the model that learns from them"})
    begun_at = None if teachers.have_worked else started_at
    outcome = train(settings, teachers.corpus_after(), started_at=begun_at, given_s=given_s)
    if given_s is None or not outcome.limits:
        return outcome
    spent = f"after {duration(teachers.spent_s)} of its teachers"
    return replace(outcome, limits=f"{outcome.limits}, {spent}")


def _require_possible(before: Draft, corpus: Corpus) -> None:
    """Refuse other tasks, and corpora without exactly two languages.

    Raises:
        ConfigError: says why.
    """
    if before.task != "translate":
        raise ConfigError(f"data.teachers is for translation, but the task is {before.task}.")
    if is_one_of_several():
        raise ConfigError("data.teachers is for one process: start heed without torchrun.")
    if any(part.files == (STDIN,) for part in corpus.train):
        raise ConfigError(
            "data.teachers needs a corpus in files, because it is read more than once: save "
            "standard input to a file."
        )
    first, *others = corpus.train
    for part in others:
        if (part.source_lang, part.target_lang) != (first.source_lang, first.target_lang):
            raise ConfigError(
                "data.teachers needs a corpus of one source and one target language, but "
                f"{names_of([part])} is of other languages than {names_of([first])}."
            )


def _require_time(asked: Asked, count: int) -> None:
    """Refuse a time in which so many teachers learn nothing, and a run without any limit.

    Raises:
        ConfigError: names the least time.
    """
    time_s = time_limit(asked)
    if time_s is None and not asked.is_set("training.max_steps"):
        raise ConfigError(
            "data.teachers needs a limit of the run, of which each teacher gets a share: give "
            "--time or --max-steps."
        )
    if time_s is None:
        return
    least_s = round(LEAST_S / seconds_of_each(1.0, count)[0])
    if time_s < least_s:
        each_s = seconds_of_each(time_s, count)[0]
        raise ConfigError(
            f"--time of {exact_duration(time_s)} is too short for {amount(count, 'teacher')}, "
            f"which would have {each_s:.3g}s each. "
            f"Give at least {exact_duration(least_s)}, or leave them out."
        )


def _require_possible_afterwards(before: Draft, asked: Asked, corpus: Corpus, out: Path) -> None:
    """Refuse now what the run itself would refuse after its teachers have worked.

    Raises:
        ConfigError: a setting is impossible with this corpus or parent model.
        DataError: a file is missing.
        FormatError: a model or its vocabulary cannot be read.
    """
    for name in corpus.files:
        require_file(name)
    tokenizer, vocabs = before.tokenizer, None
    if before.parent:
        parent = open_parent(before.parent, asked, before.task)
        tokenizer, vocabs = parent.tokenizer(tokenizer), parent.vocabs
    elif not step_folders(out):
        require_way(before.first_embeddings)
    if tokenizer.vocab_from:
        vocabs = take_over_vocabs(tokenizer.vocab_from)
    languages = vocabs[0].languages if vocabs else ()
    tags = tagged_languages(corpus, before.data, tokenizer, languages)
    if vocabs and tokenizer.vocab_from:
        require_tags(vocabs[0], tags, tokenizer.vocab_from)


def _or_requested(out: Path, should_stop: Callable[[], bool]) -> Callable[[], bool]:
    """`should_stop`, or a request to stop that is left in the run folder from now on."""
    control = ControlFile(out)
    control.take()  # a request to an earlier start
    return Requests(should_stop, control.take).is_stop


def _require_never_begun(out: Path) -> None:
    """Refuse to leave out the teachers that a run began with.

    Raises:
        RunError: there are some.
    """
    # Once there is a recipe, `require_same_asked` refuses it.
    if (out / TEACHERS / SPENT).exists() and not (out / RECIPE_FILE).exists():
        raise RunError(
            f"{out} was started with data.teachers, but this command sets none. Use the same "
            "settings to continue, or another --out."
        )


def _require_same(out: Path, asked: Asked) -> None:
    """Refuse to continue with other settings, or without the teachers that a run began with.

    Raises:
        RunError: says which.
    """
    require_same_asked(out, asked)
    if (out / RECIPE_FILE).exists() and not (out / TEACHERS / SPENT).exists():
        raise RunError(
            f"{out / TEACHERS} is missing, which this run needs to continue. Restore it, or start "
            "a new run with another --out."
        )


class _Teachers:
    """Trains the teachers and lets them translate, each after the other.

    Args:
        asked: the settings of the run that learns from them.
        before: the same, checked.
        corpus: of that run.
        folder: for all files.
        report: gets every event.
        should_stop: called after each step of training and of a search; True saves and pauses.
        before_step: called before each step and portion.
        before_end: called after the last step of each teacher.
        started_at: `time.monotonic()` at the start of this call.

    Attributes:
        have_worked: something was trained or translated in this call.
    """

    def __init__(
        self,
        asked: Asked,
        before: Draft,
        corpus: Corpus,
        folder: Path,
        report: Report,
        should_stop: Callable[[], bool],
        before_step: Callable[[], None],
        before_end: Callable[[], None],
        started_at: float,
    ) -> None:
        self.asked, self.before, self.corpus, self.folder = asked, before, corpus, folder
        self.languages = corpus.train[0].source_lang, corpus.train[0].target_lang
        self.report, self.should_stop = report, should_stop
        self.before_step, self.before_end = before_step, before_end
        self.started_at = started_at
        self.time_s = time_limit(asked)
        self.have_worked = False
        self.teachers = teachers_of(before.data.teachers)
        path = folder / SPENT
        self.spent_s = self._spent_before_s = (
            parse_json(read_bytes(path), path)["seconds"] if path.exists() else 0.0
        )

    def settings_after(self) -> tuple[Asked, float | None]:
        """The settings of the run itself, with the time that is left, and the time given for all.

        Raises:
            ConfigError: no time is left.
        """
        out, time_s = self.folder.parent, self.time_s
        if (out / RECIPE_FILE).exists() and not self.asked.is_set("training.time_s"):
            stored_s = load_recipe(out / RECIPE_FILE).training.time_s  # which holds on
            return self.asked, None if stored_s is None else stored_s + self.spent_s
        if time_s is None:
            return self.asked, None
        left_s = time_s - self.spent_s
        if left_s < 1 and not has_learned(out):
            raise ConfigError(
                f"--time of {exact_duration(time_s)} is too short: the teachers took "
                f"{duration(self.spent_s)} of it. Give more time and repeat the command; their "
                "translations are kept."
            )
        # A run whose limit is lowered below what it has used ends at once.
        return self.asked.plus("training.time_s", max(1.0, left_s)), time_s

    def corpus_after(self) -> Corpus:
        """The corpus and the pairs that the teachers have made."""
        made = [part for teacher in self.teachers for part in self._files(teacher.role)]
        dev, test = self._files("dev"), self._files("test")
        given = {"dev": self.corpus.dev, "test": self.corpus.test}
        drawn = tuple(name for name, parts in given.items() if not parts)
        return replace(self.corpus, dev=dev, test=test, drawn=drawn, made=tuple(made))

    def run(self) -> Outcome | None:
        """Do all that is left to do; returns how a teacher was paused, or None at the end."""
        require_folder(self.folder)
        if not (self.folder / SPENT).exists():
            self._keep_time()
        remove_temporaries(self.folder, ("*",))
        data = self._prepare()
        for teacher in self.teachers:
            if self._files(teacher.role):
                self._portions(teacher).remove()  # left by a kill
                continue
            paused = self._teach(teacher, data)
            self._keep_time()
            if paused:
                return paused
        return None

    def _prepare(self) -> Prepared:
        """Clean and split the corpus, and write its sets as text, unless they are there."""
        config = replace(self.before.data, both_directions=False, teachers=0)
        reading = replace(self.before, data=config)
        data = TASKS["translate"].prepare(
            replace(self.corpus, mono=()), self.folder / DATA, reading, None, self.report
        )
        train = (_pair(data, number) for number in range(len(data.train)))
        for role, pairs in {"dev": data.dev, "test": data.test, "train": train}.items():
            if pairs is not None and not self._files(role):
                self._write(role, pairs)
        return data

    def _teach(self, teacher: Teacher, data: Prepared) -> Outcome | None:
        """Train a teacher and let it translate; returns its outcome if that was paused."""
        train, dev = (self._files(role) for role in ("train", "dev"))
        if not teacher.is_forward:
            train, dev = _opposite(train), _opposite(dev)
        time_s = self._limits()[0]
        most = f", {exact_duration(round(time_s))}" if time_s is not None else ""
        text = f"{self._named(teacher)}: {self._direction(teacher)}{most}"
        self.report({"kind": "note", "text": text})
        settings = teacher_settings(
            teacher,
            self.asked,
            seed=self.before.seed,
            time_s=time_s,
            max_steps=self.asked.get("training.max_steps"),
        )
        outcome = run_training(
            settings,
            Corpus(train=train, dev=dev),
            self.folder / teacher.folder,
            report=partial(self._report_of, teacher),
            should_stop=self.should_stop,
            before_step=self.before_step,
            before_end=self.before_end,
            started_at=None if self.have_worked else self.started_at,
        )
        self.have_worked = True
        if outcome.is_finished and self._translate(teacher, data):
            return None
        return replace(outcome, is_finished=False, teacher=self._named(teacher))

    def _report_of(self, teacher: Teacher, event: Event) -> None:
        """Report an event of a teacher's training; a checkpoint also keeps the time until then."""
        self.report({**event, "teacher": teacher.number})
        if event["kind"] == "checkpoint":
            self._keep_time()

    def _translate(self, teacher: Teacher, data: Prepared) -> bool:
        """Let a teacher translate the corpus, in random order; returns whether it is done."""
        portions = self._portions(teacher)
        limit_s, before_s, started_at = self._limits()[1], portions.seconds, time.monotonic()
        random = derived_random(self.before.seed, "teacher", teacher.number)
        numbers = random.permutation(len(data.train))
        translator = load_quickly(
            self.folder / teacher.folder,
            self.before.threads or None,
            device=self.before.device,
            memory=False,
        )
        name = f"{self._named(teacher)} translates"
        for start in range(portions.n_done, len(numbers), PORTION):
            if portions.n_done and portions.seconds >= limit_s:
                break
            if self.should_stop():
                return False
            self.before_step()
            phase(self.report, name, done=portions.n_done, of=len(numbers), unit="sentences")
            known = [_pair(data, number) for number in numbers[start : start + PORTION].tolist()]
            found = translator.translate(
                [pair.src if teacher.is_forward else pair.tgt for pair in known],
                is_wanted=lambda text: not self.should_stop(),
            )
            if self.should_stop():  # some are not translated
                return False
            texts = ["" if is_doubtful(each) else each.text for each in found]
            portions.add(texts, before_s + time.monotonic() - started_at)
            self._keep_time()
        self._write(teacher.role, _made(teacher, data, map(int, numbers), portions.results()))
        n_kept = sum(map(bool, portions.results()))
        portions.remove()
        n_done = f"{portions.n_done:,} of {amount(len(numbers), 'sentence')}"
        text = f"{self._named(teacher)} has translated {n_done}; {n_kept:,} are not doubtful"
        self.report({"kind": "note", "text": text})
        return True

    def _portions(self, teacher: Teacher) -> Portions:
        return Portions(self.folder / teacher.role)

    def _named(self, teacher: Teacher) -> str:
        return f"teacher {teacher.number} of {len(self.teachers)}"

    def _direction(self, teacher: Teacher) -> str:
        names = [lang or side for lang, side in zip(self.languages, SIDES, strict=True)]
        return " → ".join(names if teacher.is_forward else names[::-1])

    def _limits(self) -> tuple[float | None, float]:
        """The time for training a teacher, and for its translating; None, infinite = no limit."""
        if self.time_s is None:
            return None, math.inf
        return seconds_of_each(self.time_s, len(self.teachers))

    def _keep_time(self) -> None:
        self.spent_s = self._spent_before_s + time.monotonic() - self.started_at
        write_atomically(self.folder / SPENT, to_json({"seconds": self.spent_s}))

    def _files(self, role: str) -> tuple[ParallelFiles, ...]:
        """The files of a role, complete, or none."""
        parts = written_parallel(self.folder, role, [self.languages])
        return parts if all(Path(name).exists() for name in parts[0].files) else ()

    def _write(self, role: str, pairs: Iterable[Pair]) -> None:
        """Write pairs in the direction of the run; files even if there is none."""
        source, target = self.languages
        same = (replace(pair, source_lang=source, target_lang=target) for pair in pairs)
        if not write_parallel(self.folder, role, same):
            for name in written_parallel(self.folder, role, [self.languages])[0].files:
                write_atomically(name, b"")


def _pair(data: Prepared, number: int) -> Pair:
    """A training pair as text."""
    src, tgt = data.train.src(number).tolist(), data.train.tgt(number).tolist()
    return Pair(data.src_vocab.decode(src), data.tgt_vocab.decode(tgt))


def _made(
    teacher: Teacher, data: Prepared, numbers: Iterable[int], texts: Iterable[str]
) -> Iterator[Pair]:
    """The pairs with a translation that is not doubtful, in the direction of the run."""
    for number, text in zip(numbers, texts, strict=False):
        if text:
            pair = _pair(data, number)
            yield Pair(pair.src, text) if teacher.is_forward else Pair(text, pair.tgt)


def _opposite(parts: tuple[ParallelFiles, ...]) -> tuple[ParallelFiles, ...]:
    """The same files for the opposite direction."""
    return tuple(
        replace(
            part,
            files=part.files[::-1],
            source_lang=part.target_lang,
            target_lang=part.source_lang,
        )
        for part in parts
    )
