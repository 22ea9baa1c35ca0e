"""Image patches for an encoder, and the digits that it labels."""

import runpy
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from heed.errors import DataError
from heed.evaluate.labels import accuracy
from heed.model.one_stack.config import EncoderConfig
from heed.model.one_stack.patches import build_patch_encoder, patches

SCRIPT = Path(__file__).resolve().parents[2] / "benchmarks" / "digits.py"

CONFIG = EncoderConfig(
    src_vocab_size=10,
    tgt_vocab_size=10,
    d_model=8,
    n_heads=2,
    d_ff=12,
    n_layers=2,
    dropout=0.0,
    positions="learned",
    max_positions=6,
    tied="none",
    scale_embedding=False,
    pooling="mean",
)


def test_a_linear_map_of_patches_is_a_convolution_that_moves_by_its_size() -> None:
    """Channels, rows and columns are flattened in the order of a convolution's kernel."""
    torch.manual_seed(1)
    images = torch.randn(2, 3, 4, 6, dtype=torch.float64)
    kernels, bias = torch.randn(5, 3, 2, 2, dtype=torch.float64), torch.randn(5).double()
    mapped = F.linear(patches(images, 2), kernels.flatten(1), bias)
    convolved = F.conv2d(images, kernels, bias, stride=2)
    torch.testing.assert_close(mapped, convolved.flatten(2).transpose(1, 2))


def test_patches_by_hand() -> None:
    image = torch.arange(16.0).view(1, 1, 4, 4)
    assert patches(image, 2)[0].tolist() == [
        [0, 1, 4, 5],
        [2, 3, 6, 7],
        [8, 9, 12, 13],
        [10, 11, 14, 15],
    ]


def test_patches_that_do_not_fill_an_image_are_refused() -> None:
    with pytest.raises(DataError, match="of 3 × 3 pixels must fill an image, but it has 4 × 6"):
        patches(torch.zeros(1, 1, 4, 6), 3)


def test_the_plan_is_that_of_the_module() -> None:
    model = build_patch_encoder(CONFIG, patch_width=4)
    state = {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}
    assert list(state.items()) == [(weight.name, weight.shape) for weight in model.plan]


@pytest.mark.parametrize("positions", ["learned", "none"])
def test_only_learned_positions_tell_where_a_patch_is(positions: str) -> None:
    """Claims 33 and 44: without positions, an image is a bag of patches."""
    torch.manual_seed(1)
    config = replace(CONFIG, positions=positions)
    model = build_patch_encoder(config, patch_width=4).eval()
    inputs = patches(torch.randn(2, 1, 4, 6), 2)
    swapped = inputs[:, [1, 0, 2, 3, 4, 5]]
    is_equal = torch.allclose(model(inputs, inputs), model(swapped, swapped), atol=1e-5)
    assert is_equal == (positions == "none")


def test_more_patches_than_positions_are_refused() -> None:
    model = build_patch_encoder(CONFIG, patch_width=4)
    inputs = torch.zeros(1, 7, 4)
    with pytest.raises(DataError, match="has 7 positions, but this model learned only 6"):
        model(inputs, inputs)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_digits_are_labeled() -> None:
    """Claim 125: of five parts of the digits each is labeled by a model of the other four."""
    digits = runpy.run_path(str(SCRIPT))
    found, right = digits["cross_validated"](seed=1, epochs=60)
    assert accuracy(found, right) >= 98.0
