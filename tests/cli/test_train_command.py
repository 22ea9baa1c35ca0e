import fcntl
import io
import json
import os
import pty
import re
import shutil
import signal
import struct
import termios
import tomllib
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from heed.cli.corpus import CorpusFlags, corpus_from, language_of
from heed.cli.progress import Display
from heed.cli.train import finish, settings_from
from heed.disk.files import is_locked, lock
from heed.errors import ConfigError, DataError, UsageError
from heed.train.recipe.folder import discard_if_not_begun
from heed.train.run.run import Outcome
from heed.train.step.progress import Progress
from heed.train.step.train_step import StepResult, train_step

TINY = [
    "model.d_model=16",
    "model.n_heads=2",
    "model.d_ff=16",
    "model.n_encoder_layers=1",
    "model.n_decoder_layers=1",
    "training.validation_sentences=2",
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    animals = ["cat", "dog", "bird", "horse", "cow", "fish"]
    verbs = ["sees", "likes", "hears", "finds", "calls"]
    pairs = [
        (f"The {a} {v} the {b}.", f"{v[::-1]} {a[::-1]} {b[::-1]}!")
        for a in animals
        for b in animals
        for v in verbs
    ]
    for name, lines in (("x.en", [s for s, _ in pairs]), ("x.de", [t for _, t in pairs])):
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return folder


def test_a_corpus_that_cannot_be_read_leaves_no_run_folder(
    call: Callable[..., Any], tmp_path: Path
) -> None:
    for name, text in (("m.xlf", "<xliff/>"), ("bad.tsv", "a\tb\nc\n"), ("none.tsv", "")):
        (tmp_path / name).write_text(text, encoding="utf-8")
        code, _, err = call("train", str(tmp_path / name), "--out", str(tmp_path / "new" / "run"))
        assert (code, name in err) == (1, True), err
        assert not (tmp_path / "new").exists()
    own = tmp_path / "own"
    own.mkdir()
    assert call("train", str(tmp_path / "none.tsv"), "--out", str(own))[0] == 1
    assert own.is_dir()
    assert call("train", str(tmp_path / "none.tsv"), "--out", str(own / "run"))[0] == 1
    assert own.is_dir() and not (own / "run").exists()


@pytest.mark.parametrize("what", ["recipe", "lock"])
def test_a_run_that_has_begun_keeps_its_folder_when_it_fails(tmp_path: Path, what: str) -> None:
    out = tmp_path / "new" / "run"
    with ExitStack() as held:
        with pytest.raises(DataError), discard_if_not_begun(out):
            (out / "teachers" / "teacher-1").mkdir(parents=True)
            if what == "recipe":
                (out / "teachers" / "teacher-1" / "recipe.toml").touch()
            else:
                held.enter_context(lock(out))  # by another process
            raise DataError("damaged")
        assert out.is_dir()
    with pytest.raises(DataError), discard_if_not_begun(tmp_path / "other"):
        (tmp_path / "other").mkdir()
        raise DataError("damaged")
    assert not (tmp_path / "other").exists()


def test_a_command_without_languages_tells_it_unless_it_fails(
    call: Callable[..., Any], tmp_path: Path
) -> None:
    (tmp_path / "bad.tsv").write_bytes(b"a\tb\n" * 9_000 + b"a\t\xff\n")
    (tmp_path / "few.tsv").write_text("".join(f"a {n}\tb {n}\n" for n in range(99)))
    told = "so heed serve will not serve the model"

    def err(name: str, *flags: str) -> str:
        command = ["train", str(tmp_path / name), "--out", str(tmp_path / "run"), "--max-steps=1"]
        return str(call(*command, *TINY, *flags)[2])

    assert "line 9001: must be UTF-8" in err("bad.tsv")
    assert told not in err("bad.tsv")
    assert told not in err("few.tsv", "--source-lang", "en", "--target-lang", "de")
    shutil.rmtree(tmp_path / "run")
    assert err("few.tsv").count(told) == 1
    shutil.rmtree(tmp_path / "run")
    (tmp_path / "few.po").write_text("".join(f'msgid "a {n}" msgstr "b {n}"\n' for n in range(99)))
    said = err("few.po", "--source-lang", "en", "--target-lang", "de")
    assert "few.po names no language in its header: msgid is read as en and msgstr as de" in said


def test_the_same_command_trains_then_says_it_is_finished(
    call: Callable[..., Any], corpus: Path, tmp_path: Path
) -> None:
    out = str(tmp_path / "run")
    command = ["train", "--src", f"{corpus}/x.en", "--tgt", f"{corpus}/x.de", "--out", out]
    command += ["--max-steps", "3", "--threads", "1", "--vocab-size", "330", *TINY]
    code, shown, err = call(*command)
    assert (code, shown) == (0, ""), err
    assert "training pairs" in err
    assert f"{out} is finished, at step 3. Translate with: heed translate -m {out}" in err
    for name in ("config.json", "model.safetensors", "spm.model", "README.md", "metrics.jsonl"):
        assert (tmp_path / "run" / name).is_file()
    # The heads that align best on the development pairs are stored with the model.
    assert json.loads((tmp_path / "run" / "alignment.json").read_text())["measure"]
    code, shown, err = call("choose-heads", "-m", out, "--dry-run", "--json")
    assert code == 0, err
    stored = json.loads((tmp_path / "run" / "alignment.json").read_text())
    assert {"format": stored["format"], **json.loads(shown)["best"]} == stored
    code, shown, _ = call("translate", "-q", "-m", out, "The cat sees the dog.", "")
    assert code == 0
    assert shown.count("\n") == 2
    code, _, err = call(*command)
    assert code == 0, err
    assert (
        f"{out} was finished already, at step 3. It ended at its limit of 3 steps (--max-steps)"
        ". To continue, run the same command with a higher limit."
    ) in err
    without = [part for part in command if part not in ("--max-steps", "3")]
    code, _, err = call(*without, "--time", "1h")
    assert code == 0, err
    assert (
        "It ended at its limit of 3 steps (--max-steps). A run keeps its limits until a command "
        "sets others. To continue, run the same command with --max-steps of more than 3 steps."
    ) in err
    code, _, err = call(*command, "model.d_ff=32")
    assert code == 1
    assert "model.d_ff" in err


def test_the_heads_are_stored_while_the_run_is_locked(
    call: Callable[..., Any], corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    held: list[bool] = []
    choosing = "heed.explain.attention.choice.choose_after_training"
    monkeypatch.setattr(choosing, lambda run: held.append(is_locked(run)))
    command = ["train", "--src", f"{corpus}/x.en", "--tgt", f"{corpus}/x.de", "--threads", "1"]
    command += ["--out", str(tmp_path / "run"), "--vocab-size", "330", *TINY]
    for max_steps in ("1", "2"):  # the finished run is continued
        code, _, err = call(*command, "--max-steps", max_steps)
        assert code == 0, err
    assert held == [True, True]
    assert call(*command, "--max-steps", "2")[0] == 0
    assert held == [True, True]


def test_a_folder_with_other_files_is_left_as_it_is(
    call: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "pairs.tsv").write_text("a cat\teine Katze\n")
    monkeypatch.chdir(tmp_path)
    code, _, err = call("train", "data/pairs.tsv", "--out", ".", "--max-steps", "1", *TINY)
    assert (code, err) == (
        1,
        "heed: . must be a new folder or a run of heed to continue, but holds data. "
        "Use another --out.\n",
    )
    assert [path.name for path in tmp_path.rglob("*")] == ["data", "pairs.tsv"]
    assert (tmp_path / "data" / "pairs.tsv").read_text() == "a cat\teine Katze\n"


def test_a_stop_signal_pauses_and_the_same_command_goes_on(
    call: Callable[..., Any], corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from heed.train.step import loop

    out = str(tmp_path / "run")
    command = ["train", "--src", f"{corpus}/x.en", "--tgt", f"{corpus}/x.de", "--out", out, "-q"]
    command += ["--max-steps", "3", "--threads", "1", "--vocab-size", "330", *TINY]

    def terminated(*arguments: Any) -> StepResult:
        os.kill(os.getpid(), signal.SIGTERM)
        return train_step(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(loop, "train_step", terminated)
        with pytest.raises(SystemExit) as ended:
            call(*command)
        assert ended.value.code == 143
    assert (tmp_path / "run" / "checkpoints" / "step-000001").exists()
    code, _, err = call(*[part for part in command if part != "-q"])
    assert code == 0, err
    assert "is finished, at step 3." in err


STOP_WORDS = ("stop", "training has ended", "A second")


def test_a_stop_signal_after_the_last_step_is_told_what_happens(
    call: Callable[..., Any], corpus: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["train", "--src", f"{corpus}/x.en", "--tgt", f"{corpus}/x.de", "--out"]
    command += [str(tmp_path / "run"), "--threads", "1", "--vocab-size", "330", *TINY]

    def terminated(*_: Any) -> list[str]:
        os.kill(os.getpid(), signal.SIGTERM)
        return ["calibrated"]

    with monkeypatch.context() as patch:
        patch.setattr("heed.train.run.artifacts.calibrate_after_training", terminated)
        code, _, err = call(*command, "--max-steps", "1")
    assert code == 0, err
    assert "calibrated" in err
    assert "is finished, at step 1." in err
    told = ["training has ended: stopping once the model is complete …"]
    told += ["A second SIGTERM ends heed at once; the same command then completes the model."]
    assert [line for line in err.splitlines() if line.startswith(STOP_WORDS)] == told
    # Also where the model is all that is missing.
    (tmp_path / "run" / "model.safetensors").unlink()
    with monkeypatch.context() as patch:
        patch.setattr("heed.train.run.artifacts.calibrate_after_training", terminated)
        code, _, err = call(*command, "--max-steps", "1")
    assert code == 0, err
    assert [line for line in err.splitlines() if line.startswith(STOP_WORDS)] == told


def test_a_pause_names_the_teacher_whose_steps_are_counted() -> None:
    said: list[str] = []
    session: Any = SimpleNamespace(say=said.append)
    ended = Outcome(
        is_finished=False, was_finished=False, progress=Progress(step=7), validation=None
    )
    for outcome in (ended, replace(ended, teacher="teacher 2 of 4")):
        with pytest.raises(SystemExit):
            finish(session, outcome, "run", signal.SIGINT)
    rest = "To continue, run the same command again."
    assert said == [
        f"Paused and saved at step 7. {rest}",
        f"Paused and saved at step 7 of teacher 2 of 4. {rest}",
    ]


def test_a_mistake_names_the_recipe_only_if_it_is_there(
    call: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "recipe.toml"
    path.write_text("[training]\nclip_norm = -1.0\n", encoding="utf-8")
    code, _, err = call("train", "--config", str(path), "--dump-config", "model.d_model=0")
    assert code == 1
    assert f"{path}: training.clip_norm must be" in err
    assert "\n  model.d_model must be" in err


def test_dumped_settings_are_valid_input(call: Callable[..., Any], tmp_path: Path) -> None:
    path = tmp_path / "recipe.toml"
    code, out, _ = call("train", "--dump-config", "--preset", "tiny", "training.batch_tokens=999")
    assert code == 0
    assert tomllib.loads(out)["training"]["batch_tokens"] == 999
    path.write_text(out, encoding="utf-8")
    assert call("train", "--dump-config", "--config", str(path)) == (0, out, "")


@pytest.mark.parametrize(
    ("overrides", "words"),
    [
        (["preset.x=1"], "preset must be one of tiny, small, base, big, student, but is {'x': 1}."),
        (["model.d_model=1048576", "model.d_ff=1048576"], "GB of memory for training, but only"),
        (["model.pad_id=1"], "model.pad_id follows from the vocabulary, where it is 0, but is set"),
    ],
)
def test_what_cannot_be_trained_is_neither_dumped_nor_begun(
    call: Callable[..., Any], corpus: Path, tmp_path: Path, overrides: list[str], words: str
) -> None:
    assert call("train", "--dump-config", *overrides)[0] == 1
    out = tmp_path / "run"
    files = ["--src", f"{corpus}/x.en", "--tgt", f"{corpus}/x.de", "--out", str(out)]
    code, _, err = call("train", *files, *overrides)
    assert code == 1
    assert words in err
    assert not out.exists()


def test_the_minimal_dump_holds_what_was_asked_and_is_valid_input(
    call: Callable[..., Any], tmp_path: Path
) -> None:
    path = tmp_path / "recipe.toml"
    path.write_text("[training]\nclip_norm = 2.0\n", encoding="utf-8")
    asked = ["--config", str(path), "--preset", "tiny", "--time", "5m", "model.norm=pre"]
    code, out, _ = call("train", *asked, "--dump-config", "minimal")
    assert code == 0
    assert tomllib.loads(out) == {
        "preset": "tiny",
        "model": {"norm": "pre"},
        "training": {"clip_norm": 2.0, "time_s": "5m"},
    }
    full = call("train", *asked, "--dump-config")
    path.write_text(out, encoding="utf-8")
    assert call("train", "--config", str(path), "--dump-config=minimal") == (0, out, "")
    assert call("train", "--config", str(path), "--dump-config", "full") == full


def test_a_dump_that_names_no_kind_is_full_whatever_stands_behind_it(
    call: Callable[..., Any],
) -> None:
    full = call("train", "--dump-config", "full", "model.norm=post")
    assert full[0] == 0
    for arguments in (
        ["--dump-config", "model.norm=post"],
        ["--dump_config", "model.norm=post"],
        ["model.norm=post", "--dump-config"],
    ):
        assert call("train", *arguments) == full
    assert call("train", "--dump-config=some")[::2] == (
        2,
        "heed: invalid value for '--dump-config': 'some' is not one of 'minimal', 'full'. "
        "See heed train --help.\n",
    )


@pytest.mark.parametrize("kind", ["minimal", "full"])
def test_mistakes_are_told_before_settings_are_dumped(call: Callable[..., Any], kind: str) -> None:
    code, out, err = call("train", "--dump-config", kind, "model.d_modle=3")
    assert (code, out) == (1, "")
    assert "did you mean model.d_model?" in err


def test_a_dump_fits_separate_vocabularies(
    call: Callable[..., Any], corpus: Path, tmp_path: Path
) -> None:
    recipe, out = tmp_path / "recipe.toml", str(tmp_path / "run")
    _, dumped, _ = call("train", "--dump-config", "tokenizer.joint=false", *TINY)
    recipe.write_text(dumped, encoding="utf-8")
    command = ["train", "--src", f"{corpus}/x.en", "--tgt", f"{corpus}/x.de", "--out", out]
    command += ["--config", str(recipe), "--max-steps", "1", "--threads", "1", "-q"]
    assert call(*command) == (0, "", "")
    assert (tmp_path / "run" / "source.spm").is_file()


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--src", "a"], 2, "--src and --tgt go together, but there are 1 and 0."),
        (["--src=a", "--tgt=b", "--dev-src=c"], 2, "--dev-src and --dev-tgt go together"),
        (
            [],
            2,
            "Give text to learn from: --src FILE --tgt FILE, or a .tsv, .csv, .tmx, .xliff or .po",
        ),
        (["--src=a", "--tgt=b"], 2, "Missing --out: where to write the model, e.g. --out run/"),
        (["--src=no", "--tgt=no", "--out=OUT"], 1, "no does not exist."),
        (["a.tsv", "--out=OUT", "--time", "soon"], 2, "a duration is written like 90s"),
        (["a.tsv", "--out=OUT", "model.d_modle=3"], 1, "did you mean model.d_model?"),
        (["a.tsv", "--out=OUT", "--config", "no.toml"], 1, "no.toml cannot be read"),
        (["a.tsv", "--out=OUT", "--preset", "huge"], 2, "'huge' is not one of 'tiny', 'small'"),
        (["a.txt", "--out=OUT"], 1, "a.txt does not exist."),
        (["a.tsv", "--out=OUT", "--dev-labeled=x"], 2, "--dev-labeled is not for translation"),
        (["--task=lm", "--text=x", "--both-directions", "--out=OUT"], 2, "is for translation only"),
    ],
)
def test_wrong_requests_are_told_in_one_line(
    call: Callable[..., Any], tmp_path: Path, arguments: list[str], code: int, words: str
) -> None:
    arguments = [argument.replace("OUT", str(tmp_path / "run")) for argument in arguments]
    found, out, err = call("train", *arguments)
    assert (found, out) == (code, "")
    assert words in err
    assert err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["max_steps=5"], "max_steps=5 is neither a file nor a setting: did you mean TMS=5?"),
        (["preset=tiny"], "did you mean --preset tiny?"),
        (["Training.max_steps=5"], "did you mean TMS=5?"),
        (["training.max-steps=5"], "did you mean TMS=5?"),
        (["training.max_steps = 5"], "did you mean TMS=5?"),
        (["training.max_steps", "=", "5"], "TMS=5 is neither a file nor a setting: did you mean"),
        (["training.max_steps", "=5"], "did you mean TMS=5?"),
        (["batch_token=9"], "did you mean training.batch_tokens=9?"),
        (["b=c.tsv"], "b=c.tsv does not exist."),
    ],
)
def test_a_setting_that_is_not_written_as_one_is_told(
    call: Callable[..., Any], tmp_path: Path, arguments: list[str], words: str
) -> None:
    corpus = tmp_path / "a.tsv"
    corpus.write_text("a\tb\n" * 9, encoding="utf-8")
    code, _, err = call("train", str(corpus), "--out", str(tmp_path / "run"), *arguments)
    assert code == (1 if "does not exist" in words else 2)
    assert words.replace("TMS", "training.max_steps") in err


def test_a_corpus_may_have_the_name_of_a_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Callable[..., Any]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("seed=5").write_text("a\n", encoding="utf-8")
    _, _, err = call("train", "seed=5", "--out", "run")
    assert "seed=5 must end in .tsv, .csv, .tmx, .xliff or .po" in err


@pytest.mark.parametrize(
    ("flag", "value", "words"),
    [
        ("--max-steps", "0", "heed: --max-steps must be "),
        ("--time", "0s", "heed: --time, in seconds, must be a number from 1 to 1e+08, but is 0.0."),
        ("--vocab-size", "0", "heed: --vocab-size must be "),
    ],
)
def test_a_wrong_value_names_the_flag_that_gave_it(
    call: Callable[..., Any], flag: str, value: str, words: str
) -> None:
    code, _, err = call("train", "--dump-config", flag, value)
    assert code == 2
    assert err.startswith(words)
    code, _, err = call("train", "--dump-config", "training.max_steps=0", "--time", "9s")
    assert code == 1
    assert err.startswith("heed: training.max_steps must be")


def test_a_table_of_unknown_languages_beside_known_ones_is_refused(
    call: Callable[..., Any], tmp_path: Path
) -> None:
    for name, text in (("t.tsv", "a man\tein mann\n"), ("a.en", "a dog\n"), ("a.de", "ein hund\n")):
        (tmp_path / name).write_text(text, encoding="utf-8")
    table, src, tgt = (str(tmp_path / name) for name in ("t.tsv", "a.en", "a.de"))
    asked = ("train", table, "--src", src, "--tgt", tgt, "--out", str(tmp_path / "run"))
    code, _, err = call(*asked, "--max-steps", "1")
    assert code == 1
    assert f"{table} must have a target language, as other files do" in err


def test_an_override_that_is_typed_wins_over_the_environment(
    call: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEED_TRAIN_SEED", "7")
    monkeypatch.setenv("HEED_TRAIN_DUMP_CONFIG", "minimal")
    seeds = [
        tomllib.loads(call("train", *arguments)[1])["training"]["seed"]
        for arguments in ([], ["training.seed=8"], ["training.seed=8", "--seed", "9"])
    ]
    assert seeds == [7, 8, 9]


def test_flags_win_over_overrides_and_these_over_the_file(tmp_path: Path) -> None:
    recipe = tmp_path / "recipe.toml"
    recipe.write_text("[training]\nseed = 1\nmax_steps = 1\nclip_norm = 2.0\n", encoding="utf-8")
    flags = {"seed": 3, "preset": "tiny", "time": "5m", "max_steps": None}
    overrides = ["training.seed=2", "training.max_steps=2", "model.norm=pre"]
    assert settings_from(str(recipe), flags, overrides).values == {
        "preset": "tiny",
        "model": {"norm": "pre"},
        "training": {"seed": 3, "max_steps": 2, "clip_norm": 2.0, "time_s": "5m"},
    }
    flags = {"seed": 3, "max_steps": 3}
    asked = settings_from(str(recipe), flags, overrides, from_environment={"seed"})
    assert asked.section("training") == {"seed": 2, "max_steps": 3, "clip_norm": 2.0}
    asked = settings_from(str(recipe), flags, [], from_environment={"seed", "max_steps"})
    assert asked.section("training") == {"seed": 3, "max_steps": 3, "clip_norm": 2.0}
    recipe.write_text("training = 3\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"recipe\.toml: training must be a section, but is 3"):
        settings_from(str(recipe), {}, [])
    recipe.write_text("training = 3\ndata = []\nmodel = 5\n", encoding="utf-8")
    with pytest.raises(
        ConfigError, match=r"^3 settings are wrong:(\n.*recipe\.toml: .* must be a section, .*){3}"
    ):
        settings_from(str(recipe), {"seed": 1}, [])
    with pytest.raises(
        ConfigError, match="preset.x is a setting of preset, which is not a section"
    ):
        settings_from(None, {}, ["preset=tiny", "preset.x=1"])


def test_the_last_of_two_values_for_a_setting_holds_with_a_remark(
    call: Callable[..., Any], tmp_path: Path
) -> None:
    given = ("training.seed=1", "model.norm=pre", "training.seed=2", "model.norm=pre")
    code, shown, err = call("train", "--dump-config=minimal", *given)
    assert code == 0, err
    assert tomllib.loads(shown) == {"training": {"seed": 2}, "model": {"norm": "pre"}}
    assert err == "training.seed is given more than once: 2 replaces 1.\n"
    model = tmp_path / "model"
    model.mkdir()
    grace = ("--set", "listen.grace_s=1", "--set", "listen.grace_s=2")
    code, shown, err = call("serve", str(model), *grace, "--dump-config")
    assert code == 0, err
    assert tomllib.loads(shown)["listen"]["grace_s"] == 2
    assert err == "listen.grace_s is given more than once: 2 replaces 1.\n"


def test_several_files_and_kinds_make_one_corpus() -> None:
    flags = CorpusFlags(src=("a.en", "b.txt"), tgt=("a.zh.gz", "b.tgt"))
    parts = corpus_from(flags, ["c.tmx"]).train
    assert [part.files for part in parts] == [("a.en", "a.zh.gz"), ("b.txt", "b.tgt"), ("c.tmx",)]
    assert [(part.source_lang, part.target_lang) for part in parts] == [
        ("en", "zh"),
        ("", ""),
        ("", ""),
    ]
    named = corpus_from(replace(flags, source_lang="de", target_lang="fr"), ["c.tmx"]).train
    assert {(part.source_lang, part.target_lang) for part in named} == {("de", "fr")}
    with pytest.raises(UsageError, match="--src and --tgt go together, but there are 2 and 1"):
        corpus_from(replace(flags, tgt=("a",)), [])


def test_columns_are_for_tables() -> None:
    flags = CorpusFlags(src=("a.en",), tgt=("a.de",), columns="2, 3")
    parts = corpus_from(flags, ["b.csv.gz", "c.tmx", "-"]).train
    assert [part.columns for part in parts] == [(), ("2", "3"), (), ("2", "3")]
    with pytest.raises(
        UsageError, match=r"--columns is for tables \(\.tsv, \.csv or -\), but none"
    ):
        corpus_from(flags, ["c.tmx"])
    for wrong in ("2", "1,2,3", "2,", "2,2"):
        with pytest.raises(UsageError, match=f"such as 2,3 or en,de, but is '{wrong}'"):
            corpus_from(replace(flags, columns=wrong), ["b.tsv"])


def test_a_folder_is_a_corpus_and_what_is_made_of_it_is_said(tmp_path: Path) -> None:
    for name in ("train.en", "train.de", "val.en", "val.de", "test.tsv", "notes.txt"):
        (tmp_path / name).write_text("", "utf-8")
    flags = CorpusFlags(source_lang="en", target_lang="de")
    said: list[Any] = []
    corpus = corpus_from(flags, [str(tmp_path)], say=said.append)
    assert [Path(file).name for file in corpus.train[0].files] == ["train.en", "train.de"]
    assert [Path(file).name for file in corpus.dev[0].files] == ["val.en", "val.de"]
    assert [Path(file).name for file in corpus.test[0].files] == ["test.tsv"]
    assert said == [
        "to learn from: train.en + train.de; to choose by: val.en + val.de; "
        "set aside: test.tsv; not used: notes.txt"
    ]


@pytest.mark.parametrize("flag", ["--source-lang", "--target-lang"])
@pytest.mark.parametrize("files", [["c.tsv"], ["--src", "a.x", "--tgt", "a.y"], ["."]])
def test_what_cannot_be_a_language_is_refused_before_a_file_is_opened(
    call: Callable[..., Any], tmp_path: Path, flag: str, files: list[str]
) -> None:
    languages = {"--source-lang": "en", "--target-lang": "de", flag: "a\tb"}
    typed = [word for pair in languages.items() for word in pair]
    code, _, err = call("train", *files, *typed, "--out", str(tmp_path / "run"))
    assert code == 1
    assert "a language code, such as de or pt-BR, must start with a letter" in err
    assert "but is 'a\\tb'." in err
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("name", ["German", "german"])
def test_the_name_of_a_language_is_refused_with_its_code(name: str) -> None:
    with pytest.raises(UsageError, match=f"^--target-lang .* for {name}, give --target-lang de.$"):
        corpus_from(CorpusFlags(source_lang="en", target_lang=name), ["c.tsv"])
    for code in ("DE", "de_AT", "tlh", "x"):
        corpus_from(CorpusFlags(source_lang="en", target_lang=code), ["c.tsv"])


def test_text_in_one_language_has_that_of_its_side_and_asks_for_both_directions(
    call: Callable[..., Any],
) -> None:
    flags = CorpusFlags(src=("a.en",), tgt=("a.de",), mono_tgt=("b", "c.gz"))
    mono = corpus_from(replace(flags, mono_src=("d",)), []).mono
    assert [(text.file, text.language) for text in mono] == [
        ("d", "en"),
        ("b", "de"),
        ("c.gz", "de"),
    ]
    arguments = ("train", "--mono-tgt", "b", "--dump-config", "minimal")
    assert "both_directions = true" in call(*arguments)[1]
    # Refused when the data are prepared.
    assert "both_directions = false" in call(*arguments, "data.both_directions=false")[1]


def test_a_model_to_start_from_that_is_not_there_is_told(call: Callable[..., Any]) -> None:
    code, _, err = call("train", "--src", "a", "--tgt", "b", "--from", "no", "--out", "x")
    assert (code, err) == (
        1,
        "heed: There is no model folder no. Train one with: heed train --out run/ …\n",
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--src", "a.tmx", "--tgt", "a.tmx"],
         "--src and --tgt are plain text, but a.tmx holds both languages. Give it without --src "
         "and --tgt: a.tmx"),
        (["--src", "a.en", "--tgt", "a.de", "--dev-src", "d.en", "--dev-tgt", "d.po.gz"],
         "but d.po.gz holds both languages. Give two files of plain text"),
        (["my.xlsx"], "my.xlsx is a workbook: save its sheet as .csv, in UTF-8, and give that."),
    ],
)  # fmt: skip
def test_a_file_that_is_not_what_the_flags_are_for_is_refused(
    call: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a.tmx", "a.en", "a.de", "d.en", "d.po.gz", "my.xlsx"):
        Path(name).write_bytes(b"a\n")
    code, _, err = call("train", *arguments, "--out", "run")
    assert code in (1, 2)
    assert words in err
    assert not Path("run").exists()


@pytest.mark.parametrize(
    ("path", "language"),
    [
        ("train.de", "de"),
        ("x/train.de.gz", "de"),
        ("a.txt", ""),
        ("a", ""),
        ("a.tok.en.xz", "en"),
        ("a.pt-BR", "pt-BR"),
        ("a.zh_Hant.gz", "zh_Hant"),
        ("all.de-en", ""),
        ("a.tmx", ""),
    ],
)
def test_a_language_is_read_off_a_file_name(path: str, language: str) -> None:
    assert language_of(path) == language


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


EVENTS = [
    {
        "kind": "start",
        "text": {"training pairs": 1000, "for development": 10},
        "parameters": 1_500_000,
        "model": {"src_vocab_size": 3000, "tgt_vocab_size": 4000},
        "data": {},
        "summary": "Transformer, 4 encoder and 4 decoder layers",
        "environment": {"threads": 2, "processes": 1},
    },
    {"kind": "note", "text": "continuing from step 7"},
    {"kind": "epoch", "epoch": 0, "batch": 0, "batches": 9, "steps": 9, "pad_share": 0.01},
    {
        "kind": "step",
        "step": 8,
        "epoch": 0,
        "share": 0.5,
        "elapsed_s": 60.0,
        "left_s": 60.0,
        "seconds": 0.5,
        "nll": 2.5,
        "n_tgt_tokens": 400,
    },
    {
        "kind": "validation",
        "step": 8,
        "loss": 2.1,
        "bleu": 12.34,
        "chrf": 40.0,
        "is_best": True,
        "samples": [{"src": "a", "ref": "b", "hyp": "c"}] * 3,
    },
    {
        "kind": "average",
        "checkpoints": 3,
        "loss": 2.0,
        "bleu": None,
        "chrf": None,
        "is_best": False,
    },
    {"kind": "end", "step": 9, "elapsed_s": 61.0},
]


FELL = {
    "read": 1500,
    "kept": 1493,
    "dropped": {"empty": 2, "duplicate": 5},
    "examples": {
        "empty": [{"origin": "x.en", "line": 3, "src": "", "tgt": "leer"}],
        "duplicate": [{"origin": "x.en", "line": 9, "src": "A man " * 9, "tgt": "Ein Mann"}],
    },
}
NOTHING_FELL = {"read": 20, "kept": 20, "dropped": {}, "examples": {}}


def prepare_event(phase: str, done: int = 0, of: int | None = None) -> dict[str, Any]:
    return {"kind": "prepare", "phase": phase, "done": done, "of": of, "unit": "pairs"}


def test_each_phase_of_the_preparation_is_one_line_and_a_long_one_another_every_ten_seconds(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    stream = io.StringIO()
    display = Display("chrf", stream=stream)
    display(prepare_event("reading the corpus"))
    display(prepare_event("reading the corpus", 2000))
    now += 10.0
    display(prepare_event("reading the corpus", 4000))
    display(prepare_event("encoding", of=3000))
    now += 10.0
    display(prepare_event("encoding", 2000, of=3000))
    assert stream.getvalue().splitlines() == [
        "reading the corpus …",
        "reading the corpus: 4,000 pairs",
        "encoding …",
        "encoding: 2,000 of 3,000 pairs",
    ]


def test_a_terminal_shows_the_preparation_in_one_live_line_that_goes_away() -> None:
    stream = Terminal()
    display = Display("chrf", stream=stream)
    for done in (0, 2000, 4000):
        display(prepare_event("reading the corpus", done))
    display(EVENTS[0])
    shown = stream.getvalue()
    assert "\rreading the corpus: 4,000 pairs" in shown
    lines = shown.split("\n")
    assert len(lines) == 2  # one lasting line, and nothing behind it
    assert lines[0].split("\r")[-1].startswith("1,000 training pairs")
    assert lines[1] == ""


def test_one_of_a_kind_is_not_told_in_the_plural() -> None:
    from heed.data.clean import as_table

    data = {"read": 1, "kept": 1, "dropped": {}, "examples": {}}
    assert as_table(data) == "1 pair read and kept"
    assert as_table({**data, "read": 2}) == "2 pairs read, all kept"
    assert as_table(data, unit="line", of=" of de") == "1 line of de read and kept"
    assert as_table({**data, "read": 1500}, unit="line", of=" of de").startswith("1,500 lines of d")
    shown = io.StringIO()
    display = Display("bleu", stream=shown)
    for n_train, n_dev in ((1, 1), (2000, 2)):
        display(
            {
                "kind": "start", "parameters": 0, "summary": "x", "data": {},
                "text": {"training pairs": n_train, "for development": n_dev},
                "model": {"tgt_vocab_size": 9}, "environment": {"threads": n_dev, "processes": 1},
            }
        )  # fmt: skip
    one, several = shown.getvalue().splitlines()
    assert one.startswith("1 training pair, 1 for development; ")
    assert one.endswith(", 1 thread")
    assert several.startswith("2,000 training pairs, 2 for development; ")
    assert several.endswith(", 2 threads")


def test_what_was_dropped_is_shown_with_its_reasons() -> None:
    stream = io.StringIO()
    reports = {"pairs": FELL, "dev_pairs": NOTHING_FELL, "test_pairs": NOTHING_FELL}
    event = {"kind": "prepared", "report": {**reports, "mono": {"de": NOTHING_FELL}}}
    Display("chrf", stream=stream)(event)
    assert stream.getvalue().splitlines() == [
        "1,500 pairs read, 1,493 kept, 7 dropped:",
        '           5 duplicate (the first: x.en line 9: "A man A man A man A man A man …" | '
        '"Ein Mann")',
        '           2 empty (the first: x.en line 3: "" | "leer")',
        "20 lines of de read, all kept",
    ]


def test_only_lasting_lines_are_written_where_no_terminal_reads() -> None:
    stream = io.StringIO()
    display = Display("chrf", stream=stream)
    for event in EVENTS:
        display(event)
    display.close()
    assert stream.getvalue().splitlines() == [
        "1,000 training pairs, 10 for development; 1.5 million parameters "
        "(Transformer, 4 encoder and 4 decoder layers, 4,000 pieces), 2 threads",
        "continuing from step 7",
        "step 8  dev loss 2.100  BLEU 12.34  chrF 40.00  (best)",
        "    src  a",
        "    ref  b",
        "    hyp  c",
        "average of 3 checkpoints  dev loss 2.000",
        "finished at step 9, after 1m",
    ]


def test_the_pieces_of_a_classifier_are_those_that_it_reads() -> None:
    stream = io.StringIO()
    display = Display("accuracy", stream=stream)
    display(EVENTS[0] | {"data": {"labels": ["bad", "good"]}})
    assert "decoder layers, 3,000 pieces), 2 threads" in stream.getvalue()


def test_a_terminal_gets_one_live_line_that_is_cleaned_up() -> None:
    stream = Terminal()
    display = Display("chrf", stream=stream)
    for event in EVENTS:
        display(event)
    display.close()
    shown = stream.getvalue()
    assert "50%  1m left" in shown
    assert "pad 1.0%" in shown
    assert re.search(r"\r +\r$", shown)
    assert "\x1b" not in shown


def test_the_live_line_fits_its_terminal_while_standard_output_goes_elsewhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 20, 0, 0))
    with open(follower, "w", encoding="utf-8") as stream, open(leader, "rb", buffering=0) as screen:
        display = Display("chrf", stream=stream)
        display(prepare_event("reading the whole of a large corpus", 4000))
        shown = screen.read(1000).decode()
    assert max(map(len, shown.split("\r"))) == 19


def test_a_run_goes_on_when_nobody_reads_its_progress() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    with open(writer, "w", encoding="utf-8") as stream:
        display = Display("chrf", stream=stream)
        for event in EVENTS:
            display(event)
        display.close()


def test_a_dumb_terminal_gets_the_lasting_lines_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    stream = Terminal()
    display = Display("chrf", stream=stream)
    for event in EVENTS:
        display(event)
    display.close()
    assert "\r" not in stream.getvalue()
    assert "finished at step 9" in stream.getvalue()


def test_samples_of_the_corpus_cannot_control_the_terminal() -> None:
    stream = Terminal()
    display = Display("chrf", stream=stream)
    display.line("    src  a \u202e b \x1b[2J")
    assert stream.getvalue().endswith("    src  a \\u202e b \\x1b[2J\n")


@pytest.mark.parametrize("command", ["train", "distill", "demo"])
def test_flags_that_are_wrong_are_named_as_they_were_typed(
    call: Callable[..., Any], command: str
) -> None:
    teacher = ["x"] if command == "distill" else []
    code, _, err = call(command, *teacher, "--time", "soon")
    assert code == 2
    assert "invalid value for '--time': a duration is written like 90s" in err
    code, _, err = call(command, *teacher, "--threads", "0")
    assert code == 2
    assert "invalid value for '--threads': 0 is not in the range 1<=x<=1024." in err
