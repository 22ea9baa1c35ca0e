"""Dropout: the right share, the right scale, the right gradient, and the residual sum."""

from collections.abc import Iterator

import pytest
import torch

from heed.errors import HeedError
from heed.model.fast import dropout
from heed.model.fast.dropout import Dropout, drop
from heed.model.fast.kernels import has_training_kernels


@pytest.fixture(autouse=True, params=["compiled", "torch"])
def kernels(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Every test runs with both forms."""
    if request.param == "torch":
        monkeypatch.setattr(dropout, "has_training_kernels", lambda: False)
    elif not has_training_kernels():
        pytest.skip("heed is not compiled, or this processor has no AVX2")
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


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


def test_the_residual_is_added_whole() -> None:
    torch.manual_seed(0)
    layer, x = Dropout(0.5), torch.randn(7, 30, requires_grad=True)
    residual = torch.randn(30, 7).T.requires_grad_()
    assert torch.equal(layer.eval()(x, residual), x + residual)
    assert torch.equal(Dropout(0.0).train()(x, residual), x + residual)
    total = layer.train()(x, residual)
    added = total - residual
    is_dropped = total == residual
    assert 60 < is_dropped.sum() < 150
    torch.testing.assert_close(added, torch.where(is_dropped, 0.0, 2 * x))
    (3 * total).sum().backward()
    assert x.grad is not None and residual.grad is not None
    assert torch.equal(x.grad, torch.where(is_dropped, 0.0, 6.0))
    assert torch.equal(residual.grad, torch.full((7, 30), 3.0))


def test_neighbours_fall_independently() -> None:
    """Numbers beside each other and 16, 32, 64 apart, and the same place in the next call."""
    torch.manual_seed(0)
    layer, n = Dropout(0.5).train(), 1 << 18
    first, second = ((layer(torch.ones(n)) == 0).double() - 0.5 for _ in range(2))
    for apart in (1, 2, 4, 16, 32, 48, 64, 128):
        # The mean of n products of ±1/2, with a deviation of 1/4 √n.
        assert abs((first[apart:] * first[:-apart]).mean()) < 5 * 0.25 / n**0.5
    assert abs((first * second).mean()) < 5 * 0.25 / n**0.5


def compiled(*, kernels: str, n: int, n_dropped: int = 77) -> torch.Tensor:
    return drop(torch.arange(1.0, n + 1), torch.ones(n), 2**40 + 7, n_dropped, kernels=kernels)


@pytest.mark.parametrize("n", [1, 15, 16, 63, 64, 65, 1000, 100_003])
def test_the_same_bits_with_any_instructions_and_threads(n: int) -> None:
    if not has_training_kernels():
        pytest.skip("heed is not compiled, or this processor has no AVX2")
    torch.set_num_threads(1)
    whole = compiled(kernels="", n=n)
    for kernels in ("avx2", "avx512"):
        try:
            assert torch.equal(compiled(kernels=kernels, n=n), whole)
        except HeedError as error:
            assert "lacks that instruction set" in str(error)
    for n_threads in (2, 5):
        torch.set_num_threads(n_threads)
        assert torch.equal(compiled(kernels="", n=n), whole)
    assert torch.equal(compiled(kernels="", n=n, n_dropped=0), torch.arange(2.0, n + 2))
