# ruff: noqa: T201 (a script speaks to its terminal)
"""What a decoder without self-attention gains: one encoder, several decoders, in turn.

    taskset -c 0 python benchmarks/decoders.py
    taskset -c 0 python benchmarks/decoders.py --size base --lengths 24,200 --runtimes engine-int8

Random weights in the sizes of `translators.py`; every source has 24 tokens, and every translation
is forced to the length. Each decoder takes its turn, and the next round begins when all have had
it; a ratio is that of neighbors in time, in CPU time of one thread. Not here: quality.
"""

import argparse
import statistics
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np
import torch

import translators
from heed.decode.options import DecodeOptions
from heed.decode.search import decode
from heed.engine.network import Network
from heed.engine.runtime import Engine
from heed.model.build import build_model
from heed.model.config import ModelConfig
from heed.model.decodable import TorchDecodable

DECODERS: dict[str, dict[str, Any]] = {
    "attention": {},
    "average": {"decoder_self": "average"},
    "average, no FFN": {"decoder_self": "average", "average_feed_forward": False},
    "ssru": {"decoder_self": "ssru"},
}
RUNTIMES = ("torch", "engine-float32", "engine-int8")


def models(config: ModelConfig) -> dict[str, Any]:
    """The same weights in each runtime."""
    torch.manual_seed(1)
    network = build_model(config).eval()
    weights = {name: tensor.detach().numpy() for name, tensor in network.state_dict().items()}
    return {
        "torch": TorchDecodable(network, torch.device("cpu")),
        "engine-float32": Engine(Network.of(config, weights)),
        "engine-int8": Engine(Network.of(config, weights, is_quantized=True)),
    }


def translate(model: Any, config: ModelConfig, batch: int, beam: int, length: int) -> float:
    """Seconds of CPU time for a batch."""
    src = np.random.default_rng(batch).integers(4, config.src_vocab_size, (batch, 24))
    options = DecodeOptions(
        beam_size=beam, max_length=length, max_length_factor=100.0, suppress=(config.eos_id,)
    )
    bos_id, eos_id, pad_id = config.bos_id, config.eos_id, config.pad_id
    started_at = time.process_time()
    found = decode(model, src, options, bos_id=bos_id, eos_id=eos_id, pad_id=pad_id)
    took = time.process_time() - started_at
    assert all(len(ranked[0].ids) == length for ranked in found)
    return took


def in_turn(
    runs: Mapping[str, Callable[[], float]], rounds: int, seconds: float
) -> dict[str, list[float]]:
    """The times of each, several runs a turn so that it takes about `seconds`."""
    n_runs = {name: max(1, round(seconds / run())) for name, run in runs.items()}
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            times[name].append(statistics.mean(run() for _ in range(n_runs[name])))
    return times


def main() -> None:
    """Print a table for each runtime: milliseconds, and how many times as fast as attention."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--size", choices=tuple(translators.SIZES), default="small")
    parser.add_argument("--runtimes", default=",".join(RUNTIMES))
    parser.add_argument("--shapes", default="1x1,1x4,32x1,32x4", help="batch x beam, …")
    parser.add_argument("--lengths", default="24", help="of translations, in tokens")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.3, help="of a turn, about")
    settings = parser.parse_args()
    torch.set_num_threads(1)
    shape = translators.shape(settings.size)
    configs = {name: ModelConfig(**shape, **changes) for name, changes in DECODERS.items()}
    made = {name: models(config) for name, config in configs.items()}
    columns = [(s, int(n)) for n in settings.lengths.split(",") for s in settings.shapes.split(",")]
    for runtime in settings.runtimes.split(","):
        print(f"\n| {runtime} | {' | '.join(f'{s}, {n} tokens' for s, n in columns)} |")
        print("|---|" + "--:|" * len(columns))
        cells: dict[str, list[str]] = {name: [] for name in configs}
        for each, length in columns:
            batch, beam = map(int, each.split("x"))
            runs = {
                name: partial(translate, made[name][runtime], config, batch, beam, length)
                for name, config in configs.items()
            }
            times = in_turn(runs, settings.repeat, settings.seconds)
            for name, found in times.items():
                ratios = [a / b for a, b in zip(times["attention"], found, strict=True)]
                ms = 1e3 * statistics.median(found)
                cells[name].append(f"{ms:,.1f} ms ({statistics.median(ratios):.2f})")
        for name, row in cells.items():
            print(f"| {name} | {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
