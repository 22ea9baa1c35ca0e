"""Pieces as words, and attention between words, by hand."""

import numpy as np
import pytest

from heed.explain.attention.words import between_words
from heed.text.piece_words import words_of


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        (["▁New", "▁Yo", "rk", "▁is", ".", "<eos>"], ["New", "York", "is", ".", "<eos>"]),
        (
            ["<bos>", "▁Don", "'", "t", "▁run", ",", "▁men", "!"],
            ["<bos>", "Don't", "run", ",", "men", "!"],
        ),
        (["▁", "纽", "约", "是", "城市"], ["纽", "约", "是", "城市"]),
        (["<2de>", "▁a"], ["<2de>", "a"]),
        (["▁(", "dog", ")"], ["(", "dog", ")"]),
        (["▁", "▁a"], ["▁", "a"]),
        ([], []),
    ],
)
def test_pieces_make_words(pieces: list[str], words: list[str]) -> None:
    found = words_of(pieces)
    assert [word.text for word in found] == words
    assert sum(word.end - word.first for word in found) == len(pieces)


def test_text_that_is_tokenized_is_parted_at_blanks_only() -> None:
    pieces = ["▁don", "'", "t", "▁,", "▁go"]
    assert [word.text for word in words_of(pieces, only_blanks=True)] == ["don't", ",", "go"]


def test_columns_are_added_and_rows_averaged() -> None:
    weights = np.array([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [1, 0, 0]], np.float32)
    columns = words_of(["▁a", "b", "▁c"])
    rows = words_of(["▁x", "▁y", "z"])
    expected = [[0.3, 0.7], [(0.6 + 1) / 2, 0.2]]
    np.testing.assert_allclose(between_words(weights, rows, columns), expected, atol=1e-6)
    np.testing.assert_allclose(between_words(weights[None], rows, columns)[0], expected, atol=1e-6)
