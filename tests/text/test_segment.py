"""`split_sentences` and `cut`."""

import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from heed.text.segment import cut, split_sentences

# Mostly signs that end, open and close, so that short texts meet many rules.
TEXTS = st.text(
    alphabet=st.one_of(st.sampled_from("aB1 .!?。！」「\n,、…\u0301\u200d👩"), st.characters())
)


@pytest.mark.parametrize(
    "sentences",
    [
        ["A man sleeps. ", "A dog barks! ", "Why? ", "Nobody knows."],
        ["Dr. Smith met Prof. Jones in St. Louis. ", "They talked."],
        ["J. R. R. Tolkien wrote it. ", "We read it."],
        ["The U.S. Army came, e.g. Anna. ", "Then it left."],
        ["Das ist z.B. Anna bzw. Otto, d.h. Leute. ", "Sie kam am 3. Mai. ", "Er nicht."],
        [
            "It costs 3.50 dollars. ",
            "See No. 5 on vol. 2 for more. ",
            "She said no. ",
            "Then she left.",
        ],
        ["It was in 2012. ", "Nobody came."],
        ["Read example.org. ", "It helps."],
        ["He said “Stop.” ", "She stopped. ", "“Go!” he said."],
        ["Er rief: „Halt!“ ", "Sie hielt. ", "»Gut.« ", "Ja."],
        ["Well... perhaps. ", "Wait… ", "What?! ", "No."],
        ["¿Qué? ", "¡Nada! ", "Bueno."],
        ["今日は。", "元気ですか？", "はい！"],
        ["彼は「はい。」と言った。", "「そう。」", "「いや。」"],
        ["圆周率是３．１４。", "对。"],
        ["هل أنت هنا؟ ", "نعم."],
        ["राम घर गया। ", "सीता आई।"],
        ["one line\n\n \n", "another line"],
        ["a sentence.\n", "b goes on"],
        [" leading blanks stay. ", "B  "],
        ["yahoo.com is a site, version 2.0 of it"],
        ["no end"],
        ["..."],
        ["  "],
    ],
)
def test_sentences_end_where_a_reader_ends_them(sentences: list[str]) -> None:
    assert split_sentences("".join(sentences)) == sentences


def test_an_empty_text_has_no_sentence_but_stays_whole() -> None:
    assert split_sentences("") == []
    assert cut("", max_length=3) == [""]


@given(TEXTS)
@example("\u0301\u200d")
@settings(max_examples=300)
def test_nothing_is_lost_by_splitting(text: str) -> None:
    parts = split_sentences(text)
    assert "".join(parts) == text
    assert all(parts) or not text


@given(TEXTS, st.integers(1, 12))
@settings(max_examples=300)
def test_every_part_fits_and_nothing_is_lost_by_cutting(text: str, max_length: int) -> None:
    parts = cut(text, max_length=max_length)
    assert "".join(parts) == text
    assert all(0 < len(part) <= max_length for part in parts) or not text


@given(TEXTS, st.integers(1, 12))
@settings(max_examples=200)
def test_the_measure_is_the_callers(text: str, max_length: int) -> None:
    def size(part: str) -> int:
        return len(part.encode("utf-8", "surrogatepass")) + 1  # like a piece in front of each part

    parts = cut(text, max_length=max_length, length=size)
    assert "".join(parts) == text
    assert all(size(part) <= max_length or len(part) <= 1 for part in parts)


def test_a_text_that_fits_stays_whole() -> None:
    assert cut("One. Two. Three.", max_length=16) == ["One. Two. Three."]


def test_a_long_text_is_cut_at_sentences_then_pauses_then_blanks_then_characters() -> None:
    text = "Short one. First, second; third fourth fifth, abcdefghijklmnopqrstuvwxyz."
    assert cut(text, max_length=16) == [
        "Short one. ",
        "First, second; ",
        "third fourth ",
        "fifth, ",
        "abcdefghijklmnop",
        "qrstuvwxyz.",
    ]


def test_a_cut_does_not_part_a_letter_from_its_accent_or_a_family_from_its_child() -> None:
    family = "👩\u200d👩\u200d👧"
    assert cut("e\u0301" * 4, max_length=3) == ["e\u0301"] * 4
    assert cut(family * 2, max_length=6) == [family, family]
    assert cut("👍🏽👍🏽", max_length=3) == ["👍🏽", "👍🏽"]


@pytest.mark.parametrize(
    "unit", ["x", ".", "a. ", "a,", ".)", " ", "漢。", "e\u0301", "\n", "\u200d", "“.", "1. "]
)
def test_a_hundred_thousand_characters_of_anything_take_no_more_than_a_moment(unit: str) -> None:
    text = (unit * 100_000)[:100_000]
    start = time.process_time()
    parts = cut(text, max_length=256)
    # Measured 0.02 s to 0.3 s; a quadratic pattern takes minutes.
    assert time.process_time() - start < 5
    assert "".join(parts) == text


def test_measuring_does_not_grow_with_the_rest_of_the_text() -> None:
    measured = 0

    def length(part: str) -> int:
        nonlocal measured
        measured += len(part)
        return len(part)

    cut("x" * 10_000, max_length=100, length=length)
    # The whole text once a level (5), then each stretch about four times: three tries and a check.
    assert measured < 15 * 10_000
