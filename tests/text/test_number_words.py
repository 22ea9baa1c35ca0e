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
        ("Dwie kobiety i pięciu mężczyzn", "pl-PL", {"2": 1, "5": 1}),
        ("Обе собаки, четырёх лет, и один кот", "ru", {"2": 1, "4": 1, "1": 1}),
        ("Duas meninas e três cães", "pt-BR", {"2": 1, "3": 1}),
        ("To hunder, åtte katter og ett barn", "nb", {"2": 1, "8": 1, "1": 1}),
        ("2 dogs; twofold", "en", {}),
        ("two dogs", "xx", {}),
        ("two dogs", "", {}),
    ],
)
def test_number_words_are_counted(text: str, lang: str, counts: dict[str, int]) -> None:
    assert spelled_numbers(text, lang) == Counter(counts)
