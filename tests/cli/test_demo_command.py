"""`heed demo`: where it may write. What it trains is shown by `heed demo` itself."""

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from heed.cli import train
from heed.cli.demo import next_steps
from heed.demo.grammar import word_text


def test_a_folder_with_other_files_is_refused_before_anything_is_written(
    call: Callable[..., Any], tmp_path: Path
) -> None:
    folder = tmp_path / "proj"
    (folder / "corpus").mkdir(parents=True)
    (folder / "corpus" / "train.zh-en.zh").write_text("mine")
    code, _, err = call("demo", "--out", str(folder))
    assert code == 1
    assert f"heed: {folder} must be a new folder or a run of heed to continue" in err
    assert [path.name for path in folder.rglob("*")] == ["corpus", "train.zh-en.zh"]
    assert (folder / "corpus" / "train.zh-en.zh").read_text() == "mine"


def test_a_demo_that_was_killed_before_training_goes_on(
    call: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Killed(BaseException):
        pass

    def killed(*_: Any) -> None:
        raise Killed

    monkeypatch.setattr(train, "start", killed)
    folder = tmp_path / "heed-demo"
    for _ in range(2):
        with pytest.raises(Killed):
            call("demo", "--out", str(folder), "--time", "30s")
    assert (folder / "corpus" / "train.zh-en.zh").exists()
    assert json.loads((folder / "asked.json").read_text())["training"]["time_s"] == "30s"


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--language", "es"], "--language is for --write-text: give that too."),
        (["--write-text", "t", "--time", "3s"], "--time is for training: with --write-text leave"),
        (["--write-text", "t", "--out", "x"], "--out is for training: with --write-text leave it"),
        (["--write-text", ""], "'--write-text': the name is empty."),
        (["--time", "0"], "--time, in seconds, must be a number from 1 to"),
    ],
)
def test_a_wrong_request_is_refused_and_leaves_no_folder(
    call: Callable[..., Any],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    flags: list[str],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    code, out, err = call("demo", *flags)
    assert (code, out) == (2, "")
    assert words in err
    assert not any(tmp_path.iterdir())


def test_the_next_steps_can_be_pasted_into_a_shell() -> None:
    commands = [shlex.split(line) for line in next_steps("my dir/heed's demo").splitlines()]
    named = [words[words.index("-m") + 1] for words in commands if "-m" in words]
    assert named == ["my dir/heed's demo"] * 5


def test_its_text_is_written_for_word_vectors(call: Callable[..., Any], tmp_path: Path) -> None:
    for language in ("en", "es"):
        path = tmp_path / language
        assert call("demo", "--write-text", str(path), "--language", language) == (0, "", "")
        assert path.read_text("utf-8").splitlines() == word_text(language)
    assert not (tmp_path / "heed-demo").exists()
