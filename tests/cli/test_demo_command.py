"""`heed demo`: where it may write. What it trains is shown by `heed demo` itself."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from heed.cli import train


def test_a_folder_with_other_files_is_refused_before_anything_is_written(
    call: Callable[..., Any], tmp_path: Path
) -> None:
    folder = tmp_path / "proj"
    (folder / "corpus").mkdir(parents=True)
    (folder / "corpus" / "train.zh-en.zh").write_text("mine")
    code, _, err = call("demo", "--out", str(folder))
    assert code == 1
    assert f"heed: {folder} must be a new folder or a run of heed to go on with" in err
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
