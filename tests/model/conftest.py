"""Small models for the tests of this room; no weight is left at zero or one.

Not here: what is true of them. `tests/equal/conftest.py` holds the same for its folder.
"""

from collections.abc import Callable
from typing import Any, get_args

import pytest
import torch
from torch import nn

from heed.model.build import build_model
from heed.model.config import ModelConfig
from heed.model.transformer import Transformer

TINY: dict[str, Any] = {
    "src_vocab_size": 13,
    "tgt_vocab_size": 13,
    "d_model": 8,
    "n_heads": 2,
    "d_ff": 12,
    "n_encoder_layers": 2,
    "n_decoder_layers": 2,
    "max_positions": 64,
}


def choices(name: str) -> tuple[str, ...]:
    """The words of a setting of the model, such as `("post", "pre")` of `norm`."""
    words: tuple[str, ...] = get_args(ModelConfig.__annotations__[name])
    return words


def shake(module: nn.Module) -> None:
    """Move biases and norms off 0 and 1, where a forgotten one would go unseen."""
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))


@pytest.fixture
def config_of() -> Callable[..., ModelConfig]:
    """`config_of(norm="pre")`: the shape of `tiny(norm="pre")`."""
    return lambda **changes: ModelConfig(**(TINY | changes))


@pytest.fixture
def tiny() -> Callable[..., Transformer]:
    """`tiny(norm="pre")`: a seeded model in eval mode, a few numbers wide."""

    def make(*, seed: int = 0, **changes: Any) -> Transformer:
        torch.manual_seed(seed)
        model = build_model(ModelConfig(**(TINY | changes)))
        shake(model)
        return model.eval()

    return make
