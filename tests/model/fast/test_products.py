"""Products through oneDNN against float64 and torch's own, on any processor."""

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from heed.machine.cpu import cpu_info, has_bfloat16_tiles, has_faster_onednn
from heed.model.fast import products
from heed.model.fast.products import (
    SMALLEST,
    Linear,
    faster_products,
    linear,
    pieces,
    rounded_products,
)

SETTING = getattr(torch.backends.mkldnn, "matmul", None)
_IS_X86 = torch.backends.cpu.get_cpu_capability() in ("DEFAULT", "AVX2", "AVX512")


@pytest.fixture
def forced(monkeypatch: pytest.MonkeyPatch) -> None:
    """oneDNN multiplies, whatever the processor; exactly unless it has AMX."""
    if SETTING is None:
        pytest.skip("this torch has no switch for oneDNN's matrix products (2.9 has)")
    if not _IS_X86 or "amx" in cpu_info("flags"):
        pytest.skip("oneDNN would round to bfloat16 on this processor")
    monkeypatch.setattr(products, "has_faster_onednn", lambda: True)


# ---------------------------------------------------------------------------- pieces of rows


@given(st.integers(0, 5_000))
def test_pieces_follow_one_another_and_have_few_sizes(n_rows: int) -> None:
    cut = list(pieces(n_rows))
    assert [row for piece in cut for row in range(piece.start, piece.stop)] == list(range(n_rows))
    sizes = [piece.stop - piece.start for piece in cut]
    whole = [size for size in sizes if size >= SMALLEST]
    assert all(size.bit_count() == 1 for size in whole)
    assert whole == sorted(set(whole), reverse=True)
    assert sizes[: len(whole)] == whole
    assert len(sizes) - len(whole) <= 1


# ---------------------------------------------------------------------------- values and gradients


def worst(found: Tensor, truth: Tensor) -> float:
    return float(((found.double() - truth).abs().max() / truth.std()).detach())


def with_gradients(n_rows: int, *, has_bias: bool = True) -> tuple[list[Tensor], list[Tensor]]:
    """A product and its gradients; the same in float64."""
    torch.manual_seed(n_rows)
    given_ = [torch.randn(n_rows, 96), torch.randn(80, 96), torch.randn(80)][: 2 + has_bias]
    weights = torch.randn(n_rows, 80)
    single = [x.clone().requires_grad_() for x in given_]
    double = [x.double().requires_grad_() for x in given_]
    y, truth = linear(*single), F.linear(*double)
    (y * weights).sum().backward()
    (truth * weights.double()).sum().backward()
    return [y, *map(gradient, single)], [truth, *map(gradient, double)]


def gradient(x: Tensor) -> Tensor:
    assert x.grad is not None
    return x.grad


@pytest.mark.usefixtures("forced")
@pytest.mark.parametrize("n_rows", [SMALLEST, SMALLEST + 1, 95, 1000])
@pytest.mark.parametrize("has_bias", [True, False])
def test_as_exact_as_float32(n_rows: int, has_bias: bool) -> None:
    found, truth = with_gradients(n_rows, has_bias=has_bias)
    assert "_Linear" in repr(
        [found[0].grad_fn, found[0]._base is not None and found[0]._base.grad_fn]
    )
    assert all(worst(a, b) < 1e-5 for a, b in zip(found, truth, strict=True))


@pytest.mark.usefixtures("forced")
def test_shapes_before_the_last_are_kept() -> None:
    layer = Linear(8, 6)
    x = torch.randn(5, 4, 3, 8)
    y = layer(x.transpose(0, 1))
    assert y.shape == (4, 5, 3, 6)
    assert torch.allclose(y, F.linear(x, layer.weight, layer.bias).transpose(0, 1), atol=1e-6)


@pytest.mark.usefixtures("forced")
def test_gradients_only_of_what_asks_for_them() -> None:
    x, weight = torch.randn(64, 8, requires_grad=True), torch.randn(6, 8)
    linear(x, weight).sum().backward()
    assert x.grad is not None and torch.allclose(x.grad, weight.sum(0).expand(64, 8), atol=1e-5)
    x, bias = x.detach(), torch.randn(6, requires_grad=True)
    linear(x, weight, bias).sum().backward()
    assert bias.grad is not None and bias.grad.tolist() == [64.0] * 6
    assert weight.grad is None


@pytest.mark.usefixtures("forced")
def test_what_is_in_the_rows_before_does_not_leak() -> None:
    """The gradient's memory is not set to 0 before the first product."""
    for _ in range(3):
        spoilt = torch.full((6, 8), float("nan"))
        del spoilt
        x, weight = torch.randn(SMALLEST, 8), torch.randn(6, 8, requires_grad=True)
        linear(x, weight).sum().backward()
        assert weight.grad is not None and weight.grad.isfinite().all()


@pytest.mark.usefixtures("forced")
@pytest.mark.parametrize(
    "ask",
    [
        lambda x, w: linear(x.double(), w.double()),
        lambda x, w: linear(x[: SMALLEST - 1], w),
        lambda x, w: linear(x[0], w),
        lambda x, w: linear(x[:0], w),
        lambda x, w: torch.no_grad()(linear)(x, w),
        lambda x, w: torch.autocast("cpu", torch.bfloat16)(linear)(x, w),
        lambda x, w: linear(x.to("meta"), w.to("meta")),
    ],
    ids=["float64", "few rows", "one row", "no row", "no gradient", "autocast", "meta"],
)
def test_all_else_is_torchs_own(ask: Callable[[Tensor, Tensor], Tensor]) -> None:
    x, weight = torch.randn(64, 8), torch.randn(6, 8, requires_grad=True)
    assert "_Linear" not in repr(ask(x, weight).grad_fn)
    assert "_Linear" in repr(linear(x, weight).grad_fn.next_functions)


# ---------------------------------------------------------------------------- the switch


@pytest.mark.usefixtures("forced")
def test_the_switch_is_as_before_afterwards() -> None:
    assert SETTING is not None
    before = SETTING.fp32_precision
    with faster_products():
        inside = SETTING.fp32_precision
        with faster_products(SMALLEST):
            assert SETTING.fp32_precision == "bf16"
        assert SETTING.fp32_precision == inside == "bf16"
    assert SETTING.fp32_precision == before
    with pytest.raises(ValueError, match="stop"), faster_products():
        raise ValueError("stop")
    assert SETTING.fp32_precision == before
    with faster_products(SMALLEST + 1):
        assert SETTING.fp32_precision == before


def test_where_products_round_a_gpu_has_tf32() -> None:
    of_gpu = torch.backends.cuda.matmul
    if not hasattr(of_gpu, "fp32_precision"):
        pytest.skip("this torch has no such switch")
    before = of_gpu.fp32_precision
    with rounded_products():
        assert of_gpu.fp32_precision == "tf32"
        with rounded_products(is_on=False):
            assert of_gpu.fp32_precision == "tf32"
    assert of_gpu.fp32_precision == before != "tf32"
    with rounded_products(is_on=False):
        assert of_gpu.fp32_precision == before


def test_where_it_is_faster_it_is_as_exact() -> None:
    if not has_faster_onednn():
        pytest.skip("torch's own products are the faster ones on this processor")
    torch.manual_seed(0)
    a, b = torch.randn(512, 768), torch.randn(768, 640)
    truth = a.double() @ b.double()
    with faster_products():
        found = a @ b
    assert worst(found, truth) < 3 * worst(a @ b, truth)


# ---------------------------------------------------------------------------- rounded factors


@pytest.mark.parametrize("n_rows", [SMALLEST, 95, 1000])
def test_rounded_factors_have_the_error_of_bfloat16(n_rows: int) -> None:
    if not has_bfloat16_tiles():
        pytest.skip("this processor has no AMX")
    found, truth = with_gradients(n_rows)
    assert all(worst(a, b) < 1e-5 for a, b in zip(found, truth, strict=True))
    with rounded_products():
        found, truth = with_gradients(n_rows)
    errors = [worst(a, b) for a, b in zip(found, truth, strict=True)]
    assert all(error < 0.03 for error in errors), errors  # 8 bits: 2^-9 a factor
    assert all(error > 1e-4 for error in errors[:3]), errors
    assert errors[3] < 1e-5  # the bias is a sum of float32


def test_the_block_ends_and_is_off_on_request(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "has_faster_onednn", lambda: False)
    monkeypatch.setattr(products, "has_bfloat16_tiles", lambda: True)
    x, weight = torch.randn(64, 8), torch.randn(6, 8, requires_grad=True)

    def is_ours() -> bool:
        return "_Linear" in repr(linear(x, weight).grad_fn.next_functions)

    assert not is_ours()
    with rounded_products():
        assert is_ours()
        with rounded_products(is_on=False):
            assert is_ours()
    with rounded_products(is_on=False):
        assert not is_ours()
    with pytest.raises(ValueError, match="stop"), rounded_products():
        raise ValueError("stop")
    assert not is_ours()
