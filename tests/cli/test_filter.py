"""`heed translate` between two programs: the answer to a line comes before the next line."""

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

PATIENCE_S = 60
"""Far more than an answer takes on a busy machine; only a hang lasts that long."""

ROWS = {"text": 1, "tsv": 1, "moses": 1, "jsonl": 1, "fairseq": 4}
"""Format → lines of an answer."""


class Filter:
    """A running `heed translate` that is asked line by line."""

    def __init__(
        self, *arguments: str, stdin: int = subprocess.PIPE, stdout: int = subprocess.PIPE
    ) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "heed", "translate", "-q", "-b1", *arguments],
            stdin=stdin,
            stdout=stdout,
            env={**os.environ, "OMP_NUM_THREADS": "1", "PYTHONUNBUFFERED": ""},
        )

    def write(self, data: bytes) -> None:
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def read(self, n_lines: int, fd: int | None = None) -> list[str]:
        """Exactly so many lines, of another descriptor if one is given; fails when none come."""
        fd = self.process.stdout.fileno() if fd is None else fd
        found, until = b"", time.monotonic() + PATIENCE_S
        while found.count(b"\n") < n_lines:
            left = until - time.monotonic()
            assert select.select([fd], [], [], max(0, left))[0], "no answer"
            chunk = os.read(fd, 1 << 16)
            assert chunk, f"ended after {found!r}"
            found += chunk
        assert found.count(b"\n") == n_lines
        return found.decode().splitlines()

    def close(self) -> bytes:
        rest, _ = self.process.communicate(timeout=PATIENCE_S)
        assert self.process.returncode == 0
        return rest


@pytest.fixture
def start(model: Any) -> Iterator[object]:
    running = []

    def start_one(*arguments: str, **options: int) -> Filter:
        running.append(Filter("-m", model, *arguments, **options))
        return running[-1]

    yield start_one
    for one in running:
        one.process.kill()
        one.process.communicate()


@pytest.mark.parametrize("name", ROWS)
def test_each_line_is_answered_before_the_next_one_is_written(
    start: Callable[..., Any], name: str
) -> None:
    heed = start("--format", name)
    for line in (b"A man\n", b"\n", b"Two dogs\n"):
        heed.write(line)
        heed.read(ROWS[name])
    assert heed.close() == b""


def test_with_a_buffer_of_one_line_each_line_is_answered(start: Callable[..., Any]) -> None:
    heed = start("--buffer-size", "1")
    for _ in range(2):
        heed.write(b"A man\nTwo dogs\n")
        heed.read(2)
    assert heed.close() == b""


def test_json_lines_are_answered_one_by_one(start: Callable[..., Any]) -> None:
    heed = start("--json-input", "--format", "jsonl")
    for number in range(2):
        heed.write(b'{"text": "A man", "id": %d}\n' % number)
        assert f'"id": {number}' in heed.read(1)[0]


def test_a_line_without_an_end_waits_for_it_and_holds_no_other_back(
    start: Callable[..., Any],
) -> None:
    heed = start()
    heed.write(b"A man\nTwo")
    (alone,) = heed.read(1)
    heed.write(b" dogs\nA man\n")
    _, again = heed.read(2)
    assert again == alone
    heed.write(b"A man")
    assert heed.close().decode() == f"{alone}\n"


def test_input_that_does_not_block_is_waited_for(start: Callable[..., Any]) -> None:
    reading, writing = os.pipe()
    os.set_blocking(reading, False)
    heed = start(stdin=reading)
    os.close(reading)
    for _ in range(2):
        os.write(writing, b"A man\n")
        heed.read(1)
    os.close(writing)
    assert heed.close() == b""


def test_a_person_who_watches_a_log_sees_each_translation(start: Callable[..., Any]) -> None:
    ours, theirs = pty.openpty()
    heed = start(stdout=theirs)
    os.close(theirs)
    for _ in range(2):
        heed.write(b"A man\n")
        heed.read(1, ours)
    heed.process.stdin.close()
    assert heed.process.wait(PATIENCE_S) == 0
    os.close(ours)


def test_a_named_pipe_is_answered_too(start: Callable[..., Any], tmp_path: Path) -> None:
    path = str(tmp_path / "fifo")
    os.mkfifo(path)
    heed = start("-i", path)
    with open(path, "wb", buffering=0) as file:
        for _ in range(2):
            file.write(b"A man\n")
            heed.read(1)
    assert heed.close() == b""
