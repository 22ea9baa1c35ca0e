# ruff: noqa: T201 (a script speaks to its terminal)
"""What large corpora cost: preparing them, and planning an epoch, at several sizes.

    python benchmarks/scale.py
    python benchmarks/scale.py --pairs 50000 500000 --json

Each corpus is made up as it is written: words of a random language by Zipf's law, word for word in
another with two neighbors swapped; one pair in fifty repeats an earlier one. Each measurement is
a process of its own, so that its peak memory is its own.
Not here: training (`speed.py`).
"""

import argparse
import json
import os
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from speed import CHILD, Numbers, Settings, in_own_process, memory_mb

# A process's peak memory begins with what its parent had, so this one stays light.
if TYPE_CHECKING:
    import numpy as np

    from heed.data.corpus import Corpus

MEANINGS = {
    "pairs": ("pairs", "{:,.0f}"),
    "corpus_mb": ("corpus, MB", "{:,.0f}"),
    "seconds": ("preparing, s", "{:,.1f}"),
    "pairs_per_s": ("pairs/s", "{:,.0f}"),
    "cpu_s": ("its CPU time, s", "{:,.1f}"),
    "memory_mb": ("peak memory, MB", "{:,.0f}"),
    "disk_mb": ("prepared, MB on disk", "{:,.0f}"),
    "plan_s": ("planning an epoch, s", "{:,.2f}"),
    "plan_memory_mb": ("its peak memory, MB", "{:,.0f}"),
}
"""Number → what the table calls it, and how it is written. MB are 10^6 bytes."""

N_WORDS, ZIPF, MEAN_WORDS = 100_000, 1.1, 11
REPEATED = 0.02
BLOCK = 50_000
SYLLABLES = {
    "src": re.findall(r"\w+", "ta ri no ke lu mo sa ven der ing pro con sti al er on th ex ity"),
    "tgt": re.findall(r"\w+", "da schu lö ge ver un keit ein ma wi rä tion aus ber tz ü el ß en"),
}


def write_corpus(settings: Settings) -> Numbers:
    """Write both sides, line by line; memory does not depend on how many there are."""
    import numpy as np

    random = np.random.default_rng(settings["seed"])
    words = {
        side: [spelled(number, syllables) for number in range(N_WORDS)]
        for side, syllables in SYLLABLES.items()
    }
    folder, left = Path(settings["folder"]), settings["pairs"]
    with (
        open(folder / "train.src", "w", encoding="utf-8") as src,
        open(folder / "train.tgt", "w", encoding="utf-8") as tgt,
    ):
        while left:
            rows = list(make_rows(min(left, BLOCK), random))
            src.writelines(sentence(words["src"], row) for row in rows)
            tgt.writelines(sentence(words["tgt"], swapped(row)) for row in rows)
            left -= len(rows)
    sizes = ((folder / f"train.{side}").stat().st_size for side in SYLLABLES)
    return {"corpus_mb": sum(sizes) / 1e6}


def spelled(number: int, syllables: list[str]) -> str:
    """A word for a number: the smaller, the shorter; every hundredth is written in digits."""
    if number % 100 == 99:
        return str(number)
    rest, last = divmod(number, len(syllables))
    return (spelled(rest - 1, syllables) if rest else "") + syllables[last]


def make_rows(n_rows: int, random: "np.random.Generator") -> Iterator["np.ndarray[Any, Any]"]:
    """Numbers of words, a sentence each."""
    import numpy as np

    lengths = 2 + random.negative_binomial(3, 3 / MEAN_WORDS, n_rows)
    drawn = random.random(int(lengths.sum()))
    # The inverse of the distribution function of a Zipf law cut off at N_WORDS.
    top = N_WORDS ** (1 - ZIPF)
    numbers = ((1 + drawn * (top - 1)) ** (1 / (1 - ZIPF)) - 1).astype(np.int64)
    rows = np.split(numbers, np.cumsum(lengths)[:-1])
    for place, is_repeated in enumerate(random.random(n_rows) < REPEATED):
        yield rows[place // 2] if is_repeated else rows[place]


def swapped(row: "np.ndarray[Any, Any]") -> "np.ndarray[Any, Any]":
    """A sentence with two neighbors in the other order, the same two if it comes again."""
    start = int(row.sum()) % (len(row) - 1)
    row = row.copy()
    row[start : start + 2] = row[start : start + 2][::-1].copy()
    return row


def sentence(words: list[str], row: "np.ndarray[Any, Any]") -> str:
    """A line of text."""
    return " ".join([words[number] for number in row.tolist()]).capitalize() + ".\n"


def measure_preparing(settings: Settings) -> Numbers:
    """Clean, split, learn the pieces and encode, as `heed train` does."""
    from heed.data.prepare import prepare
    from heed.machine.cpu import prepare_cpu
    from heed.train.recipe.asked import Asked
    from heed.train.recipe.recipe import draft

    usual, out = draft(Asked()), Path(settings["folder"]) / "data"
    prepare_cpu()
    started_at, before = time.perf_counter(), time.process_time()
    prepare(
        corpus_of(settings),
        out,
        config=usual.data,
        tokenizer=usual.tokenizer,
        seed=usual.seed,
    )
    seconds = time.perf_counter() - started_at
    return {
        "seconds": seconds,
        "pairs_per_s": settings["pairs"] / seconds,
        "cpu_s": time.process_time() - before,
        "memory_mb": memory_mb(),
        "disk_mb": sum(path.stat().st_size for path in out.iterdir()) / 1e6,
    }


def measure_planning(settings: Settings) -> Numbers:
    """Group all pairs into batches, from what lies on the disk."""
    from heed.data.batch import plan_epoch
    from heed.data.prepared import open_prepared

    data = open_prepared(corpus_of(settings), Path(settings["folder"]) / "data")
    lengths = data.train.src_lengths, data.train.tgt_lengths
    started_at = time.perf_counter()
    plan_epoch(*lengths, max_tokens=2048, seed=1, epoch=0)
    return {"plan_s": time.perf_counter() - started_at, "plan_memory_mb": memory_mb()}


def corpus_of(settings: Settings) -> "Corpus":
    """The two files."""
    from heed.data.corpus import Corpus
    from heed.data.readers import ParallelFiles

    return Corpus(
        train=(ParallelFiles(files=tuple(f"{settings['folder']}/train.{s}" for s in SYLLABLES)),)
    )


def table(results: list[Numbers]) -> str:
    """Markdown: a row for each size."""
    rows = ["| " + " | ".join(words for words, _ in MEANINGS.values()) + " |"]
    rows.append("|" + "--:|" * len(MEANINGS))
    for found in results:
        cells = (shape.format(found[key]) for key, (_, shape) in MEANINGS.items())
        rows.append("| " + " | ".join(cells) + " |")
    return "\n".join(rows)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    whole = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    sizes = [50_000, 500_000, 5_000_000]
    whole.add_argument("--pairs", type=int, nargs="+", default=sizes, metavar="N")
    whole.add_argument("--seed", type=int, default=1)
    whole.add_argument("--folder", type=Path, help="for the files, which are removed again")
    whole.add_argument("--json", action="store_true", help="as JSON")
    return whole


def main(arguments: list[str]) -> None:
    """Measure and print; in a measurement's own process, make just that one."""
    if arguments[:1] == [CHILD]:
        print(json.dumps(MEASUREMENTS[arguments[1]](json.loads(arguments[2]))))
        return
    asked, load = parser().parse_args(arguments), os.getloadavg()[0]
    results = []
    for n_pairs in asked.pairs:
        with tempfile.TemporaryDirectory(prefix="heed-scale-", dir=asked.folder) as folder:
            settings: Settings = {"pairs": n_pairs, "seed": asked.seed, "folder": folder}
            found: Numbers = {"pairs": n_pairs}
            for name in MEASUREMENTS:
                print(f"{n_pairs:,} pairs: {name}", file=sys.stderr)
                found |= in_own_process(name, settings, script=__file__)
            results.append(found)
    words = f"{table(results)}\n\nload before: {load:.2f}"
    print(json.dumps(results, indent=2) if asked.json else words)


MEASUREMENTS: dict[str, Callable[[Settings], Numbers]] = {
    "write": write_corpus,
    "prepare": measure_preparing,
    "plan": measure_planning,
}

if __name__ == "__main__":
    main(sys.argv[1:])
