# ruff: noqa: T201 (a script speaks to its terminal)
"""What `see` costs while nobody listens: its share of a decoding step of the smallest preset.

Usage: python benchmarks/trace_cost.py

A decoding step of one sentence with `tiny` is the shortest computation that heed has, so that the
share is nowhere larger.
"""

import statistics
import time
import timeit
from typing import Any

import torch

from heed.model import attention, decodable, layers, trace, transformer
from heed.model.build import build_model
from heed.model.config import PRESETS, ModelConfig

REPEAT = 15
STEPS = 40
CALLS = 200_000


def calls_per_step(step: Any) -> int:
    """How often a step calls `see`."""
    calls = 0

    def count(module: torch.nn.Module, name: str, tensor: torch.Tensor) -> torch.Tensor:
        nonlocal calls
        calls += 1
        return tensor

    rooms: tuple[Any, ...] = (attention, layers, transformer, decodable)
    for room in rooms:
        room.see = count
    step()
    for room in rooms:
        room.see = trace.see
    return calls


def main() -> None:
    """Print calls a step, nanoseconds a call, and their share of the step's time."""
    torch.set_num_threads(1)
    config = ModelConfig(src_vocab_size=8000, tgt_vocab_size=8000, **PRESETS["tiny"])
    model = build_model(config).eval()
    src, token = torch.randint(4, 8000, (1, 12)), torch.tensor([2])

    def seconds_per_step(n_steps: int = STEPS) -> float:
        with torch.inference_mode():
            state = model.start(src)
            started_at = time.perf_counter()
            for _ in range(n_steps):
                model.step(state, token)
            return (time.perf_counter() - started_at) / n_steps

    n_calls = calls_per_step(lambda: seconds_per_step(2)) - calls_per_step(
        lambda: seconds_per_step(1)
    )
    call = min(timeit.repeat(lambda: trace.see(model, "x", token), number=CALLS, repeat=5)) / CALLS
    empty = min(timeit.repeat(lambda: None, number=CALLS, repeat=5)) / CALLS
    step = statistics.median(seconds_per_step() for _ in range(REPEAT))
    print(f"{n_calls} calls a step, {1e9 * (call - empty):.0f} ns each")
    print(f"{n_calls * (call - empty) / step:.2%} of a step of {1e3 * step:.2f} ms")


if __name__ == "__main__":
    main()
