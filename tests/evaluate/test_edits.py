import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sacrebleu.metrics import TER

from heed.evaluate import edits
from heed.evaluate.edits import edit_distance, edits_of


def corpus(n: int) -> tuple[list[str], list[list[str]]]:
    """Translations with two references, of few words, so that many are shifted."""
    generator = random.Random(5)
    words = ["a", "Cat", "sat", "on", "the", "mat.", "don't", "3.5", "猫在", "¿qué?", "\u2028", ""]

    def text() -> str:
        return " ".join(generator.choices(words, k=generator.randint(0, 25)))

    return [text() for _ in range(n)], [[text() for _ in range(n)] for _ in range(2)]


@pytest.fixture
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other processes help from the first sentence on."""
    monkeypatch.setattr(edits, "ALONE_S", 0.0)


@pytest.mark.usefixtures("_at_once")
@pytest.mark.parametrize("is_asian", [False, True])
@pytest.mark.parametrize("processes", [1, 2, 3])
def test_any_number_of_processes_counts_what_sacrebleu_counts(
    processes: int, is_asian: bool
) -> None:
    hypotheses, references = corpus(50)
    done: list[int] = []
    found = edits_of(
        hypotheses, references, is_asian=is_asian, processes=processes, progress=done.append
    )
    metric = TER(normalized=is_asian, asian_support=is_asian)
    assert [list(row[:2]) for row in found] == metric._extract_corpus_statistics(
        hypotheses, references
    )
    assert done == list(range(1, 51))


@pytest.mark.usefixtures("_at_once")
def test_a_process_counts_long_lines_without_shifts_too() -> None:
    words = [f"w{i}" for i in range(401)]
    line, turned = " ".join(words), " ".join([*words[1:], words[0]])
    assert edits_of([turned, turned], [[line, turned]], processes=2) == [
        (2, 401.0, True),
        (0, 401.0, True),
    ]


@pytest.mark.usefixtures("_at_once")
@pytest.mark.parametrize("program", ["/bin/false", "/not/there"])
def test_without_other_processes_this_one_counts_alone(
    monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    hypotheses, references = corpus(9)
    expected = edits_of(hypotheses, references)
    monkeypatch.setattr(sys, "executable", program)
    assert edits_of(hypotheses, references, processes=2) == expected


def children() -> list[int]:
    """The processes that this one has started."""
    path = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    return [int(number) for number in path.read_text(encoding="ascii").split()]


@pytest.mark.usefixtures("_at_once")
def test_the_work_of_a_killed_process_is_done_here() -> None:
    hypotheses, references = corpus(300)
    killed: list[int] = []

    def kill_one(n_done: int) -> None:
        if n_done == 3:
            killed.extend(children()[:1])
            os.kill(killed[0], signal.SIGKILL)

    before = set(children())
    found = edits_of(hypotheses, references, processes=2, progress=kill_one)
    assert set(killed).isdisjoint(before)
    assert found == edits_of(hypotheses, references)


ENDLESS = """
from heed.evaluate import edits
edits.ALONE_S = 0.0
lines = [" ".join(f"w{i * k % 31}" for i in range(30)) for k in range(2, 2000)]
edits.edits_of(lines, [lines[::-1]], processes=2, progress=lambda n: print(n, flush=True))
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_no_process_outlives_a_command_that_is_ended(number: signal.Signals) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", f"import signal\n{RESTORE}{ENDLESS}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as main:
        assert main.stdout
        while main.stdout.readline() != "3\n":
            assert main.poll() is None
        path = Path(f"/proc/{main.pid}/task/{main.pid}/children")
        helpers = path.read_text(encoding="ascii").split()
        assert len(helpers) == 2
        main.send_signal(number)
    assert main.returncode == -number
    end = time.monotonic() + 30
    while any(is_running(helper) for helper in helpers):
        assert time.monotonic() < end
        time.sleep(0.05)


RESTORE = "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
"""A shell that starts tests in the background has SIGINT ignored."""


def is_running(process: str) -> bool:
    try:
        status = Path(f"/proc/{process}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [("", "", 0), ("abc", "", 3), ("", "ab", 2), ("kitten", "sitting", 3), ("ab", "ba", 2)],
)
def test_edit_distance_by_hand(a: str, b: str, expected: int) -> None:
    assert edit_distance(list(a), list(b)) == expected


@given(st.text("ab", max_size=6), st.text("ab", max_size=6), st.text("ab", max_size=6))
def test_edit_distance_is_a_distance(a: str, b: str, c: str) -> None:
    assert edit_distance(a, b) == edit_distance(b, a)
    assert (edit_distance(a, b) == 0) == (a == b)
    assert edit_distance(a, c) <= edit_distance(a, b) + edit_distance(b, c)


def plain_distance(a: str, b: str) -> int:
    above = list(range(len(b) + 1))
    for i, word in enumerate(a, start=1):
        row = [i]
        for j, other in enumerate(b):
            row.append(min(above[j + 1] + 1, row[j] + 1, above[j] + (word != other)))
        above = row
    return above[-1]


@given(st.text("abc", max_size=20), st.text("abc", max_size=20))
def test_edit_distance_equals_that_of_the_whole_table(a: str, b: str) -> None:
    assert edit_distance(a, b) == plain_distance(a, b)


@given(st.text("abc", max_size=30), st.text("abc", max_size=30))
def test_in_stretches_the_distance_is_an_upper_bound(a: str, b: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(edits, "MAX_EXACT_WORDS", 8)
        assert plain_distance(a, b) <= edit_distance(a, b) <= max(len(a), len(b))
        assert edit_distance(a, a) == 0
