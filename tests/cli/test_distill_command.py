"""`heed distill`: from a teacher to a student that is ready, and words for what is wrong."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heed.bundle.beside import save_beside
from heed.bundle.bundle import load_bundle, save_bundle
from heed.bundle.find import MEMORY
from heed.engine.library import is_compiled
from heed.text.memory import TranslationMemory
from heed.train.run.calibrate import load_quickly
from heed.translate.translator import load

TINY = [
    "model.d_model=16",
    "model.n_heads=2",
    "model.d_ff=16",
    "model.n_encoder_layers=2",
    "model.n_decoder_layers=1",
    "training.validation_sentences=2",
]


@pytest.fixture
def teacher(call: Callable[..., Any], tmp_path: Path) -> Path:
    """A run of a few steps on a hundred and eighty sentences."""
    animals, verbs = ["cat", "dog", "bird", "horse", "cow", "fish"], ["sees", "likes", "hears"]
    pairs = [
        (f"The {a} {verb} the {b}.", f"{verb[::-1]} {a[::-1]} {b[::-1]}!")
        for a in animals
        for b in animals
        for verb in verbs
    ]
    for name, side in (("train.en", 0), ("train.xx", 1)):
        lines = "".join(f"{pair[side]}\n" for pair in pairs)
        (tmp_path / name).write_text(lines, encoding="utf-8")
    files = ("--src", str(tmp_path / "train.en"), "--tgt", str(tmp_path / "train.xx"))
    run = str(tmp_path / "run")
    # After fewer steps a teacher writes broken bytes only.
    few = ("--max-steps", "20", "training.validations=4", "--vocab-size=340")
    plain = ("data.disturb=0", "tokenizer.slots=false")
    code, _, err = call("train", *files, "--out", run, *few, *plain, *TINY)
    assert code == 0, err
    return Path(run)


def test_one_command_from_teacher_to_student_in_its_time(
    call: Callable[..., Any], teacher: Path, tmp_path: Path
) -> None:
    out = tmp_path / "student"
    asked = ("distill", str(teacher), "--out", str(out), "--threads", "1", *TINY)
    code, said, err = call(*asked, "--time", "20m", "--max-steps", "4")
    assert code == 0, err
    assert err.startswith("the teacher translates …\nThe teacher translated")
    assert "taking over the vocabulary" in err
    assert "learning the vocabulary" not in err
    assert "2 encoder and 1 decoder layers" in err
    assert "starts from random weights" not in err
    assert f"Translate with: heed translate -m {out}" in err
    header, *rows, verdict = said.splitlines()
    assert header.split() == ["development", "lines,", "greedily", "chrF2", "BLEU", "words/s"]
    int8 = ", int8" if is_compiled() else ""
    assert [row.rsplit(maxsplit=3)[0].strip() for row in rows] == [
        f"teacher{int8}",
        f"student{int8}",
    ]
    assert "of the teacher's chrF2" in verdict
    assert "model.int8.safetensors" in json.loads((out / "manifest.json").read_text())["files"]
    settings = json.loads((out / "asked.json").read_text())
    assert settings["training"]["label_smoothing"] == 0
    assert settings["training"]["parent"] == str(teacher)
    assert settings["decoding"] == {"beam_size": 1}
    assert 0 < settings["training"]["time_s"] < 1199
    assert call("translate", "-m", str(out), "The cat sees the dog.")[0] == 0
    left = out / "teacher" / "portion-0000000000.json"  # by a kill after the last translation
    left.write_text('{"seconds": 1.0, "translations": []}')
    code, said, err = call(*asked, "--time", "20m", "--max-steps", "4")
    assert code == 0, err
    assert not left.exists()
    assert "was finished already" in err
    assert "The teacher translated" not in err
    assert "of the teacher's chrF2" in said
    code, _, err = call(*asked, "--time", "2s", "--max-steps", "4")  # less than the teacher took
    assert code == 0, err
    assert "was finished already" in err


def test_a_student_of_another_width_begins_from_nothing(
    call: Callable[..., Any], teacher: Path, tmp_path: Path
) -> None:
    out = str(tmp_path / "student")
    code, _, err = call(
        "distill", str(teacher), "--out", out, "--max-steps=2", *TINY, "model.d_ff=8"
    )
    assert code == 0, err
    assert "The student starts from random weights: the teacher's can be copied only if" in err


def test_a_pause_while_the_teacher_translates_says_how_to_go_on(
    call: Callable[..., Any],
    teacher: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    from heed.compress import distill

    out = tmp_path / "student"
    asked = ("distill", str(teacher), "--out", str(out), "--max-steps", "2", *TINY)
    with monkeypatch.context() as patch:
        patch.setattr(distill, "PORTION", 50)
        patch.setattr("heed.cli.distill._Progress.__call__", _ctrl_c)
        with pytest.raises(SystemExit) as ended:
            call(*asked)
    assert ended.value.code == 130
    said = capsys.readouterr().err
    assert "Paused; finished translations are kept. Repeat the command to continue." in said
    assert len(list((out / "teacher").glob("portion-*"))) == 1
    code, _, err = call(*asked)
    assert code == 0, err


def test_a_signal_while_the_last_portion_is_translated_pauses_too(
    call: Callable[..., Any], teacher: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "student"
    asked = ("distill", str(teacher), "--out", str(out), "--max-steps", "2", "-b", "1", *TINY)
    with monkeypatch.context() as patch:
        patch.setattr("heed.cli.distill._Progress.__call__", _ctrl_c)
        with pytest.raises(SystemExit) as ended:
            call(*asked)
    assert ended.value.code == 130
    assert not (out / "data").exists()
    code, _, err = call(*asked)
    assert code == 0, err
    assert "is finished, at step 2." in err


def _ctrl_c(*_: object) -> None:
    import os
    import signal

    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["MODEL"], 2, "Missing --out: where to write the student, e.g. --out student/"),
        (
            ["MODEL", "--out=OUT"],
            1,
            "is a model without its training text: name text to translate",
        ),
        (["none", "--out=OUT"], 1, "There is no model folder none"),
        (["MODEL", "--out=OUT", "text.en"], 2, "text.en must be like section.key=value; text goes"),
        (["MODEL", "--out=OUT", "--src=-"], 2, "--src must be a file"),
        (["MODEL", "--out=OUT", "--src=gone.en"], 1, "gone.en does not exist."),
        (["MODEL", "--out=OUT", "tokenizer.kind=bpe"], 2, "the student uses its teacher's pieces"),
        (["MODEL", "--out=OUT", "data.teachers=2"], 2, "the student has its teacher already"),
        (["MODEL", "--out=OUT", "--dev-src=x"], 2, "--dev-src and --dev-tgt go together"),
        (["MODEL", "--out=OUT", "--preset=huge"], 2, "'huge' is not one of"),
        (["MODEL", "--out=OUT", "--src=TEXT", "--max-steps=0"], 2, "--max-steps must be a whole"),
        (["MODEL", "--out=OUT", "--src=TEXT", "--time=1s"], 1, "--time of 1s is too short for a"),
        (["MODEL", "--out=OUT", "training.lerning_rate=1"], 1, "did you mean"),
        (["MODEL", "--out=OUT", "--src=TEXT", "model.d_model=33"], 1, "must divide model.d_model"),
        (
            ["MODEL", "--out=MODEL", "--src=TEXT"],
            1,
            "must be a new folder or one of a heed distill",
        ),
        (["MODEL", "--out=OUT", "--src=TEXT", "-t", "fr"], 1, "not into fr"),
    ],
)
def test_what_is_wrong_is_said_before_the_teacher_works(
    call: Callable[..., Any],
    model: str,
    tmp_path: Path,
    arguments: list[str],
    code: int,
    words: str,
) -> None:
    text = tmp_path / "text.en"
    text.write_text("A man.\n", encoding="utf-8")
    places = {"MODEL": model, "OUT": str(tmp_path / "out"), "TEXT": str(text)}
    for name, place in places.items():
        arguments = [argument.replace(name, place) for argument in arguments]
    found, _, err = call("distill", *arguments)
    assert words in err
    assert found == code
    assert not (tmp_path / "out").exists()


def test_a_folder_is_not_claimed_by_text_that_gives_nothing(
    call: Callable[..., Any], teacher: Path, tmp_path: Path
) -> None:
    out, blank = tmp_path / "student", tmp_path / "blank.en"
    blank.write_text("\n\n", encoding="utf-8")
    asked = ("distill", str(teacher), "--out", str(out), "--max-steps", "2", "-b", "1", *TINY)
    code, _, err = call(*asked, "--src", str(blank))
    assert code == 1
    assert f"There is no text to translate in {blank}: its lines are empty, too long, or" in err
    assert not out.exists()
    code, _, err = call(*asked, "--src", str(tmp_path / "train.en"))
    assert code == 0, err


def test_a_student_that_cannot_be_rounded_is_compared_in_float32(
    call: Callable[..., Any], teacher: Path, tmp_path: Path
) -> None:
    out = tmp_path / "student"
    asked = ("distill", str(teacher), "--out", str(out), "--max-steps", "2", "-b", "1", *TINY)
    code, said, err = call(*asked, "model.positions=alibi", "training.time_s=none")
    assert code == 0, err
    assert "The student keeps its float32 weights: heed's engine and int8 weights are for" in err
    assert [line.split()[0] for line in said.splitlines()[2:]] == ["student", "The"]
    assert "of the teacher's chrF2" in said


def test_all_that_is_written_is_written_under_the_lock_of_the_run(
    call: Callable[..., Any], teacher: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from heed.compress import distill
    from heed.disk.files import is_locked

    out, seen = tmp_path / "student", []

    def watched(name: str) -> Callable[..., Any]:
        write = getattr(distill, name)

        def call_it(*args: Any, **options: Any) -> Any:
            seen.append((name, is_locked(out)))
            return write(*args, **options)

        return call_it

    for name in ("begin", "teach", "round_off"):
        monkeypatch.setattr(distill, name, watched(name))
    asked = ("distill", str(teacher), "--out", str(out), "--max-steps", "2", "-b", "1", *TINY)
    code, _, err = call(*asked)
    assert code == 0, err
    assert seen == [("begin", True), ("teach", True), ("round_off", True)]
    assert not is_locked(out)


def test_a_lesson_that_another_process_completes_is_not_made_again(
    call: Callable[..., Any], teacher: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from heed.compress import distill

    first, second = tmp_path / "first", tmp_path / "second"
    asked = ("distill", str(teacher), "--max-steps", "2", "-b", "1", *TINY)
    assert call(*asked, "--out", str(first))[0] == 0
    find_sources = distill.find_sources

    def find_slowly(*args: Any) -> Any:
        shutil.copytree(first / "teacher", second / "teacher")
        return find_sources(*args)

    monkeypatch.setattr(distill, "find_sources", find_slowly)
    monkeypatch.setattr(distill, "teach", lambda *_, **__: pytest.fail("it translates again"))
    code, _, err = call(*asked, "--out", str(second))
    assert code == 0, err


def test_text_in_the_folder_of_the_lesson_is_refused(
    call: Callable[..., Any], model: str, tmp_path: Path
) -> None:
    out = tmp_path / "student"
    (out / "teacher").mkdir(parents=True)
    (out / "teacher" / "made-from.json").write_text('{"teacher": "abc"}')
    text = out / "teacher" / "train.en-de.src"
    text.write_text("A man.\n")
    code, _, err = call("distill", model, "--out", str(out), "--src", str(text), "-t", "de")
    assert code == 2
    assert f"{text} is a file that heed writes in {out} itself. Copy it to another place" in err
    assert text.read_text() == "A man.\n"


def test_a_folder_in_place_of_a_file_is_refused_before_the_teacher_works(
    call: Callable[..., Any], model: str, tmp_path: Path
) -> None:
    out, text = tmp_path / "student", tmp_path / "text.en"
    (out / "teacher").mkdir(parents=True)
    (out / "teacher" / "made-from.json").write_text('{"teacher": "abc"}')
    (out / "README.md").mkdir()
    text.write_text("A man.\n")
    code, _, err = call("distill", model, "--out", str(out), "--src", str(text), "-t", "de")
    assert code == 1
    assert f"{out / 'README.md'} must be a file, but is not. Remove it and run again." in err


def test_the_teacher_translates_without_its_memory(
    call: Callable[..., Any], teacher: Path, tmp_path: Path
) -> None:
    """Its answers would be the training pairs themselves."""
    read, source = load_bundle(teacher), "The cat sees the dog."
    pairs = [(read.src_vocab.encode(source), read.tgt_vocab.encode("xyzzy"))]
    memory = TranslationMemory.of(pairs, (read.src_vocab.size, read.tgt_vocab.size))
    save_beside(teacher, {MEMORY: memory.to_bytes()}, replaced={MEMORY})
    assert load(teacher)(source) == "xyzzy"
    out = tmp_path / "student"
    asked = ("distill", str(teacher), "--out", str(out), "--max-steps", "2", "-b", "1", *TINY)
    assert call(*asked)[0] == 0
    told = [path.read_bytes() for path in (out / "teacher").rglob("*") if path.is_file()]
    assert any(source.encode() in data for data in told)
    assert not any(b"xyzzy" in data for data in told)


def test_several_teachers_translate_together(
    call: Callable[..., Any], teacher: Path, tmp_path: Path
) -> None:
    """The student's pairs are those of the ensemble, and a change of teachers is noticed."""
    read, other = load_bundle(teacher), tmp_path / "other"
    random = np.random.default_rng(1)
    weights = {n: w + random.normal(0, 0.2, w.shape) for n, w in read.weights.items()}
    save_bundle(other, replace(read, weights={n: w.astype(np.float32) for n, w in weights.items()}))
    out = tmp_path / "student"
    asked = ("distill", str(teacher), "--out", str(out), "--max-steps", "2", "-b", "1", *TINY)
    code, _, err = call(*asked, "--with", str(other))
    assert code == 0, err
    files = sorted((out / "teacher").glob("train.*"))
    told = {tuple(path.read_text(encoding="utf-8").splitlines()) for path in files}
    (sources,) = [lines for lines in told if "The cat sees the dog." in lines]
    (targets,) = told - {sources}
    together = load_quickly([teacher, other], None, memory=False)
    assert list(targets) == together(list(sources), beam_size=1)
    assert list(targets) != load_quickly(teacher, None, memory=False)(list(sources), beam_size=1)
    code, _, err = call(*asked)
    assert code == 1
    assert "teacher 2" in err
