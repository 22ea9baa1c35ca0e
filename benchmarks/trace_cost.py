# ruff: noqa: T201 (a script speaks to its terminal)
"""What looking inside costs: `see` while nobody listens, and a trace.

    python benchmarks/trace_cost.py
    python benchmarks/trace_cost.py --pairs 200 --preset base
    python benchmarks/trace_cost.py -m RUN

With a model, how long its traces take. Without, the same work is done twice in turn: as it is, and
with functions that do nothing in the place of `see` and `is_heard`. Each pair gives a ratio of
processor times; shown is their median with its 95 % interval, and beside it the number of calls
times what one takes. `tiny` on a small batch has the shortest steps, so that the share is nowhere
larger.
"""

import argparse
import resource
import statistics
import sys
import time
import timeit
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from heed.data.batch import Batch
from heed.decode.options import DecodeOptions
from heed.decode.search import decode
from heed.model import trace
from heed.model.build import build_model
from heed.model.config import PRESETS, ModelConfig
from heed.model.decodable import TorchDecodable
from heed.train.step.forward import losses
from heed.translate.trace import Trace
from heed.translate.translator import load

Work = Callable[[], object]
N_ROWS, LENGTH, N_PIECES = 8, 16, 8000
"""A small batch, whose steps are shorter than those of a training."""
SENTENCE = "A man in a blue shirt is standing on a ladder cleaning a window."
N_TIMED = 200_000
"""Calls that are timed together."""
N_LONG, REPEAT = 500, 5
"""Tokens of a long text; measurements of a trace, whose median is printed."""


def nothing_seen(module: nn.Module, name: str, tensor: Tensor) -> Tensor:
    """In the place of `see`."""
    return tensor


def not_heard(module: nn.Module) -> bool:
    """In the place of `is_heard`."""
    return False


@contextmanager
def in_their_place(seen: Any, heard: Any) -> Iterator[None]:
    """Inside the block, the modules of models call these instead of `see` and `is_heard`."""
    places = [
        (module, name, getattr(module, name), stand_in)
        for module in list(sys.modules.values())
        if getattr(module, "__name__", "").startswith("heed.model.")
        for name, stand_in in (("see", seen), ("is_heard", heard))
        if hasattr(module, name)
    ]
    for module, name, _, stand_in in places:
        setattr(module, name, stand_in)
    try:
        yield
    finally:
        for module, name, usual, _ in places:
            setattr(module, name, usual)


def share_of_calls(work: Work) -> str:
    """How often the two are called, and what these calls take beside no call at all."""
    n_calls = 0

    def count(*arguments: object) -> Any:
        nonlocal n_calls
        n_calls += 1
        return arguments[2] if len(arguments) == 3 else False

    with in_their_place(count, count):
        work()
    module, tensor = nn.Identity(), torch.zeros(1)
    timed = (lambda: trace.see(module, "x", tensor), lambda: None)
    call, empty = (min(timeit.repeat(run, number=N_TIMED, repeat=9)) / N_TIMED for run in timed)
    # The fastest of both, so that another program slows neither down.
    whole = min(seconds(work, 1) for _ in range(60))
    share = n_calls * (call - empty) / whole
    return (
        f"{n_calls} calls of {1e9 * (call - empty):.0f} ns are {share:.2%} of {1e3 * whole:.1f} ms"
    )


def works(preset: str) -> dict[str, Work]:
    """What is measured: a training step, and the greedy translation of one sentence."""
    torch.manual_seed(1)
    config = ModelConfig(src_vocab_size=N_PIECES, tgt_vocab_size=N_PIECES, **PRESETS[preset])
    model = build_model(config)
    ids = torch.randint(4, N_PIECES, (N_ROWS, LENGTH))
    batch = Batch(
        src=ids,
        tgt_in=ids,
        tgt_out=ids,
        src_mask=None,
        n_src_tokens=ids.numel(),
        n_tgt_tokens=ids.numel(),
        indices=np.arange(N_ROWS),
    )
    decodable = TorchDecodable(model, torch.device("cpu"))
    greedy, beam = (
        DecodeOptions(beam_size=size, max_length=LENGTH, min_length=LENGTH - 1) for size in (1, 5)
    )

    def train() -> None:
        model.train()
        loss, _ = losses(
            model, batch, pad_id=0, smoothing=0.1, device=torch.device("cpu"), dtype=torch.float32
        )
        loss.backward()  # type: ignore[no-untyped-call]
        model.zero_grad()

    def translate(options: DecodeOptions) -> None:
        model.eval()
        decode(decodable, ids[:1].numpy(), options, bos_id=2, eos_id=3, pad_id=0)

    return {
        "a training step": train,
        "a translation of one sentence": lambda: translate(greedy),
        "the same with a beam of 5": lambda: translate(beam),
    }


def seconds(work: Work, repeat: int) -> float:
    """Processor time, once Python has adapted its code to the functions in place."""
    work()
    started_at = time.process_time()
    for _ in range(repeat):
        work()
    return time.process_time() - started_at


def ratios(work: Work, n_pairs: int, seconds_each: float) -> list[float]:
    """As it is over without the seam, a pair at a time, each first in every other pair."""
    seconds(work, 3)
    repeat = max(1, round(seconds_each / seconds(work, 3) * 3))
    found = []
    for pair in range(n_pairs):
        times: dict[bool, float] = {}
        for is_bare in (pair % 2 == 0, pair % 2 == 1):
            if is_bare:
                with in_their_place(nothing_seen, not_heard):
                    times[is_bare] = seconds(work, repeat)
            else:
                times[is_bare] = seconds(work, repeat)
        found.append(times[False] / times[True])
    return found


def interval(values: list[float]) -> tuple[float, float]:
    """95 % of the median, by order statistics: the signs of n values are n tosses of a coin."""
    n = len(values)
    away = round(0.98 * n**0.5)
    ordered = sorted(values)
    return ordered[max(0, n // 2 - away)], ordered[min(n - 1, (n - 1) // 2 + away)]


def trace_times(folder: str) -> Iterator[str]:
    """A line for each kind of trace: time, size, and the most memory so far."""
    translator = load(folder, threads=1)
    assert translator.traced is not None
    long = " ".join([SENTENCE] * (N_LONG // (len(translator.trace(SENTENCE).source_tokens) - 1)))
    found = translator(SENTENCE)
    kinds: dict[str, Callable[[], Trace]] = {
        "of a given translation": lambda: translator.trace(SENTENCE, found),
        "with the search": lambda: translator.trace(SENTENCE),
        "with the search, and every step of it": lambda: translator.trace(SENTENCE, steps=True),
        "of a long text": lambda: translator.trace(long, long),
    }
    for words, make in kinds.items():
        made = make()
        lengths = f"{len(made.source_tokens)} → {len(made.target_tokens)} tokens"
        size = made.size_bytes
        del made
        cpu = statistics.median(seconds(make, 1) for _ in range(REPEAT))
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        yield (
            f"a trace {words}, {lengths}: {cpu:.2f} s of CPU, {size / 1e6:.0f} MB of tensors; "
            f"most memory so far {memory / 1e6:.0f} MB"
        )


def main(arguments: list[str]) -> None:
    """Print one line for each kind of work."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--pairs", type=int, default=2000, help="default: 2000")
    parser.add_argument("--preset", default="tiny", help="default: tiny")
    parser.add_argument("--seconds", type=float, default=0.0, help="of each half; default: 0, once")
    parser.add_argument("-m", "--model", metavar="RUN", help="time traces of this model")
    asked: Any = parser.parse_args(arguments)
    torch.set_num_threads(1)
    if asked.model:
        for line in trace_times(asked.model):
            print(line)
        return
    for words, work in works(asked.preset).items():
        found = ratios(work, asked.pairs, asked.seconds)
        low, high = interval(found)
        print(
            f"{asked.preset}, {words}: {statistics.median(found) - 1:+.2%} "
            f"({low - 1:+.2%} to {high - 1:+.2%}), {asked.pairs} pairs; {share_of_calls(work)}"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
