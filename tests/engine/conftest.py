"""Networks for the tests of the engine.

Not here: what is true of them.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch

from heed.engine.network import Network
from heed.model.build import build_model
from heed.model.config import ModelConfig
from heed.model.transformer import Transformer

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


@pytest.fixture
def torch_model() -> Callable[..., Transformer]:
    """`torch_model(norm="pre")`: seeded, in eval mode, no bias or gain at 0 or 1."""

    def make(**changes: Any) -> Transformer:
        torch.manual_seed(3)
        model = build_model(ModelConfig(**(ODD | changes)))
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.1 * torch.randn_like(parameter))
        return model.eval()

    return make


@pytest.fixture
def network(torch_model: Callable[..., Transformer]) -> Callable[..., Network]:
    """`network(is_quantized=True, norm="pre")`: the same weights, laid out for the engine."""

    def make(*, is_quantized: bool = False, **changes: Any) -> Network:
        model = torch_model(**changes)
        weights = {name: tensor.numpy() for name, tensor in model.state_dict().items()}
        config = ModelConfig(**(ODD | changes))
        return Network.of(config, weights, is_quantized=is_quantized)

    return make
