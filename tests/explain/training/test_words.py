"""What changed between two translations."""

from hypothesis import given
from hypothesis import strategies as st

from heed.explain.training import words
from heed.explain.training.words import differences


def test_words_that_changed_are_told_from_those_that_stayed() -> None:
    assert differences("Ein Mann in einem Wagen.", "Ein Mann in einem Auto.") == [
        ("same", "Ein Mann in einem "),
        ("gone", "Wagen."),
        ("new", "Auto."),
    ]


def test_languages_without_blanks_are_compared_by_character() -> None:
    assert differences("纽约是城市", "纽约是一座城市") == [
        ("same", "纽约是"),
        ("new", "一座"),
        ("same", "城市"),
    ]


def test_the_first_translation_is_new_and_an_equal_one_the_same() -> None:
    assert differences("", "a b") == [("new", "a b")]
    assert differences("a b", "a b") == [("same", "a b")]
    assert differences("a b", "") == [("gone", "a b")]
    assert differences("", "") == []


def test_long_texts_are_compared_as_a_whole() -> None:
    long = "a " * (words.MAX_WORDS + 1)
    assert differences(long, f"{long}b") == [("gone", long), ("new", f"{long}b")]


@given(st.text(alphabet="ab 城\n"), st.text(alphabet="ab 城\n"))
def test_what_is_not_gone_is_the_new_translation(before: str, now: str) -> None:
    found = differences(before, now)
    assert "".join(piece for change, piece in found if change != "gone") == now
    assert all(piece for _, piece in found)
