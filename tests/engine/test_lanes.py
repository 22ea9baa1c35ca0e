"""The numbers of `heed/engine/lanes.py`, against independent truth; that the kernels agree is
`test_equal.py`'s."""

import numpy as np
import torch
from torch.nn.functional import gelu, sigmoid, silu

from heed.engine import lanes


def test_the_exponential_is_right_to_two_units_in_the_last_place() -> None:
    x = np.linspace(-87, 88, 1_000_001).astype(np.float32)
    error = lanes.exponential(x) / np.exp(x.astype(np.float64)) - 1
    assert np.abs(error).max() < 2 * np.finfo(np.float32).eps
    assert lanes.exponential(np.zeros(1, np.float32))[0] == 1
    least = lanes.exponential(np.array([-88, -1e6, -np.inf], np.float32))
    assert ((least > 0) & (least < 2e-38)).all()


def test_activations_are_torchs() -> None:
    x = np.concatenate([np.linspace(-20, 20, 100_001), [-1e6, 1e6]]).astype(np.float32)
    tensor = torch.from_numpy(x)
    np.testing.assert_allclose(lanes.gelu(x), gelu(tensor).numpy(), rtol=1e-6, atol=2e-6)
    np.testing.assert_allclose(lanes.sigmoid(x), sigmoid(tensor).numpy(), rtol=1e-6, atol=1e-36)
    gated = lanes.swiglu(np.stack([x, np.ones_like(x)], axis=1))
    np.testing.assert_allclose(gated[:, 0], silu(tensor).numpy(), rtol=1e-6, atol=1e-6)


def test_memory_is_rounded_as_torch_rounds_to_bfloat16() -> None:
    random = np.random.default_rng(3)
    x = (random.standard_normal(1000) * 10.0 ** random.integers(-30, 30, 1000)).astype(np.float32)
    x[:4] = [0.0, -0.0, 1.00390625, 1.01171875]  # the last two lie in the middle
    theirs = torch.from_numpy(x).to(torch.bfloat16).float().numpy()
    np.testing.assert_array_equal(lanes.to_bfloat16(x).view(np.int32), theirs.view(np.int32))
