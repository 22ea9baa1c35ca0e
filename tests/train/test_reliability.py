"""Whole runs under faults, row by row of RELIABILITY's tables 5.1, 5.2 and N10.

Not the parts by themselves: saves and files are in `test_checkpoint.py` and `tests/test_files.py`,
several processes in `test_distributed.py`, numbers that burst in `test_mend.py`.
"""

import errno
import hashlib
import itertools
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from heed import files
from heed.data.prepare import Corpus
from heed.errors import RunError
from heed.files import lock, read_json_lines

Run = Callable[..., Any]

EXACT = {
    "max_steps": 24,
    "checkpoint_every": 4,
    "validate_every": 7,
    "ema_decay": 0.9,
    "threads": 1,
}
"""A run whose every step counts, some two dozen to be killed in."""


def digest(out: Path) -> str:
    """One number for the model, and for the optimizer's moments in the last checkpoint."""
    last = max(out.glob("checkpoints/step-*"))
    paths = [out / "model.safetensors", *sorted(last.glob("*.safetensors"))]
    return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()


def validations(out: Path) -> list[tuple[int, float]]:
    events = read_json_lines(out / "metrics.jsonl")
    return [(event["step"], event["loss"]) for event in events if event["kind"] == "validation"]


def in_a_child(work: Callable[[], Any]) -> int:
    """Fork a process that does `work` and exits with 0, or 1 after an exception."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return pid


def is_dead_by(pid: int, signal_number: int) -> bool:
    status = os.waitpid(pid, 0)[1]
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) == signal_number
        return True
    assert os.WEXITSTATUS(status) == 0
    return False


# R1 to R3: killed


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_fifty_kills_at_random_moments_change_no_bit(tmp_path: Path, small_run: Run) -> None:
    """R1."""
    started_at = time.monotonic()
    small_run(tmp_path / "whole", **EXACT)
    duration_s = time.monotonic() - started_at
    expected, chooser, n_kills, n_runs = digest(tmp_path / "whole"), random.Random(1), 0, 0
    while n_kills < 50:
        out = tmp_path / f"killed-{n_runs}"
        n_runs += 1
        is_killed = True
        while is_killed:
            pid = in_a_child(lambda out=out: small_run(out, **EXACT))
            time.sleep(chooser.uniform(0.05, 0.6) * duration_s)
            os.kill(pid, signal.SIGKILL)
            is_killed = is_dead_by(pid, signal.SIGKILL)
            n_kills += is_killed
        assert digest(out) == expected
        assert validations(out) == validations(tmp_path / "whole")
        shutil.rmtree(out)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_kill_at_every_seventh_write_of_a_run_changes_no_bit(
    tmp_path: Path, small_run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """R2: `test_checkpoint.py` tries every point of one save, this one those of a whole run."""
    settings = {**EXACT, "max_steps": 9}
    small_run(tmp_path / "whole", **settings)
    expected, fault, is_killed = digest(tmp_path / "whole"), 1, True

    def die_at(point: int, out: Path) -> None:
        files._fault_points = itertools.count(1)
        os.environ["HEED_FAULT"] = str(point)
        small_run(out, **settings)

    while is_killed:
        out = tmp_path / "killed"
        shutil.rmtree(out, ignore_errors=True)
        pid = in_a_child(lambda fault=fault, out=out: die_at(fault, out))
        is_killed = is_dead_by(pid, signal.SIGKILL)
        small_run(out, **settings)
        assert digest(out) == expected, f"killed at point {fault}"
        fault += 7
    assert fault > 100


# R4, R5: the disk


class Disk:
    """Lets so many writes through and then fails, until it is mended."""

    def __init__(self, patch: pytest.MonkeyPatch, code: int) -> None:
        self.left, self.code = 10**9, code
        sync = files._sync

        def failing(file: Any) -> None:
            self.left -= 1
            if self.left < 0:
                raise OSError(self.code, os.strerror(self.code), file.name)
            sync(file)

        patch.setattr(files, "_sync", failing)


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (errno.ENOSPC, r"cannot write .*: No space left on device\. .*bytes are free\. Make room"),
        (errno.EROFS, r"Read-only file system\. Choose a folder that this user may write to\."),
        (errno.EIO, r"Input/output error"),
    ],
)
def test_a_disk_that_fails_in_a_checkpoint_is_told_and_the_run_goes_on_when_it_is_mended(
    tmp_path: Path, small_run: Run, monkeypatch: pytest.MonkeyPatch, code: int, words: str
) -> None:
    """R4, R5."""
    small_run(tmp_path / "whole", **EXACT)
    disk, out = Disk(monkeypatch, code), tmp_path / "run"

    def fill_up(event: dict[str, Any]) -> None:
        if event["kind"] == "step" and event["step"] == 10:
            disk.left = 2  # inside the next checkpoint, at step 12

    with pytest.raises(RunError, match=words):
        small_run(out, on=fill_up, **EXACT)
    names = sorted(entry.name for entry in (out / "checkpoints").iterdir())
    assert names == ["best", "step-000004", "step-000008"]
    disk.left = 10**9
    small_run(out, **EXACT)
    assert digest(out) == digest(tmp_path / "whole")


def test_a_folder_that_cannot_be_made_is_refused_at_once(small_run: Run) -> None:
    """R5: nobody, not even root, makes folders in /proc."""
    if not Path("/proc/self").exists():
        pytest.skip("needs Linux's /proc")
    with pytest.raises(RunError, match="cannot write /proc/heed"):
        small_run(Path("/proc/heed"))


def test_a_folder_that_vanishes_is_no_silent_success(tmp_path: Path, small_run: Run) -> None:
    """R5."""
    out = tmp_path / "run"

    def remove(event: dict[str, Any]) -> None:
        if event["kind"] == "step" and event["step"] == 6:
            shutil.rmtree(out)

    with pytest.raises(RunError, match="it was moved or removed while its run was going on"):
        small_run(out, on=remove, **EXACT)
    assert not (out / "checkpoints").exists()


@pytest.mark.slow
def test_a_really_full_disk_is_told_and_the_older_checkpoint_stays(
    tmp_path: Path, small_corpus: Corpus
) -> None:
    """R4, on a small file system of its own."""
    mount = f"mount -t tmpfs -o size=900k none {tmp_path / 'disk'}"
    command = ["unshare", "-rm", "sh", "-c"]
    (tmp_path / "disk").mkdir()
    try:
        subprocess.run([*command, mount], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("needs unshare -rm with leave to mount a tmpfs")
    src, tgt = small_corpus.train[0].files
    train = [sys.executable, "-m", "heed", "train", "--src", src, "--tgt", tgt, "--threads", "1"]
    train += ["--source-lang", "de", "--target-lang", "xx", "--out", str(tmp_path / "disk" / "run")]
    train += ["tokenizer.kind=word", "tokenizer.vocab_size=330", "model.d_model=32"]
    train += ["model.n_heads=2", "--max-steps", "20", "--checkpoint-every", "2"]
    shell = f'{mount} && "$@"; echo code $?; ls {tmp_path}/disk/run/checkpoints'
    done = subprocess.run(
        [*command, shell, "sh", *train], capture_output=True, text=True, check=False
    )
    assert "code 1" in done.stdout, done.stderr
    assert "No space left on device" in done.stderr
    assert ".tmp-" not in done.stdout


# R7, R8: two at once, and signals


def test_a_second_process_on_the_same_run_is_refused_by_number(
    tmp_path: Path, small_run: Run
) -> None:
    """R7."""
    out = tmp_path / "run"
    reader, writer = os.pipe()

    def hold() -> None:
        with lock(out):
            os.write(writer, b"x")
            time.sleep(600)

    pid = in_a_child(hold)
    try:
        os.read(reader, 1)
        with pytest.raises(RunError, match=f"another process \\(pid {pid}\\) is training in"):
            small_run(out)
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
    assert small_run(out)[0].is_finished


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_stop_signals_pause_and_the_same_command_goes_on_exactly(
    tmp_path: Path, small_corpus: Corpus, small_run: Run
) -> None:
    """R8."""
    from heed.cli.train import stop_signals
    from heed.train.run import run_training

    small_run(tmp_path / "whole", **EXACT)
    chooser, numbers = random.Random(0), (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)
    for trial in range(20):
        out, number = tmp_path / f"run-{trial}", numbers[trial % 3]
        at = chooser.randrange(1, 24)
        settings: dict[str, Any] = {}

        def interrupt(event: dict[str, Any], number: int = number, at: int = at) -> None:
            if event["kind"] == "step" and event["step"] == at:
                os.kill(os.getpid(), number)

        with stop_signals() as received, pytest.MonkeyPatch.context() as patch:

            def pausing(*arguments: Any, **options: Any) -> Any:
                options["should_stop"] = lambda: bool(received)
                return run_training(*arguments, **options)

            patch.setitem(small_run.__globals__, "run_training", pausing)
            outcome, _ = small_run(out, on=interrupt, **EXACT, **settings)
        assert (outcome.is_finished, outcome.progress.step) == (False, at)
        small_run(out, **EXACT)
        assert digest(out) == digest(tmp_path / "whole"), (trial, at, number)


# R10: what was changed


@pytest.mark.parametrize(
    ("key", "value", "is_welcome"),
    [
        ("learning_rate", 0.5, False),
        ("seed", 2, False),
        ("batch_tokens", 65, False),
        ("schedule", "cosine", False),
        ("ema_decay", 0.5, False),
        ("precision", "float32", False),
        ("max_steps", 30, True),
        ("threads", 2, True),
        ("patience", 9, True),
        ("checkpoint_every", 3, True),
        ("keep_checkpoints", 5, True),
    ],
)
def test_a_changed_setting_is_refused_by_its_name_unless_it_may_change(
    tmp_path: Path, small_run: Run, key: str, value: Any, is_welcome: bool
) -> None:
    """R10."""
    small_run(tmp_path / "run", stop_at=2)
    if is_welcome:
        assert not small_run(tmp_path / "run", stop_at=4, **{key: value})[0].was_finished
        return
    with pytest.raises(RunError, match=f"training.{key} = .*, but is now asked for {value}"):
        small_run(tmp_path / "run", **{key: value})


def test_the_run_folder_holds_recipe_environment_and_hashes_of_the_data(
    tmp_path: Path, small_run: Run
) -> None:
    small_run(tmp_path / "run")
    start = next(read_json_lines(tmp_path / "run" / "metrics.jsonl"))
    assert start["kind"] == "start"
    assert {"torch", "python", "cpu", "threads", "processes"} <= set(start["environment"])
    recipe = (tmp_path / "run" / "recipe.toml").read_text()
    assert all(f"[{section}]" in recipe for section in ("data", "tokenizer", "model", "training"))
    report = json.loads((tmp_path / "run" / "data" / "report.json").read_text())
    assert "checksum" in report["fingerprint"]["train file 1.1"]


# D1, D2, N10: the same again


def test_another_seed_gives_another_model(tmp_path: Path, small_run: Run) -> None:
    """D2: guards against a constant."""
    small_run(tmp_path / "one", **EXACT)
    small_run(tmp_path / "two", **EXACT, seed=2)
    assert digest(tmp_path / "one") != digest(tmp_path / "two")


@pytest.mark.slow
def test_hash_seeds_and_working_folders_change_no_bit(tmp_path: Path, small_corpus: Corpus) -> None:
    """D1."""
    found = set()
    for number, hash_seed in enumerate(("0", "1", "random")):
        out, cwd = tmp_path / f"run-{number}", tmp_path / f"cwd-{number}"
        cwd.mkdir()
        src, tgt = small_corpus.train[0].files
        command = [sys.executable, "-m", "heed", "train", "--src", src, "--tgt", tgt, "--out", out]
        command += ["--source-lang", "de", "--target-lang", "xx", "--max-steps", "12"]
        command += ["--threads", "1", "tokenizer.kind=word", "tokenizer.vocab_size=330"]
        command += ["model.d_model=16", "model.n_heads=2", "training.validation_sentences=2"]
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "OMP_NUM_THREADS": "1"}
        subprocess.run(command, check=True, cwd=cwd, env=environment, capture_output=True)
        found.add(digest(out))
    assert len(found) == 1


GOLDEN = {1: 6.028769, 10: 3.934662, 25: 2.131158, 50: 2.293593}
"""Loss of single steps, written down once. A change of it is a change of what training computes."""


def test_the_first_fifty_losses_are_what_they_were(tmp_path: Path, small_run: Run) -> None:
    """N10. Processors and versions of torch round differently, which fifty steps carry on."""
    settings = {"optimizer": "adamw", "warmup_steps": 5, "learning_rate": 0.01}
    _, events = small_run(tmp_path / "run", max_steps=50, validate_every=50, **settings)
    losses = {event["step"]: event["nll"] for event in events if event["kind"] == "step"}
    assert {step: losses[step] for step in GOLDEN} == pytest.approx(GOLDEN, rel=1e-3)
