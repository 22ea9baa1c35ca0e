"""A stop signal ends a command at once before training begins, and is only noted afterwards."""

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from heed.cli import stopping
from heed.cli.stopping import (
    AGAIN,
    AGAIN_COMPLETING,
    COMPLETING,
    ENDING,
    STOPPED,
    STOPPING,
    Stopped,
    stop_signals,
)

SMALL = (
    "model.d_model=16",
    "model.n_heads=2",
    "model.d_ff=32",
    "model.n_encoder_layers=1",
    "model.n_decoder_layers=1",
    "training.validation_sentences=2",
    "training.validations=1",
    "decoding.max_length=8",
)
CORPUS = b"".join(b"sentence number %d here\tSatz Nummer %d, hier\n" % (n, n) for n in range(60))


@pytest.fixture
def _interruptible() -> Iterator[None]:
    """SIGINT interrupts, though a shell that starts tests in the background has it ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("_interruptible")
def test_the_first_signal_is_noted_and_the_second_acts() -> None:
    with stop_signals() as stop:
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.received == [signal.SIGINT]
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.usefixtures("hang_ups_end")
@pytest.mark.parametrize("number", stopping.STOP_SIGNALS)
def test_before_training_a_signal_ends_what_is_being_done(number: Any) -> None:
    said: list[Any] = []
    with pytest.raises(Stopped) as stopped, stop_signals(said.append):
        os.kill(os.getpid(), number)
        time.sleep(10)
    assert stopped.value.code == 128 + number
    assert said == [STOPPING, STOPPED]


@pytest.mark.usefixtures("_interruptible", "hang_ups_end")
@pytest.mark.parametrize(
    ("number", "again"),
    [
        (signal.SIGINT, ["A second Ctrl-C ends heed at once, without saving."]),
        (signal.SIGTERM, ["A second SIGTERM ends heed at once, without saving."]),
        (signal.SIGHUP, []),
    ],
)
def test_once_training_has_begun_a_signal_is_noted_and_answered(
    number: Any, again: list[str]
) -> None:
    said: list[Any] = []
    with stop_signals(said.append) as stop:
        stop.only_note()
        os.kill(os.getpid(), number)
    assert (stop.received, said) == ([number], [ENDING, *again])


@pytest.mark.usefixtures("_interruptible")
@pytest.mark.parametrize("is_in_step", [True, False])
def test_after_the_last_step_a_signal_is_told_that_the_model_is_completed(is_in_step: bool) -> None:
    said: list[Any] = []
    completing = [COMPLETING, AGAIN_COMPLETING.format(name="Ctrl-C")]
    with stop_signals(said.append) as stop:
        stop.only_note()
        if is_in_step:
            os.kill(os.getpid(), signal.SIGINT)
            stop.only_complete()
            assert [
                text for text in said if text not in (ENDING, AGAIN.format(name="Ctrl-C"))
            ] == completing
        else:
            stop.only_complete()
            os.kill(os.getpid(), signal.SIGINT)
    if not is_in_step:
        assert said == completing
    stop.only_note()  # a teacher is complete, and the next one begins
    assert ENDING in stop.answers(signal.SIGINT)


@pytest.mark.usefixtures("_interruptible")
def test_a_signal_is_answered_while_the_step_is_still_at_work() -> None:
    said: list[Any] = []
    with stop_signals(said.append) as stop:
        stop.only_note()
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000):
            if len(said) == 2:
                break
            time.sleep(0.01)
        assert said[0] == ENDING
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert len(said) == 2  # the second one is not answered again


@pytest.mark.usefixtures("hang_ups_end")
def test_the_end_of_a_terminal_is_noted_once_although_it_is_told_twice() -> None:
    with stop_signals() as stop:
        os.kill(os.getpid(), signal.SIGHUP)
        os.kill(os.getpid(), signal.SIGHUP)
    assert stop.received == [signal.SIGHUP]
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_DFL


@pytest.mark.usefixtures("hang_ups_end")
def test_the_end_of_a_terminal_is_ignored_under_nohup() -> None:
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with stop_signals() as stop:
        os.kill(os.getpid(), signal.SIGHUP)
    assert stop.received == []
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN


BLOCKED_IN_C = """
import ctypes, sys
from heed.cli.stopping import stop_signals
c, mutex = ctypes.CDLL(None), ctypes.create_string_buffer(64)
with stop_signals(lambda words: print(words, file=sys.stderr, flush=True)):
    print("ready", flush=True)
    c.pthread_mutex_lock(mutex)
    c.pthread_mutex_lock(mutex)  # waits for ever, and no signal ends that
"""


def started(*command: str, **options: object) -> "subprocess.Popen[bytes]":
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, *command], stderr=subprocess.PIPE, env=environment, **options
    )


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="glibc's mutex")
def test_a_process_ends_in_time_although_its_main_thread_is_in_a_c_function() -> None:
    process = started("-c", BLOCKED_IN_C, stdout=subprocess.PIPE)
    process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err.decode()) == (143, f"{STOPPING}\n{STOPPED}\n")


def stop(process: "subprocess.Popen[bytes]", phase: str, number: int) -> tuple[str, float]:
    """Send a signal when the phase has begun: the rest of standard error, and the seconds taken."""
    for line in process.stderr:
        if line.decode().startswith(phase):
            break
    time.sleep(0.3)
    began_at = time.monotonic()
    process.send_signal(number)
    # Not `communicate`: it would close standard input, and with that end the corpus.
    with process.stderr:
        rest = process.stderr.read().decode()
    process.wait(60)
    return rest, time.monotonic() - began_at


@pytest.mark.reliability
def test_reading_from_a_pipe_is_stopped_and_the_same_command_begins_again(tmp_path: Path) -> None:
    command = ["-m", "heed", "train", "-", "--source-lang", "en", "--target-lang", "de"]
    command += ["--out", str(tmp_path / "run"), "--max-steps", "1", *SMALL, "--vocab-size", "330"]
    process = started(*command, stdin=subprocess.PIPE)
    process.stdin.write(CORPUS[:500])
    process.stdin.flush()
    rest, seconds = stop(process, "reading the corpus", signal.SIGTERM)
    process.stdin.close()
    assert (process.returncode, rest) == (143, f"{STOPPING}\n{STOPPED}\n")
    assert seconds < 3  # within one, on a machine that has nothing else to do
    assert not (tmp_path / "run" / "data" / "report.json").exists()
    process = started(*command, stdin=subprocess.PIPE)
    _, err = process.communicate(CORPUS, timeout=300)
    assert process.returncode == 0, err
    assert (tmp_path / "run" / "model.safetensors").exists()
    assert not list((tmp_path / "run" / "data").glob("*.tmp-*"))


@pytest.mark.slow
@pytest.mark.reliability
@pytest.mark.timeout(600)
def test_every_phase_of_the_preparation_is_stopped_within_a_second(tmp_path: Path) -> None:
    chooser = random.Random(0)
    words = ["".join(chooser.choices("abcdefghijklmnop", k=5)) for _ in range(10_000)]
    lines = [" ".join(chooser.choices(words, k=8)) for _ in range(50_000)]
    for name, texts in (("x.en", lines), ("x.de", [line[::-1] for line in lines])):
        (tmp_path / name).write_text("".join(f"{text}\n" for text in texts), "utf-8")
    files = ["--src", str(tmp_path / "x.en"), "--tgt", str(tmp_path / "x.de")]
    command = ["-m", "heed", "train", *files, "--out", str(tmp_path / "run"), "--max-steps", "1"]
    for phase, number in (
        ("reading the corpus", signal.SIGINT),
        ("learning the vocabulary", signal.SIGTERM),
        ("encoding", signal.SIGUSR1),
        ("computing the initial weights", signal.SIGTERM),
    ):
        process = started(*command)
        rest, seconds = stop(process, phase, number)
        assert process.returncode == 128 + number, rest
        assert rest.endswith(f"{STOPPING}\n{STOPPED}\n"), rest
        assert seconds < 3, phase  # as above
    data = tmp_path / "run" / "data"
    assert sorted(path.name for path in data.iterdir()) == [
        "dev.tsv",
        "report.json",
        "spm.model",
        "train.bin",
        "words.dat",
    ]
