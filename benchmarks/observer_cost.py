# ruff: noqa: T201 (a script speaks to its terminal)
"""What it costs a translation that a search can be observed, while nobody observes.

A line is translated twice in turn: as it is, and by searches compiled without the lines that ask
for an observer. Each pair gives a ratio of processor times; shown is their median with its 95 %
interval. Pairs are as short as one line, so that other programs disturb both halves alike, and
there can be thousands of them.

    python benchmarks/observer_cost.py MODEL --src test.en --pairs 3000
"""

import argparse
import gc
import inspect
import re
import statistics
import sys
import time
from collections.abc import Callable
from itertools import islice
from types import CodeType, FunctionType
from typing import Any

from heed.data.lines import read_lines
from heed.decode import beam, greedy
from heed.translate.translator import load

ASKS = re.compile(r"^ +if task\.observer is not None:\n +task\.observer\(.*\)\n", re.MULTILINE)


def searches() -> list[tuple[FunctionType, CodeType, CodeType]]:
    """The functions that ask for an observer: as they are, and without asking."""
    found = []
    for module in (beam, greedy):
        for function in vars(module).values():
            if not inspect.isfunction(function) or function.__module__ != module.__name__:
                continue
            bare, count = ASKS.subn("", inspect.getsource(function))
            if count:
                made: dict[str, Any] = {}
                exec(compile(bare, module.__file__ or "", "exec"), vars(module), made)
                found.append((function, function.__code__, made[function.__name__].__code__))
    return found


def ratios(work: Callable[[int], object], n_pairs: int) -> list[float]:
    """As it is over without asking, a pair at a time, each first in every other pair."""
    gc.collect()
    gc.disable()  # a collection would fall on one half
    swapped = searches()
    assert len(swapped) == 2, [function.__name__ for function, _, _ in swapped]
    found = []
    for pair in range(-20, n_pairs):
        times = {}
        for is_bare in (pair % 2 == 0, pair % 2 == 1):
            for function, usual, bare in swapped:
                function.__code__ = bare if is_bare else usual
            started_at = time.process_time()
            work(pair)
            times[is_bare] = time.process_time() - started_at
        if pair >= 0:  # those before warm up
            found.append(times[False] / times[True])
    for function, usual, _ in swapped:
        function.__code__ = usual
    gc.enable()
    return found


def main(arguments: list[str]) -> None:
    """Print a line for greedy search and one for a beam."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("model", help="model folder")
    parser.add_argument("--src", required=True, help="source lines")
    parser.add_argument("--lines", type=int, default=200, help="different ones; default: 200")
    parser.add_argument("--pairs", type=int, default=3000, help="default: 3000")
    asked = parser.parse_args(arguments)
    translator = load(asked.model, threads=1)
    lines = [*islice(read_lines(asked.src), asked.lines)]
    for beam_size in (1, 5):

        def work(pair: int, beam_size: int = beam_size) -> object:
            line = lines[pair % len(lines)]
            return translator.translate([line], beam_size=beam_size)

        found = sorted(ratios(work, asked.pairs))
        away = round(0.98 * len(found) ** 0.5)
        middle = len(found) // 2
        low, high = found[max(0, middle - away)], found[min(len(found) - 1, middle + away)]
        print(
            f"beam {beam_size}: {statistics.median(found) - 1:+.2%} "
            f"({low - 1:+.2%} to {high - 1:+.2%}), {asked.pairs} pairs of a line",
            flush=True,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
