"""Words as ids."""

import numpy as np
import pytest

from heed.errors import DataError
from heed.vectors import corpus
from heed.vectors.corpus import read_corpus, split_words


def test_frequent_words_come_first_and_rare_ones_leave_their_lines() -> None:
    found = read_corpus([["b", "a", "rare"], [], ["a", "c", "c"], ["b", "a"]], 2)
    assert found.words == ("a", "b", "c")  # of equals the first one read
    assert found.counts.tolist() == [3, 2, 2]
    assert found.ids.tolist() == [1, 0, 0, 2, 2, 1, 0]
    assert found.ends.tolist() == [2, 2, 5, 7]
    assert found.n_read == 8


def test_a_long_line_becomes_several(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus, "MAX_LINE_WORDS", 4)
    found = read_corpus([["a", "b"] * 5, ["a", "b"], ["b", "a"] * 2], 1)
    assert found.ends.tolist() == [4, 8, 10, 12, 16]
    assert found.ids.dtype == np.int32


@pytest.mark.parametrize("lines", [[], [[]], [["a", "a"]], [["a", "b"]]])
def test_a_text_of_too_few_words_is_refused(lines: list[list[str]]) -> None:
    with pytest.raises(DataError, match="at least two words that occur 2 times"):
        read_corpus(lines, 2)


def test_words_stand_between_blanks() -> None:
    lines = ["The king's  son, a\tboy (of ten) didn’t run."]
    assert next(split_words(lines)) == [
        "The", "king's", "son,", "a", "boy", "(of", "ten)", "didn’t", "run."
    ]  # fmt: skip
    assert next(split_words(lines, lowercase=True, split_punctuation=True)) == [
        "the", "king's", "son", ",", "a", "boy", "(", "of", "ten", ")", "didn’t", "run", "."
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("नमस्ते दुनिया, ठीक है?", ["नमस्ते", "दुनिया", ",", "ठीक", "है", "?"]),
        ("می\u200cخواهم بروم.", ["می\u200cخواهم", "بروم", "."]),
        ("cafe\u0301 noir!", ["cafe\u0301", "noir", "!"]),
        ("มันดีมาก", ["มันดีมาก"]),
    ],
)
def test_vowel_signs_accents_and_joiners_stay_inside_words(line: str, words: list[str]) -> None:
    assert next(split_words([line], split_punctuation=True)) == words
