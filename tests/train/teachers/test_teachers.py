"""Teachers of a run: who they are, what is learned from them, and that no interruption shows."""

import hashlib
import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from heed.data.corpus import Corpus
from heed.data.mono import Mono
from heed.data.prepared import DATA, Prepared, open_prepared
from heed.data.readers import ParallelFiles
from heed.engine.library import is_compiled
from heed.engine.runtime import Engine
from heed.errors import ConfigError, DataError, RunError
from heed.train.recipe import choose
from heed.train.recipe.asked import Asked
from heed.train.recipe.folder import SPENT, TEACHERS, foreign_file, require_run_folder
from heed.train.recipe.recipe import load_recipe
from heed.train.run.calibrate import load_quickly
from heed.train.run.remember import memory_of
from heed.train.run.run import Outcome
from heed.train.step.config import TrainConfig
from heed.train.step.control import Request, ask
from heed.train.teachers import run as teachers
from heed.train.teachers.plan import seconds_of_each, teacher_settings, teachers_of
from heed.train.teachers.run import train_with_teachers
from heed.translate.result import Doubt, Translation
from heed.translate.translator import Translator, load

TRAINING = {"max_steps": 6, "batch_tokens": 64, "validate_every": 3, "validation_sentences": 2}

Train = Callable[..., Outcome]


def doubled(text: str) -> str:
    """Every letter twice."""
    return "".join(2 * letter if letter.isalpha() else letter for letter in text)


class Doubling:
    """A translator that writes every letter of its source twice, and doubts long ones."""

    def translate(self, lines: Sequence[str], **options: Any) -> list[Translation]:
        doubt = Doubt(kind="loop", sentence="It loops.", start=None, end=None)
        return [
            Translation(text=doubled(line), doubts=(doubt,) if len(line.split()) > 3 else ())
            for line in lines
        ]


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is measured, and teachers are as small as the model of the run."""
    monkeypatch.setattr("heed.train.run.setup.measure_gflops", lambda device: 30.0)

    def smaller(*given: Any, **named: Any) -> Asked:
        sizes = {"d_model": 8, "n_encoder_layers": 1, "n_decoder_layers": 1, "n_heads": 2}
        quick = {"training": {key: TRAINING[key] for key in TRAINING if key != "max_steps"}}
        return teacher_settings(*given, **named).plus_all({**quick, "model": sizes})

    monkeypatch.setattr(teachers, "teacher_settings", smaller)


@pytest.fixture
def train(quick: None, small: dict[str, Any], small_corpus: Corpus) -> Train:
    """`train(out, corpus=…, **keywords)`: a run with two teachers; `data` and `training` of it."""

    def start(
        out: Path,
        *,
        corpus: Corpus = small_corpus,
        data: Mapping[str, Any] = {},
        training: Mapping[str, Any] = TRAINING,
        **given: Any,
    ) -> Outcome:
        settings = {
            "model": small["model"],
            "tokenizer": {"kind": "char"},
            "data": {"teachers": 2, **data},
            "training": training,
        }
        given.setdefault("report", lambda event: None)
        return train_with_teachers(Asked(settings), corpus, out, **given)

    return start


@pytest.fixture
def doubling(monkeypatch: pytest.MonkeyPatch) -> None:
    """All teachers are `Doubling`."""
    monkeypatch.setattr(teachers, "load_quickly", lambda *given, **named: Doubling())


def digest(out: Path) -> str:
    return hashlib.sha256((out / "model.safetensors").read_bytes()).hexdigest()


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


def learned(data: Prepared) -> list[tuple[str, str]]:
    """The pairs that a run learns from, in their order."""
    return [
        (
            data.src_vocab.decode(data.train.src(number).tolist()),
            data.tgt_vocab.decode(data.train.tgt(number).tolist()),
        )
        for number in range(len(data.train))
    ]


def test_teachers_take_turns_in_direction() -> None:
    assert [each.is_forward for each in teachers_of(5)] == [True, False, True, False, True]
    assert [each.number for each in teachers_of(3)] == [1, 2, 3]


@pytest.mark.parametrize("count", range(1, 13))
def test_all_teachers_leave_nearly_half_of_the_time_or_more(count: int) -> None:
    training, translating = seconds_of_each(1000.0, count)
    assert 0 < count * (training + translating) <= 521
    assert training <= 100


def test_a_teacher_reads_text_as_the_run_does_and_has_a_seed_of_its_own() -> None:
    asked = Asked(
        {
            "preset": "small",
            "model": {"dropout": 0.4},
            "data": {"max_chars": 99, "teachers": 4, "both_directions": True, "test_size": 9},
            # The pieces of the run's two sides; a teacher of the opposite direction exchanges them.
            "tokenizer": {"kind": "char", "vocab_from": "run"},
            "training": {"learning_rate": 0.1, "threads": 1, "max_steps": 90, "time_s": "1h"},
        }
    )
    one, two = (
        teacher_settings(each, asked, seed=5, time_s=60.0, max_steps=90) for each in teachers_of(2)
    )
    data = {"max_chars": 99, "teachers": 0, "both_directions": False, "memory": False}
    assert one.values == {
        "data": data,
        "tokenizer": {"kind": "char"},
        "training": {"threads": 1, "seed": 6, "time_s": 60.0, "max_steps": 30},
    }
    assert two.get("training.seed") == 7


def test_the_largest_seed_has_teachers_too() -> None:
    for teacher in teachers_of(2):
        asked = teacher_settings(teacher, Asked(), seed=2**31 - 1, time_s=None, max_steps=None)
        assert TrainConfig(**asked.section("training"))


def test_a_run_learns_from_the_real_pairs_and_from_those_that_are_not_doubtful(
    train: Train,
    doubling: None,
    tmp_path: Path,
    small_corpus: Corpus,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(choose, "FEW_PAIRS", (1, 99))
    out = tmp_path / "run"
    events: list[Any] = []
    assert train(out, report=events.append).is_finished
    folder = out / TEACHERS
    real = list(
        zip(lines(folder / "train.de-xx.src"), lines(folder / "train.de-xx.tgt"), strict=True)
    )
    short = [(src, tgt) for src, tgt in real if len(src.split()) <= 3]
    assert 10 < len(short) < len(real)
    notes = [event["text"] for event in events if event["kind"] == "note"]
    n_done = f"translated {len(real)} of {len(real)} sentences; {len(short)} are not doubtful"
    assert f"teacher 1 of 2 has {n_done}" in notes
    forward = [(src, doubled(src)) for src, _ in short]
    backward = [(doubled(tgt), tgt) for _, tgt in short]
    for role, made in (("made-1", forward), ("made-2", backward)):
        found = zip(
            lines(folder / f"{role}.de-xx.src"), lines(folder / f"{role}.de-xx.tgt"), strict=True
        )
        assert sorted(found) == sorted(made)
        assert not (folder / role).exists()
    data = open_prepared(small_corpus, out / DATA)
    assert data.n_real == len(real)
    assert learned(data)[: data.n_real] == real
    assert sorted(learned(data)[data.n_real :]) == sorted([*forward, *backward])
    recipe = load_recipe(out / "recipe.toml")
    assert recipe.data.teachers == 2
    # Made pairs do not count among few ones.
    assert data.n_real < 99 < len(data.train)
    assert recipe.decoding.beam_size == 10
    # What counts words or remembers pairs knows the real ones only.
    alone = open_prepared(small_corpus, folder / DATA)
    assert data.src_vocab.hash == alone.src_vocab.hash
    words = [(path / DATA / "words.dat").read_bytes() for path in (out, folder)]
    assert words[0] == words[1]
    memory = memory_of(data, load(out).reader)
    assert len(memory) == len(real)
    assert foreign_file(out) is None


@pytest.mark.skipif(not is_compiled(), reason="the engine was not compiled here")
def test_teachers_translate_in_int8(
    monkeypatch: pytest.MonkeyPatch, train: Train, tmp_path: Path
) -> None:
    """It is quicker, and the time counts as the run's."""
    opened: list[Translator] = []

    def record(*given: Any, **named: Any) -> Translator:
        opened.append(load_quickly(*given, **named))
        return opened[-1]

    monkeypatch.setattr(teachers, "load_quickly", record)
    assert train(tmp_path / "run").is_finished
    networks = [cast(Engine, each.model).network for each in opened]
    assert [network.is_quantized for network in networks] == [True, True]


def test_the_development_set_is_the_one_that_no_teacher_has_read(
    train: Train, doubling: None, tmp_path: Path, small_corpus: Corpus
) -> None:
    train(tmp_path / "run", data={"test_size": 4})
    folder = tmp_path / "run" / TEACHERS
    data = open_prepared(small_corpus, tmp_path / "run" / DATA)
    assert data.test
    held_out = {*lines(folder / "dev.de-xx.src"), *lines(folder / "test.de-xx.src")}
    assert held_out == {pair.src for pair in (*data.dev, *data.test)}
    assert len(data.test) == 4
    for number in (1, 2):
        taught = open_prepared(small_corpus, folder / f"teacher-{number}" / DATA)
        assert taught.test is None
        side = (pair.src if number == 1 else pair.tgt for pair in taught.dev)
        assert set(side) == set(lines(folder / "dev.de-xx.src"))
        for src, tgt in learned(taught):
            assert (src if number == 1 else tgt) not in held_out


def test_a_dev_set_drawn_from_the_corpus_is_not_called_a_leak(
    train: Train, doubling: None, tmp_path: Path, small_corpus: Corpus
) -> None:
    events: list[dict[str, Any]] = []
    train(tmp_path / "run", report=events.append, data={"test_size": 3})
    data = open_prepared(small_corpus, tmp_path / "run" / DATA)
    assert len(data.dev) > 2
    assert set(data.report["leaks"].values()) == {0}
    assert not [event for event in events if event.get("name") == "bad-dev-set"]


def test_teachers_that_make_nothing_usable_leave_the_run_as_it_is(
    train: Train, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, small_corpus: Corpus
) -> None:
    class Silent:
        def translate(self, lines: Sequence[str], **options: Any) -> list[Translation]:
            return [Translation(text="") for _ in lines]

    monkeypatch.setattr(teachers, "load_quickly", lambda *given, **named: Silent())
    assert train(tmp_path / "run").is_finished
    data = open_prepared(small_corpus, tmp_path / "run" / DATA)
    assert len(data.train) == data.n_real
    monkeypatch.setattr(teachers, "load_quickly", None)  # nothing is translated again
    assert train(tmp_path / "run").was_finished


def test_a_run_that_is_paused_at_any_place_ends_with_the_same_weights(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(teachers, "PORTION", 30)
    train(tmp_path / "whole")
    wanted = digest(tmp_path / "whole")
    out, outcome, n_starts = tmp_path / "parts", None, 0
    while outcome is None or not outcome.is_finished:
        # The first start does nothing, the others make a step or a portion.
        events: list[Any] = []
        outcome = train(
            out,
            report=lambda event, events=events: events.append(event.get("unit", event["kind"])),
            should_stop=lambda events=events, n_starts=n_starts: (
                not n_starts or "step" in events or events.count("sentences") > 1
            ),
        )
        n_starts += 1
        require_run_folder(out)
    assert n_starts > 10
    assert digest(out) == wanted
    assert train(out).was_finished


class Killed(BaseException):
    """Ends a run as a kill does."""


@pytest.mark.parametrize("where", ["training", "translating"])
def test_the_time_of_a_killed_run_counts_until_its_last_checkpoint_or_portion(
    train: Train, doubling: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    monkeypatch.setattr(teachers, "PORTION", 30)
    out = tmp_path / "run"
    train(out, should_stop=lambda: True)
    spent = out / TEACHERS / SPENT

    def report(event: dict[str, Any]) -> None:
        is_translating = event.get("unit") == "sentences"
        if is_translating and not event["done"] and where == "translating":
            spent.write_text('{"seconds": 0}')
        if is_translating and event["done"]:
            raise Killed
        if event["kind"] == "end" and where == "training":
            raise Killed

    spent.write_text('{"seconds": 0}')
    with pytest.raises(Killed):
        train(out, report=report, started_at=time.monotonic() - 1000)
    assert json.loads(spent.read_text())["seconds"] > 1000


def test_what_a_kill_left_is_removed(train: Train, doubling: None, tmp_path: Path) -> None:
    out = tmp_path / "run"
    train(out, should_stop=lambda: True)
    folder = out / TEACHERS
    (folder / "made-1").mkdir()
    for name in ("train.de-xx.src", "made-1/portion-0000000000.json"):
        (folder / f"{name}.tmp-01234567").write_text("half a lin")
    assert train(out).is_finished
    assert not list(folder.rglob("*.tmp-*"))
    assert not (folder / "made-1").exists()


def test_a_request_to_stop_holds_for_the_teacher_at_work(train: Train, tmp_path: Path) -> None:
    out = tmp_path / "run"

    def report(event: dict[str, Any]) -> None:
        if event["kind"] == "step" and event.get("teacher") == 2:
            ask(out, Request.STOP)

    outcome = train(out, report=report)
    assert (outcome.is_finished, outcome.progress.step) == (False, 1)
    assert outcome.teacher == "teacher 2 of 2"
    ask(out, Request.STOP)  # nobody is there
    outcome = train(out)
    assert (outcome.is_finished, outcome.teacher) == (True, "")


@pytest.mark.parametrize("way", ["signal", "file"])
def test_a_request_to_stop_ends_translating_within_a_portion(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    out, portions = tmp_path / "run", []

    class Slow:
        def translate(
            self, lines: Sequence[str], is_wanted: Callable[[int], bool], **options: Any
        ) -> list[Translation]:
            portions.append(len(lines))
            if way == "file":
                ask(out, Request.STOP)
            assert not is_wanted(0) and not is_wanted(0)
            return [Translation(text="", status="unwanted") for _ in lines]

    monkeypatch.setattr(teachers, "load_quickly", lambda *given, **named: Slow())
    outcome = train(out, should_stop=lambda: way == "signal" and bool(portions))
    assert (outcome.is_finished, outcome.teacher, len(portions)) == (False, "teacher 1 of 2", 1)
    assert not list((out / TEACHERS / "made-1").glob("*"))
    monkeypatch.setattr(teachers, "load_quickly", lambda *given, **named: Doubling())
    assert train(out).is_finished


@pytest.mark.slow
@pytest.mark.reliability
def test_a_kill_at_any_write_loses_nothing(
    train: Train,
    doubling: None,
    tmp_path: Path,
    fork: Callable[..., int],
    was_killed: Callable[[int], bool],
) -> None:
    train(tmp_path / "whole")
    wanted = digest(tmp_path / "whole")
    fault, is_killed = 1, True
    while is_killed:
        out = tmp_path / f"killed-{fault}"
        is_killed = was_killed(fork(lambda out=out: train(out), fault))
        assert train(out).is_finished
        assert digest(out) == wanted, f"killed at point {fault}"
        fault += 23
    assert fault > 100


def refused(corpus: Corpus, **parts: Any) -> Iterator[tuple[Corpus, str]]:
    part = corpus.train[0]
    yield replace(corpus, train=(ParallelFiles(files=("-",)),)), "save standard input to a file"
    other = replace(part, target_lang="yy")
    yield replace(corpus, train=(part, other)), "of other languages than"


def test_what_teachers_cannot_do_is_refused_before_anything_is_written(
    train: Train, tmp_path: Path, small_corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    for corpus, message in refused(small_corpus):
        with pytest.raises(ConfigError, match=message):
            train(out, corpus=corpus)
    with pytest.raises(ConfigError, match=r"data\.teachers is for translation, but the task is lm"):
        train_with_teachers(
            Asked({"task": "lm", "data": {"teachers": 2}}), small_corpus, out, report=print
        )
    with monkeypatch.context() as patch, pytest.raises(ConfigError, match="without torchrun"):
        patch.setenv("WORLD_SIZE", "2")
        train(out)
    assert not out.exists()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"data": {"both_directions": True}, "tokenizer": {"joint": False}},
            "needs one vocabulary",
        ),
        ({"training": {"first_embeddings": "gone.vec"}}, "first_embeddings must be"),
        ({"training": {"parent": "PARENT"}, "preset": "small"}, "preset cannot be chosen"),
        (
            {"data": {"both_directions": True}, "tokenizer": {"vocab_from": "PARENT"}},
            "with a tag for xx and de",
        ),
    ],
)
def test_what_the_run_itself_cannot_do_is_refused_before_its_teachers_work(
    settings: dict[str, Any],
    message: str,
    tmp_path: Path,
    small_corpus: Corpus,
    small_run: Callable[..., object],
) -> None:
    small_run(tmp_path / "parent", max_steps=1)
    for section, key in (("training", "parent"), ("tokenizer", "vocab_from")):
        if settings.get(section, {}).get(key) == "PARENT":
            settings = {**settings, section: {key: str(tmp_path / "parent")}}
    asked = Asked({**settings, "data": {**settings.get("data", {}), "teachers": 1}})
    with pytest.raises(ConfigError, match=message):
        train_with_teachers(asked, small_corpus, tmp_path / "run", report=print)
    assert not (tmp_path / "run").exists()


def test_a_corpus_that_the_run_itself_cannot_read_is_refused_before_its_teachers_work(
    train: Train, tmp_path: Path, small_corpus: Corpus
) -> None:
    part, both = small_corpus.train[0], {"both_directions": True}
    more = replace(small_corpus, mono=(Mono(file=str(tmp_path / "more.xx"), language="xx"),))
    unknown = replace(small_corpus, train=(ParallelFiles(files=part.files),))
    for corpus, error, message in (
        (more, DataError, "more.xx does not exist"),
        (unknown, ConfigError, "both_directions needs two languages, but .* is unknown"),
    ):
        with pytest.raises(error, match=message):
            train(tmp_path / "run", corpus=corpus, data=both)
    assert not (tmp_path / "run").exists()


def test_a_file_in_place_of_their_folder_is_refused(train: Train, tmp_path: Path) -> None:
    out = tmp_path / "run"
    out.mkdir()
    (out / "asked.json").write_text("{}")
    (out / TEACHERS).touch()
    with pytest.raises(RunError, match=r"run/teachers must be a folder, but is not\. Remove it"):
        train(out)


def test_each_teacher_is_announced_with_its_direction_and_its_time(
    train: Train, doubling: None, tmp_path: Path, small_corpus: Corpus
) -> None:
    part = small_corpus.train[0]
    unknown = replace(small_corpus, train=(ParallelFiles(files=part.files),))
    for name, corpus, first, second in (
        ("known", small_corpus, "de → xx", "xx → de"),
        ("unknown", unknown, "source → target", "target → source"),
    ):
        notes: list[str] = []
        train(
            tmp_path / name,
            corpus=corpus,
            training={**TRAINING, "time_s": 901},
            report=lambda event, notes=notes: notes.append(event.get("text", "")),
        )
        assert f"teacher 1 of 2: {first}, 90s" in notes
        assert f"teacher 2 of 2: {second}, 90s" in notes


def test_a_finished_run_says_what_its_teachers_took_of_the_time(
    train: Train, doubling: None, tmp_path: Path
) -> None:
    timed = {**TRAINING, "time_s": 900}
    train(tmp_path / "run", training=timed)
    outcome = train(tmp_path / "run", training=timed)
    assert outcome.was_finished
    assert outcome.limits.startswith("its limit of 6 steps (--max-steps), after ")
    assert outcome.limits.endswith("s of its teachers")


def test_a_limit_of_time_is_told_as_it_was_given(
    train: Train, doubling: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes: list[str] = []
    monkeypatch.setattr("heed.train.run.run.SLOW_START", 0.0)
    timed = {**TRAINING, "max_steps": 3, "time_s": 900}
    train(
        tmp_path / "run",
        training=timed,
        report=lambda event: notes.append(str(event.get("text"))),
    )
    assert any(" that were left of the 15m given. To train longer" in note for note in notes)
    monkeypatch.setattr("heed.train.run.setup.training_seconds", lambda *given: 1e-9)
    outcome = train(tmp_path / "run", training=timed)
    assert outcome.was_finished
    assert "its limit of 15m (--time), after " in outcome.limits


@pytest.mark.parametrize("time_s", [5, 1])
def test_a_finished_run_stays_finished_with_less_time_than_its_teachers_took(
    train: Train, doubling: None, tmp_path: Path, time_s: int
) -> None:
    timed = {**TRAINING, "time_s": 900}
    train(tmp_path / "run", training=timed)
    (tmp_path / "run" / TEACHERS / SPENT).write_text('{"seconds": 60}')
    before = digest(tmp_path / "run")
    outcome = train(tmp_path / "run", training={**TRAINING, "time_s": time_s})
    assert outcome.was_finished
    assert digest(tmp_path / "run") == before


def test_a_begun_run_ends_at_once_with_less_time_than_its_teachers_took(
    train: Train, doubling: None, tmp_path: Path
) -> None:
    timed, out = {**TRAINING, "time_s": 900}, tmp_path / "run"
    paused = train(out, training=timed, should_stop=(out / "recipe.toml").exists)
    assert (paused.is_finished, paused.progress.step, paused.teacher) == (False, 1, "")
    (out / TEACHERS / SPENT).write_text('{"seconds": 60}')
    ended = train(out, training={**TRAINING, "time_s": 5}, started_at=time.monotonic() - 2)
    assert (ended.is_finished, ended.progress.step) == (True, 1)


def test_a_run_that_is_given_no_time_keeps_its_limit(
    train: Train, doubling: None, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    train(out, training={**TRAINING, "max_steps": 3, "time_s": 3600})
    stored_s = load_recipe(out / "recipe.toml").training.time_s
    assert stored_s is not None and 3000 < stored_s < 3600
    train(out, training={key: value for key, value in TRAINING.items() if key != "max_steps"})
    assert load_recipe(out / "recipe.toml").training.time_s == stored_s


def test_a_run_continues_only_with_its_own_teachers(
    train: Train, doubling: None, tmp_path: Path, small_run: Callable[..., object]
) -> None:
    small_run(tmp_path / "alone")
    with pytest.raises(RunError, match=r"was started with data\.teachers = the default, but"):
        train(tmp_path / "alone")
    assert not (tmp_path / "alone" / TEACHERS).exists()
    out = tmp_path / "run"
    train(out, should_stop=lambda: True)
    with pytest.raises(RunError, match=r"run was started with data\.teachers, but .* sets none"):
        train(out, data={"teachers": 0})
    train(out)
    with pytest.raises(RunError, match=r"data\.teachers = 2, but this command sets 3"):
        train(out, data={"teachers": 3})
    shutil.move(out / TEACHERS, tmp_path / "elsewhere")
    with pytest.raises(RunError, match=r"teachers is missing, which this run needs to continue"):
        train(out)
    shutil.move(tmp_path / "elsewhere", out / TEACHERS)
    assert train(out).was_finished


@pytest.mark.parametrize(
    ("given", "count", "named", "each", "least", "least_s"),
    [
        ("9m", 2, "9m", "54s", "10m", 600),
        ("150s", 2, "150s", "15s", "10m", 600),
        ("12m", 5, "12m", "57.6s", "750s", 750),  # twelve and a half minutes
        ("29m", 12, "29m", "58s", "30m", 1800),
    ],
)
def test_a_time_in_which_no_teacher_could_learn_is_refused(
    train: Train,
    tmp_path: Path,
    given: str,
    count: int,
    named: str,
    each: str,
    least: str,
    least_s: int,
) -> None:
    message = (
        rf"^--time of {named} is too short for {count} teachers, which would have {each} each\. "
        rf"Give at least {least}, or leave them out\.$"
    )
    out, data = tmp_path / "run", {"teachers": count}
    with pytest.raises(ConfigError, match=message):
        train(out, data=data, training={"time_s": given})
    assert not out.exists()
    timed = {**TRAINING, "time_s": least_s}
    assert not train(out, data=data, training=timed, should_stop=lambda: True).is_finished


def test_a_run_without_a_limit_of_time_needs_one_of_steps(train: Train, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with pytest.raises(ConfigError, match=r"^data\.teachers needs a limit .* or --max-steps\.$"):
        train(out, training={"time_s": "none"})
    assert not out.exists()
    by_steps = {**TRAINING, "time_s": "none"}
    assert not train(out, training=by_steps, should_stop=lambda: True).is_finished


def test_without_time_for_the_run_itself_more_is_asked_for(
    train: Train, doubling: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    monkeypatch.setattr(teachers, "LEAST_S", 1)
    timed = {**TRAINING, "max_steps": 3, "time_s": 10}
    train(out, training=timed, should_stop=lambda: True)
    (out / TEACHERS / SPENT).write_text('{"seconds": 9.5}')
    with pytest.raises(
        ConfigError, match=r"^--time of 10s is too short: the teachers took 1\ds of"
    ):
        train(out, training=timed)
    kept = (out / TEACHERS / "made-2.de-xx.src").stat().st_mtime_ns
    assert train(out, training={**timed, "time_s": 600}).is_finished
    assert (out / TEACHERS / "made-2.de-xx.src").stat().st_mtime_ns == kept
