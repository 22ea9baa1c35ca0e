"""Texts of programs: fields stay, entities are read, an unchanged text is not written anew."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.documents.fakes import backwards, shouted, unchanged

from heed.documents.fields import IN_DOLLARS, PLAIN, Format, format_of
from heed.documents.message import Message
from heed.translate.result import Translation

SOUP = st.lists(
    st.sampled_from(
        ["a b", " ", "%s", "{x}", "<b>", "</b>", "&amp;", "&", "<", ".", "\n", "\ufdd00"]
    )
    | st.text(max_size=3)
).map("".join)


def message(text: str, format: Format = PLAIN) -> Message:
    return Message.of(text, format, "[{}]".format, text)


@given(SOUP)
def test_a_text_that_does_not_change_is_not_written_anew(text: str) -> None:
    one = message(text)
    assert one.join(unchanged(one.segments)) == text


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("all:\n  - a b\n\t* c <b>d</b>\n1. e", ["all:", "a b", "c d", "e"]),
        ("- %s a", ["a"]),
        ("<b>a</b> - b", ["a - b"]),
        ("a <b>- b</b>\n", ["a - b"]),
        ("a\n-5 b", ["a", "-5 b"]),
    ],
)
def test_marks_of_lists_are_kept(text: str, found: list[str]) -> None:
    one = message(text)
    assert [segment.text for segment in one.segments] == found
    assert one.join(shouted(one.segments)).lower() == f"[{text}]"


def test_fields_of_the_format_stay() -> None:
    for format, text in ((PLAIN, "see {a} now"), (IN_DOLLARS, "see $A$ now")):
        one = message(text, format)
        assert [segment.text for segment in one.segments] == ["see  now"]
        assert (
            one.join(shouted(one.segments))
            == f"[{text.replace('see', 'SEE').replace('now', 'NOW')}]"
        )
    one = message("a %s b %d c", format_of("c-format"))
    assert one.join(backwards(one.segments)) == "[c b %2$d a %1$s]"


@pytest.mark.parametrize(
    ("text", "translated"),
    [
        ("Click <b>here</b> {0}<br/> now", "now <b>here</b> {0}<br/> Click"),
        ("Save {0}{1} as text", "text as Save {0}{1}"),
        ("Save {0}<i></i> as text", "text as Save {0}<i></i>"),
    ],
)
def test_no_blank_parts_a_field_from_the_tag_or_field_that_it_touches(
    text: str, translated: str
) -> None:
    one = message(text)
    assert one.join(backwards(one.segments)) == f"[{translated}]"


def test_a_text_with_entities_is_html_and_another_one_is_not() -> None:
    for text, read, written in (
        ("Z&uuml;rich &amp; bar", "Zürich & bar", "x &amp; &lt;y"),
        ("cats & dogs", "cats & dogs", "x & <y"),
        ("the &File; menu", "the &File; menu", "x & <y"),
    ):
        one = message(text)
        assert [segment.text for segment in one.segments] == [read]
        assert one.join([Translation(text="x & <y")]) == f"[{written}]"


def test_lines_are_texts_of_their_own() -> None:
    one = message("one two\n\nthree")
    assert [segment.text for segment in one.segments] == ["one two", "three"]
    assert one.join(shouted(one.segments)) == "[ONE TWO\n\nTHREE]"
