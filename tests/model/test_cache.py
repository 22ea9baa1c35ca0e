"""KVCache against the plain thing it replaces: concatenation."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from heed.model.cache import FIRST_CAPACITY, KVCache


def one_position(rows: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(rows, 2, 1, 3), torch.randn(rows, 2, 1, 5)


def test_append_returns_all_positions_in_order_beyond_its_first_capacity() -> None:
    """Claim 96: the table of keys and values is filled one at a time."""
    torch.manual_seed(0)
    cache, keys, values = KVCache(), [], []
    for length in range(1, 2 * FIRST_CAPACITY + 8):
        key, value = one_position(4)
        keys.append(key)
        values.append(value)
        got_keys, got_values = cache.append(key, value)
        assert cache.length == length
        assert torch.equal(got_keys, torch.cat(keys, dim=2))
        assert torch.equal(got_values, torch.cat(values, dim=2))


def test_append_takes_several_positions_at_once() -> None:
    torch.manual_seed(0)
    cache, n_first = KVCache(), FIRST_CAPACITY - 2
    key, value = torch.randn(1, 2, n_first, 3), torch.randn(1, 2, n_first, 3)
    more_keys, more_values = torch.randn(1, 2, 4, 3), torch.randn(1, 2, 4, 3)
    cache.append(key, value)
    keys, values = cache.append(more_keys, more_values)
    assert torch.equal(keys, torch.cat([key, more_keys], dim=2))
    assert torch.equal(values, torch.cat([value, more_values], dim=2))


@given(
    moves=st.lists(st.one_of(st.none(), st.lists(st.integers(0, 2), max_size=5)), max_size=12),
    n_free=st.integers(0, 3),
)
def test_any_mix_of_append_and_select_equals_concatenation(
    moves: list[list[int] | None], n_free: int
) -> None:
    torch.manual_seed(0)
    cache, n_first = KVCache(), FIRST_CAPACITY - n_free
    keys, values = torch.randn(3, 2, n_first, 3), torch.randn(3, 2, n_first, 5)
    cache.append(keys, values)
    for move in moves:
        if move is None:
            key, value = one_position(keys.size(0))
            keys, values = torch.cat([keys, key], dim=2), torch.cat([values, value], dim=2)
            got_keys, got_values = cache.append(key, value)
            assert torch.equal(got_keys, keys)
            assert torch.equal(got_values, values)
        elif keys.size(0):
            rows = torch.tensor([row % keys.size(0) for row in move], dtype=torch.long)
            keys, values = keys[rows], values[rows]
            cache.select(rows)


def test_select_before_anything_is_kept_changes_nothing() -> None:
    cache = KVCache()
    cache.select(torch.tensor([1, 0]))
    assert cache.length == 0


def test_capacity_doubles_so_that_copying_stays_cheap() -> None:
    cache, buffers = KVCache(), set()
    for _ in range(8 * FIRST_CAPACITY):
        keys, _ = cache.append(*one_position(1))
        buffers.add(keys.untyped_storage().nbytes())
    assert len(buffers) == 4
