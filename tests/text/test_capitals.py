"""Lines in capitals become small and large again."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heed.text.capitals import in_capitals, in_small_letters, is_in_capitals


@pytest.mark.parametrize(
    "text", ["A MAN IS RIDING A BIKE.", "ЧЕЛОВЕК ЕДЕТ", "ÜBER DIE STRASSE!", "2 DOGS RUN, OK?"]
)
def test_capitals(text: str) -> None:
    assert is_in_capitals(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "OK",
        "USB",
        "a man",
        "A man rides",
        "PDF/X",
        "NATO und EU",
        "纽约是一座城市",
        "12:30",
        "ADÉỌ̀LÁ",
    ],
)
def test_not_capitals(text: str) -> None:
    assert not is_in_capitals(text)


def test_a_field_does_not_count_and_does_not_change() -> None:
    text = "FOUND %d FILES. OPEN {name}?"
    kept = [(6, 8), (21, 27)]
    assert is_in_capitals(text, kept)
    assert not is_in_capitals(text)
    small = in_small_letters(text, kept)
    assert small == "Found %d files. Open {name}?"
    assert in_capitals(small, kept) == (text, kept)


def test_a_field_at_the_beginning_gets_no_capital() -> None:
    assert in_small_letters("x7 FILES FOUND", [(0, 2)]) == "x7 files found"


def test_each_sentence_begins_with_a_capital() -> None:
    assert in_small_letters('"A B! C, D. … (E F) G. ') == '"A b! C, d. … (E f) g. '


@pytest.mark.parametrize("unit", [". ", "A. ", "AB "])
def test_a_long_line_takes_one_pass(unit: str) -> None:
    text = f"AB CD EF {unit * 100_000}"
    small = in_small_letters(text)
    assert small is not None
    assert small.upper() == text


def test_places_move_with_letters_that_become_two() -> None:
    assert in_capitals("Straße %s ß", [(7, 9)]) == ("STRASSE %s SS", [(8, 10)])


@given(st.text(), st.lists(st.integers(0, 20), max_size=6))
def test_kept_places_stay(text: str, numbers: list[int]) -> None:
    ends = sorted({min(number, len(text)) for number in numbers})
    kept = list(zip(ends[::2], ends[1::2], strict=False))
    spans = [text[start:end] for start, end in kept]
    large, places = in_capitals(text, kept)
    assert [large[start:end] for start, end in places] == spans
    small = in_small_letters(text, kept)
    if small is not None:
        assert len(small) == len(text)
        assert [small[start:end] for start, end in kept] == spans
