import math

import pytest
import torch

from heed.decode.top import top


def expected(scores, count):
    ids = scores.sort(dim=-1, descending=True, stable=True).indices[:, :count]
    return scores.gather(1, ids), ids


@pytest.mark.parametrize("width", [1, 5, 63, 64, 700, 4096, 5001])
@pytest.mark.parametrize("count", [1, 2, 6, 40])
@pytest.mark.parametrize("n_levels", [3, 50, 10**7])
def test_top_is_a_stable_sort_cut_short(width, count, n_levels):
    generator = torch.Generator().manual_seed(width + count)
    scores = -torch.randint(n_levels, (9, width), generator=generator).float() / 7 - 0.1
    values, ids = top(scores, count)
    assert torch.equal(values, expected(scores, count)[0])
    assert torch.equal(ids, expected(scores, count)[1])


def test_neighboring_floats_are_not_taken_for_equals():
    below = torch.nextafter(torch.tensor(-7.0), torch.tensor(-8.0)).item()
    scores = torch.full((1, 3000), -7.0)
    scores[0, :10] = below
    assert top(scores, 2)[1].tolist() == [[10, 11]]


def test_a_row_with_one_possible_entry_begins_with_it():
    scores = torch.full((2, 1000), -math.inf)
    scores[0, 999], scores[1, 17] = -1.0, -2.0
    values, ids = top(scores, 3)
    assert ids[:, 0].tolist() == [999, 17]
    assert values[:, 1:].eq(-math.inf).all()


def test_a_strided_row_is_no_trouble():
    scores = -torch.rand(4, 3000, generator=torch.Generator().manual_seed(0))[:, ::2]
    assert torch.equal(top(scores, 3)[1], expected(scores, 3)[1])
