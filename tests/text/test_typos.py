"""`correct`: which word was meant by a misspelled one."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heed.text.disturb import typo
from heed.text.typos import (
    LEVELS_PER_DOUBLING,
    MAX_LENGTH,
    Limits,
    correct,
    is_plain,
    level_of,
    stands_alone,
)

COUNTS = {
    "the": 5_000,
    "there": 100,
    "is": 4_000,
    "in": 3_000,
    "people": 400,
    "street": 60,
    "straße": 90,
    "file": 100,
    "fine": 30,
    "palm": 80,
    "beard": 40,
    "für": 900,
    "rare": 3,
}
LETTERS = "abcdefghijklmnopqrstuvwxyzßü"
LIMITS = Limits(10, 5)


def levels(words: list[str]) -> list[int]:
    counts = {word.casefold(): count for word, count in COUNTS.items()}
    return [level_of(counts.get(word.casefold(), 0)) for word in words]


def meant(word: str) -> str | None:
    return correct(word, LETTERS, levels, LIMITS)


def test_no_word_is_meant_by_one_that_is_too_long() -> None:
    """30 words of 20,000 letters for each of them would take 12 GB."""
    asked: list[str] = []

    def nothing(words: list[str]) -> list[int]:
        asked.extend(words)
        return [0] * len(words)

    assert correct("a" * MAX_LENGTH, LETTERS, nothing, LIMITS) is None
    assert asked
    asked.clear()
    assert correct("a" * (MAX_LENGTH + 1), LETTERS, nothing, LIMITS) is None
    assert not asked


@pytest.mark.parametrize(
    ("word", "other"),
    [
        ("hte", "the"),
        ("Hte", "The"),
        ("hTe", "The"),
        ("peopel", "people"),
        ("peple", "people"),
        ("peoople", "people"),
        ("prople", "people"),
        ("ni", "in"),
        ("Straaße", "Straße"),
        ("fur", "für"),
    ],
)
def test_one_slip_is_put_right(word: str, other: str) -> None:
    assert meant(word) == other


@pytest.mark.parametrize(
    "word",
    [
        "palms",  # an ending is no slip
        "heads",
        "fixe",  # no key beside, nothing swapped
        "fie",  # file, or fine
        "rrare",  # too rare
        "os",  # two letters, not swapped
        "unheard",
        "",
        "x",
    ],
)
def test_what_is_not_clear_stays(word: str) -> None:
    assert meant(word) is None


def test_levels_are_logarithms() -> None:
    assert level_of(0) == level_of(1) == 0
    for count in (2, 3, 5, 10, 1_000, 123_456_789):
        assert level_of(count) == math.floor(LEVELS_PER_DOUBLING * math.log2(count))
    assert level_of(1 << 60) == 255


@pytest.mark.parametrize(
    ("text", "word", "may_be"),
    [
        ("a (hte) man", "hte", True),
        ("hte, man", "hte", True),
        ("man hte.", "hte", True),
        ("hte.py is", "hte", False),
        ("_hte man", "hte", False),
        ("a&hte man", "hte", False),
        ("HTE man", "HTE", False),
        ("hTe man", "hTe", True),
        ("hTE man", "hTE", False),
        ("iPhone", "iPhone", True),
        ("myHte", "myHte", False),
        ("hte3 man", "hte", False),
    ],
)
def test_only_words_of_running_text_are_looked_at(text: str, word: str, may_be: bool) -> None:
    start = text.index(word)
    is_looked_at = is_plain(word) and stands_alone(text, start, start + len(word))
    assert is_looked_at is may_be


@given(st.sampled_from(sorted(COUNTS)), st.integers(0, 1 << 30))
def test_an_error_is_put_right_or_left(word: str, seed: int) -> None:
    # A tiny vocabulary: nothing but the word itself is clear.
    wrong = typo(word, np.random.default_rng(seed))
    if wrong.lower() not in COUNTS:
        assert meant(wrong) in (None, word, "fine" if word == "file" else word)


@given(st.text(max_size=12))
def test_any_text_has_an_answer(word: str) -> None:
    found = meant(word)
    assert found is None or found.lower() in {*COUNTS, "strasse"}
