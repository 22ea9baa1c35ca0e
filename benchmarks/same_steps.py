# ruff: noqa: T201 (a script speaks to its terminal)
"""Whether two states of the source train the Transformer to the same bits, and how fast each does.

    git worktree add ../before COMMIT
    taskset -c 1 python benchmarks/same_steps.py ../before . --steps 60 --repeat 5

Each takes its own code and its own harness of the learning tests, and trains a Transformer of the
sizes `tiny` on random pairs. Losses, weights and answers are compared; tokens a second are those of
CPU time, in turn. Not here: other programs (`train_speed.py`).
"""

import argparse
import hashlib
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

Record = dict[str, Any]
VOCABULARY, N_PAIRS, N_ANSWERS, WARMUP = 8000, 4000, 32, 10
SIZES = {
    "src_vocab_size": VOCABULARY,
    "tgt_vocab_size": VOCABULARY,
    "d_model": 128,
    "n_heads": 4,
    "d_ff": 256,
    "n_encoder_layers": 4,
    "n_decoder_layers": 4,
    "dropout": 0.1,
}


def harness(tree: Path) -> Any:
    """`tests/learn/conftest.py` of a tree, which must be first on the path."""
    spec = importlib.util.spec_from_file_location("harness", tree / "tests/learn/conftest.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["harness"] = module
    spec.loader.exec_module(module)
    return module


def measure(tree: Path, n_steps: int) -> Record:
    """Train and answer with the code of a tree, in this process."""
    import numpy as np
    import torch

    at = harness(tree)
    torch.set_num_threads(1)
    random = np.random.default_rng(0)
    lengths = random.integers(5, 25, N_PAIRS)
    rows = [tuple(random.integers(4, VOCABULARY, length).tolist()) for length in lengths]
    data = at.PairsInMemory([(row, row[::-1]) for row in rows])
    settings = {"max_steps": n_steps, "batch_tokens": 2048, "warmup_steps": 20}
    config = replace(at.TRAINING, **settings, label_smoothing=0.1, seed=1)
    torch.manual_seed(1)
    network = at.build_model(replace(at.MODEL, **SIZES))
    trainer = at.Trainer(
        model=network,
        config=config,
        optimizer=at.Optimizer(network, config),
        pairs=lambda epoch: data,
        special_ids=at.SPECIAL,
        device=torch.device("cpu"),
    )
    losses: list[float] = []
    steps: list[tuple[float, int]] = []

    def note(event: Record) -> None:
        if event["kind"] == "step":
            losses.append(event["nll"])
            steps.append((time.process_time(), event["n_tgt_tokens"]))

    # Before it could be asked to save, a run could only be asked to stop.
    if hasattr(at, "Request"):
        asked: Record = {"requests": lambda: at.Request.NONE}
    else:
        asked = {"should_stop": lambda: False}
    nothing: Record = dict.fromkeys(("bleu", "chrf"))
    at.train(
        trainer,
        keeper=at.NoKeeper(),
        validate=lambda _: at.Validation(
            loss=losses[-1], n_translated=0, seconds=0.0, samples=[], **nothing
        ),
        report=note,
        **asked,
    )
    answers = at.Learned(trainer, losses).answers(rows[:N_ANSWERS])
    weights = b"".join(weight.detach().numpy().tobytes() for weight in network.parameters())
    n_tokens = sum(count for _, count in steps[WARMUP:])
    return {
        "losses": [loss.hex() for loss in map(float, losses)],
        "weights": hashlib.sha256(weights).hexdigest(),
        "answers": hashlib.sha256(repr(answers).encode()).hexdigest(),
        "tokens_per_s": n_tokens / (steps[-1][0] - steps[WARMUP - 1][0]),
    }


def report(before: list[Record], after: list[Record]) -> str:
    """What differs, and both speeds with the ratio of each turn from the lowest to the highest."""
    found = []
    for what in ("losses", "weights", "answers"):
        is_same = all(record[what] == before[0][what] for record in [*before, *after])
        found.append(f"{what}: {'the same bits' if is_same else 'they differ'}")
    first, second = ([record["tokens_per_s"] for record in side] for side in (before, after))
    ratios = sorted(new / old for old, new in zip(first, second, strict=True))
    old, new = statistics.median(first), statistics.median(second)
    spread = f"{statistics.median(ratios):.3f} ({ratios[0]:.3f} – {ratios[-1]:.3f})"
    found.append(f"tokens/s: {old:,.0f} before, {new:,.0f} after, ratio {spread}")
    return "\n".join(found)


def main(arguments: list[str]) -> None:
    """Measure each tree in turn, each time in a process of its own."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("trees", nargs="+", type=Path, metavar="BEFORE AFTER")
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args(arguments)
    trees = [tree.resolve() for tree in options.trees]
    if len(trees) == 1:
        print(json.dumps(measure(trees[0], options.steps)))
        return
    records: list[list[Record]] = [[], []]
    for _ in range(options.repeat):
        for side, tree in zip(records, trees, strict=True):
            command = [sys.executable, __file__, str(tree), "--steps", str(options.steps)]
            environment = {**os.environ, "PYTHONPATH": str(tree / "src")}
            done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE)
            side.append(json.loads(done.stdout))
    print(report(*records))


if __name__ == "__main__":
    main(sys.argv[1:])
