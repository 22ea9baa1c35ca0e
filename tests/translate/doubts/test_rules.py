"""Rules about loops, numbers, scripts and unknown characters, on pairs that people can judge."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heed.translate.doubts.loops import find_loops, longest_again, repeated
from heed.translate.doubts.numbers import different_numbers
from heed.translate.doubts.scripts import is_in_foreign_script, is_untranslated, script_shares
from heed.translate.doubts.spelling import spelled, unknown_characters


def pieces(text: str) -> list[str]:
    return ["\u2581" + word for word in text.split()]


@pytest.mark.parametrize(
    ("source", "text", "loop"),
    [
        ("he walks", "er geht und geht und geht und", (1, 7)),
        ("a dog", "Hund Hund Hund", (0, 3)),
        ("a - b - b - b", "a - b - - - - -", (3, 8)),
        ("a man with a hat", "ein Mann mit Hut mit Hut", (2, 6)),
        ("a man in a park and a child", "ein Mann in dem Park und ein Mann in dem Park", (6, 11)),
        # What training wrote on the way, after 300 to 1,200 steps.
        ("it exists , overwrite ?", "Namen bereits bereits , bereits bereits ?", (1, 6)),
        ("a : - b - b - b", "a b - b - b - - - -", (6, 10)),
        ("a light of 3", "3 , x 3 , x weiß x weiß x weiß", (5, 11)),
        ("many others .", "Jeder andere andere er andere er andere er .", (2, 8)),
    ],
)
def test_what_comes_again_is_found(source: str, text: str, loop: tuple[int, int]) -> None:
    assert find_loops(pieces(source), pieces(text)) == [loop]


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("no no no no", "nein nein nein nein"),
        ("the women that the man saw", "die Frauen die die Maenner sahen"),
        ("very very very good", "sehr sehr sehr gut"),
        ("a man in a park and a man in a park", "ein Mann im Park und ein Mann im Park"),
        ("OK", "OK"),
        ("", ""),
    ],
)
def test_what_the_source_repeats_may_be_repeated(source: str, text: str) -> None:
    assert not find_loops(pieces(source), pieces(text))


def test_marks_do_not_hide_a_loop() -> None:
    tokens = ["▁Standard", ":", "▁'", "Standard", ":▁'", "Standard", ":", "1"]
    assert find_loops(["▁default", "▁1"], tokens) == [(0, 6)]
    assert not find_loops(["▁a", "▁a", "▁a"], tokens)


def test_a_loop_of_letters_is_a_loop() -> None:
    tokens = ["▁St", "eur", "ur", "ur", "ur", "ur"]
    assert find_loops(["▁a", "▁road"], tokens) == [(2, 6)]


@given(
    st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=6, unique=True), st.integers(3, 9)
)
def test_every_unit_that_follows_itself_is_found(unit: list[str], times: int) -> None:
    ((first, last, size),) = repeated(["x", *unit * times, "y"])
    assert (first, last, size) == (1, 1 + len(unit) * times, len(unit))


@given(st.lists(st.sampled_from("abc"), max_size=12))
def test_the_longest_repetition_is_that_of_trying_all(tokens: list[str]) -> None:
    n = len(tokens)
    sizes = [
        size
        for size in range(1, n)
        for a in range(n)
        for b in range(a + size, n - size + 1)
        if tokens[a : a + size] == tokens[b : b + size]
    ]
    found = longest_again(tokens)
    assert found <= max(sizes, default=0)
    # One token twice may be left unseen; a longer stretch may not.
    assert found == max(sizes, default=0) or max(sizes) == 1


@pytest.mark.parametrize(
    ("source", "text", "missing", "extra"),
    [
        ("costs 1,234.50 €", "kostet 1.234,50 €", [], []),
        ("in 2007", "im Jahr 2008", ["2007"], ["2008"]),
        ("in 1999", "damals", ["1999"], []),
        ("5 people", "fünf Leute", [], []),
        ("five people", "6 Leute", ["5"], ["6"]),
        ("two men", "drei Männer", ["2"], ["3"]),
        ("two men", "beide Männer", [], []),
        ("٣٤ %", "34 %", [], []),
        ("version 1.0", "Version 1.0", [], []),
        ("a man", "12 Männer", [], []),
        ("a man", "120 Männer", [], ["120"]),
    ],
)
def test_numbers_are_compared(source: str, text: str, missing: list[str], extra: list[str]) -> None:
    assert different_numbers(source, text, "en", "de") == (missing, extra)


def test_number_words_need_both_languages() -> None:
    assert different_numbers("two men", "drei Männer") == ([], [])
    assert different_numbers("two men", "drei Männer", "en", "xx") == ([], [])
    assert different_numbers("deux chats", "trzy koty", "fr", "pl") == (["2"], ["3"])


def test_letters_of_another_script_are_seen() -> None:
    latin = ["latin"]
    assert is_in_foreign_script("a dog", "собака", latin)
    assert not is_in_foreign_script("a dog", "ein Hünd", latin)
    assert not is_in_foreign_script("say собака", "sag собака", latin)
    assert not is_in_foreign_script("a dog", "123 €", latin)
    assert is_in_foreign_script("犬が好き", "I like dogs", ["han", "kana"])
    assert not is_in_foreign_script("I like dogs", "犬が好き", ["han", "kana"])
    assert not is_in_foreign_script("a dog", "собака", [])


def test_the_shares_of_scripts_are_of_letters() -> None:
    assert script_shares(["ab 12", "дом"]) == {"latin": 0.4, "cyrillic": 0.6}


def test_labels_and_names_may_be_equal_on_both_sides() -> None:
    for label in ("OK", "GIMP", "%s", "Port", "Name: %s", "GNU General Public License"):
        assert not is_untranslated(label, label)
    sentence = "please choose another file name"
    assert is_untranslated(sentence, sentence)


def test_bytes_are_spelled_and_named() -> None:
    tokens = ["▁", "<0xE7>", "<0xBA>", "<0xBD>", "▁b", "<unk>"]
    assert unknown_characters(tokens) == ["纽", "?"]
    assert spelled(tokens[:5]) == "纽 b"
    assert not unknown_characters(["▁a"])
