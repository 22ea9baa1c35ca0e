# ruff: noqa: T201 (a script speaks to its terminal)
"""Prompts of unequal length in one batch: read whole, or up to the shortest and then step by step.

    taskset -c 0 python benchmarks/prompts.py

A language model of random weights in int8 goes on with 32 prompts, greedily. Time is CPU time of
one thread, the median of `--repeat` turns. Not here: other programs (`generate_speed.py`).
"""

import argparse
import statistics
import sys
import time
from dataclasses import dataclass

import numpy as np
import torch

from heed.decode.options import DecodeOptions
from heed.decode.search import decode
from heed.engine.network import Network
from heed.engine.runtime import Engine
from heed.model.build import build_model
from heed.model.interface import Decodable
from heed.model.one_stack.config import DecoderConfig
from heed.train.step.averages import to_arrays

CONFIG = DecoderConfig(
    src_vocab_size=8000,
    tgt_vocab_size=8000,
    d_model=256,
    n_heads=4,
    d_ff=1024,
    n_layers=6,
    norm="pre",
    positions="rotary",
)
BATCH = 32
CASES = ((16, 256, 32), (16, 256, 128), (16, 64, 32), (64, 64, 32))
"""Shortest prompt, longest prompt, new tokens."""


@dataclass
class Stepwise:
    """A model without `start_from`: it reads prompts up to the shortest one."""

    model: Engine

    def __post_init__(self) -> None:
        self.start, self.step = self.model.start, self.model.step
        self.extend, self.select = self.model.extend, self.model.select
        self.teacher_forced = self.model.teacher_forced
        self.length_limit = self.model.length_limit


def generate(model: Decodable, prompts: list[list[int]], n_new: int) -> list[list[int]]:
    """The new ids of each prompt."""
    longest = max(map(len, prompts)) + n_new
    options = DecodeOptions(
        beam_size=1,
        max_length=longest,
        max_length_factor=0.0,
        max_length_offset=n_new,
        min_length=longest - 1,
    )
    found = decode(
        model,
        np.zeros((len(prompts), 0), np.int64),
        options,
        bos_id=2,
        eos_id=3,
        pad_id=0,
        prefixes=prompts,
        score_prefixes=False,
    )
    rows = zip(found, prompts, strict=True)
    return [best.ids[len(prompt) : len(prompt) + n_new] for (best,), prompt in rows]


def main(arguments: list[str]) -> None:
    """Measure and print a table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--repeat", type=int, default=5)
    options = parser.parse_args(arguments)
    torch.manual_seed(1)
    weights = to_arrays(build_model(CONFIG).state_dict())
    engine = Engine(Network.of(CONFIG, weights, is_quantized=True))
    ways: dict[str, Decodable] = {"whole": engine, "up to the shortest": Stepwise(engine)}
    print("| prompts | new tokens | up to the shortest, s | whole, s | |\n|---|--:|--:|--:|--:|")
    for shortest, longest, n_new in CASES:
        lengths = np.linspace(shortest, longest, BATCH).astype(int).tolist()
        random = np.random.default_rng(7)
        prompts = [random.integers(4, CONFIG.tgt_vocab_size, n).tolist() for n in lengths]
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        texts = []
        for _ in range(options.repeat):
            for name, model in ways.items():
                began = time.process_time()
                texts.append(generate(model, prompts, n_new))
                seconds[name].append(time.process_time() - began)
        assert all(text == texts[0] for text in texts)
        whole, part = (statistics.median(seconds[name]) for name in ways)
        print(
            f"| {shortest}–{longest} tokens | {n_new} | {part:.3f} | {whole:.3f} "
            f"| {part / whole:.2f} × |"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
