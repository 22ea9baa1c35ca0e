"""A student's training data: its teacher's translations, made once and kept in the run folder.

`teacher/` in the run folder first gets `made-from.json`, then a file for each portion translated,
so that nothing is translated twice. The pairs follow at the end, and `lesson.json` last.
`train/run/run.py` trains on them. Source: Kim and Rush 2016, "Sequence-Level Knowledge
Distillation".
"""

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Any

from heed.bundle.bundle import load_bundle
from heed.bundle.find import INT8
from heed.config import read_toml
from heed.data.clean import CleanReport, clean
from heed.data.corpus import Corpus, DataConfig
from heed.data.fingerprint import file_facts, require_same
from heed.data.lines import read_lines
from heed.data.prepared import DATA, REPORT_FILE, TRAIN_FILE, Prepared, open_prepared
from heed.data.readers import Pair, read_parallel
from heed.data.split import shared_with
from heed.data.vocabularies import VOCAB_FILES, write_vocabs
from heed.data.written import write_parallel, written_parallel
from heed.disk.files import parse_json, read_bytes, to_json, write_atomically
from heed.disk.folders import read_manifest, remove_temporaries
from heed.disk.portions import PORTIONS, Portions
from heed.engine.packed import save_rounded
from heed.errors import ConfigError, DataError
from heed.evaluate.counts import count_bleu, count_chrf, reading_here
from heed.machine.seeds import derived_random
from heed.text.extend import kind_of
from heed.train.recipe.files import RECIPE_FILE
from heed.train.recipe.folder import MADE_FROM, TEACHER, require_unused
from heed.train.start.finetune import model_hash
from heed.train.step.events import Report
from heed.translate.translator import Translator

SCORES = "scores.json"
LESSON = "lesson.json"
OWN_FILES = (*VOCAB_FILES, MADE_FROM, SCORES, LESSON, PORTIONS, "train.*", "dev.*")
"""All files in the folder of a lesson; `*` stands for any characters."""

TIME_SHARE = 0.4
"""Largest share of the time limit that translating may take."""

PORTION = 512
"""Sentences translated and saved together; a pause waits for at most one portion."""

DEV_LINES = 500
"""Development sentences on which teacher and student are compared."""

ROUNDING_S = 1.0
"""Seconds reserved at the end for rounding the student to int8."""

INHERITED = ("max_chars", "max_ratio", "keep_copies", "keep_duplicates", "max_length")
"""Settings of the teacher's corpus that are also used for the student's."""


@dataclass(frozen=True, kw_only=True)
class Sources:
    """The sentences for the teacher to translate.

    Attributes:
        pairs: returns a new iterator at each call, always in the same order; the target of a pair
            without a known translation is empty.
        dev: development pairs; none = some of `pairs` are held out.
        n_pairs: number of pairs; None = unknown.
    """

    pairs: Callable[[], Iterator[Pair]]
    dev: list[Pair]
    n_pairs: int | None = None


@dataclass(frozen=True, kw_only=True)
class Lesson:
    """The teacher's translations: all that a student's training needs, without the teacher.

    Attributes:
        folder: holds the files and vocabularies.
        seconds: time spent translating, over all runs of the command.
        n_translated: number of pairs with the teacher's translation.
        n_real: number of pairs that the teacher did not reach, with the corpus's own translation.
        train: source and target language of each pair of training files.
        dev: source and target language of each pair of development files.
        tokenizer: kind of the vocabularies, and whether both sides share one.
        scores: the teacher's scores from `measure` and the `dtype` in which it computed; empty
            without development pairs.
        directions: those of the student, if the teacher stores its directions; else empty.
    """

    folder: Path
    seconds: float
    n_translated: int
    n_real: int
    train: list[list[str]]
    dev: list[list[str]]
    tokenizer: dict[str, Any]
    scores: dict[str, Any]
    directions: list[list[str]] = field(default_factory=list)

    @property
    def corpus(self) -> Corpus:
        """The pairs, in the form that training reads."""
        train = written_parallel(self.folder, "train", self.train)
        directions = tuple((source, target) for source, target in self.directions)
        dev = written_parallel(self.folder, "dev", self.dev)
        return Corpus(train=train, dev=dev, directions=directions)


def training_seconds(
    time_s: float | None, spent_s: float, scores: Mapping[str, Any]
) -> float | None:
    """The time left for the student after the teacher has translated.

    Args:
        time_s: limit for both; None = no limit.
        spent_s: time spent on translating.
        scores: the teacher's; measuring the student at the end takes at most as long.

    Raises:
        ConfigError: no time is left.
    """
    if time_s is None:
        return None
    left_s: float = time_s - spent_s - scores.get("seconds", 0.0) - ROUNDING_S
    if left_s < 1 and not spent_s:
        raise ConfigError(f"--time of {time_s:.0f}s is too short for a student. Give more.")
    if left_s < 1:
        raise ConfigError(
            f"--time of {time_s:.0f}s is too short: the teacher took {spent_s:.0f}s of it. Give "
            "more time and repeat the command; finished translations are kept."
        )
    return left_s


def made_from(
    teacher: Path, files: Sequence[str], dev: Sequence[str], **choices: Any
) -> dict[str, str]:
    """The facts that determine a lesson, for comparison with those of an earlier run.

    Args:
        teacher: model or run folder.
        files: text to translate instead of the teacher's own corpus.
        dev: development files, source and target in turn.
        **choices: other options that determine it.

    Raises:
        ConfigError: neither text nor a corpus is given.
    """
    if not files and not _is_run(teacher):
        raise ConfigError(
            f"{teacher} is a model without its training text: name text to translate, "
            "with --src FILE."
        )
    texts = files or [str(teacher / DATA / TRAIN_FILE)]
    return {
        "teacher": model_hash(str(teacher))[:12],
        **{f"text {number}": file_facts(name) for number, name in enumerate(texts, start=1)},
        **{f"dev file {number}": file_facts(name) for number, name in enumerate(dev, start=1)},
        **{key: str(value) for key, value in choices.items()},
    }


def require_own(out: Path) -> None:
    """Refuse a folder that holds something other than a `heed distill` run.

    Raises:
        RunError: names what is in it.
    """
    if not (out / TEACHER / MADE_FROM).exists():
        require_unused(out, "one of a heed distill to continue")


def recall(out: Path, wanted: dict[str, str]) -> Lesson | None:
    """Load the lesson of a run folder; None if it is not complete.

    Raises:
        RunError: the folder was started with other facts.
    """
    folder = out / TEACHER
    path = folder / MADE_FROM
    if path.exists():
        require_same(parse_json(read_bytes(path), path), wanted, out)
    if not (folder / LESSON).exists():
        return None
    return Lesson(folder=folder, **parse_json(read_bytes(folder / LESSON), folder / LESSON))


def begin(out: Path, wanted: Mapping[str, str]) -> None:
    """Save the facts that determine the lesson of a run folder, for `recall`."""
    write_atomically(out / TEACHER / MADE_FROM, to_json(wanted))


def inherited_settings(teacher: Path) -> dict[str, Any]:
    """The cleaning of the teacher's corpus, as settings of `[data]`."""
    path = teacher / RECIPE_FILE
    found = read_toml(path).get("data", {}) if path.exists() else {}
    return {key: found[key] for key in INHERITED if key in found}


def find_sources(
    teacher: Path,
    translator: Translator,
    files: Sequence[str],
    dev_files: Sequence[str],
    target_lang: str | None,
    config: DataConfig,
) -> Sources:
    """The text to translate: the given files, or else the teacher's training text.

    Args:
        teacher: model or run folder.
        translator: the teacher.
        files: text files with one sentence a line.
        dev_files: source and target in turn; none = those of the teacher's run.
        target_lang: the only target language; None = every one that the teacher has.
        config: settings for cleaning the lines of the files.

    Raises:
        ConfigError: the teacher does not translate into `target_lang`, or needs one.
        DataError: there is nothing to translate.
    """
    languages = translator.reader.target_langs
    translator.reader.tag(target_lang)
    target = target_lang or ("" if languages else translator.target_lang)
    if (files or dev_files) and not target and languages:
        raise ConfigError(
            f"{teacher} translates into {', '.join(languages)}: say which with --target-lang."
        )
    source = translator.reader.source_into(target)
    run = open_prepared(Corpus(train=()), teacher / DATA) if _is_run(teacher) else None
    into = Pair("", "", source_lang=source, target_lang=target)
    wanted = (target,) if target else languages
    named = [pair for pair in run.dev if not wanted or pair.target_lang in wanted] if run else []
    dev = _of_one_language(run.dev, into) if run and target and not languages else named
    if dev_files:
        given = (read_parallel(*two) for two in zip(dev_files[::2], dev_files[1::2], strict=True))
        dev = named = [
            replace(pair, source_lang=source, target_lang=target)
            for pair in chain.from_iterable(given)
        ]
    if files:
        # Not `dev`: a lesson that an older heed began must go on with the same lines. Preparing
        # the student's corpus leaves out all that are in `dev`.
        found = Sources(pairs=lambda: _lines(files, into, named, config), dev=dev)
    else:
        assert run
        is_all = not target or not languages
        found = Sources(
            pairs=lambda: _learned(run, translator, target),
            dev=dev,
            n_pairs=run.n_real if is_all else None,
        )
    if next(found.pairs(), None) is None:
        raise DataError(
            f"There is no text to translate in {' and '.join(files) or teacher}: its lines are "
            "empty, too long, or sentences of the development set."
        )
    return found


def teach(
    translator: Translator,
    sources: Sources,
    out: Path,
    *,
    time_s: float | None,
    started_at: float,
    beam_size: int = 1,
    dtype: str = "auto",
    should_stop: Callable[[], bool] = lambda: False,
    report: Report = lambda event: None,
    clock: Callable[[], float] = time.monotonic,
) -> Lesson | None:
    """Translate until the time is up, continuing earlier work, then write the training pairs.

    Args:
        translator: the teacher.
        sources: the sentences to translate.
        out: the run folder.
        time_s: limit for all of distillation. Translating takes at most `TIME_SHARE` of it, over
            all runs, but at least one portion is always translated. None = no limit.
        started_at: the start of this call, by `clock`.
        beam_size: beam of the teacher's search.
        dtype: the type in which the teacher computes, kept with its scores.
        should_stop: called before each portion.
        report: receives a `translated` event for each portion.
        clock: a monotonic clock in seconds.

    Returns:
        The lesson, or None if it was stopped before the end; the same call then continues.

    Raises:
        ConfigError: no time is left for the student.
        DataError: every translation is empty.
    """
    folder = out / TEACHER
    remove_temporaries(folder, OWN_FILES)
    portions = Portions(folder)
    before_s = portions.seconds
    scores = _scores(translator, sources.dev, folder, dtype)
    limit_s = math.inf if time_s is None else TIME_SHARE * time_s
    left, cost_s = islice(sources.pairs(), portions.n_done, None), 0.0
    while pairs := list(islice(left, PORTION)):
        begun_s = before_s + clock() - started_at
        if portions.n_done and begun_s + cost_s > limit_s:
            break
        if should_stop():
            return None
        found = _translated(translator, pairs, beam_size)
        spent_s = before_s + clock() - started_at
        cost_s = spent_s - begun_s
        portions.add(found, spent_s)
        numbers = {"seconds": spent_s, "left_s": limit_s - spent_s}
        report({"kind": "translated", "done": portions.n_done, "of": sources.n_pairs, **numbers})
    training_seconds(time_s, before_s + clock() - started_at, scores)  # raises if none is left
    facts: dict[str, Any] = {"scores": scores, **_write(translator, sources, portions)}
    facts["seconds"] = before_s + clock() - started_at
    write_atomically(folder / LESSON, to_json(facts))
    portions.remove()
    return Lesson(folder=folder, **facts)


def _translated(translator: Translator, pairs: Sequence[Pair], beam_size: int) -> list[str]:
    lines = [translator.reader.line(pair.src, pair.target_lang) for pair in pairs]
    found = translator.translate_stream(lines, processes=None, beam_size=beam_size)
    return [one.text for one in found]


def measure(translator: Translator, dev: Sequence[Pair]) -> dict[str, float]:
    """BLEU and chrF of greedy translations, source words per second, and the seconds it took."""
    pairs = dev[:: -(-len(dev) // DEV_LINES)]
    started_at = time.monotonic()
    found = _translated(translator, pairs, beam_size=1)
    seconds = time.monotonic() - started_at
    reading = reading_here(*(pair.target_lang for pair in pairs))
    references = [[pair.tgt for pair in pairs]]
    return {
        "bleu": count_bleu(found, references, reading).of(),
        "chrf": count_chrf(found, references, reading).of(),
        "words_per_s": sum(len(pair.src.split()) for pair in pairs) / max(seconds, 1e-9),
        "seconds": seconds,
    }


def round_off(out: Path) -> None:
    """Write int8 weights beside a finished student's own, unless they are there."""
    if INT8 in read_manifest(out).files:
        return
    save_rounded(load_bundle(out))


def read_dev(lesson: Lesson) -> list[Pair]:
    """The development pairs of a lesson."""
    found = []
    for part in lesson.corpus.dev:
        languages = {"source_lang": part.source_lang, "target_lang": part.target_lang}
        found += list(read_parallel(*part.files, **languages))
    return found


def _is_run(teacher: Path) -> bool:
    return (teacher / DATA / REPORT_FILE).exists()


def _of_one_language(dev: Iterable[Pair], into: Pair) -> list[Pair]:
    """The pairs with the languages of `into`, or with none, which get these."""
    source, target = into.source_lang, into.target_lang
    return [
        pair if pair.target_lang else replace(pair, source_lang=source, target_lang=target)
        for pair in dev
        if pair.target_lang in ("", target)
    ]


def _learned(run: Prepared, translator: Translator, target_lang: str) -> Iterator[Pair]:
    """The teacher's real training pairs, shuffled, because there may not be time for all."""
    vocab, store = run.src_vocab, run.train
    by_tag = {vocab.language_id(language): language for language in run.target_langs}
    sources = {pair.target_lang: pair.source_lang for pair in run.dev}
    reader, random = translator.reader, derived_random(0, "distill")
    for number in map(int, random.permutation(run.n_real)):
        ids, into = store.src(number).tolist(), translator.target_lang
        if by_tag:
            into, ids = by_tag[ids[0]], ids[1:]
        if target_lang in ("", into):
            source = sources.get(into, translator.source_lang)
            yield Pair(
                vocab.decode(ids),
                run.tgt_vocab.decode(store.tgt(number).tolist()),
                source_lang=reader.source_into(into) if reader.directions else source,
                target_lang=into,
            )


def _lines(
    files: Sequence[str], into: Pair, dev: Iterable[Pair], config: DataConfig
) -> Iterator[Pair]:
    """The lines of the files that pass the cleaning."""
    lines = (
        replace(into, src=line, tgt=line, line=number, origin=name)
        for name in files
        for number, line in enumerate(read_lines(name), start=1)
    )
    # A sentence without a translation is read as a copy of itself, which is right here.
    config = replace(config, keep_copies=True)
    for pair in clean(lines, config, CleanReport(), extra_rules=[shared_with(dev, "dev")]):
        yield replace(pair, tgt="")


def _scores(translator: Translator, dev: list[Pair], folder: Path, dtype: str) -> dict[str, Any]:
    """The teacher's scores, measured once and then read from a file."""
    path = folder / SCORES
    # An older heed may have left out all of these pairs, and measured nothing.
    if not path.exists() or (dev and not parse_json(read_bytes(path), path)):
        found = {**measure(translator, dev), "dtype": dtype} if dev else {}
        write_atomically(path, to_json(found))
    return parse_json(read_bytes(path), path)


def _write(translator: Translator, sources: Sources, portions: Portions) -> dict[str, Any]:
    """Write vocabularies and pairs; returns the fields of `Lesson` that describe them.

    Raises:
        DataError: every translation is empty.
    """
    vocabs, folder = (translator.src_vocab, translator.tgt_vocab), portions.folder
    write_vocabs(folder, vocabs)
    counts = {"n_translated": 0, "n_real": 0}

    def taught() -> Iterator[Pair]:
        texts = portions.results()
        for pair in sources.pairs():
            text = next(texts, None)
            # An empty translation counts as not translated.
            if text or pair.tgt:
                counts["n_translated" if text else "n_real"] += 1
                yield replace(pair, tgt=text or pair.tgt)
            elif text is None:
                return

    train = write_parallel(folder, "train", taught())
    if not train:
        raise DataError(
            "The teacher translates every sentence to nothing, so there is nothing to learn from. "
            "Train it longer."
        )
    targets = {target for _, target in train}
    known = translator.reader.directions
    return {
        "train": train,
        "directions": [[source, target] for source, target in known if target in targets],
        "dev": write_parallel(folder, "dev", sources.dev),
        "tokenizer": {"kind": kind_of(vocabs[0]), "joint": vocabs[0] is vocabs[1]},
        **counts,
    }
