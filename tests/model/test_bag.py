"""The bag of n-grams against its definition in plain Python."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from heed.errors import ConfigError
from heed.model.bag.network import BagOfNGrams, _n_gram_rows, inverse_frequencies
from heed.model.build import build_model
from heed.model.masks import padding_mask

Bag = Callable[..., BagOfNGrams]


@pytest.fixture
def bag(config_of: Callable[..., Any]) -> Bag:
    """A bag with a filled table, in float64."""

    def make(**changes: Any) -> BagOfNGrams:
        torch.manual_seed(1)
        model: Any = build_model(config_of(family="bag", **{"n_gram_rows": 997, **changes}))
        torch.nn.init.normal_(model.n_grams.weight)
        network: BagOfNGrams = model.double().eval()
        return network

    return make


def states(model: BagOfNGrams, ids: Tensor) -> Tensor:
    state: Tensor = model(ids, ids[:, :0], padding_mask(ids, model.pad_id))[:, 0]
    assert (state[:, -1] == 1).all()
    return state[:, :-1]


def row_of(n_gram: list[int], n_rows: int) -> int:
    """The hash in Python's whole numbers, cut to 64 bits with a sign after each operation."""

    def signed(number: int) -> int:
        return (number + 2**63) % 2**64 - 2**63

    found = 0
    for piece in n_gram:
        added = signed(piece + 0x7F4A7C15 + signed(found << 6) + (found >> 2))
        found = signed((found ^ added) * 0x9E3779B97F4A7C15)
    return (found >> 24) % n_rows


def test_a_text_is_the_sum_of_its_different_n_grams_over_the_root_of_their_number(bag: Bag) -> None:
    """Claim 127."""
    model, text = bag(n_gram=3), [5, 7, 5, 7, 5, 9]
    n_grams = {tuple(text[i : i + n]) for n in (1, 2, 3) for i in range(len(text) - n + 1)}
    rows = {row_of(list(n_gram), 997) for n_gram in n_grams}
    assert len(rows) == len(n_grams) == 9
    total = model.n_grams.weight[sorted(rows)].sum(dim=0)
    torch.testing.assert_close(states(model, torch.tensor([text]))[0], total / math.sqrt(9))


def test_rows_have_weights_that_keep_their_length(bag: Bag) -> None:
    """Claim 127. Σ w_i v_i / √(Σ w_i²)."""
    model, text = bag(n_gram=1), [5, 7, 9]
    rows = torch.tensor([row_of([piece], 997) for piece in text])
    weights = torch.tensor([0.5, 0.0, 0.2], dtype=torch.float64)
    model.row_weights[rows] = weights
    expected = weights @ model.n_grams.weight[rows] / math.sqrt(0.29)
    torch.testing.assert_close(states(model, torch.tensor([text]))[0], expected)
    assert not states(model, torch.tensor([[7]])).any()


def test_the_weight_of_an_n_gram_falls_with_the_texts_that_have_it() -> None:
    """By hand: of 8 texts, log 8 / log 8 = 1, log 4 / log 8 = 2/3, log 1 = 0."""
    found = inverse_frequencies(torch.tensor([0, 1, 2, 8]), 8)
    torch.testing.assert_close(found, torch.tensor([0.0, 1.0, (2 / 3) ** 1.5, 0.0]).double())
    assert not inverse_frequencies(torch.tensor([0, 1]), 0).isnan().any()


def test_row_weights_are_counted_in_batches_of_texts(bag: Bag) -> None:
    model = bag()
    texts = torch.tensor([[5, 6, 3], [5, 7, 3], [5, 6, 3]])
    counts = torch.zeros(len(model.row_weights), dtype=torch.long)
    for text in texts:
        rows, _ = model.rows(text[None])
        counts[rows] += 1
    found = model.counted([(texts[:2], None), (texts[2:], None)])
    assert found.keys() == {"row_weights"}
    torch.testing.assert_close(found["row_weights"], inverse_frequencies(counts, 3).float())


def test_a_word_counts_beside_its_pieces_and_by_its_pieces_alone(bag: Bag) -> None:
    """With 2 (`<bos>`) in front of each word; 3 (`<eos>`) is part of none."""
    model = bag(n_gram=1)
    whole = states(model, torch.tensor([[2, 5, 6, 2, 7, 3]]))
    bare = states(model, torch.tensor([[5, 6, 7, 3]]))
    words = whole * math.sqrt(6) - bare * 2
    for other in ([2, 7, 2, 5, 6, 3], [2, 5, 6, 2, 5, 6, 2, 7, 3]):
        torch.testing.assert_close(states(model, torch.tensor([other])), whole)
    reversed_word = states(model, torch.tensor([[2, 6, 5, 2, 7, 3]]))
    assert not torch.allclose(reversed_word, whole)
    alone = states(model, torch.tensor([[2, 7, 3]])) * math.sqrt(3)
    alone -= states(model, torch.tensor([[7, 3]])) * math.sqrt(2)
    pair = states(model, torch.tensor([[2, 5, 6, 3]])) * math.sqrt(4)
    pair -= states(model, torch.tensor([[5, 6, 3]])) * math.sqrt(3)
    torch.testing.assert_close(words, alone + pair)


def test_a_text_does_not_depend_on_padding_or_its_neighbors(bag: Bag) -> None:
    model = bag()
    texts = [[2, 5, 6, 2, 7, 8, 9], [2, 5, 6], [9]]
    padded = torch.tensor([text + [model.pad_id] * (8 - len(text)) for text in texts])
    together = states(model, padded)
    for place, text in enumerate(texts):
        assert torch.equal(states(model, torch.tensor([text]))[0], together[place])
    assert torch.equal(states(model, padded.flip(0)), together.flip(0))


def test_single_pieces_have_no_order_and_pairs_have(bag: Bag) -> None:
    one, other = torch.tensor([[5, 6, 7]]), torch.tensor([[7, 6, 5]])
    assert torch.equal(states(bag(n_gram=1), one), states(bag(n_gram=1), other))
    assert not torch.equal(states(bag(n_gram=2), one), states(bag(n_gram=2), other))


def test_an_n_gram_of_no_training_text_changes_only_the_length(
    config_of: Callable[..., Any],
) -> None:
    model: Any = build_model(config_of(family="bag"))
    assert not model.n_grams.weight.any()


def test_no_text_at_all_is_zero(bag: Bag) -> None:
    assert not states(bag(), torch.zeros(2, 0, dtype=torch.long)).any()
    assert not states(bag(), torch.zeros(2, 3, dtype=torch.long)).any()


def test_rows_lie_in_the_table_and_collide_no_more_than_by_chance() -> None:
    """Of m pairs of pieces in n rows, m² / 2n are expected to share one: 48 ± 7 here."""
    torch.manual_seed(1)
    ids = torch.randint(0, 4000, (1, 10_001))
    places = _n_gram_rows(ids, torch.ones_like(ids, dtype=torch.bool), 2, 1 << 20)[0]
    assert places.min() >= 0 and places.max() < 1 << 20
    different = set(zip(ids[0].tolist(), ids[0, 1:].tolist(), strict=False))
    assert 20 < len(different) - len(places[-10_000:].unique()) < 80


def test_gradients_of_table_and_output(bag: Bag) -> None:
    model, ids = bag(n_gram_rows=7, d_model=3), torch.tensor([[5, 6, 5], [7, 0, 0]])
    table = model.n_grams.weight.detach().clone().requires_grad_()

    def call(table: Tensor) -> Tensor:
        parameters = {"n_grams.weight": table}
        mask = padding_mask(ids, 0)
        found: Tensor = torch.func.functional_call(model, parameters, (ids, ids[:, :0], mask))
        return found

    assert torch.autograd.gradcheck(call, (table,))


def test_a_table_too_large_is_refused(config_of: Callable[..., Any]) -> None:
    with pytest.raises(ConfigError, match="model.n_gram_rows times model.d_model must be 268,435"):
        config_of(family="bag", n_gram_rows=1 << 20, d_model=512)
