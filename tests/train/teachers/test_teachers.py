"""Teachers of a run: who they are, what is learned from them, and that no interruption shows."""

import hashlib
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain, repeat
from pathlib import Path
from typing import Any

import pytest

from heed.data.corpus import Corpus
from heed.data.prepared import DATA, Prepared, open_prepared
from heed.data.readers import ParallelFiles
from heed.errors import ConfigError, RunError
from heed.train.recipe.asked import Asked
from heed.train.recipe.folder import SPENT, TEACHERS, foreign_file, require_run_folder
from heed.train.recipe.recipe import load_recipe
from heed.train.run.remember import memory_of
from heed.train.run.run import Outcome
from heed.train.teachers import run as teachers
from heed.train.teachers.plan import seconds_of_each, teacher_settings, teachers_of
from heed.train.teachers.run import train_with_teachers
from heed.translate.result import Doubt, Translation
from heed.translate.translator import load

TRAINING = {"max_steps": 6, "batch_tokens": 64, "validate_every": 3, "validation_sentences": 2}

Train = Callable[..., Outcome]


def doubled(text: str) -> str:
    """Every letter twice."""
    return "".join(2 * letter if letter.isalpha() else letter for letter in text)


class Doubling:
    """A translator that writes every letter of its source twice, and doubts long ones."""

    def translate(self, lines: Sequence[str]) -> list[Translation]:
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
    monkeypatch.setattr(teachers, "load", lambda *given, **named: Doubling())


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
            "data": {"max_chars": 99, "teachers": 4, "both_directions": True},
            "tokenizer": {"kind": "char"},
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


def test_a_run_learns_from_the_real_pairs_and_from_those_that_are_not_doubtful(
    train: Train, doubling: None, tmp_path: Path, small_corpus: Corpus
) -> None:
    out = tmp_path / "run"
    assert train(out).is_finished
    folder = out / TEACHERS
    real = list(
        zip(lines(folder / "train.de-xx.src"), lines(folder / "train.de-xx.tgt"), strict=True)
    )
    short = [(src, tgt) for src, tgt in real if len(src.split()) <= 3]
    assert 10 < len(short) < len(real)
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
    assert load_recipe(out / "recipe.toml").data.teachers == 2
    # What counts words or remembers pairs knows the real ones only.
    alone = open_prepared(small_corpus, folder / DATA)
    assert data.src_vocab.hash == alone.src_vocab.hash
    words = [(path / DATA / "words.dat").read_bytes() for path in (out, folder)]
    assert words[0] == words[1]
    memory = memory_of(data, load(out).reader)
    assert len(memory) == len(real)
    assert foreign_file(out) is None


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
        side = (pair.src if number == 1 else pair.tgt for pair in taught.dev)
        assert set(side) == set(lines(folder / "dev.de-xx.src"))
        for src, tgt in learned(taught):
            assert (src if number == 1 else tgt) not in held_out


def test_teachers_that_make_nothing_usable_leave_the_run_as_it_is(
    train: Train, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, small_corpus: Corpus
) -> None:
    class Silent:
        def translate(self, lines: Sequence[str]) -> list[Translation]:
            return [Translation(text="") for _ in lines]

    monkeypatch.setattr(teachers, "load", lambda *given, **named: Silent())
    assert train(tmp_path / "run").is_finished
    data = open_prepared(small_corpus, tmp_path / "run" / DATA)
    assert len(data.train) == data.n_real
    monkeypatch.setattr(teachers, "load", None)  # nothing is translated again
    assert train(tmp_path / "run").was_finished


def test_a_run_that_is_paused_at_any_place_ends_with_the_same_weights(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(teachers, "PORTION", 30)
    train(tmp_path / "whole")
    wanted = digest(tmp_path / "whole")
    out, outcome, n_starts = tmp_path / "parts", None, 0
    while outcome is None or not outcome.is_finished:
        # The first one stops after a step, the others after another step or portion.
        answers = chain([False] if n_starts else [], repeat(True))
        outcome = train(out, should_stop=lambda answers=answers: next(answers))
        n_starts += 1
        require_run_folder(out)
    assert n_starts > 10
    assert digest(out) == wanted
    assert train(out).was_finished


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


def test_a_run_continues_only_with_its_own_teachers(
    train: Train, doubling: None, tmp_path: Path, small_run: Callable[..., object]
) -> None:
    small_run(tmp_path / "alone")
    with pytest.raises(RunError, match=r"was started with data\.teachers = the default, but"):
        train(tmp_path / "alone")
    assert not (tmp_path / "alone" / TEACHERS).exists()
    out = tmp_path / "run"
    train(out)
    with pytest.raises(RunError, match=r"data\.teachers = 2, but this command sets 3"):
        train(out, data={"teachers": 3})
    shutil.move(out / TEACHERS, tmp_path / "elsewhere")
    with pytest.raises(RunError, match=r"teachers is missing, which this run needs to continue"):
        train(out)
    shutil.move(tmp_path / "elsewhere", out / TEACHERS)
    assert train(out).was_finished


def test_a_time_in_which_no_teacher_could_learn_is_refused(train: Train, tmp_path: Path) -> None:
    message = (
        r"^--time of 9m is too short for 2 teachers, which would have 54s each\. "
        r"Give at least 10m, or leave them out\.$"
    )
    with pytest.raises(ConfigError, match=message):
        train(tmp_path / "run", training={"time_s": "9m"})
    assert not (tmp_path / "run").exists()


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
