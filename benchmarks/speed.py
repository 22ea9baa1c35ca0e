# ruff: noqa: T201 (a script speaks to its terminal)
"""How fast heed trains and translates on this machine, and what memory and disk it takes.

    python benchmarks/speed.py train --preset small --src train.en --tgt train.de --threads 1
    python benchmarks/speed.py train model.n_heads=8 tokenizer.vocab_size=8000 --json
    python benchmarks/speed.py translate -m RUN --input test.en --threads 1
    python benchmarks/speed.py peak

Not here: quality (`heed evaluate`). Each measurement is a process of its own, so that its peak
memory is its own; each is made `--repeat` times, in turn with the others. The table shows the
median, and the lowest and highest. Without files, `train` learns from the built-in corpus.
"""

import argparse
import itertools
import json
import math
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

# A process's peak memory begins with what its parent had, so this one stays light: torch and heed
# are imported by the measurements only.
if TYPE_CHECKING:
    from heed.data.corpus import Corpus
    from heed.train.recipe.asked import Asked

Settings = dict[str, Any]
Numbers = dict[str, float]

MEANINGS = {
    "tgt_tokens_per_s": ("target tokens/s, `<eos>` counted", "{:,.0f}"),
    "step_ms": ("ms a step (median of its steps)", "{:,.1f}"),
    "peak_share": ("share of the GEMM peak", "{:.1%}"),
    "pad_share": ("padding", "{:.2%}"),
    "sentences_per_s": ("source sentences/s", "{:,.1f}"),
    "output_tokens_per_s": ("output tokens/s, `<eos>` counted", "{:,.0f}"),
    "output_tokens_per_cpu_s": ("the same by CPU time", "{:,.0f}"),
    "gflops": ("GEMM peak (float32), GFLOP/s", "{:,.1f}"),
    "memory_mb": ("peak memory, MB", "{:,.0f}"),
    "prepare_memory_mb": ("peak memory of preparing the corpus, MB", "{:,.0f}"),
    "disk_mb": ("model on disk, all its files, MB", "{:,.2f}"),
    "parameters": ("parameters", "{:,.0f}"),
    "threads": ("threads", "{:.0f}"),
}
"""Number → what the table calls it, and how it is written. MB are 10^6 bytes."""

SEARCHES: dict[str, Settings] = {
    "greedy, batch 1": {"beam_size": 1, "batch_lines": 1},
    "greedy": {"beam_size": 1, "batch_lines": None},
    "beam 5, batch 1": {"beam_size": 5, "batch_lines": 1},
    "beam 5": {"beam_size": 5, "batch_lines": None},
}
"""Columns of `translate`; batches of None are heed's default."""


def memory_mb() -> float:
    """The most memory this process has had so far."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6  # Linux counts in KiB


def measure_peak(settings: Settings) -> Numbers:
    """What matrix products reach: the roof that `peak_share` is a share of."""
    from heed.machine.cpu import prepare_cpu
    from heed.machine.threads import set_threads
    from heed.train.recipe.cost import measure_gflops

    prepare_cpu()
    n_threads = set_threads(settings["threads"])
    return {"gflops": measure_gflops("cpu", seconds=1.0), "threads": n_threads}


def measure_preparing(settings: Settings) -> Numbers:
    """Clean, split and encode the corpus; `measure_training` finds it ready."""
    from heed.data.prepare import prepare
    from heed.train.recipe.recipe import draft

    asked, corpus = asked_of(settings)
    before, out = draft(asked), Path(settings["folder"]) / "data"
    prepare(corpus, out, config=before.data, tokenizer=before.tokenizer, seed=before.seed)
    return {"prepare_memory_mb": memory_mb()}


def measure_training(settings: Settings) -> Numbers:
    """A real run, paused after some steps: reading and laying out batches is part of it."""
    from heed.train.recipe.cost import UNKNOWN, flops_per_epoch
    from heed.train.run.run import run_training

    before = measure_peak(settings)
    out = Path(tempfile.mkdtemp(dir=settings["folder"]))
    shutil.copytree(Path(settings["folder"]) / "data", out / "data")
    events: dict[str, list[Settings]] = {"start": [], "epoch": [], "step": []}

    def note(event: Settings) -> None:
        seen = {**event, "at": time.perf_counter(), "memory_mb": memory_mb()}
        events.setdefault(event["kind"], []).append(seen)

    warmup, n = settings["warmup"], settings["warmup"] + settings["steps"]
    run_training(*asked_of(settings), out, report=note, should_stop=lambda: len(events["step"]) > n)
    times = [step["at"] for step in events["step"][warmup:]]
    start, steps, seconds = events["start"][0], events["step"][warmup + 1 :], times[-1] - times[0]
    n_src, n_tgt = (sum(step[f"n_{side}_tokens"] for step in steps) for side in ("src", "tgt"))
    sizes = {"tgt_vocab_size": start["model"]["tgt_vocab_size"]}
    met = replace(UNKNOWN, n_src_tokens=n_src, n_tgt_tokens=n_tgt, **sizes)
    # Another program may have spoilt the first measurement: the roof is the better of two.
    gflops = max(before["gflops"], measure_peak(settings)["gflops"])
    share = flops_per_epoch(start["model"], met) / seconds / (gflops * 1e9)
    of_cpu = {"peak_share": share, "gflops": gflops}
    return {
        "tgt_tokens_per_s": n_tgt / seconds,
        "step_ms": 1e3 * statistics.median(b - a for a, b in itertools.pairwise(times)),
        "pad_share": events["epoch"][-1]["pad_share"],
        "memory_mb": events["step"][-1]["memory_mb"],
        "parameters": start["parameters"],
        "threads": before["threads"],
        **({} if "training.device=cuda" in settings["overrides"] else of_cpu),
    }


def measure_translating(settings: Settings) -> Numbers:
    """The road of `heed translate`: lines in, lines out, after a few lines to warm up."""
    from heed.bundle.bundle import load_bundle
    from heed.bundle.find import find_model_folder
    from heed.data.lines import read_lines
    from heed.disk.folders import read_manifest
    from heed.machine.threads import choose_threads
    from heed.model.families import stored_shapes
    from heed.translate.translator import load

    lines = list(read_lines(settings["input"]))
    folder = find_model_folder(settings["model"])
    runtime = settings.get("runtime", "auto")
    translator = load(folder, device="cpu", runtime=runtime, threads=settings["threads"])
    translator.batch_lines = settings["batch_lines"]
    list(translator.translate_stream(lines[:8], beam_size=settings["beam_size"]))
    started_at, cpu_at = time.perf_counter(), time.process_time()
    found = translator.translate_stream(lines, beam_size=settings["beam_size"])
    n_tokens = sum(len(translation.token_scores) for translation in found)
    seconds, cpu_s = time.perf_counter() - started_at, time.process_time() - cpu_at
    return {
        "sentences_per_s": len(lines) / seconds,
        "output_tokens_per_s": n_tokens / seconds,
        "output_tokens_per_cpu_s": n_tokens / cpu_s,
        "memory_mb": memory_mb(),
        "disk_mb": sum(file.size for file in read_manifest(folder).files.values()) / 1e6,
        "parameters": sum(map(math.prod, stored_shapes(load_bundle(folder).config).values())),
        "threads": choose_threads(settings["threads"]),
    }


def asked_of(settings: Settings) -> "tuple[Asked, Corpus]":
    """What `heed train` is asked for: full batches from the start, no end and no validation."""
    from heed.config import parse_override
    from heed.data.corpus import Corpus
    from heed.data.readers import ParallelFiles
    from heed.demo.grammar import pairs
    from heed.train.recipe.asked import Asked

    asked = Asked({"preset": settings["preset"]})
    fixed = ("max_steps=1000000000", "validations=0", "checkpoint_every_s=1e8", "device=cpu")
    for text in (*fixed, "first_batch_tokens=none", f"threads={settings['threads'] or 0}"):
        asked = asked.plus(*parse_override(f"training.{text}"))
    for text in settings["overrides"]:
        asked = asked.plus(*parse_override(text))
    if settings["src"]:
        return asked, Corpus(train=(ParallelFiles(files=(settings["src"], settings["tgt"])),))
    path = Path(settings["folder"]) / "built-in.tsv"
    path.write_text("".join(f"{pair.src}\t{pair.tgt}\n" for pair in pairs("en", "fr")), "utf-8")
    return asked, Corpus(train=(ParallelFiles(files=(str(path),)),))


def in_own_process(name: str, settings: Settings, *, script: str = __file__) -> Numbers:
    """Make one measurement of a script in a fresh process; its complaints go to the terminal."""
    command = [sys.executable, script, CHILD, name, json.dumps(settings)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    if done.returncode:
        sys.exit(done.returncode)
    return dict(json.loads(done.stdout))


def table(results: dict[str, list[Numbers]]) -> str:
    """Markdown: a row for each number, a column for each case."""
    rows = ["| | " + " | ".join(results) + " |", "|---|" + "--:|" * len(results)]
    measured = next(iter(results.values()))[0]
    for key, (words, shape) in MEANINGS.items():
        if key in measured:
            cells = []
            for values in ([run[key] for run in runs] for runs in results.values()):
                median, low, high = (shape.format(f(values)) for f in (statistics.median, min, max))
                cells.append(median if low == high else f"{median} ({low} – {high})")
            rows.append(f"| {words} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    shared = argparse.ArgumentParser(add_help=False)
    shared.add_argument("--threads", type=int, help="default: all cores")
    shared.add_argument("--repeat", type=int, default=3, help="default: 3")
    shared.add_argument("--json", action="store_true", help="every single number, as JSON")
    whole = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    tasks = whole.add_subparsers(dest="task", required=True)
    tasks.add_parser("peak", parents=[shared], help="what matrix products reach")
    train = tasks.add_parser("train", parents=[shared], help="training speed and memory")
    train.add_argument("--src", metavar="FILE", help="default: the built-in corpus, en to fr")
    train.add_argument("--tgt", metavar="FILE", help="its translation, line by line")
    train.add_argument("--preset", default="small", help="tiny, small, base or big")
    train.add_argument("--steps", type=int, default=50, metavar="N", help="default: 50")
    train.add_argument("--warmup", type=int, default=10, metavar="N", help="default: 10")
    train.add_argument("overrides", nargs="*", metavar="SECTION.KEY=VALUE")
    translate = tasks.add_parser("translate", parents=[shared], help="translation speed and size")
    translate.add_argument("-m", "--model", required=True, metavar="RUN")
    translate.add_argument("--input", required=True, metavar="FILE")
    return whole


def main(arguments: list[str]) -> None:
    """Measure and print; in a measurement's own process, make just that one."""
    if arguments[:1] == [CHILD]:
        print(json.dumps(MEASUREMENTS[arguments[1]](json.loads(arguments[2]))))
        return
    settings: Settings = vars(parser().parse_args(arguments))
    if bool(settings.get("src")) != bool(settings.get("tgt")):
        parser().error("--src and --tgt go together")
    settings["load"] = os.getloadavg()[0]
    task, repeat = settings["task"], settings["repeat"]
    cases = SEARCHES if task == "translate" else {settings.get("preset", ""): {}}
    results: dict[str, list[Numbers]] = {case: [] for case in cases}
    with tempfile.TemporaryDirectory(prefix="heed-speed-") as folder:
        settings["folder"] = folder
        fixed = in_own_process("prepare", settings) if task == "train" else {}
        for turn, (case, changes) in itertools.product(range(repeat), cases.items()):
            print(f"{task} {case}: {turn + 1} of {repeat}", file=sys.stderr)
            results[case].append(fixed | in_own_process(task, settings | changes))
    words = f"{table(results)}\n\n{repeat} repetitions; load before them: {settings['load']:.2f}"
    whole = {"settings": settings, "results": results}
    print(json.dumps(whole, indent=2) if settings["json"] else words)


CHILD = "--measure"
MEASUREMENTS: dict[str, Callable[[Settings], Numbers]] = {
    "peak": measure_peak,
    "prepare": measure_preparing,
    "train": measure_training,
    "translate": measure_translating,
}

if __name__ == "__main__":
    main(sys.argv[1:])
