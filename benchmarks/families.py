# ruff: noqa: T201 (a script speaks to its terminal)
"""Every family of models on the same pairs for the same time: quality, speed, memory, by length.

    chrt -f 10 taskset -c 1 python benchmarks/families.py --out families --time 10m --seeds 1,2,3 \
        --src train.en.gz --tgt train.de.gz --dev-src val.en.gz --dev-tgt val.de.gz \
        --test-src test.en.gz --test-tgt test.de.gz

Each run is `heed train`, one after another, on one thread; then its model translates the test set.
A run goes by the clock, so it needs a core of its own. All is kept in `--out`: interrupted, the
same command goes on; `--table` prints what there is. Not here: other trainers
(`time_to_quality.py`).
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import speed

Record = dict[str, Any]

CASES: dict[str, list[str]] = {
    "transformer": [],
    "conv": ["model.family=conv"],
    "rnn, dot attention": ["model.family=rnn"],
    "decoder": ["model.family=decoder"],
    "rnn, additive attention": ["model.family=rnn", "model.attention=additive"],
    "rnn, no attention": ["model.family=rnn", "model.attention=none"],
}
"""Family → its settings beside the defaults."""

LANGUAGES = ("en", "de")
FILES = ("src", "tgt", "dev-src", "dev-tgt", "test-src", "test-tgt")

GREEDY = {"threads": 1, "batch_lines": None, "beam_size": 1, "runtime": "torch"}
"""How the speed of translating is measured: torch computes every family."""


def heed(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a command of heed; what it says comes back."""
    command = [sys.executable, "-m", "heed", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def run(case: str, seed: int, options: argparse.Namespace) -> Record:
    """Train one model and judge it.

    Args:
        case: key of `CASES`.
        seed: of the run.
        options: of this script; `limit` are arguments of `heed train` that end a run.
    """
    folder = Path(options.out) / f"{case.replace(', ', '-').replace(' ', '-')}-{seed}"
    kept = folder / "families.json"
    if kept.exists():
        found: Record = json.loads(kept.read_text("utf-8"))
        return found
    began = time.monotonic()
    train = [
        *("train", "--src", options.src, "--tgt", options.tgt),
        *("--dev-src", options.dev_src, "--dev-tgt", options.dev_tgt),
        *("--source-lang", LANGUAGES[0], "--target-lang", LANGUAGES[1], "--out", str(folder)),
        *("--threads", "1", "--seed", str(seed), *options.limit, *CASES[case]),
    ]
    process = subprocess.Popen(
        [sys.executable, "-m", "heed", *train, "-q"], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"{case}, seed {seed}: heed train failed:\n{said}")
    record: Record = {
        "case": case,
        "seed": seed,
        "seconds": time.monotonic() - began,
        "memory_mb": usage.ru_maxrss * 1024 / 1e6,
        **trained(folder / "metrics.jsonl"),
        **judged(folder, options),
    }
    kept.write_text(json.dumps(record, indent=1), "utf-8")
    return record


def trained(path: Path) -> Record:
    """Parameters, steps and speed of a run."""
    events = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    steps = [event for event in events if event["kind"] == "step"]
    last = next(event for event in reversed(events) if event["kind"] == "end")
    return {
        "parameters": last["parameters"],
        "steps": last["step"],
        "train_tokens_per_s": statistics.median(event["tokens_per_s"] for event in steps),
    }


def judged(folder: Path, options: argparse.Namespace) -> Record:
    """Scores of the test set with their intervals and by length, and the speed of translating."""
    judging = ("--src", options.test_src, "--ref", options.test_tgt, "--worst", "1", "--json")
    found = json.loads(heed("evaluate", "-m", str(folder), *judging).stdout)
    (name,) = (system["name"] for system in found["systems"])
    settings = {**GREEDY, "model": str(folder), "input": options.test_src}
    speeds = speed.in_own_process("translate", settings)
    return {
        "scores": found["systems"][0]["scores"],
        "by_length": [
            {"label": bucket["label"], "n": bucket["n_sentences"], **bucket["scores"][name]}
            for bucket in found["by_length"]
        ],
        "translate_tokens_per_s": speeds["output_tokens_per_cpu_s"],
    }


def table(records: list[Record]) -> str:
    """Medians over the seeds of each family, best BLEU first; scores by length are means."""
    by_case: dict[str, list[Record]] = {}
    for record in records:
        by_case.setdefault(record["case"], []).append(record)
    rows = sorted((row_of(runs) for runs in by_case.values()), reverse=True)
    labels = [bucket["label"] for bucket in records[0]["by_length"]]
    head = [
        *("family", "seeds", "parameters", "BLEU", "of the seeds", "chrF2"),
        *("trains, tokens/s", "translates, tokens/s", "memory, MB"),
        *(f"{label} words" for label in labels),
    ]
    ruler = ["---"] + ["--:"] * (len(head) - 1)
    return "\n".join(
        "| " + " | ".join(cells) + " |" for cells in (head, ruler, *(r[1] for r in rows))
    )


def row_of(runs: list[Record]) -> tuple[float, list[str]]:
    """The median BLEU of some runs of one family, and the cells of its row."""
    ordered = sorted(runs, key=lambda run: float(run["scores"]["bleu"]["value"]))
    middle = ordered[len(ordered) // 2]
    bleu, chrf = middle["scores"]["bleu"], middle["scores"]["chrf"]

    def median(key: str) -> float:
        return statistics.median(float(run[key]) for run in runs)

    lengths = [
        statistics.mean(bucket["bleu"] for bucket in buckets)
        for buckets in zip(*(run["by_length"] for run in runs), strict=True)
    ]
    values = [run["scores"]["bleu"]["value"] for run in ordered]
    cells = [
        middle["case"],
        str(len(runs)),
        f"{middle['parameters'] / 1e6:.2f} million",
        f"{bleu['value']:.2f} [{bleu['low']:.2f}, {bleu['high']:.2f}]",
        f"{values[0]:.2f} – {values[-1]:.2f}",
        f"{chrf['value']:.2f} [{chrf['low']:.2f}, {chrf['high']:.2f}]",
        f"{median('train_tokens_per_s'):,.0f}",
        f"{median('translate_tokens_per_s'):,.0f}",
        f"{median('memory_mb'):,.0f}",
        *(f"{each:.1f}" for each in lengths),
    ]
    return float(bleu["value"]), cells


def main(arguments: list[str]) -> None:
    """Train what is missing, seed by seed, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", required=True, help="folder of the runs")
    parser.add_argument("--time", default="10m", help="of each run")
    parser.add_argument("--seeds", default="1,2,3")
    parser.add_argument("--cases", default=";".join(CASES), help="families, with ; between them")
    parser.add_argument("--table", action="store_true", help="train nothing")
    for name in FILES:
        parser.add_argument(f"--{name}", help="a file of the corpus")
    options = parser.parse_args(arguments)
    options.limit = ("--time", options.time)
    kept = sorted(Path(options.out).glob("*/families.json"))
    records = [json.loads(path.read_text("utf-8")) for path in kept]
    if not options.table:
        records = []
        for seed in map(int, options.seeds.split(",")):
            for case in options.cases.split(";"):
                records.append(run(case, seed, options))
                print(f"{case}, seed {seed}: BLEU {records[-1]['scores']['bleu']['value']:.2f}")
    print(table(records))


if __name__ == "__main__":
    main(sys.argv[1:])
