"""Rotary positions in training: the same numbers and gradients as the formula."""

import pytest
import torch
from torch import Tensor

from heed.model.fast.rotation import can_fuse, rotate_fused
from heed.model.positions import rotary_table, rotate


def heads(length: int, *, dtype: torch.dtype = torch.float64, is_packed: bool) -> Tensor:
    """Queries of 3 sentences and 2 heads of width 6, as attention makes them, or beside nothing."""
    if is_packed:
        rows = torch.randn(3, length, 36, dtype=dtype)
        return rows[..., :12].unflatten(2, (2, 6)).transpose(1, 2)
    return torch.randn(3, 2, length, 6, dtype=dtype)


@pytest.mark.parametrize("length", [1, 5])
@pytest.mark.parametrize("is_packed", [True, False])
def test_turned_heads_and_their_gradients_are_those_of_the_formula(
    length: int, is_packed: bool
) -> None:
    torch.manual_seed(0)
    cosines, sines = (table.double() for table in rotary_table(length, 6))
    x = heads(length, is_packed=is_packed).requires_grad_()
    with torch.no_grad():
        assert not can_fuse(x)
        expected = rotate(x, (cosines, sines))
    assert torch.allclose(rotate_fused(x, cosines, sines), expected, rtol=0, atol=1e-12)
    assert torch.autograd.gradcheck(lambda x: rotate_fused(x, cosines, sines), (x,))


def test_training_on_a_cpu_turns_and_translating_does_not() -> None:
    x = heads(5, dtype=torch.float32, is_packed=True)
    assert not can_fuse(x)
    assert can_fuse(x.requires_grad_())


def test_a_product_of_turned_heads_depends_on_distance_alone() -> None:
    """Claim of Su et al. 2021, equation 11."""
    torch.manual_seed(0)
    cosines, sines = rotary_table(20, 6)
    query, key = torch.randn(2, 1, 1, 1, 6)
    queries = rotate_fused(query.expand(1, 1, 20, 6), cosines, sines)
    keys = rotate_fused(key.expand(1, 1, 20, 6), cosines, sines)
    products = queries @ keys.transpose(2, 3)
    for distance in (-7, 0, 3):
        diagonal = products[0, 0].diagonal(distance)
        assert torch.allclose(diagonal, diagonal[:1].expand_as(diagonal), atol=1e-5)
