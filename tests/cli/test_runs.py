"""`heed inspect` of run folders: which screen, which models, and the table on the terminal."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.explain.training.made import epoch, start, step, validation, write

from heed.cli.inspect import first_screen, settings_of
from heed.cli.runs import held_if_run
from heed.disk.files import LOCK, is_locked, lock

Call = Callable[..., tuple[int, str, str]]
Run = Callable[..., "subprocess.CompletedProcess[bytes]"]


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return write(tmp_path / "run", [start(), epoch(0, 0), step(20), validation(20, 12.5)])


def test_a_run_without_a_model_opens_its_training_with_a_token(run: Path) -> None:
    settings = settings_of((str(run),), 0)
    assert (settings.models, settings.inside.runs) == ((), (str(run),))
    assert len(settings.inside.token) > 20
    assert first_screen(settings) == "training"


def test_a_text_that_a_run_cannot_show_is_refused_with_the_reason(
    call: Call, run: Path, model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in Path(model).iterdir():
        (run / file.name).write_bytes(file.read_bytes())
    config = json.loads((run / "config.json").read_text("utf-8"))
    (run / "config.json").write_text(json.dumps({**config, "source_lang": "", "target_lang": ""}))
    reason = f"{run} does not say which languages it translates, so requests cannot name them."
    code, _, err = call("inspect", str(run), "a dog", "--html", str(tmp_path / "dog.html"))
    assert code == 2
    assert f"--html needs a translator: {reason}" in err
    monkeypatch.setattr("heed.serve.run.serve", lambda *_, **__: 0)
    code, _, err = call("inspect", str(run), "a dog")
    assert code == 0
    assert err.startswith(f"heed: TEXT is not shown: {reason}")


def test_a_model_that_is_no_run_has_no_training(model: str) -> None:
    settings = settings_of((model,), 0)
    assert (settings.inside.runs, settings.inside.token) == ((), "")
    assert first_screen(settings) == "attention"


def test_a_run_with_a_model_opens_its_training_while_it_goes_on(run: Path, model: str) -> None:
    for file in Path(model).iterdir():
        (run / file.name).write_bytes(file.read_bytes())
    settings = settings_of((str(run),), 0)
    assert settings.models == settings.inside.runs == (str(run),)
    assert first_screen(settings) == "attention"
    with lock(run):
        assert first_screen(settings) == "training"


def test_the_table_of_a_run_is_printed(run: Path, call: Call) -> None:
    code, out, _ = call("inspect", str(run), "--training")
    assert code == 0
    assert out.startswith("run: Ended at step 20 without saving: BLEU 12.5.")
    assert "train loss" in out


def test_without_a_terminal_of_unicode_the_table_is_ascii(
    run: Path, heed: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    done = heed("inspect", str(run), "--training")
    assert done.returncode == 0
    assert done.stdout.isascii()


def test_what_is_no_run_has_no_table(model: str, call: Call) -> None:
    code, _, err = call("inspect", model, "--training")
    assert code == 2
    assert "is not a run folder" in err


def test_nothing_is_stored_in_a_run_that_another_process_trains(
    call: Call, run: Path, model: str
) -> None:
    for file in Path(model).iterdir():
        (run / file.name).write_bytes(file.read_bytes())
    with lock(run):
        code, _, err = call("quantize", str(run))
    assert code == 1
    assert f"another process (pid {os.getpid()}) is training in {run}. Wait for it" in err
    assert not (run / "model.int8.safetensors").exists()
    assert call("quantize", str(run))[0] == 0
    assert (run / "model.int8.safetensors").exists()


@pytest.mark.parametrize("is_a_run", [False, True])
def test_only_run_folders_are_locked(run: Path, tmp_path: Path, is_a_run: bool) -> None:
    folder = run if is_a_run else tmp_path
    with held_if_run(folder):
        assert is_locked(folder) is is_a_run
    assert (folder / LOCK).exists() is is_a_run
