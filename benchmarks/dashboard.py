# ruff: noqa: T201 (a script speaks to its terminal)
"""What watching a training costs it: CPU time a step with the dashboard open, and without.

    python benchmarks/dashboard.py --src train.en --tgt train.de --pairs 10
    python benchmarks/dashboard.py --src train.en --tgt train.de --before OTHER/src
    python benchmarks/dashboard.py --src train.en --tgt train.de --share

Runs of the same seed take turns: without a dashboard, and with one that a client follows. With
`--before` those without come from another source tree, so that all that training writes for the
dashboard is counted too. Counted is the CPU time of the process that trains, step by step,
validations included; losses must be the same to the bit. Other programs only ever add time, so of
each step the shortest time of all runs counts. `--share` instead times, in one training, all that
is done for the dashboard and the whole log: a share that holds on a busy machine too.
"""

import argparse
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any
from urllib.request import urlopen


def train(arguments: argparse.Namespace) -> None:
    """Train in this process, and print the CPU time at each event, and losses, as JSON."""
    from heed.cli.train import settings_from
    from heed.data.corpus import Corpus
    from heed.data.readers import ParallelFiles
    from heed.train.run.run import run_training

    overrides = [
        *(f"training.max_steps={arguments.steps}", "training.threads=1", "preset=tiny"),
        f"training.validate_every={arguments.validate_every}",
        f"training.checkpoint_every={arguments.validate_every}",
    ]
    files = ParallelFiles(files=(arguments.src, arguments.tgt), source_lang="a", target_lang="b")
    losses: list[Any] = []
    times: list[float] = []

    def report(event: dict[str, Any]) -> None:
        if event["kind"] == "step":
            losses.append(event["nll"])
        if event["kind"] in ("step", "validation", "checkpoint"):
            times.append(time.process_time())

    settings = dict.fromkeys(("task", "preset"))
    asked = settings_from(None, settings, overrides)
    run_training(asked, Corpus(train=(files,)), Path(arguments.out), report=report)
    print(json.dumps({"times": times, "losses": losses}))


def train_timed(arguments: argparse.Namespace) -> None:
    """Train with clocks around what is done for the dashboard, and print its share."""
    from heed.train.step import control, events, validate

    spent: dict[str, float] = {}

    def timed(owner: Any, name: str) -> None:
        function = getattr(owner, name)

        def run(*values: Any, **more: Any) -> Any:
            began = time.thread_time()
            try:
                return function(*values, **more)
            finally:
                spent[name] = spent.get(name, 0.0) + time.thread_time() - began

        setattr(owner, name, run)

    timed(control.ControlFile, "take")
    timed(validate, "_intervals")
    timed(events, "append_json_line")
    began = time.process_time()
    train(arguments)
    total = time.process_time() - began
    words = ", ".join(f"{name} {1e3 * seconds:.1f} ms" for name, seconds in spent.items())
    print(f"of {total:.1f} s: {words}: {100 * sum(spent.values()) / total:.2f} %", file=sys.stderr)


def follow(address: str) -> None:
    """Read a run and its events as the page does, until it ends."""
    url = f"{address}api/v1/runs/run"
    for _ in range(50):
        cursor = json.load(urlopen(url))["cursor"]
        with urlopen(f"{url}/events?since={cursor}") as stream:
            if b"event: end" in stream.read():
                time.sleep(1.0)  # before there is a run, and after it


def measured(arguments: argparse.Namespace, *, is_shown: bool) -> dict[str, Any]:
    """One training in a process of its own."""
    source = arguments.before if arguments.before and not is_shown else "src"
    environment = {**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, __file__, "--src", arguments.src, "--tgt", arguments.tgt]
        command += ["--steps", str(arguments.steps), "--out", f"{folder}/run"]
        command += ["--validate-every", str(arguments.validate_every)]
        command += ["--child", "shown" if is_shown else "plain"]
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment, text=True
        ) as process:
            assert process.stdout is not None and process.stderr is not None
            if is_shown:
                found = re.search(r"(http://\S+/)#", process.stderr.readline())
                assert found is not None
                threading.Thread(target=_quietly, args=(found[1],), daemon=True).start()
            out, err = process.communicate()
    assert process.returncode == 0, err
    return dict(json.loads(out))


def _quietly(address: str) -> None:
    try:
        follow(address)
    except (OSError, ValueError):
        return  # the server has ended with its run


def child(arguments: argparse.Namespace) -> None:
    """The process that trains."""
    if arguments.child == "plain":
        train(arguments)
        return
    from heed.cli.dashboard import dashboard

    def say(line: str) -> None:
        print(line, file=sys.stderr, flush=True)

    with dashboard(arguments.out, 0, say):
        train(arguments)


def main() -> None:
    """Measure pairs, and print what they have shown so far."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--src", required=True)
    parser.add_argument("--tgt", required=True)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--validate-every", type=int, default=50)
    parser.add_argument("--before", help="the src folder of another tree, without a dashboard")
    parser.add_argument("--share", action="store_true", help="one training, with clocks")
    parser.add_argument("--out", default="", help=argparse.SUPPRESS)
    parser.add_argument("--child", default="", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(arguments)
        return
    if arguments.share:
        with tempfile.TemporaryDirectory() as folder:
            arguments.out = f"{folder}/run"
            train_timed(arguments)
        return
    shortest: dict[bool, list[float]] = {}
    losses: list[Any] = []
    for number in range(arguments.pairs):
        # Which one goes first alternates, so that a drift of the machine cancels out.
        for is_shown in (False, True) if number % 2 else (True, False):
            found = measured(arguments, is_shown=is_shown)
            losses = losses or found["losses"]
            assert found["losses"] == losses, "the losses differ"
            took = [after - before for before, after in itertools.pairwise(found["times"])]
            before = shortest.get(is_shown, took)
            shortest[is_shown] = [min(pair) for pair in zip(before, took, strict=True)]
        plain, shown = (sum(shortest[is_shown]) for is_shown in (False, True))
        per_step = [1e3 * seconds / len(losses) for seconds in (plain, shown)]
        print(
            f"{number + 1} pairs: {per_step[0]:.2f} ms a step, shown {per_step[1]:.2f} ms: "
            f"{100 * (shown / plain - 1):+.2f} %; equal losses",
            flush=True,
        )


if __name__ == "__main__":
    main()
