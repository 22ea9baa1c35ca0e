"""Dropout drawn from bytes: the right share, the right scale, the right gradient."""

import pytest
import torch

from heed.model.fast.dropout import Dropout


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.3])
def test_eval_mode_and_rate_zero_change_nothing(rate: float) -> None:
    x = torch.randn(4, 5)
    assert Dropout(rate).eval()(x) is x
    if rate == 0:
        assert Dropout(rate).train()(x) is x


@pytest.mark.parametrize("rate", [0.001, 0.1, 0.5, 0.9])
def test_the_stated_share_falls_and_the_mean_stays(rate: float) -> None:
    """Tolerance: five standard deviations of a coin over 10⁶ throws, and rounding to 1/256."""
    torch.manual_seed(0)
    dropped = Dropout(rate).train()(torch.ones(1000, 1000))
    noise = 5 * (rate * (1 - rate) / 1e6) ** 0.5
    share = (dropped == 0).double().mean().item()
    assert share == pytest.approx(rate, abs=noise + 1 / 512)
    assert dropped.double().mean().item() == pytest.approx(1.0, abs=noise / (1 - rate))
    assert len(dropped.unique()) == 2


@pytest.mark.parametrize("shape", [(), (1,), (7,), (3, 0, 2), (3, 5, 7)])
def test_any_shape_and_dtype_passes(shape: tuple[int, ...]) -> None:
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        dropped = Dropout(0.5).train()(torch.ones(shape, dtype=dtype))
        assert dropped.shape == shape
        assert dropped.dtype == dtype


def test_gradient_passes_where_the_number_passed() -> None:
    torch.manual_seed(0)
    x = torch.randn(50, 3).T.requires_grad_()
    dropped = Dropout(0.5).train()(x)
    dropped.sum().backward()
    assert x.grad is not None
    assert torch.equal(x.grad, torch.where(dropped == 0, 0.0, 2.0))


def test_the_seed_decides_what_falls() -> None:
    layer, x = Dropout(0.5).train(), torch.ones(100)
    first, second = [(torch.manual_seed(3), layer(x))[1] for _ in range(2)]
    assert torch.equal(first, second)
    assert not torch.equal(first, layer(x))
