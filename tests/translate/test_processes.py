import math
import multiprocessing
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import heed
from heed.engine import library
from heed.engine.runtime import Engine
from heed.errors import DataError, WorkerError
from heed.translate import processes
from heed.translate.lines import Line
from heed.translate.processes import divide
from heed.translate.translator import Translator

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or not library.is_compiled(), reason="processes are forked on Linux"
)

LINES = [f"the {word} dog number {n}" for n in range(20) for word in ("red", "old", "", "dog " * n)]


@pytest.fixture
def translator(slots_model: Path, monkeypatch: pytest.MonkeyPatch) -> Translator:
    """With three threads, however few cores there are; divides portions of twelve lines."""
    monkeypatch.setattr(processes, "LEAST_LINES", 4)
    loaded = heed.load(slots_model, threads=1)
    assert isinstance(loaded.model, Engine)
    loaded.model = Engine(loaded.model.network, threads=3)
    return loaded


@pytest.mark.parametrize(
    "options",
    [
        {"alignment": True},
        {"sample": True, "seed": 3},
        {"alternatives": 2, "beam_size": 3},
        {"prefixes": ["x"] * len(LINES)},
    ],
)
@pytest.mark.parametrize("buffer_lines", [30, 2048])
def test_several_processes_give_what_one_gives(
    translator: Translator, options: dict[str, Any], buffer_lines: int
) -> None:
    ways = {"max_length": 8, "buffer_lines": buffer_lines, **options}
    alone = list(translator.translate_stream(LINES, **ways))
    stream = translator.translate_stream(LINES, processes=3, **ways)
    together = [next(stream)]
    assert len(multiprocessing.active_children()) == 3
    together += stream
    assert together == alone
    assert not multiprocessing.active_children()


def test_no_more_processes_than_threads_and_lines_allow(translator: Translator) -> None:
    def started(lines: list[str], **ways: Any) -> int:
        stream = translator.translate_stream(lines, max_length=3, **ways)
        next(stream)
        n_processes = len(multiprocessing.active_children())
        assert isinstance(stream, Generator)
        stream.close()
        assert not multiprocessing.active_children()
        return n_processes

    assert started(LINES) == 0
    assert started(LINES, processes=2) == 2
    assert started(LINES, processes=9) == 3
    assert started(LINES, processes=None) == 3
    assert started(LINES[:8], processes=9) == 2
    assert started(LINES[:7], processes=9) == 0


def test_a_longer_portion_gets_more_processes(translator: Translator) -> None:
    pauses = iter([False] * 7 + [True] + [False] * len(LINES))
    stream = translator.translate_stream(
        LINES, processes=3, max_length=3, has_paused=lambda: next(pauses)
    )
    found = [next(stream) for _ in range(8)]
    assert len(multiprocessing.active_children()) == 2
    found.append(next(stream))
    assert len(multiprocessing.active_children()) == 3
    assert [*found, *stream] == list(translator.translate_stream(LINES, max_length=3))


def test_there_are_no_more_processes_than_memory_has_room_for(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = list(translator.translate_stream(LINES, max_length=3))
    for room, n_processes in ((math.inf, 3), (2.5, 2), (1.5, 0), (0.0, 0)):
        monkeypatch.setattr(
            processes, "spare_host_memory", lambda room=room: room * processes.BYTES_OF_EACH
        )
        stream = translator.translate_stream(LINES, processes=3, max_length=3)
        found = [next(stream)]
        assert len(multiprocessing.active_children()) == n_processes
        assert [*found, *stream] == expected


def test_an_error_is_that_of_one_process(translator: Translator) -> None:
    lines = [*LINES, Line("a dog", target_lang="fr")]
    with pytest.raises(DataError) as expected:
        list(translator.translate_stream(lines))
    with pytest.raises(DataError) as found:
        list(translator.translate_stream(lines, processes=3))
    assert str(found.value) == str(expected.value)
    assert not multiprocessing.active_children()


def test_a_process_without_memory_says_so(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any, **__: Any) -> None:
        raise MemoryError("64 GB")

    monkeypatch.setattr(Translator, "translate", fail)
    with pytest.raises(MemoryError, match="64 GB"):
        list(translator.translate_stream(LINES, processes=3))
    assert not multiprocessing.active_children()


def test_a_process_that_is_killed_is_an_error_in_words(
    translator: Translator, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: Any, **__: Any) -> None:
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(Translator, "translate", die)
    with pytest.raises(WorkerError, match=r"has ended \(signal 9\)\. If memory is short"):
        list(translator.translate_stream(LINES, processes=3))
    assert not multiprocessing.active_children()


def test_no_process_outlives_the_first_one(slots_model: Path) -> None:
    script = f"""
        import multiprocessing, os, signal, heed
        from heed.engine.runtime import Engine
        from heed.translate import processes

        processes.LEAST_LINES = 4
        translator = heed.load({os.fspath(slots_model)!r}, threads=1)
        translator.model = Engine(translator.model.network, threads=3)
        stream = translator.translate_stream(["the dog"] * 40, processes=3, max_length=3)
        next(stream)
        print(*(process.pid for process in multiprocessing.active_children()), flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False
    )
    assert done.returncode == -signal.SIGKILL
    pids = [*map(int, done.stdout.split())]
    assert len(pids) == 3
    until = time.monotonic() + 60
    while any(map(is_running, pids)):
        assert time.monotonic() < until
        time.sleep(0.05)


def is_running(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text("ascii").rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"  # nobody may wait for it in a container without an init


@given(st.lists(st.integers(0, 300), min_size=1, max_size=50), st.integers(1, 12))
def test_a_portion_is_divided_in_order_and_evenly(lengths: list[int], count: int) -> None:
    parts = divide([Line("a" * length) for length in lengths], count)
    assert [place for part in parts for place in range(*part)] == [*range(len(lengths))]
    assert len(parts) == count
    costs = [sum(lengths[start:stop]) + 10 * (stop - start) for start, stop in parts]
    largest = max(lengths) + 10
    assert max(costs) <= sum(costs) / count + largest
