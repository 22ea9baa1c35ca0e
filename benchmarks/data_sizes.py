# ruff: noqa: T201 (a script speaks to its terminal)
r"""How much data each family of models needs: the same steps on more and more pairs.

    python benchmarks/data_sizes.py --out sizes --pairs 1000,4000,29000 --steps 400 --seeds 1 \
        --src train.en.gz --tgt train.de.gz --dev-src val.en.gz --dev-tgt val.de.gz \
        --test-src test.en.gz --test-tgt test.de.gz

A run counts steps, not seconds, so other work on the machine changes no score. All is kept in
`--out`: interrupted, the same command goes on. Not here: a family's best in a given time
(`families.py`).
"""

import argparse
import itertools
import statistics
import sys
from pathlib import Path

import families
from families import Record
from heed.data.lines import read_lines

CASES = ("transformer", "conv", "rnn, dot attention")
SETTINGS = ("--preset", "tiny", "training.batch_tokens=2000", "training.validations=4")
"""The same for all: a recipe chooses its batches by the size of a corpus."""


def first_pairs(options: argparse.Namespace, n_pairs: int) -> argparse.Namespace:
    """The options of `families.run` for the first pairs of the corpus, written beside the runs."""
    folder = Path(options.out) / str(n_pairs)
    folder.mkdir(parents=True, exist_ok=True)
    changed = {**vars(options), "out": str(folder)}
    for side in ("src", "tgt"):
        path = folder / f"train.{side}"
        lines = itertools.islice(read_lines(getattr(options, side)), n_pairs)
        path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
        changed[side] = str(path)
    return argparse.Namespace(**changed)


def table(records: dict[int, list[Record]]) -> str:
    """BLEU and chrF2, means over the seeds: a row for each family, columns for each size."""
    head = ["family", *(f"{n:,} pairs: {name}" for n in records for name in ("BLEU", "chrF2"))]
    lines = ["| " + " | ".join(head) + " |", "|---" + "|--:" * (len(head) - 1) + "|"]
    for case in CASES:
        cells = [case]
        for found in records.values():
            for metric in ("bleu", "chrf"):
                values = [run["scores"][metric]["value"] for run in found if run["case"] == case]
                cells.append(f"{statistics.mean(values):.2f}" if values else "")
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    """Train what is missing, the smallest corpus first, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--out", required=True, help="folder of the runs")
    parser.add_argument("--pairs", default="1000,4000,29000", help="sizes, with commas between")
    parser.add_argument("--steps", default="400", help="of each run")
    parser.add_argument("--seeds", default="1")
    for name in families.FILES:
        parser.add_argument(f"--{name}", required=True, help="a file of the corpus")
    options = parser.parse_args(arguments)
    options.limit = ("--max-steps", options.steps, *SETTINGS)
    records: dict[int, list[Record]] = {}
    for n_pairs in map(int, options.pairs.split(",")):
        of_size = first_pairs(options, n_pairs)
        for seed, case in itertools.product(map(int, options.seeds.split(",")), CASES):
            records.setdefault(n_pairs, []).append(families.run(case, seed, of_size))
            bleu = records[n_pairs][-1]["scores"]["bleu"]["value"]
            print(f"{n_pairs:,} pairs, {case}, seed {seed}: BLEU {bleu:.2f}", flush=True)
    print(table(records))


if __name__ == "__main__":
    main(sys.argv[1:])
