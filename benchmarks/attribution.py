# ruff: noqa: T201 (a script speaks to its terminal)
"""How well attributions agree with brute force: what is lost when a source token is taken out.

Usage: python benchmarks/attribution.py RUN FILE [--lines N] [--target-lang LANG]

For each method of `heed.explain.causes.attribution` and each token of the translations of the
file's first lines: Spearman's rank correlation with deletion over the source tokens, how often both
name the same source token as the most important one, and the CPU time of a sentence on one thread.
"""

import argparse
import time
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from heed.explain.causes.attribution import METHODS, deletion, rank_correlation
from heed.explain.causes.pair import Pair
from heed.translate.translator import Translator, load


def agreement(
    translator: Translator, lines: list[str], target_lang: str | None = None
) -> dict[str, tuple[float, float, float, float]]:
    """By method: the mean rank correlation, the share of equal first tokens, gap, and seconds."""
    pairs = [Pair.of(translator, line, target_lang=target_lang) for line in lines]
    truths = [deletion(pair).source for pair in pairs]
    found = {}
    for name, method in METHODS.items():
        correlations, firsts, gaps = [], [], []
        begun = time.process_time()
        attributions = [method(pair) for pair in pairs]
        seconds = (time.process_time() - begun) / len(pairs)
        for attribution, truth in zip(attributions, truths, strict=True):
            gaps.append(attribution.gap)
            for one, other in zip(attribution.source, truth, strict=True):
                correlations.append(rank_correlation(one, other))
                firsts.append(one.argmax() == other.argmax())
        found[name] = (
            float(np.nanmean(correlations)),
            float(np.mean(firsts)),
            float(np.mean(gaps)),
            seconds,
        )
    return found


def main() -> None:
    """Print a line for each method."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("run", type=Path)
    parser.add_argument("file", type=Path, help="source lines")
    parser.add_argument("--lines", type=int, default=20)
    parser.add_argument("--target-lang")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    with chosen.file.open(encoding="utf-8") as file:
        lines = [line.strip() for line in islice(file, chosen.lines)]
    print("| method | rank correlation | same first token | gap, nats | CPU seconds a sentence |")
    print("|---|--:|--:|--:|--:|")
    found = agreement(load(chosen.run, threads=1), lines, chosen.target_lang)
    for name, (correlation, first, gap, seconds) in found.items():
        print(f"| {name} | {correlation:.2f} | {first:.0%} | {gap:.3f} | {seconds:.2f} |")


if __name__ == "__main__":
    main()
