"""What a student learns from: the teacher's words, kept, in time, and nothing else by accident."""

import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from heed.compress import distill
from heed.compress.distill import (
    LESSON,
    Lesson,
    Sources,
    begin,
    find_sources,
    inherited_settings,
    made_from,
    read_dev,
    recall,
    require_own,
    teach,
    training_seconds,
)
from heed.data.corpus import Corpus, DataConfig
from heed.data.prepared import open_prepared
from heed.data.readers import Pair, ParallelFiles
from heed.disk import portions
from heed.disk.files import write_atomically
from heed.errors import ConfigError, DataError, RunError
from heed.train.recipe.asked import Asked
from heed.train.recipe.folder import TEACHER
from heed.train.run.run import run_training
from heed.translate.translator import Translator, load

DATA: dict[str, Any] = {"max_ratio": 1e6, "keep_copies": True}
TRAINING = {
    "max_steps": 20,
    "batch_tokens": 128,
    "validate_every": 20,
    "validation_sentences": 2,
    "learning_rate": 0.02,
    "warmup_steps": 2,
}
"""Enough for a teacher to say words, if wrong ones."""

MakeTeacher = Callable[..., Path]


@pytest.fixture(scope="module")
def settings(small: dict[str, Any]) -> dict[str, Any]:
    return {**small, "data": DATA, "decoding": {"min_length": 2}, "training": TRAINING}


@pytest.fixture(scope="module")
def make_teacher(write_corpus: Callable[[Path], Corpus], settings: dict[str, Any]) -> MakeTeacher:
    """`make_teacher(folder, **data)`: a run there, with these settings of `[data]`."""

    def make(folder: Path, **data: Any) -> Path:
        tokenizer = {**settings["tokenizer"], "vocab_size": 360}
        asked = {**settings, "data": {**DATA, **data}, "tokenizer": tokenizer}
        run_training(Asked(asked), write_corpus(folder), folder / "run", report=lambda event: None)
        return folder / "run"

    return make


@pytest.fixture(scope="module")
def teacher(make_teacher: MakeTeacher, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_teacher(tmp_path_factory.mktemp("teacher"))


class Counting:
    """A translator that remembers what it was given, and whose work takes time on a clock."""

    def __init__(self, translator: Translator, seconds: float = 0.0) -> None:
        self.translator = translator
        self.lines: list[str] = []
        self.now, self.seconds = 0.0, seconds

    def __getattr__(self, name: str) -> Any:
        return getattr(self.translator, name)

    def translate_stream(self, lines: list[Any], **options: Any) -> Any:
        self.lines += [line.text for line in lines]
        self.now += self.seconds
        return self.translator.translate_stream(lines, **options)


@pytest.fixture
def translator(teacher: Path) -> Counting:
    return Counting(load(teacher, device="cpu", threads=1))


def sources_of(teacher: Path, translator: Any, *files: str, dev: bool = True) -> Sources:
    found = find_sources(teacher, translator, files, (), None, DataConfig(**DATA))
    return found if dev else Sources(pairs=found.pairs, dev=[], n_pairs=found.n_pairs)


def lessons(lesson: Lesson) -> Iterator[tuple[str, str]]:
    for part in lesson.corpus.train:
        sides = [Path(name).read_text(encoding="utf-8").splitlines() for name in part.files]
        yield from zip(*sides, strict=True)


def learn(
    teacher: Path, translator: Any, out: Path, *, time_s: float | None = None, **options: Any
) -> Lesson | None:
    begin(out, made_from(teacher, (), ()))
    sources = sources_of(teacher, translator, dev=False)
    return teach(translator, sources, out, time_s=time_s, started_at=0.0, **options)


def test_the_pairs_are_the_sources_of_the_run_and_what_the_teacher_makes_of_them(
    teacher: Path, translator: Counting, tmp_path: Path
) -> None:
    lesson = learn(teacher, translator, tmp_path)
    assert lesson
    run = open_prepared(Corpus(train=()), teacher / "data")
    known = {run.src_vocab.decode(run.train.src(i).tolist()) for i in range(len(run.train))}
    pairs = list(lessons(lesson))
    assert len(pairs) == lesson.n_translated == len(run.train)
    assert {src for src, _ in pairs} == known
    said = translator.translator([src for src, _ in pairs], beam_size=1)
    assert [tgt for _, tgt in pairs] == said
    assert all(said)
    assert recall(tmp_path, made_from(teacher, (), ())) == lesson


def test_a_student_learns_these_pairs_with_the_pieces_of_its_teacher(
    teacher: Path, translator: Counting, settings: dict[str, Any], tmp_path: Path
) -> None:
    out = tmp_path / "student"
    begin(out, made_from(teacher, (), ()))
    sources = sources_of(teacher, translator)
    lesson = teach(translator, sources, out, time_s=None, started_at=0.0)
    assert lesson
    assert read_dev(lesson)[0].tgt == sources.dev[0].tgt
    assert lesson.scores["words_per_s"] > 0
    tokenizer = {"vocab_from": str(lesson.folder), **lesson.tokenizer}
    asked = {**settings, "data": inherited_settings(teacher), "tokenizer": tokenizer}
    assert asked["data"]["keep_copies"]
    outcome = run_training(Asked(asked), lesson.corpus, out, report=lambda event: None)
    assert outcome.is_finished
    student, data = load(out), open_prepared(lesson.corpus, out / "data")
    assert student.src_vocab.hash == translator.src_vocab.hash
    assert (student.source_lang, student.target_lang) == ("de", "xx")
    assert [pair.tgt for pair in data.dev] == [pair.tgt for pair in sources.dev]
    taught = set(lessons(lesson))
    decode = data.src_vocab.decode
    for number in range(len(data.train)):
        pair = decode(data.train.src(number).tolist()), decode(data.train.tgt(number).tolist())
        assert pair in taught
    distill.round_off(out)
    assert (out / "model.int8.safetensors").exists()
    distill.round_off(out)  # again, it is there
    assert distill.measure(load(out, device="cpu"), sources.dev)["chrf"] >= 0


def test_a_teacher_is_measured_where_the_tokenizer_of_its_language_is_missing(
    teacher: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Distilling must not stop because of it, as training does not."""
    monkeypatch.setitem(sys.modules, "MeCab", None)
    monkeypatch.delitem(sys.modules, "sacrebleu.tokenizers.tokenizer_ja_mecab", raising=False)
    pairs = [Pair("hund", "犬", target_lang="ja")]
    assert distill.measure(load(teacher, device="cpu"), pairs)["bleu"] >= 0


def test_stopped_and_begun_again_nothing_is_translated_twice(
    teacher: Path, translator: Counting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distill, "PORTION", 9)
    whole = learn(teacher, translator, tmp_path / "whole")
    assert whole
    once, translator.lines = translator.lines, []
    out, calls = tmp_path / "parts", 0

    def end(path: Path, data: bytes) -> None:
        nonlocal calls
        calls += path.name.startswith("portion")
        if calls == 3:
            raise KeyboardInterrupt
        write_atomically(path, data)

    assert learn(teacher, translator, out, should_stop=lambda: len(translator.lines) > 20) is None
    assert translator.lines == once[:27]
    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(portions, "write_atomically", end)
        learn(teacher, translator, out)
    del translator.lines[-9:]  # what was not kept
    parts = learn(teacher, translator, out)
    assert translator.lines == once
    assert parts
    assert list(lessons(parts)) == list(lessons(whole))
    assert not list((out / TEACHER).glob("portion-*"))


@pytest.mark.slow
@pytest.mark.reliability
def test_a_kill_at_every_third_write_loses_no_portion(
    teacher: Path,
    translator: Counting,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fork: Callable[..., int],
    was_killed: Callable[[int], bool],
) -> None:
    monkeypatch.setattr(distill, "PORTION", 20)
    whole = learn(teacher, translator, tmp_path / "whole")
    assert whole

    def read_anew() -> Translator:
        return load(teacher, device="cpu", threads=1)

    fault, is_killed = 1, True
    while is_killed:
        out = tmp_path / f"killed-{fault}"
        is_killed = was_killed(fork(lambda out=out: learn(teacher, read_anew(), out), fault))
        require_own(out)
        lesson = learn(teacher, translator, out)
        assert lesson
        assert list(lessons(lesson)) == list(lessons(whole)), f"killed at point {fault}"
        fault += 3
    assert fault > 40


def test_translating_keeps_its_share_of_the_time_over_all_sittings(
    teacher: Path, translator: Counting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distill, "PORTION", 4)
    translator.seconds = 10.0
    run: dict[str, Any] = {"time_s": 130.0, "clock": lambda: translator.now}
    assert learn(teacher, translator, tmp_path, **run, should_stop=lambda: translator.now > 25) is (
        None
    )
    translator.now = 5.0  # another sitting: its clock begins anew, at 0; 30 s are spent
    events: list[Any] = []
    lesson = learn(teacher, translator, tmp_path, **run, report=events.append)
    assert lesson
    # A fifth portion would end at 55 s, past 52.
    assert lesson.n_translated == len(translator.lines) == 16
    assert lesson.seconds == 45
    assert [(event["kind"], event["left_s"]) for event in events] == [("translated", 7.0)]
    run_data = open_prepared(Corpus(train=()), teacher / "data")
    assert lesson.n_real == len(run_data.train) - 16
    for src, tgt in list(lessons(lesson))[16:]:
        assert tgt == " ".join(word[::-1] for word in src.split())


def test_too_little_time_is_refused_and_more_goes_on(
    teacher: Path, translator: Counting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distill, "PORTION", 30)
    translator.seconds = 10.0
    with pytest.raises(ConfigError, match="--time of 11s is too short: the teacher took 10s"):
        learn(teacher, translator, tmp_path, time_s=11.0, clock=lambda: translator.now)
    assert not (tmp_path / TEACHER / LESSON).exists()
    translator.now = 0.0
    lesson = learn(teacher, translator, tmp_path, time_s=99.0, clock=lambda: translator.now)
    assert lesson
    assert lesson.n_translated == len(translator.lines) > 30
    assert training_seconds(99.0, lesson.seconds, {"seconds": 3.0}) == pytest.approx(
        99 - lesson.seconds - 3 - 1
    )


def test_text_without_translations_teaches_as_far_as_there_is_time(
    teacher: Path, translator: Counting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distill, "PORTION", 3)
    dev = open_prepared(Corpus(train=()), teacher / "data").dev
    words = ["ein", "zwei", "drei", "vier", "rot", "blau", "hund", "haus", "baum", "maus"]
    lines = [dev[0].src, "hund ein", "hund ein", "", *(f"haus {word} {word}" for word in words)]
    text = tmp_path / "more.de"
    text.write_text("\n".join(lines), encoding="utf-8")
    sources = sources_of(teacher, translator, str(text))
    assert [pair.src for pair in sources.pairs()] == ["hund ein", *lines[4:]]
    assert sources.dev == dev
    translator.seconds, wanted = 10.0, made_from(teacher, [str(text)], ())
    begin(tmp_path, wanted)
    sources = sources_of(teacher, translator, str(text), dev=False)
    clock: dict[str, Any] = {"clock": lambda: translator.now}
    lesson = teach(translator, sources, tmp_path, time_s=60.0, started_at=0.0, **clock)
    assert lesson
    assert (lesson.n_translated, lesson.n_real) == (6, 0)
    assert [src for src, _ in lessons(lesson)] == ["hund ein", *lines[4:9]]
    with pytest.raises(RunError, match=r"text 1 was .*more\.de.*, but is .*train\.bin"):
        recall(tmp_path, made_from(teacher, (), ()))
    text.write_text("\n\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"There is no text to translate in .*more\.de"):
        sources_of(teacher, translator, str(text))


def test_a_teacher_that_says_nothing_is_refused(
    teacher: Path, translator: Counting, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(distill, "_translated", lambda _, pairs, beam_size: [""] * len(pairs))
    text = tmp_path / "more.de"
    text.write_text("hund ein\nhaus rot\n", encoding="utf-8")
    begin(tmp_path / "out", made_from(teacher, [str(text)], ()))
    sources = sources_of(teacher, translator, str(text), dev=False)
    with pytest.raises(DataError, match="translates every sentence to nothing"):
        teach(translator, sources, tmp_path / "out", time_s=None, started_at=0.0)


def test_a_model_without_its_corpus_needs_text(teacher: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="without its training text.* with --src FILE"):
        made_from(teacher / "checkpoints" / "best", (), ())
    assert made_from(teacher / "checkpoints" / "best", [str(teacher / "recipe.toml")], ())


def test_a_folder_that_holds_something_else_is_left_alone(teacher: Path, tmp_path: Path) -> None:
    require_own(tmp_path / "new")
    require_own(tmp_path)
    with pytest.raises(RunError, match="must be a new folder or one of a heed distill"):
        require_own(teacher)
    wanted = made_from(teacher, (), ())
    begin(tmp_path, wanted)
    require_own(tmp_path)
    with pytest.raises(RunError, match="teacher was .*, but is abc"):
        recall(tmp_path, {**wanted, "teacher": "abc"})


def test_a_teacher_of_both_directions_teaches_both_or_one(
    make_teacher: MakeTeacher, settings: dict[str, Any], tmp_path: Path
) -> None:
    teacher = make_teacher(tmp_path, both_directions=True)
    translator = load(teacher, device="cpu", threads=1)
    config, out = DataConfig(**DATA), tmp_path / "student"
    begin(out, made_from(teacher, (), ()))
    both = find_sources(teacher, translator, (), (), None, config)
    lesson = teach(translator, both, out, time_s=None, started_at=0.0)
    assert lesson
    assert sorted(lesson.train) == sorted(lesson.dev) == [["de", "xx"], ["xx", "de"]]
    for part in lesson.corpus.train:
        src, tgt = (Path(name).read_text(encoding="utf-8").splitlines() for name in part.files)
        assert tgt == translator(src, target_lang=part.target_lang, beam_size=1)
    tokenizer = {"vocab_from": str(lesson.folder), **lesson.tokenizer}
    asked = {**settings, "data": inherited_settings(teacher), "tokenizer": tokenizer}
    run_training(Asked(asked), lesson.corpus, out, report=lambda event: None)
    assert isinstance(load(out)("ein hund", target_lang="xx"), str)
    one = find_sources(teacher, translator, (), (), "de", config)
    assert {(pair.source_lang, pair.target_lang) for pair in one.pairs()} == {("xx", "de")}
    assert {pair.target_lang for pair in one.dev} == {"de"}
    run = open_prepared(Corpus(train=()), teacher / "data")
    odd = [*run.dev, replace(run.dev[0], target_lang="")]  # an older heed allowed this
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(distill, "open_prepared", lambda *_: replace(run, dev=odd))
        assert find_sources(teacher, translator, (), (), None, config).dev == run.dev
    text = tmp_path / "small.de"
    with pytest.raises(ConfigError, match="translates into xx, de: say which with --target-lang"):
        find_sources(teacher, translator, [str(text)], (), None, config)
    with pytest.raises(ConfigError, match="translates into xx, de, not into fr"):
        find_sources(teacher, translator, [str(text)], (), "fr", config)
    found = find_sources(teacher, translator, [str(text)], (), "xx", config)
    assert next(found.pairs()).source_lang == "de"


def test_development_pairs_without_a_language_have_that_of_a_teacher_of_one(
    write_corpus: Callable[[Path], Corpus], settings: dict[str, Any], tmp_path: Path
) -> None:
    pairs = [("hund hund hund", "dnuh dnuh dnuh"), ("haus haus", "suah suah")]
    names = str(tmp_path / "dev.1"), str(tmp_path / "dev.2")
    for name, lines in zip(names, zip(*pairs, strict=True), strict=True):
        Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    corpus = replace(write_corpus(tmp_path), dev=(ParallelFiles(files=names),))
    run_training(Asked(settings), corpus, tmp_path / "run", report=lambda event: None)
    translator, out = load(tmp_path / "run", device="cpu", threads=1), tmp_path / "student"
    (tmp_path / "more.de").write_text("haus haus\nhund ein\n", encoding="utf-8")
    for files in ([], [str(tmp_path / "more.de")]):
        sources = sources_of(tmp_path / "run", translator, *files)
        assert [(pair.src, pair.tgt) for pair in sources.dev] == pairs
        assert {(pair.source_lang, pair.target_lang) for pair in sources.dev} == {("de", "xx")}
    # An older heed had none to measure.
    begin(out, {})
    write_atomically(out / TEACHER / distill.SCORES, b"{}")
    lesson = teach(translator, sources, out, time_s=None, started_at=0.0)
    assert lesson
    assert [pair.src for pair in read_dev(lesson)] == [src for src, _ in pairs]
    assert lesson.dev == [["de", "xx"]]
    assert lesson.scores["words_per_s"] > 0


def test_a_student_has_the_directions_of_its_teacher(
    write_corpus: Callable[[Path], Corpus], settings: dict[str, Any], tmp_path: Path
) -> None:
    """Also where two sources are translated into one target: no tag tells their pairs apart."""
    directions = (("de", "xx"), ("xx", "de"), ("yy", "de"))
    files = write_corpus(tmp_path).train[0].files
    corpus = Corpus(
        train=tuple(
            ParallelFiles(files=files, source_lang=source, target_lang=target)
            for source, target in directions
        )
    )
    # The corpora are of the same pairs, which else count as duplicates.
    data = {**DATA, "keep_duplicates": True}
    tokenizer = {**settings["tokenizer"], "vocab_size": 360}
    asked = {**settings, "data": data, "tokenizer": tokenizer}
    teacher, out, config = tmp_path / "run", tmp_path / "student", DataConfig(**DATA)
    run_training(Asked(asked), corpus, teacher, report=lambda event: None)
    translator = load(teacher, device="cpu", threads=1)
    begin(out, made_from(teacher, (), ()))
    sources = find_sources(teacher, translator, (), (), None, config)
    lesson = teach(translator, sources, out, time_s=None, started_at=0.0)
    assert lesson and sorted(lesson.train) == [["", "de"], ["de", "xx"]]
    tokenizer = {"vocab_from": str(lesson.folder), **lesson.tokenizer}
    asked = {**settings, "data": inherited_settings(teacher), "tokenizer": tokenizer}
    run_training(Asked(asked), lesson.corpus, out, report=lambda event: None)
    assert load(teacher).reader.directions == load(out).reader.directions == directions
    for target, source in (("xx", "de"), ("de", "")):
        found = find_sources(teacher, translator, [files[0]], (), target, config)
        assert next(found.pairs()).source_lang == source
