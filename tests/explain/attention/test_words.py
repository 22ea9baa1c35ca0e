"""Attention between words, by hand."""

import numpy as np

from heed.explain.attention.words import between_words
from heed.text.piece_words import words_of


def test_columns_are_added_and_rows_averaged() -> None:
    weights = np.array([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4], [1, 0, 0]], np.float32)
    columns = words_of(["▁a", "b", "▁c"])
    rows = words_of(["▁x", "▁y", "z"])
    expected = [[0.3, 0.7], [(0.6 + 1) / 2, 0.2]]
    np.testing.assert_allclose(between_words(weights, rows, columns), expected, atol=1e-6)
    np.testing.assert_allclose(between_words(weights[None], rows, columns)[0], expected, atol=1e-6)
