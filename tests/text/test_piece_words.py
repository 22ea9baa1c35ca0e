"""Pieces as words, by hand."""

import pytest

from heed.text.piece_words import counted_words, in_whole_words, words_of


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


@pytest.mark.parametrize(
    ("stretch", "whole"),
    [
        ((4, 6), (2, 6)),  # "es big": from the middle of a word
        ((0, 3), (0, 5)),  # "A bo": up to the middle of one
        ((3, 4), (2, 5)),
        ((5, 7), (5, 7)),
        ((5, 5), (5, 5)),  # nothing stays nothing
    ],
)
def test_a_stretch_of_pieces_is_widened_to_whole_words(
    stretch: tuple[int, int], whole: tuple[int, int]
) -> None:
    pieces = ["▁A", "▁", "▁bo", "ok", "es", "▁big", "▁cat", "."]
    assert in_whole_words(pieces, *stretch) == whole


def test_text_that_is_tokenized_is_parted_at_blanks_only() -> None:
    pieces = ["▁don", "'", "t", "▁,", "▁go"]
    assert [word.text for word in words_of(pieces, only_blanks=True)] == ["don't", ",", "go"]


@pytest.mark.parametrize(
    ("pieces", "words"),
    [
        (["▁Den", "▁Straß", "en", "-Plan", ",", "▁naïve"], "den strassen - plan , naïve"),
        (["▁1", "2", ".3", "<s1>"], "12 . 3 < s1 >"),
        (["▁नमस्ते", "▁दुनिया", "।"], "नमस्ते दुनिया ।"),
        (["▁猫は", "走る", "。"], "猫 は 走 る 。"),
        ([], ""),
    ],
)
def test_words_are_counted_in_lower_case_and_without_their_pieces(
    pieces: list[str], words: str
) -> None:
    assert counted_words(pieces) == words.split()
