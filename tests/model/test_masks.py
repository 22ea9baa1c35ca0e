"""Masks: who may read whom, with one polarity, True = may attend."""

import torch

from heed.model.masks import both, causal_mask, padding_mask


def test_padding_mask_is_true_at_real_tokens_only() -> None:
    """Claims 80, 81."""
    ids = torch.tensor([[5, 6, 7], [5, 0, 0]])
    mask = padding_mask(ids, pad_id=0)
    assert mask is not None
    assert mask.shape == (2, 1, 1, 3)
    assert mask[:, 0, 0].tolist() == [[True, True, True], [True, False, False]]


def test_padding_mask_uses_the_given_pad_id() -> None:
    mask = padding_mask(torch.tensor([[0, 9]]), pad_id=9)
    assert mask is not None
    assert mask.flatten().tolist() == [True, False]


def test_padding_mask_is_none_when_nothing_is_padded() -> None:
    assert padding_mask(torch.tensor([[5, 6], [7, 8]]), pad_id=0) is None


def test_padding_mask_of_empty_sources_stays_a_mask() -> None:
    mask = padding_mask(torch.zeros(2, 0, dtype=torch.long), pad_id=0)
    assert mask is not None
    assert mask.shape == (2, 1, 1, 0)


def test_causal_mask_lets_word_three_read_the_first_three() -> None:
    """Claims 80, 82, 84."""
    mask = causal_mask(4, 4)
    assert mask.dtype == torch.bool
    assert mask[2].tolist() == [True, True, True, False]
    assert mask.tolist() == [[key <= query for key in range(4)] for query in range(4)]


def test_causal_mask_counts_queries_from_the_end_when_keys_are_more() -> None:
    assert causal_mask(2, 4).tolist() == [[True, True, True, False], [True] * 4]
    assert causal_mask(1, 4).tolist() == [[True] * 4]


def test_both_allows_what_each_allows_and_none_allows_all() -> None:
    first, second = torch.tensor([True, True, False]), torch.tensor([True, False, False])
    combined = both(first, second)
    assert combined is not None
    assert combined.tolist() == [True, False, False]
    assert both(None, second) is second
    assert both(first, None) is first
    assert both(None, None) is None


def test_padding_and_causal_masks_combine_by_broadcasting() -> None:
    padding = padding_mask(torch.tensor([[5, 6, 0]]), pad_id=0)
    combined = both(padding, causal_mask(3, 3))
    assert combined is not None
    expected = [[True, False, False], [True, True, False], [True, True, False]]
    assert combined[0, 0].tolist() == expected
