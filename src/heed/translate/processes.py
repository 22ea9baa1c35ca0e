"""The portions of a stream, divided among processes.

Beside the model's products a translation takes Python: searches keep their hypotheses, word
translations rank them, a judge looks for doubts. With a small model that is half of the time, and
the threads of one process take turns at it. Processes do not. They are forked, so that all of them
use the same weights and tables in memory.
"""

import signal
import sys
import warnings
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from contextlib import suppress
from copy import copy
from itertools import accumulate, pairwise
from multiprocessing import get_context
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import Any, Protocol

from heed.errors import HeedError, WorkerError
from heed.machine.memory import spare_host_memory
from heed.model.interface import Decodable, Parallel
from heed.translate.lines import Line
from heed.translate.result import Translation

LEAST_LINES = 64
"""Lines for each process, at least: to start one takes as long as to translate some ten lines."""

BYTES_OF_EACH = 1 << 27
"""Memory that a process takes of its own, for a model in the size of `base`; a small one takes half
of it."""

LINE_COST = 10
"""What a line costs beside its characters, in characters."""


class Translates(Protocol):
    """What a portion is given to."""

    model: Decodable

    def translate(
        self, texts: Sequence[Line], *, first_line: int, **options: Any
    ) -> list[Translation]:
        """One translation a line, in order."""


class Processes:
    """Translates portions of a stream, long ones in several processes.

    The processes start with the first portion that is long enough, and end with `close`.

    Args:
        translator: translates short portions in this process, with all of its threads.
        options: of its `translate`, for all lines.
        most: processes at most, None = one for each thread of the translator; no more than these
            and than memory has room for.
    """

    def __init__(
        self, translator: Translates, options: Mapping[str, Any], most: int | None
    ) -> None:
        self._translator, self._options = translator, options
        model = translator.model
        n_workers = model.n_workers if isinstance(model, Parallel) else 1
        # Elsewhere the system's own libraries may not survive a fork.
        self._most = min(most or n_workers, n_workers) if sys.platform == "linux" else 1
        self._started: list[tuple[BaseProcess, Connection]] = []

    def close(self) -> None:
        """End the processes."""
        for process, end in self._started:
            end.close()
            process.terminate()
        for process, _ in self._started:
            process.join()

    def translate(self, lines: Sequence[Line], first_line: int) -> list[Translation]:
        """Translate a portion; the results do not depend on the number of processes.

        Args:
            lines: the portion.
            first_line: number of its first line.

        Raises:
            HeedError, MemoryError: the first error of a process.
            WorkerError: a process was ended from outside, as by a system short of memory.
        """
        count = min(self._most, len(lines) // LEAST_LINES)
        if count > max(1, len(self._started)):
            fitting = len(self._started) + spare_host_memory() / BYTES_OF_EACH
            self._most = int(min(self._most, fitting))
            count = min(count, self._most)
        if count < 2:
            return self._translator.translate(lines, first_line=first_line, **self._options)
        while len(self._started) < count:
            self._start()
        parts = divide(lines, count)
        for (_, end), (start, stop) in zip(self._started, parts, strict=False):
            # One that has ended is noticed when its answer is read.
            with suppress(OSError):
                end.send((lines[start:stop], first_line + start))
        return [found for one in self._started[:count] for found in _answer(*one)]

    def _start(self) -> None:
        context = get_context("fork")
        own, other = context.Pipe()
        # As long as any process holds the end of this one, its partner waits for more lines.
        inherited = [own, *(end for _, end in self._started)]
        arguments = other, inherited, self._translator, self._options
        process = context.Process(target=_work, args=arguments, daemon=True)
        with warnings.catch_warnings():
            # Python warns of threads that hold locks; the engine's wait, and hold none.
            warnings.simplefilter("ignore", DeprecationWarning)
            process.start()
        other.close()
        self._started.append((process, own))


def divide(lines: Sequence[Line], count: int) -> list[tuple[int, int]]:
    """Start and end of `count` parts of lines that take about equal time, in order."""
    costs = [*accumulate(len(line.text) + LINE_COST for line in lines)]
    ends = [bisect_left(costs, costs[-1] * n / count) for n in range(1, count)]
    return [*pairwise([0, *ends, len(lines)])]


def _answer(process: BaseProcess, end: Connection) -> list[Translation]:
    try:
        found: list[Translation] | HeedError | MemoryError = end.recv()
    except (EOFError, OSError):
        process.join()
        raise WorkerError(
            f"One of the processes that translate has ended ({_ending(process.exitcode)}). If "
            "memory is short, use fewer (--threads) or a smaller --batch-size."
        ) from None
    if isinstance(found, Exception):
        raise found
    return found


def _ending(code: int | None) -> str:
    return f"signal {-code}" if code and code < 0 else f"exit code {code}"


def _work(
    end: Connection,
    inherited: Sequence[Connection],
    translator: Translates,
    options: Mapping[str, Any],
) -> None:
    """Translate what comes, in one thread, until nothing more can come."""
    # Ctrl-C reaches all processes; the first one ends the others.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    for other in inherited:
        other.close()
    # A copy: the first engine, whose threads are not in this process, must not be freed here.
    own = copy(translator)
    if isinstance(own.model, Parallel):
        own.model = own.model.single_threaded()
    with suppress(EOFError, OSError):
        while True:
            lines, first_line = end.recv()
            try:
                found = own.translate(lines, first_line=first_line, **options)
            except (HeedError, MemoryError) as error:
                end.send(error)
            else:
                end.send(found)
