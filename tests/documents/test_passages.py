"""Plain text: everything between the sentences comes back."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heed.documents.passages import MODES, Passage, split_passage
from heed.errors import UsageError
from heed.translate.result import Translation

# Much of what separates, so that hypothesis meets it.
PROSE = (
    st.text(st.sampled_from("ab.?! \t\n\r\v\f\x1c\x85\u2028\u2029\xa0\u3000。中-*>()😀1"))
    | st.text()
)


def texts(passage: Passage) -> list[str]:
    return [segment.text for segment in passage.segments]


def joined(passage: Passage, change: Callable[[str], str] = str) -> str:
    return passage.join([Translation(text=change(text)) for text in texts(passage)])


@given(PROSE, st.sampled_from(MODES))
def test_joining_unchanged_segments_gives_the_text(text: str, mode: str) -> None:
    assert joined(split_passage(text, mode)) == text


@given(PROSE, st.sampled_from(MODES[:2]))
def test_what_is_between_the_segments_comes_back_around_any_translation(
    text: str, mode: str
) -> None:
    passage = split_passage(text, mode)
    assert joined(passage, lambda _: "中") == "中".join(passage.between)


@given(PROSE)
def test_no_segment_holds_a_line_break_unless_asked_for(text: str) -> None:
    for mode in ("1", "0"):
        assert all(len(part.splitlines()) == 1 for part in texts(split_passage(text, mode)))


def test_sentences_and_lines_are_segments() -> None:
    passage = split_passage("  One. Two!\r\n\r\n\tThree\u2028Four \n")
    assert texts(passage) == ["One.", "Two!", "Three", "Four"]
    assert passage.between == ["  ", " ", "\r\n\r\n\t", "\u2028", " \n"]


def test_mode_0_splits_at_line_breaks_only() -> None:
    assert texts(split_passage("One. Two!\nThree", "0")) == ["One. Two!", "Three"]


def test_nonewlines_keeps_a_wrapped_sentence_whole_and_wraps_its_translation() -> None:
    passage = split_passage("A man in\n  a blue shirt. Bye.\n\nB c", "nonewlines")
    assert texts(passage) == ["A man in\n  a blue shirt.", "Bye.", "B c"]
    done = passage.join(
        [Translation(text=text) for text in ("Ein Mann im blauen Hemd.", "Tschüs.", "B z")]
    )
    assert done == "Ein Mann\n  im blauen Hemd. Tschüs.\n\nB z"


def test_breaks_without_words_to_stand_between_are_dropped() -> None:
    passage = split_passage("a\nb\nc", "nonewlines")
    assert joined(passage, lambda _: "x y") == "x\ny"


def test_columns_are_segments_of_their_own() -> None:
    assert texts(split_passage("name\tdate    place  here")) == ["name", "date", "place  here"]


def test_list_marks_are_kept_from_the_model() -> None:
    passage = split_passage("- One\n* Two\n> > Three\n# Four\n-five")
    assert texts(passage) == ["One", "Two", "Three", "Four", "-five"]


@pytest.mark.parametrize(
    "mark",
    [
        "1. ",
        "10) ",
        "1999. ",
        "1.) ",
        "1.2. ",
        "(1) ",
        "a) ",
        "a. ",
        "(b)\t",
        "б) ",
        "- 1. ",
        "1) a) ",
    ],
)
@pytest.mark.parametrize("mode", MODES[:2])
def test_numbers_and_letters_of_lists_are_kept_from_the_model(mark: str, mode: str) -> None:
    passage = split_passage(f"{mark}A man runs.\n\n  {mark}FC Köln", mode)
    assert texts(passage) == ["A man runs.", "FC Köln"]
    assert passage.between == [mark, f"\n\n  {mark}", ""]


@pytest.mark.parametrize(
    "line",
    [
        "A. Smith runs",
        "I. Newton fell",
        "г. Москва",
        "z. B. das",
        "e. g. this",
        "1.2 A",
        "1.A",
        "Ab) c",
    ],
)
def test_initials_abbreviations_and_decimals_are_no_list_marks(line: str) -> None:
    assert texts(split_passage(line)) == [line]


def test_a_number_within_a_line_is_no_list_mark() -> None:
    assert texts(split_passage("He won. 2. Mai\n2. Mai")) == ["He won.", "2. Mai", "Mai"]
    assert texts(split_passage("你好。1. a")) == ["你好。", "1. a"]
    assert texts(split_passage("He won.\n 2. May", "nonewlines")) == ["He won.", "May"]


@pytest.mark.parametrize(
    "text", ["", " \n", "😀😀😀", "…", "48,213.50 €", "12:30", "https://a.org/b?c=d", "a.b@c.org"]
)
def test_what_has_no_words_is_not_translated(text: str) -> None:
    passage = split_passage(text)
    assert (passage.segments, passage.between) == ([], [text])


def test_a_blank_parts_sentences_that_leave_a_script_without_blanks() -> None:
    passage = split_passage("你好。再见。")
    assert texts(passage) == ["你好。", "再见。"]
    assert passage.join([Translation(text="Hello."), Translation(text="Bye.")]) == "Hello. Bye."


def test_another_number_of_translations_is_refused() -> None:
    with pytest.raises(UsageError, match="one translation for each segment.* 2 segments and 1 tra"):
        split_passage("One. Two.").join([Translation(text="Eins.")])


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(UsageError, match="mode must be one of 1, 0, nonewlines, but is 'on'"):
        split_passage("a", "on")


def test_many_separators_take_one_pass() -> None:
    for unit in ("\n", " ", "\t", ".", "a\n", "- ", "\r", "。", "1. ", "1.", "a) ", "("):
        text = unit * (100_000 // len(unit))
        for mode in MODES:
            assert joined(split_passage(text, mode)) == text
