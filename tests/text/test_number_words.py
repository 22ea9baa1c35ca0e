"""Small numbers spelled as words are counted by their digits."""

from collections import Counter

import pytest

from heed.text.number_words import spelled_numbers


@pytest.mark.parametrize(
    ("text", "lang", "counts"),
    [
        ("Two dogs, both old, and three cats.", "en", {"2": 2, "3": 1}),
        ("ZWÖLF Hunde und ein Kind", "de", {"12": 1, "1": 1}),
        ("een, één, twee", "nl-BE", {"1": 2, "2": 1}),
        ("2 dogs; twofold", "en", {}),
        ("two dogs", "xx", {}),
        ("two dogs", "", {}),
    ],
)
def test_number_words_are_counted(text: str, lang: str, counts: dict[str, int]) -> None:
    assert spelled_numbers(text, lang) == Counter(counts)
