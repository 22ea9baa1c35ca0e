# ruff: noqa: T201 (a script speaks to its terminal)
"""One head or several: how many of the numbers that attention passes on hardly matter.

Usage: python benchmarks/heads.py RUN [RUN …]

A unit is one of the n_heads · d_v numbers that the heads of a sublayer pass to the output
projection, as many whatever the number of heads. It is inactive if its importance
(`heed.compress.importance`) is less than a tenth of the mean of its sublayer.
"""

import argparse
from pathlib import Path

import numpy as np
import torch

from heed.bundle.bundle import load_bundle
from heed.compress.importance import Sublayer, importance, sequence_losses, sublayers
from heed.compress.prune import opened
from heed.compress.sequences import sequences_of_run
from heed.model.families import plan

SHARE = 0.1


def units(run: Path) -> tuple[int, float, dict[str, float]]:
    """Heads of a run's model, its held-out loss, and the share of inactive units by sublayer."""
    bundle = load_bundle(run)
    widths = {weight.name: weight.shape[-1] for weight in plan(bundle.config)}
    heads = [each for each in sublayers(bundle.config) if each.kind == "heads"]
    chosen = [
        Sublayer(each.name, "numbers", each.reader, widths[f"{each.reader}.weight"])
        for each in heads
    ]
    model, sequences = opened(bundle), sequences_of_run(run, bundle)
    pad_id = bundle.config.pad_id
    scores = importance(model, sequences.training, chosen, pad_id=pad_id)
    nll, n_tokens = sequence_losses(model, sequences.held_out, pad_id=pad_id)
    inactive = {
        name: float((values < SHARE * values.mean()).mean()) for name, values in scores.items()
    }
    return heads[0].n_units, nll.sum() / n_tokens.sum(), inactive


def main() -> None:
    """Print a line for each run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("runs", nargs="+", type=Path)
    torch.set_num_threads(1)
    print("| heads | loss, nats a token | inactive units | encoder | decoder | cross |")
    print("|--:|--:|--:|--:|--:|--:|")
    for run in parser.parse_args().runs:
        n_heads, loss, inactive = units(run)
        kinds = ("", "encoder", "decoder.*self", "cross")
        shares = [
            np.mean([share for name, share in inactive.items() if Path(name).match(f"*{kind}*")])
            for kind in kinds
        ]
        print(f"| {n_heads} | {loss:.3f} | {' | '.join(f'{100 * s:.1f} %' for s in shares)} |")


if __name__ == "__main__":
    main()
