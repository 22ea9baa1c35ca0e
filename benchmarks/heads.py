# ruff: noqa: T201 (a script speaks to its terminal)
"""One head or several: how many of the numbers that attention passes on matter little.

Usage: python benchmarks/heads.py RUN [RUN …]

A unit is one of the n_heads · d_v numbers that the heads of a sublayer pass to the output
projection: as many, whatever the number of heads. Its importance is that of `heed prune`; counted
are the units with less than a quarter and a half of the mean of their sublayer.
"""

import argparse
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from heed.bundle.bundle import load_bundle
from heed.compress.importance import importance, sequence_losses, sublayers
from heed.compress.prune import opened
from heed.compress.sequences import sequences_of_run
from heed.model.families import plan

BOUNDS = (0.25, 0.5)


def units(run: Path) -> tuple[int, float, list[float]]:
    """Heads of a run's model, its held-out loss, and the share of units below each bound."""
    bundle = load_bundle(run)
    widths = {weight.name: weight.shape[-1] for weight in plan(bundle.config)}
    heads = [each for each in sublayers(bundle.config) if each.kind == "heads"]
    chosen = [
        replace(each, kind="numbers", n_units=widths[f"{each.readers[0]}.weight"]) for each in heads
    ]
    model, sequences = opened(bundle), sequences_of_run(run, bundle)
    pad_id = bundle.config.pad_id
    scores = importance(model, sequences.training, chosen, pad_id=pad_id)
    nll, n_tokens = sequence_losses(model, sequences.held_out, pad_id=pad_id)
    relative = np.concatenate([values / values.mean() for values in scores.values()])
    shares = [float((relative < bound).mean()) for bound in BOUNDS]
    return heads[0].n_units, nll.sum() / n_tokens.sum(), shares


def main() -> None:
    """Print a line for each run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path)
    torch.set_num_threads(1)
    print("| heads | loss, nats a token | units below a quarter | below a half |")
    print("|--:|--:|--:|--:|")
    for run in parser.parse_args().runs:
        n_heads, loss, shares = units(run)
        print(f"| {n_heads} | {loss:.3f} | {' | '.join(f'{share:.1%}' for share in shares)} |")


if __name__ == "__main__":
    main()
