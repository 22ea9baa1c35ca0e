"""Attention in one call against the equation in float64, with its gradients."""

from collections.abc import Iterator

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from heed.errors import HeedError
from heed.model.attention import MultiHeadAttention
from heed.model.attention import attend as equation
from heed.model.fast import attention as fast
from heed.model.fast.attention import Read
from heed.model.fast.kernels import has_training_kernels
from heed.model.masks import both, causal_mask
from heed.model.positions import rotary_table, rotate
from heed.model.trace import recording

pytestmark = pytest.mark.skipif(
    not has_training_kernels(),
    reason="heed is not compiled, or this processor has neither AVX2 nor NEON",
)
KERNELS = "avx2", "avx512", "neon"


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def has(kernels: str) -> bool:
    try:
        fast.attend(torch.zeros(1, 1, 48), None, Read(1), kernels=kernels)
    except HeedError as error:
        assert "lacks that instruction set" in str(error)
        return False
    return True


def reference(queries: Tensor, memory: Tensor | None, read: Read) -> Tensor:
    """The same in float64 by the equation, head by head."""
    parts = queries.chunk(3, -1) if memory is None else (queries, *memory.chunk(2, -1))
    query, key, value = (part.unflatten(-1, (read.n_heads, -1)).transpose(1, 2) for part in parts)
    if read.rotation is not None:
        turns = tuple(table.double() for table in read.rotation)
        query, key = (rotate(x, (turns[0], turns[1])) for x in (query, key))
    mask = read.mask
    if read.is_causal:
        mask = both(mask, causal_mask(query.size(2), key.size(2)))
    return equation(query, key, value, mask)[0].transpose(1, 2).flatten(2)


def with_gradients(
    attend: object, queries: Tensor, memory: Tensor | None, read: Read, grad: Tensor
) -> list[Tensor]:
    """The context, then the gradients by queries and memory."""
    given = [x for x in (queries, memory) if x is not None]
    given = [x.detach().clone().requires_grad_() for x in given]
    context = attend(given[0], given[1] if memory is not None else None, read)
    context.backward(grad.to(context.dtype))
    gradients = [torch.zeros_like(x) if x.grad is None else x.grad for x in given]
    return [context.detach(), *gradients]


@st.composite
def cases(draw: st.DrawFn) -> tuple[Tensor, Tensor | None, Read]:
    torch.manual_seed(draw(st.integers(0, 1000)))
    batch, q_len, n_heads = (draw(st.integers(1, most)) for most in (3, 70, 3))
    d_k = draw(st.sampled_from([16, 32, 64]))
    is_cross = draw(st.booleans())
    k_len = draw(st.integers(1, 70)) if is_cross else q_len
    queries = 2 * torch.randn(batch, q_len, n_heads * d_k * (1 if is_cross else 3))
    memory = 2 * torch.randn(batch, k_len, 2 * n_heads * d_k) if is_cross else None
    is_turned = not is_cross and d_k > 16 and draw(st.booleans())
    masks = {
        "none": None,
        "padding": torch.arange(k_len) < torch.randint(0, k_len + 1, (batch, 1, 1, 1)),
        "holes": torch.rand(batch, 1, 1, k_len) < 0.6,
    }
    read = Read(
        n_heads,
        masks[draw(st.sampled_from(sorted(masks)))],
        not is_cross and draw(st.booleans()),
        rotary_table(q_len, d_k) if is_turned else None,
    )
    return queries, memory, read


@pytest.mark.parametrize("kernels", KERNELS)
@settings(max_examples=60, deadline=None)
@given(cases(), st.integers(1, 3))
def test_contexts_and_gradients_are_those_of_the_equation(
    kernels: str, case: tuple[Tensor, Tensor | None, Read], n_threads: int
) -> None:
    if not has(kernels):
        pytest.skip(f"this processor has no {kernels}")
    queries, memory, read = case
    torch.set_num_threads(n_threads)
    n_parts = 3 if memory is None else 1
    grad = torch.randn(*queries.shape[:2], queries.size(2) // n_parts)
    found = with_gradients(
        lambda *given: fast.attend(*given, kernels=kernels), queries, memory, read, grad
    )
    exact = [None if x is None else x.double() for x in (queries, memory)]
    assert exact[0] is not None
    wanted = with_gradients(reference, exact[0], exact[1], read, grad)
    for one, other in zip(found, wanted, strict=True):
        # A row that may read nothing is 0/0 in the softmax of the equation.
        torch.testing.assert_close(one.double(), torch.nan_to_num(other), rtol=1e-4, atol=1e-4)


def test_the_same_bits_with_any_number_of_threads() -> None:
    torch.manual_seed(0)
    queries, grad = torch.randn(5, 33, 3 * 64), torch.randn(5, 33, 64)
    read = Read(2, torch.rand(5, 1, 1, 33) < 0.8, False, rotary_table(33, 32))
    found = []
    for n_threads in (1, 2, 3, 16):
        torch.set_num_threads(n_threads)
        found.append(with_gradients(fast.attend, queries, None, read, grad))
    for others in found[1:]:
        for one, other in zip(found[0], others, strict=True):
            assert torch.equal(one, other)


def test_a_single_token_has_a_stride_that_means_nothing() -> None:
    """torch calls a tensor contiguous whatever the stride of a dimension of size 1 is."""
    torch.manual_seed(0)
    joined, queries, memory = (torch.randn(1, 3, n * 32).transpose(0, 1) for n in (3, 1, 2))
    assert joined.is_contiguous()
    assert joined.stride(1) > joined.size(2)
    # The only key has all of the weight.
    context = fast.attend(joined.requires_grad_(), None, Read(1))
    torch.testing.assert_close(context, joined[..., 64:], rtol=1e-6, atol=0)
    context = fast.attend(queries.requires_grad_(), memory, Read(1))
    torch.testing.assert_close(context, memory[..., 32:], rtol=1e-6, atol=0)


@pytest.mark.parametrize("place", [0, 40, 80])
def test_what_is_no_number_stays_none(place: int) -> None:
    """The watchdog must see it: in a query, a key or a value, and in gradients."""
    queries, grad = torch.randn(1, 20, 3 * 32), torch.ones(1, 20, 32)
    queries[0, 7, place] = torch.nan
    context, of_queries = with_gradients(fast.attend, queries, None, Read(1), grad)
    assert context[0, 7].isnan().any()
    assert of_queries.isnan().any()
    grad[0, 3, 5] = torch.nan
    assert with_gradients(fast.attend, grad.repeat(1, 1, 3), None, Read(1), grad)[1].isnan().any()


def test_scores_that_differ_much_overflow_nowhere() -> None:
    """A key after a causal query may score higher by more than float32 has powers of e for."""
    queries = torch.zeros(1, 16, 96)
    queries[..., 0] = 100
    queries[0, :, 32] = torch.arange(16) * 100.0
    queries[..., 64:] = torch.randn(1, 16, 32)
    read = Read(1, is_causal=True)
    found = with_gradients(fast.attend, queries, None, read, torch.ones(1, 16, 32))
    wanted = with_gradients(reference, queries.double(), None, read, torch.ones(1, 16, 32))
    for one, other in zip(found, wanted, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-4, atol=1e-4)


def test_tensors_that_are_not_contiguous() -> None:
    queries = torch.randn(32, 9, 3).transpose(0, 2)
    memory = torch.randn(3, 11, 128)[..., ::2]
    found = fast.attend(queries, memory, Read(1))
    wanted = reference(queries.double(), memory.double(), Read(1))
    torch.testing.assert_close(found.double(), wanted, rtol=1e-4, atol=1e-4)


def module() -> MultiHeadAttention:
    torch.manual_seed(0)
    return MultiHeadAttention(64, 2)


def test_the_sublayer_calls_it_in_training_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    attend = fast.attend
    monkeypatch.setattr(fast, "attend", lambda *given: (calls.append(given), attend(*given))[1])
    layer, x, memory = module(), torch.randn(2, 9, 64), torch.randn(2, 5, 64)
    mask = torch.arange(9) < torch.tensor([9, 4])[:, None, None, None]
    for options in ({}, {"mask": mask}, {"is_causal": True}, {"rotation": rotary_table(9, 32)}):
        calls.clear()
        trained = layer(x, **options)
        assert len(calls) == 1
        with torch.no_grad():
            torch.testing.assert_close(layer(x, **options), trained)
        with recording(layer):
            torch.testing.assert_close(layer(x, **options), trained)
        assert len(calls) == 1
    calls.clear()
    trained = layer(x, memory, mask=mask[..., :5])
    with torch.no_grad():
        torch.testing.assert_close(layer(x, memory, mask=mask[..., :5]), trained)
    assert len(calls) == 1


def test_what_it_cannot_compute_is_left_to_torch() -> None:
    x, read = torch.zeros(2, 9, 64), Read(2)
    assert fast.fits(x, 32, read)
    assert not fast.fits(x.double(), 32, read)
    assert not fast.fits(x, 8, read)
    assert not fast.fits(x, 16, read._replace(rotation=rotary_table(9, 16)))
    assert not fast.fits(x[:, :0], 32, read)
    assert not fast.fits(x, 32, read._replace(mask=torch.ones(9, 9, dtype=torch.bool)))
    with torch.no_grad():
        assert not fast.fits(x, 32, read)
