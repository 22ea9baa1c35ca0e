# ruff: noqa: T201 (a script speaks to its terminal)
"""How time and memory of self-attention grow with the length of a text, one variant beside another.

    python benchmarks/attention.py
    python benchmarks/attention.py --causal --lengths 64 256 1024 --rounds 1 --json

A layer of 4 heads and width 256 reads one sequence, forward alone and with its gradients. Times are
CPU seconds of one thread, medians of rounds in which the variants take turns. Memory is that of a
process of its own for each variant, above what it had before its first pass. An exponent p is
fitted to the longest lengths: time or memory ~ length^p.
"""

import argparse
import json
import math
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

Settings = dict[str, Any]

KINDS: dict[str, tuple[str, Settings]] = {
    "full": ("softmax", {}),
    "full, weights kept": ("softmax", {"masks_after": True}),
    "window of 64": ("softmax", {"window": 64}),
    "linear": ("linear", {}),
    "favor, 266 features": ("favor", {"n_features": 266}),
}
"""Variant → its name in heed and its options. `full` is the fused kernel, which keeps no weights.
"""

LENGTHS = (64, 128, 256, 512, 1024, 2048, 4096, 8192)
MOST_WEIGHTS = 4096
"""Longest sequence whose weights are kept: at 8,192 they would take several GB."""
FITTED = 4
"""How many of the longest lengths an exponent is fitted to: below, overhead decides."""
LEAST_S = 0.02
"""A measurement repeats short passes until it has taken so long."""
CHILD = "--measure"


def lengths_of(kind: str, lengths: Sequence[int]) -> list[int]:
    """Those that this variant is measured at."""
    return [n for n in lengths if n <= MOST_WEIGHTS or kind != "full, weights kept"]


def passes(kind: str, *, is_causal: bool, has_gradients: bool) -> Callable[[int], None]:
    """A function that makes one pass over a sequence of a length."""
    import torch

    from heed.machine.cpu import prepare_cpu
    from heed.machine.threads import set_threads
    from heed.model.linear_attention import draw_directions
    from heed.model.variants import ATTENTIONS

    prepare_cpu()
    set_threads(1)
    torch.manual_seed(0)
    name, options = KINDS[kind]
    layer: Any = ATTENTIONS[name](256, 4, **options)
    if name == "favor":
        draw_directions(layer.directions)
    mask = None

    def run(length: int) -> None:
        nonlocal mask
        x = torch.randn(1, length, 256, requires_grad=has_gradients)
        if kind == "full, weights kept":
            mask = torch.ones(
                1, 1, 1, length, dtype=torch.bool
            )  # without one there is none to apply
        with torch.set_grad_enabled(has_gradients):
            read = layer(x, mask=mask, is_causal=is_causal)
        if has_gradients:
            read.sum().backward()

    return run


def measure_times(settings: Settings) -> dict[str, dict[str, list[float]]]:
    """Mode and variant → CPU seconds a pass at each length, medians of all rounds."""
    modes = {"forward": False, "forward and backward": True}
    cases = [
        (mode, kind, length)
        for length in settings["lengths"]
        for kind in KINDS
        for mode in modes
        if length in lengths_of(kind, settings["lengths"])
    ]
    runs = {
        (mode, kind): passes(kind, is_causal=settings["causal"], has_gradients=modes[mode])
        for mode, kind, _ in cases
    }
    for mode, kind, length in cases:
        if length == settings["lengths"][0]:
            runs[mode, kind](length)  # the first pass sets up the libraries
    seconds: dict[tuple[str, str, int], list[float]] = {case: [] for case in cases}
    for _ in range(settings["rounds"]):
        for case in cases:
            run, n, start = runs[case[:2]], 0, time.process_time()
            while n == 0 or time.process_time() - start < LEAST_S:
                run(case[2])
                n += 1
            seconds[case].append((time.process_time() - start) / n)
    found: dict[str, dict[str, list[float]]] = {mode: {} for mode in modes}
    for (mode, kind, _), values in seconds.items():
        found[mode].setdefault(kind, []).append(statistics.median(values))
    return found


def measure_memory(settings: Settings) -> list[float]:
    """Peak megabytes at each length, above those of a process that has made a short pass."""
    run = passes(settings["kind"], is_causal=settings["causal"], has_gradients=settings["mode"])
    run(16)
    before, found = _peak_mb(), []
    for length in lengths_of(settings["kind"], settings["lengths"]):
        run(length)
        found.append(_peak_mb() - before)
    return found


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6  # Linux counts in KiB


def exponent(lengths: Sequence[int], values: Sequence[float]) -> float:
    """p of values ~ length^p: the slope of a line through the logarithms of the longest."""
    points = list(zip(lengths, values, strict=False))[-FITTED:]
    xs, ys = [math.log(x) for x, _ in points], [math.log(max(y, 1e-9)) for _, y in points]
    return statistics.linear_regression(xs, ys).slope


def table(lengths: Sequence[int], found: dict[str, list[float]], unit: str, scale: float) -> str:
    """Markdown: a row for each variant, a column for each length, and the exponent."""
    rows = [
        f"| {unit} | " + " | ".join(f"{n:,}" for n in lengths) + " | exponent |",
        "|---|" + "--:|" * (len(lengths) + 1),
    ]
    for kind, values in found.items():
        cells = [f"{scale * value:,.{1 if scale * value < 100 else 0}f}" for value in values]
        cells += ["–"] * (len(lengths) - len(cells))
        rows.append(f"| {kind} | {' | '.join(cells)} | {exponent(lengths, values):.2f} |")
    return "\n".join(rows)


def in_own_process(name: str, settings: Settings) -> Any:
    """What a measurement prints that runs by itself, so that its peak memory is its own."""
    command = [sys.executable, os.path.abspath(__file__), CHILD, name, json.dumps(settings)]
    return json.loads(subprocess.run(command, stdout=subprocess.PIPE, check=True).stdout)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    whole = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    whole.add_argument("--causal", action="store_true", help="as a decoder reads")
    whole.add_argument("--lengths", type=int, nargs="+", default=list(LENGTHS), metavar="N")
    whole.add_argument("--rounds", type=int, default=5, help="default: 5")
    whole.add_argument("--json", action="store_true", help="every single number, as JSON")
    return whole


def main(arguments: list[str]) -> None:
    """Measure and print; in a measurement's own process, make just that one."""
    if arguments[:1] == [CHILD]:
        print(json.dumps(MEASUREMENTS[arguments[1]](json.loads(arguments[2]))))
        return
    settings: Settings = vars(parser().parse_args(arguments))
    settings["load"] = os.getloadavg()[0]
    times = in_own_process("times", settings)
    memory: dict[str, dict[str, list[float]]] = {}
    for mode in times:
        of_mode = {"mode": mode != "forward"}
        memory[mode] = {
            kind: in_own_process("memory", {**settings, **of_mode, "kind": kind}) for kind in KINDS
        }
    if settings["json"]:
        print(json.dumps({"settings": settings, "seconds": times, "mb": memory}, indent=2))
        return
    for mode in times:
        print(table(settings["lengths"], times[mode], f"ms, {mode}", 1e3), end="\n\n")
        print(table(settings["lengths"], memory[mode], f"MB, {mode}", 1.0), end="\n\n")
    print(f"{settings['rounds']} rounds; load before them: {settings['load']:.2f}")


MEASUREMENTS: dict[str, Callable[[Settings], Any]] = {
    "times": measure_times,
    "memory": measure_memory,
}

if __name__ == "__main__":
    main(sys.argv[1:])
