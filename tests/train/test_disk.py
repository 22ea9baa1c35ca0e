"""Disks that are full, read-only, broken or gone (faults R4, R5): told in words, nothing torn.

Not what a kill leaves (`run/test_checkpoint.py`, `test_reliability.py`), nor a power cut
(`test_power_loss.py`).
"""

import ctypes
import errno
import io
import os
import random
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from heed.data.corpus import Corpus
from heed.disk import files
from heed.disk.folders import read_directory, write_directory
from heed.errors import RunError
from heed.train.run.checkpoint import load_newest, save

Run = Callable[..., Any]
Fork = Callable[..., int]
WasKilled = Callable[[int], bool]

EXACT = {"max_steps": 24, "checkpoint_every": 4, "validate_every": 7, "threads": 1}

FULL = (
    r"cannot write \S+: "
    r"(No space left on device\. It needs \d+ bytes, \d+ bytes are free\. Make room and run again\."
    r"|File too large\. It needs \d+ bytes, more than a file may have here \(ulimit -f\)\. "
    r"Raise that limit, or use another disk\.)"
)


def model(out: Path) -> bytes:
    return (out / "model.safetensors").read_bytes()


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


WORDS = {
    errno.ENOSPC: r"cannot write .*: No space left on device\. .*bytes are free\. Make room",
    errno.EROFS: r"Read-only file system\. Choose a writable folder\.",
    errno.EIO: r"Input/output error",
}


def test_a_disk_that_fails_in_a_checkpoint_is_told_and_the_run_goes_on_when_it_is_mended(
    tmp_path: Path, small_run: Run
) -> None:
    """Faults R4, R5."""
    small_run(tmp_path / "whole", **EXACT)
    for code, words in WORDS.items():
        out = tmp_path / errno.errorcode[code]
        with pytest.MonkeyPatch.context() as patch:
            disk = Disk(patch, code)

            def fill_up(event: dict[str, Any], disk: Disk = disk) -> None:
                if event["kind"] == "step" and event["step"] == 10:
                    disk.left = 2  # inside the next checkpoint, at step 12

            with pytest.raises(RunError, match=words):
                small_run(out, on=fill_up, **EXACT)
        names = sorted(entry.name for entry in (out / "checkpoints").iterdir())
        assert names == ["best", "step-000004", "step-000008"]
        small_run(out, **EXACT)
        assert model(out) == model(tmp_path / "whole")


def test_a_folder_that_cannot_be_made_is_refused_at_once(small_run: Run) -> None:
    """Fault R5: nobody, not even root, makes folders in /proc."""
    if not Path("/proc/self").exists():
        pytest.skip("needs Linux's /proc")
    with pytest.raises(RunError, match="cannot write /proc/heed"):
        small_run(Path("/proc/heed"))


def test_a_folder_that_vanishes_is_no_silent_success(tmp_path: Path, small_run: Run) -> None:
    """Fault R5."""
    out = tmp_path / "run"

    def remove(event: dict[str, Any]) -> None:
        if event["kind"] == "step" and event["step"] == 6:
            shutil.rmtree(out)

    with pytest.raises(RunError, match="it was moved or removed during the run"):
        small_run(out, on=remove, **EXACT)
    assert not (out / "checkpoints").exists()


class ShortWrites(io.FileIO):
    """A disk that takes seven bytes of every write, and is interrupted at every fifth."""

    n_writes = 0

    def write(self, data: Any) -> int:
        self.n_writes += 1
        if self.n_writes % 5 == 0:
            raise InterruptedError(errno.EINTR, os.strerror(errno.EINTR))
        return super().write(memoryview(data)[:7]) or 0


def test_short_and_interrupted_writes_change_no_byte(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fault R5."""

    def open_short(path: Any, mode: str) -> Any:
        if mode != "xb":
            return open(path, mode)
        return io.BufferedWriter(ShortWrites(path, "x"), buffer_size=64)

    content = random.Random(0).randbytes(3000)
    monkeypatch.setattr(files, "open", open_short, raising=False)
    files.write_atomically(tmp_path / "file", content)
    write_directory(tmp_path / "folder", {"a": content})
    monkeypatch.undo()
    assert (tmp_path / "file").read_bytes() == content
    assert read_directory(tmp_path / "folder")[1] == {"a": content}


def save_step(run: Path, step: int) -> None:
    """A checkpoint of some 320 kB."""
    weights = {"w": torch.full((40_000,), float(step))}
    save(run, step, model=weights, optimizer={"m": weights["w"] + 1}, progress={})


def save_until_full(run: Path, *, saved: int = 0) -> bool:
    """Save up to step 3, or until the disk is full; whether it was. What was saved is sound."""
    words = ""
    for step in range(saved + 1, 4):
        try:
            save_step(run, step)
        except RunError as error:
            words = str(error)
            assert re.fullmatch(FULL, words), words
            break
        saved = step
    found = load_newest(run)
    assert (found.step if found else 0) == saved
    assert not list(run.rglob("*.tmp-*"))
    return bool(words)


def test_files_of_twenty_limited_sizes_are_whole_or_not_there(
    tmp_path: Path, fork: Fork, was_killed: WasKilled
) -> None:
    """Fault R4, where no file system may be mounted."""
    for number, size_bytes in enumerate(range(10_000, 210_000, 10_000)):
        run = tmp_path / str(number)

        def work(run: Path = run, size_bytes: int = size_bytes) -> None:
            save_step(run, 1)
            resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, size_bytes))
            # 40 000 weights are 160 000 bytes, and a header.
            assert save_until_full(run, saved=1) == (size_bytes <= 160_000)

        assert not was_killed(fork(work)), size_bytes


def enter_namespaces() -> bool:
    """Let this process mount file systems that only it sees; it must have a single thread."""
    new_namespace, new_user = 0x00020000, 0x10000000  # CLONE_NEWNS, CLONE_NEWUSER of <sched.h>
    user, group = os.getuid(), os.getgid()
    if ctypes.CDLL(None).unshare(new_namespace | new_user):
        return False
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"0 {user} 1")
    Path("/proc/self/gid_map").write_text(f"0 {group} 1")
    return True


def may_mount(folder: Path) -> bool:
    mount = ["mount", "-t", "tmpfs", "none", str(folder)]
    try:
        done = subprocess.run(["unshare", "-rm", *mount], check=False, capture_output=True)
    except OSError:
        return False
    return done.returncode == 0


def test_on_disks_of_twenty_sizes_what_was_saved_stays(
    tmp_path: Path, fork: Fork, was_killed: WasKilled
) -> None:
    """Fault R4: from a fifth of a checkpoint to more than two; with room again it goes on."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if not may_mount(disk):
        pytest.skip("needs unshare -rm with leave to mount a tmpfs")

    def work() -> None:
        assert enter_namespaces()
        were_full = []
        for size_kb in range(64, 64 + 20 * 64, 64):
            options = ["-t", "tmpfs", "-o", f"size={size_kb}k"]
            subprocess.run(["mount", *options, "none", str(disk)], check=True)
            were_full.append(save_until_full(disk / "run"))
            subprocess.run(["mount", "-o", "remount,size=8m", str(disk)], check=True)
            save_step(disk / "run", 4)
            found = load_newest(disk / "run")
            assert found is not None
            assert found.step == 4
        assert were_full[0]
        assert not were_full[-1]

    assert not was_killed(fork(work))


@pytest.mark.slow
@pytest.mark.reliability
def test_a_training_on_a_full_disk_ends_with_code_1_and_words(
    tmp_path: Path, small_corpus: Corpus
) -> None:
    """Fault R4, from the outside."""
    mount = f"mount -t tmpfs -o size=900k none {tmp_path / 'disk'}"
    command = ["unshare", "-rm", "sh", "-c"]
    (tmp_path / "disk").mkdir()
    if not may_mount(tmp_path / "disk"):
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
