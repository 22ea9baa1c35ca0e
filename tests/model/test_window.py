"""Windowed attention against the full form with a mask, and against what gradients reach."""

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from heed.model.attention import MultiHeadAttention, attend
from heed.model.cache import KVCache
from heed.model.masks import both, causal_mask
from heed.model.trace import recording
from heed.model.transformer import Transformer
from heed.model.window import block_len, blocks_of, receptive_field, window_mask

Tiny = Callable[..., Transformer]


def padding(*lengths: int) -> Tensor:
    return (torch.arange(max(lengths)) < torch.tensor(lengths)[:, None])[:, None, None]


def test_the_mask_allows_what_is_near() -> None:
    mask = window_mask(5, 5, 2)
    assert mask.tolist() == [[abs(i - j) <= 2 for j in range(5)] for i in range(5)]
    assert torch.equal(window_mask(2, 5, 2), mask[3:])


@pytest.mark.parametrize("window", [1, 3, 31, 32, 33, 40])
@pytest.mark.parametrize("length", [2, 33, 64, 65, 100, 129])
@pytest.mark.parametrize("is_causal", [False, True])
@torch.no_grad()
def test_blocks_equal_the_full_form_with_a_mask(window: int, length: int, is_causal: bool) -> None:
    """Claim 76. Tolerance: float64 sums in another order."""
    torch.manual_seed(0)
    windowed = MultiHeadAttention(8, 2, d_k=3, d_v=5, window=window).double().eval()
    full = MultiHeadAttention(8, 2, d_k=3, d_v=5).double().eval()
    full.load_state_dict(windowed.state_dict())
    x = torch.randn(3, length, 8, dtype=torch.double)
    for keys in (None, padding(length, 1, length // 2)):
        near = both(keys, window_mask(length, length, window))
        expected = full(x, mask=near, is_causal=is_causal)
        found = windowed(x, mask=keys, is_causal=is_causal)
        assert (found - expected).abs().max() <= 1e-12
        with recording(windowed) as caught:
            assert (windowed(x, mask=keys, is_causal=is_causal) - expected).abs().max() <= 1e-12
        assert (caught["weights"].masked_select(~window_mask(length, length, window)) == 0).all()


@pytest.mark.parametrize("is_causal", [False, True])
def test_gradients_of_blocks_are_those_of_the_full_form(is_causal: bool) -> None:
    torch.manual_seed(0)
    length, window = 100, 7
    mask = padding(length, 40)
    query, key, value = (torch.randn(2, 2, length, 4, dtype=torch.double) for _ in range(3))
    direction = torch.randn(2, 2, length, 4, dtype=torch.double)
    gradients = []
    for is_cut in (False, True):
        q, k, v = inputs = [x.clone().requires_grad_() for x in (query, key, value)]
        if is_cut:
            blocks = attend(*blocks_of(q, k, v, window, mask, is_causal=is_causal))[0]
            context = blocks.view(2, -1, 2, block_len(window), 4).transpose(1, 2).flatten(2, 3)
            context = context[:, :, :length]
        else:
            allowed = both(mask, window_mask(length, length, window))
            if is_causal:
                allowed = both(allowed, causal_mask(length, length))
            context = attend(q, k, v, allowed)[0]
        context.backward(direction)
        gradients.append([x.grad for x in inputs])
    for found, expected in zip(*gradients, strict=True):
        assert (found - expected).abs().max() <= 1e-12


@pytest.mark.parametrize("is_causal", [False, True])
def test_memory_grows_with_the_length_not_its_square(is_causal: bool) -> None:
    """Numbers in the mask and in the keys: twice the length, twice as many."""
    sizes = []
    for length in (1024, 2048):
        x = torch.zeros(1, 1, length, 2)
        parts = blocks_of(x, x, x, 16, is_causal=is_causal)
        sizes.append(sum(part.numel() for part in parts))
    assert sizes[1] == 2 * sizes[0]


@pytest.mark.parametrize(("n_layers", "window"), [(1, 2), (2, 2), (3, 1)])
@pytest.mark.parametrize("is_causal", [False, True])
@torch.no_grad()
def test_another_token_changes_what_lies_in_the_receptive_field(
    tiny: Tiny, n_layers: int, window: int, is_causal: bool
) -> None:
    """Claim 76: the states of exactly so many positions."""
    family, reach, at = ("decoder" if is_causal else "encoder"), n_layers * window, 10
    model: Any = tiny(family=family, n_layers=n_layers, window=window)
    ids, nothing = torch.randint(4, 13, (1, 21)), torch.zeros(1, 0, dtype=torch.long)
    other = ids.clone()
    other[0, at] = 4 + (ids[0, at] - 3) % 9
    states = [model(*((nothing, x) if is_causal else (x, nothing)))[0] for x in (ids, other)]
    changed = (states[0] - states[1]).abs().sum(dim=-1).nonzero().flatten().tolist()
    assert changed == list(range(at if is_causal else at - reach, at + reach + 1))
    assert len(changed) == receptive_field(n_layers, window, is_causal=is_causal)


def test_the_cache_keeps_the_prefix_and_the_window() -> None:
    """Its memory does not grow with the length."""
    torch.manual_seed(0)
    for window, n_prefix in ((1, 0), (5, 0), (40, 0), (3, 4)):
        cache, all_keys = KVCache(window=window, n_prefix=n_prefix), []
        if n_prefix:
            all_keys.append(torch.randn(2, 1, n_prefix, 3))
            cache.append(all_keys[0], all_keys[0])
        for step in range(300):
            all_keys.append(torch.randn(2, 1, 1, 3))
            keys, values = cache.append(all_keys[-1], all_keys[-1])
            whole = torch.cat(all_keys, dim=2)
            start = max(n_prefix, whole.size(2) - window - 1)
            expected = torch.cat([whole[:, :, :n_prefix], whole[:, :, start:]], dim=2)
            assert torch.equal(keys, expected)
            assert torch.equal(values, expected)
            if step % 50 == 7:
                cache.select(torch.tensor([1, 0]))
                all_keys = [part[[1, 0]] for part in all_keys]
        assert cache.length == n_prefix + 300
        assert cache._capacity <= n_prefix + 4 * max(window, 32)


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"positions": "rotary", "attention": "gaussian"},
        {"family": "decoder"},
        {"family": "decoder", "prefix": "causal"},
    ],
    ids=str,
)
@torch.no_grad()
def test_long_decoding_equals_one_forced_pass(tiny: Tiny, changes: dict[str, Any]) -> None:
    """Claim 96: in blocks, and step by step with the bounded cache, with sources of two lengths."""
    torch.manual_seed(0)
    src = torch.randint(4, 13, (2, 90))
    src[1, 50:] = 0
    tgt_in = torch.randint(4, 13, (2, 120))
    model = tiny(window=3, **changes).double()
    forced = model.teacher_forced(src, tgt_in)
    alone = model.teacher_forced(src[1:, :50], tgt_in[1:])
    assert (forced[1] - alone[0]).abs().max() <= 1e-6  # logits are float32
    for n_at_once in (0, 20):
        state = model.start(src)
        model.extend(state, tgt_in[:, :n_at_once])
        for position in range(n_at_once, 120):
            logits = model.step(state, tgt_in[:, position])
            assert (logits - forced[:, position]).abs().max() <= 1e-6
