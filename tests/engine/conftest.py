"""Networks for the tests of the engine.

Also sources, a way to go through them, and engines; not here: what is true of them.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from heed.engine import library
from heed.engine.network import Network, engine_config
from heed.engine.runtime import Engine
from heed.engine.shortlist import Shortlist
from heed.model.build import build_model
from heed.model.config import AnyConfig
from heed.model.families import config_from
from heed.model.interface import Floats, Ids
from heed.model.network import TorchNetwork

needs_compiler = pytest.mark.skipif(
    not library.is_compiled(), reason="the engine was not compiled here (no C++ compiler?)"
)
KERNELS = ["portable", "avx2", "avxvnni", "avx512", "amx", "neon", "dotprod", "numpy"]
# No width is a multiple of 16, nor of 4 where it need not be.
ODD: dict[str, Any] = {
    "src_vocab_size": 51,
    "tgt_vocab_size": 70,
    "d_model": 42,
    "n_heads": 3,
    "d_ff": 73,
    "n_encoder_layers": 2,
    "n_decoder_layers": 2,
    "max_positions": 64,
    "tied": "none",
}
ODD_DECODER: dict[str, Any] = {
    "family": "decoder",
    "src_vocab_size": 70,
    "tgt_vocab_size": 70,
    "d_model": 42,
    "n_heads": 3,
    "d_ff": 73,
    "n_layers": 3,
    "max_positions": 64,
}

LENGTHS = (5, 3, 17, 1)
BEAM_SIZE = 2


NO_SOURCES = np.zeros((len(LENGTHS), 0), np.int64)
"""As many as `sources`, all empty."""


def config_of(changes: dict[str, Any]) -> AnyConfig:
    """The config of a small model: `changes` of `ODD`, or of `ODD_DECODER` if it is a decoder."""
    odd = ODD_DECODER if changes.get("family") == "decoder" else ODD
    return config_from(odd | changes)


def sources() -> Ids:
    """Four sources of different lengths, padded with 0."""
    random = np.random.default_rng(5)
    padded = np.zeros((len(LENGTHS), max(LENGTHS)), np.int64)
    for row, length in zip(padded, LENGTHS, strict=True):
        row[:length] = random.integers(4, 51, length)
    return padded


def walk(model: Any, *, src: Ids | None = None) -> list[Floats]:
    """Log-probs of five steps of a beam in which rows change places and one source leaves."""
    random = np.random.default_rng(7)
    src = sources() if src is None else src
    state = model.start(src, beam_size=BEAM_SIZE)
    tokens = np.full(len(src) * BEAM_SIZE, 2)
    seen = []
    for step in range(5):
        seen.append(model.step(state, tokens).all_log_probs())
        stay = np.array([0, 2, 3]) if step == 2 else np.arange(len(tokens) // BEAM_SIZE)
        slots = random.integers(0, BEAM_SIZE, (len(stay), BEAM_SIZE))
        rows = (stay[:, None] * BEAM_SIZE + slots).ravel()
        model.select(state, rows, stay if step == 2 else None)
        tokens = random.integers(4, 70, len(rows))
    return seen


def engine(
    network: Network, kernels: str = "", threads: int = 1, shortlist: Shortlist | None = None
) -> Engine:
    """An engine for this instruction set; skips where this machine cannot have it."""
    if kernels != "numpy" and not (library.is_compiled() and library.kernels(kernels)):
        pytest.skip(f"this machine has no {kernels or 'compiled engine'}")
    return Engine(network, threads=threads, kernels=kernels, shortlist=shortlist)


@pytest.fixture
def torch_model() -> Callable[..., TorchNetwork]:
    """`torch_model(norm="pre")`: seeded, in eval mode, no bias or gain at 0 or 1."""

    def make(**changes: Any) -> TorchNetwork:
        torch.manual_seed(3)
        model = build_model(config_of(changes))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))
        return model.eval()

    return make


@pytest.fixture
def network(torch_model: Callable[..., TorchNetwork]) -> Callable[..., Network]:
    """`network(is_quantized=True, norm="pre")`: the same weights, laid out for the engine."""

    def make(*, is_quantized: bool = False, **changes: Any) -> Network:
        model = torch_model(**changes)
        weights = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
        return Network.of(engine_config(config_of(changes)), weights, is_quantized=is_quantized)

    return make
