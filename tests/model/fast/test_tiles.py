"""Linear layers in tiles of bfloat16 against exact products of the same rounded factors."""

import itertools
from collections.abc import Iterator
from functools import partial

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from heed.errors import HeedError
from heed.machine.cpu import has_compiled_bfloat16
from heed.model.fast import tiles
from heed.model.fast.products import linear, rounded_products

ALL = True, True, True


@pytest.fixture(autouse=True, params=["amx", "avx512"])
def one_thread(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One thread, and one instruction set for all products."""
    if not has_compiled_bfloat16(request.param):
        pytest.skip(f"this processor lacks {request.param} with bfloat16, or heed is not compiled")
    for name in ("linear", "linear_gradients", "probabilities"):
        whole = partial(getattr(tiles, name), kernels=request.param)
        monkeypatch.setattr(tiles, name, whole)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def exact(*shape: int) -> Tensor:
    """Random numbers that bfloat16 has."""
    return torch.randn(*shape).bfloat16().float()


def is_near(found: Tensor | None, wanted: Tensor) -> bool:
    assert found is not None and found.shape == wanted.shape
    return bool((found - wanted).norm() <= 1e-5 * wanted.norm())


@pytest.mark.parametrize("n", [64, 65, 255, 256, 257, 1000])
@pytest.mark.parametrize(("n_out", "n_in"), [(32, 32), (96, 64), (64, 160)])
@pytest.mark.parametrize("has_bias", [False, True])
@pytest.mark.parametrize("clamps", [False, True])
def test_a_layer_and_its_gradients(
    n: int, n_out: int, n_in: int, has_bias: bool, clamps: bool
) -> None:
    torch.manual_seed(n)
    given = [exact(n, n_in), exact(n_out, n_in), *([torch.randn(n_out)] if has_bias else [])]
    grad = exact(n, n_out)
    fast = [each.clone().requires_grad_() for each in given]
    plain = [each.double().requires_grad_() for each in given]
    with rounded_products():
        assert tiles.fit_linear(*given[:2])
        y = linear(*fast, clamps=clamps)
        y.backward(grad)
    wanted = F.linear(*plain)
    wanted = wanted.relu() if clamps else wanted
    wanted.backward(grad)
    assert is_near(y.detach(), wanted.detach())
    assert not clamps or y.min() == 0
    for found, truth in zip(fast, plain, strict=True):
        assert truth.grad is not None and is_near(found.grad, truth.grad)


def test_a_clamp_keeps_nan_as_relu_does() -> None:
    """A step whose activations or weights are NaN has to be recognized as such."""
    x, weight, bias = exact(70, 32), exact(64, 32), torch.randn(64)
    x[5, 3] = bias[9] = torch.nan
    plain = [each.double().requires_grad_() for each in (x, weight, bias)]
    wanted = F.linear(*plain).relu()
    wanted.backward(torch.ones(70, 64).double())
    y = tiles.linear(x, weight, bias, clamps=True)
    assert torch.equal(y.isnan(), wanted.isnan())
    assert y.isnan().sum() == 64 + 70 - 1
    found = tiles.linear_gradients(x, weight, torch.ones(70, 64), clamped=y, needs=ALL)
    for each, truth in zip(found, plain, strict=True):
        assert each is not None and truth.grad is not None
        torch.testing.assert_close(each.double(), truth.grad, equal_nan=True, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("needs", list(itertools.product([False, True], repeat=3)))
def test_only_gradients_that_are_wanted(needs: tuple[bool, bool, bool]) -> None:
    x, weight, grad = exact(70, 32), exact(64, 32), exact(70, 64)
    found = tiles.linear_gradients(x, weight, grad, needs=needs)
    assert tuple(each is not None for each in found) == needs
    for each, whole in zip(found, tiles.linear_gradients(x, weight, grad, needs=ALL), strict=True):
        assert each is None or (whole is not None and torch.equal(each, whole))


def test_tensors_that_are_not_contiguous() -> None:
    x, weight, grad = exact(32, 80).t(), exact(32, 64).t(), exact(1).expand(80, 64)
    assert is_near(tiles.linear(x, weight, None), x.double() @ weight.double().t())
    of_x, of_weight, of_bias = tiles.linear_gradients(x, weight, grad, needs=ALL)
    assert is_near(of_bias, grad.double().sum(0))
    assert is_near(of_x, grad.double() @ weight.double())
    assert is_near(of_weight, grad.double().t() @ x.double())


def test_the_same_bits_each_time_and_for_each_row() -> None:
    x, weight = torch.randn(300, 64), torch.randn(32, 64)
    whole = tiles.linear(x, weight, None)
    torch.testing.assert_close(tiles.linear(x, weight, None), whole, rtol=0, atol=0)
    torch.testing.assert_close(tiles.linear(x[7:90], weight, None), whole[7:90], rtol=0, atol=0)


def test_odd_widths_are_left_to_torch() -> None:
    assert not tiles.fit_linear(torch.zeros(64, 32), torch.zeros(33, 32))
    assert not tiles.fit_linear(torch.zeros(64, 33), torch.zeros(32, 33))


@pytest.mark.parametrize("n", [100, 700, 2000])
def test_several_threads_share_the_rows(n: int) -> None:
    x, weight, grad = exact(n, 64), exact(96, 64), exact(n, 96)
    alone = tiles.linear(x, weight, None)
    of_x, *_ = tiles.linear_gradients(x, weight, grad, needs=ALL)
    assert of_x is not None
    for n_threads in (2, 3, 8):
        torch.set_num_threads(n_threads)
        assert torch.equal(tiles.linear(x, weight, None), alone)
        found = tiles.linear_gradients(x, weight, grad, needs=ALL)
        again = tiles.linear_gradients(x, weight, grad, needs=ALL)
        assert found[0] is not None and torch.equal(found[0], of_x)
        assert is_near(found[1], grad.double().t() @ x.double())
        assert is_near(found[2], grad.double().sum(0))
        for each, same in zip(found, again, strict=True):
            assert each is not None and same is not None and torch.equal(each, same)


def test_an_instruction_set_that_is_not_here_is_refused() -> None:
    assert not has_compiled_bfloat16("avx5")
    with pytest.raises(HeedError, match="lacks that instruction set"):
        tiles.linear.func(torch.zeros(64, 32), torch.zeros(32, 32), None, kernels="avx5")  # type: ignore[attr-defined]


def test_the_library_refuses_what_it_cannot_multiply() -> None:
    with pytest.raises(HeedError, match="a width is no multiple of 32"):
        tiles.linear(torch.zeros(64, 33), torch.zeros(32, 33), None)
