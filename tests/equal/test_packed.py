"""Packed sentences and padded ones: one answer, and no sentence sees its neighbour.

Tolerances where none is named: 1e-12 in float64, 1e-6 in float32, for sums in another order.
"""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck

from heed.data.batch import Batch, collate
from heed.model import attention
from heed.model.attention import attend, attend_packed
from heed.model.fast.packing import Packing, Spans
from heed.model.masks import causal_mask
from heed.model.transformer import Transformer
from heed.train.step.forward import losses, pack

Tiny = Callable[..., Transformer]

SRC_LENGTHS, TGT_LENGTHS = (5, 3, 1, 4), (2, 6, 1, 4)
POSITIONS = ["sinusoidal", "sinusoidal_halves", "learned", "rotary", "none"]
MODELS: dict[str, dict[str, Any]] = {
    f"{kind}, {norm}-norm": {"positions": kind, "norm": norm}
    for kind in POSITIONS
    for norm in ("post", "pre")
}
MODELS["same layer, odd heads"] = {"cross_from": "same", "n_heads": 3, "d_k": 2, "d_v": 5}


class Pairs:
    """Ids that differ in every place; `<eos>` comes on top of these lengths."""

    def src(self, index: int) -> Any:
        return torch.arange(SRC_LENGTHS[index] - 1).add(index).remainder(9).add(4).numpy()

    def tgt(self, index: int) -> Any:
        return torch.arange(TGT_LENGTHS[index] - 1).mul(3).add(index).remainder(9).add(4).numpy()


def padded() -> Batch:
    return collate(Pairs(), range(4), pad_id=0, bos_id=2, eos_id=3)


def learn(model: Transformer, *, is_packed: bool, dtype: torch.dtype) -> list[Tensor]:
    """The loss, the likelihood and the gradients of all parameters."""
    loss, nll = losses(
        model,
        padded(),
        pad_id=0,
        smoothing=0.1,
        is_packed=is_packed,
        device=torch.device("cpu"),
        dtype=dtype,
    )
    return [loss, nll, *torch.autograd.grad(loss, list(model.parameters()))]


@pytest.mark.parametrize("changes", MODELS.values(), ids=MODELS.keys())
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_packed_sentences_teach_what_padded_ones_teach(
    tiny: Tiny, changes: dict[str, Any], dtype: torch.dtype
) -> None:
    model = tiny(dropout=0.0, **changes).train().to(dtype)
    tolerance = 1e-12 if dtype == torch.float64 else 1e-6
    expected, found = (learn(model, is_packed=so, dtype=torch.float32) for so in (False, True))
    for one, other in zip(expected, found, strict=True):
        assert (one - other).abs().max() <= tolerance * max(1.0, float(one.detach().abs().max()))


def test_recomputed_packed_layers_teach_the_same(tiny: Tiny) -> None:
    model = tiny(dropout=0.0).train().double()
    expected = learn(model, is_packed=True, dtype=torch.float32)
    model.is_recomputing = True
    for one, other in zip(expected, learn(model, is_packed=True, dtype=torch.float32), strict=True):
        assert torch.equal(one, other)


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
def test_packed_equals_padded_in_bfloat16(tiny: Tiny, positions: str) -> None:
    """Rotary angles make queries float32 there and leave values in bfloat16. Tolerance: 3 bits."""
    model = tiny(dropout=0.0, positions=positions).train()
    expected, found = (learn(model, is_packed=so, dtype=torch.bfloat16) for so in (False, True))
    for one, other in zip(expected, found, strict=True):
        assert (one - other).abs().max() <= 2**-5 * max(1.0, float(one.detach().abs().max()))


@pytest.mark.parametrize("changes", MODELS.values(), ids=MODELS.keys())
@torch.no_grad()
def test_another_sentence_in_the_pack_changes_no_other(tiny: Tiny, changes: dict[str, Any]) -> None:
    """Exactly: difference 0, even beside a sentence whose numbers are not finite."""
    model = tiny(**changes)
    batch, spans = pack(padded(), 0)
    before = model(batch.src, batch.tgt_in, spans)[0].split(TGT_LENGTHS)
    for changed in range(4):
        src, tgt_in = batch.src.clone(), batch.tgt_in.clone()
        for ids, lengths in ((src, SRC_LENGTHS), (tgt_in, TGT_LENGTHS)):
            ids[0].split(lengths)[changed].copy_(torch.full((lengths[changed],), 12))
        after = model(src, tgt_in, spans)[0].split(TGT_LENGTHS)
        for number in range(4):
            assert torch.equal(before[number], after[number]) == (number != changed)


@torch.no_grad()
def test_a_sentence_that_is_not_finite_stays_alone(tiny: Tiny) -> None:
    model = tiny()
    batch, spans = pack(padded(), 0)
    src = batch.src.clone()
    src[0].split(SRC_LENGTHS)[1].fill_(12)
    model.embed_src.tokens.weight[12] = float("nan")
    is_broken = [
        bool(states.isnan().any())
        for states in model(src, batch.tgt_in, spans)[0].split(TGT_LENGTHS)
    ]
    assert is_broken == [False, True, False, False]


def spans_of(q_lengths: tuple[int, ...], k_lengths: tuple[int, ...]) -> Spans:
    return Spans(Packing.of(torch.tensor(q_lengths)), Packing.of(torch.tensor(k_lengths)))


def test_a_packing_says_where_its_sentences_lie() -> None:
    packing = Packing.of(torch.tensor([3, 1, 2]))
    assert packing.starts.tolist() == [0, 3, 4, 6]
    assert packing.starts.dtype == torch.int32
    assert packing.rows.tolist() == [0, 0, 0, 1, 2, 2]
    assert packing.places.tolist() == [0, 1, 2, 0, 0, 1]
    assert packing.longest == 3
    assert packing.padding_mask()[:, 0, 0].long().tolist() == [[1, 1, 1], [1, 0, 0], [1, 1, 0]]
    x = torch.randn(1, 2, 6, 4)
    assert torch.equal(packing.together(packing.apart(x)), x)


@pytest.mark.parametrize("is_causal", [False, True])
def test_gradients_of_packed_attention(is_causal: bool) -> None:
    torch.manual_seed(0)
    spans = spans_of((2, 1), (2, 1) if is_causal else (1, 3))
    n_read = len(spans.read.rows)
    inputs = [torch.randn(1, 2, n, w).double() for n, w in ((3, 2), (n_read, 2), (n_read, 4))]
    assert gradcheck(
        lambda *heads: attend_packed(*heads, spans, is_causal=is_causal),
        [x.requires_grad_() for x in inputs],
    )


def slow_kernel(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    q_starts: Tensor,
    k_starts: Tensor,
    q_longest: int,
    k_longest: int,
    *,
    window_size: tuple[int, int],
) -> Tensor:
    """`torch.nn.attention.varlen.varlen_attn` by the equation, a sentence at a time."""
    assert q_starts.dtype == k_starts.dtype == torch.int32
    assert (q_longest, k_longest) == (int(q_starts.diff().max()), int(k_starts.diff().max()))
    assert window_size in ((-1, -1), (-1, 0))
    contexts = []
    for number in range(len(q_starts) - 1):
        reads = slice(int(k_starts[number]), int(k_starts[number + 1]))
        asks = query[int(q_starts[number]) : int(q_starts[number + 1])].transpose(0, 1)
        k_heads, v_heads = key[reads].transpose(0, 1), value[reads].transpose(0, 1)
        mask = causal_mask(asks.size(1), k_heads.size(1)) if window_size == (-1, 0) else None
        contexts.append(attend(asks, k_heads, v_heads, mask)[0].transpose(0, 1))
    return torch.cat(contexts)


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
def test_the_kernel_is_told_what_the_plain_road_computes(
    tiny: Tiny, positions: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a CPU with a stand-in for the kernel, which a GPU alone has."""
    varlen = pytest.importorskip("torch.nn.attention.varlen")
    model = tiny(positions=positions, dropout=0.0).train().double()
    expected = learn(model, is_packed=True, dtype=torch.float32)
    calls = []

    def called(*args: Any, **kwargs: Any) -> Tensor:
        calls.append(kwargs["window_size"])
        return slow_kernel(*args, **kwargs)

    monkeypatch.setattr(varlen, "varlen_attn", called)
    monkeypatch.setattr("heed.model.fast.packing.has_kernel", lambda device: True)
    monkeypatch.setattr(attention, "_fits_kernel", lambda query, value: True)
    found = learn(model, is_packed=True, dtype=torch.float32)
    assert calls == [(-1, -1)] * 2 + [(-1, 0), (-1, -1)] * 2  # encoder; decoder: itself, source
    for one, other in zip(expected, found, strict=True):
        assert (one - other).abs().max() <= 1e-12 * max(1.0, float(one.detach().abs().max()))


def test_the_kernel_takes_half_precision_and_heads_of_one_even_width() -> None:
    def fits(d_k: int, d_v: int, dtype: torch.dtype) -> bool:
        return attention._fits_kernel(torch.zeros(d_k), torch.zeros(d_v, dtype=dtype))

    assert fits(32, 32, torch.bfloat16)
    assert fits(32, 32, torch.float16)
    assert not fits(32, 32, torch.float32)
    assert not fits(32, 64, torch.bfloat16)
    assert not fits(20, 20, torch.bfloat16)
    assert not fits(512, 512, torch.bfloat16)
    assert not Packing.of(torch.tensor([1])).has_kernel, "there is none on a CPU"


def test_torch_accepts_the_call_of_its_kernel() -> None:
    """Forwards and backwards, with tensors of a shape but no numbers: they need no GPU."""
    pytest.importorskip("torch.nn.attention.varlen")
    from torch._subclasses.fake_tensor import FakeTensorMode

    def somewhere(n_packed: int, longest: int) -> Packing:
        places = torch.zeros(n_packed, dtype=torch.long)
        starts = torch.zeros(3, dtype=torch.int32)
        return Packing(starts=starts, rows=places, places=places, longest=longest, has_kernel=True)

    with FakeTensorMode():
        query, key, value = (
            torch.zeros(1, 2, n, 8, dtype=torch.bfloat16, requires_grad=True) for n in (4, 7, 7)
        )
        fakes = Spans(somewhere(4, 3), somewhere(7, 5))
        context = attend_packed(query, key, value, fakes)
        assert context.shape == (1, 2, 4, 8)
        assert context.dtype == torch.bfloat16
        context.sum().backward()  # type: ignore[no-untyped-call]
        assert key.grad is not None
        assert key.grad.shape == key.shape


@pytest.mark.skipif(not torch.cuda.is_available(), reason="the kernel runs on a GPU alone")
@pytest.mark.parametrize("positions", ["sinusoidal", "rotary"])
def test_the_kernel_teaches_what_the_plain_road_teaches(
    tiny: Tiny, positions: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tolerance: bfloat16."""
    model = tiny(d_model=64, positions=positions, dropout=0.0).train().cuda()
    found = []
    for fits in (attention._fits_kernel, lambda query, value: False):
        monkeypatch.setattr(attention, "_fits_kernel", fits)
        loss, _ = losses(
            model,
            padded(),
            pad_id=0,
            smoothing=0.1,
            is_packed=True,
            device=torch.device("cuda"),
            dtype=torch.bfloat16,
        )
        found.append([loss, *torch.autograd.grad(loss, list(model.parameters()))])
    for one, other in zip(*found, strict=True):
        assert (one - other).abs().max() <= 2**-5 * max(1.0, float(one.detach().abs().max()))
