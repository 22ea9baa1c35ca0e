"""Line breaks of a translation."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heed.documents.wrapping import break_like

LINES = st.lists(st.text("abc,", min_size=1, max_size=8), min_size=1, max_size=5)


@given(LINES)
def test_an_unchanged_text_is_broken_where_it_was(lines: list[str]) -> None:
    assert break_like(" ".join(lines), lines) == lines


@given(st.text("ab, ", max_size=40), LINES)
def test_no_word_is_lost_and_no_line_added(text: str, lines: list[str]) -> None:
    broken = break_like(text, lines)
    assert len(broken) <= len(lines)
    assert " ".join(broken).split() == text.split()


def test_a_break_prefers_a_comma_nearby() -> None:
    source = ["x" * 13, "y" * 13]
    assert break_like("aaaaa, bbb cccccc", source) == ["aaaaa,", "bbb cccccc"]
    assert break_like("aaaaab bbb cccccc", source) == ["aaaaab bbb", "cccccc"]


@pytest.mark.parametrize("kept", ["12:30", "1 234 567", "42,234.542", "you@example.org", "Heed"])
def test_no_line_ends_inside_a_number_or_a_word(kept: str) -> None:
    for text in (f"{kept}一个男人在梯子上在梯子上", f"{kept} 一个男人在梯子上", f"a {kept} b"):
        for n_lines in range(2, 12):
            lines = break_like(text, ["two words"] * n_lines)
            assert any(kept in line for line in lines)
            assert "".join("".join(lines).split()) == "".join(text.split())


def test_a_script_without_blanks_is_broken_anywhere_but_before_a_mark() -> None:
    assert break_like("一个男人，在梯子上", ["A man, yes", "on a ladder"]) == [
        "一个男人，",
        "在梯子上",
    ]
