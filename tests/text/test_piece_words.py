"""Pieces as words, by hand."""

import pytest

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
