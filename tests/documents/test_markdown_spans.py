"""Spans of Markdown as tokens."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heed.documents.markdown_spans import read_spans

SOUP = st.lists(
    st.sampled_from(
        ["*", "**", "_", "`", "[", "](x)", "]", "![", "a", " ", "\n", "<b>", "\\", "&lt;"]
    )
).map("".join)


def spans(text: str) -> list[tuple[str, str]]:
    return [(token.kind, token.raw) for token in read_spans(text, [])]


@given(SOUP | st.text(alphabet=st.characters(exclude_characters="\n")))
def test_joined_tokens_are_the_paragraph_with_its_gaps(text: str) -> None:
    gaps = [f"\n{number}" for number in range(text.count("\n"))]
    tokens = read_spans(text, gaps)
    expected = text
    for gap in gaps:
        expected = expected.replace("\n", f"\0{gap[1:]}", 1)
    assert "".join(token.raw for token in tokens) == expected.replace("\0", "\n")


@given(SOUP)
def test_marks_of_emphasis_and_links_come_in_nested_pairs(text: str) -> None:
    opened: list[str] = []
    for token in read_spans(text, ["\n"] * text.count("\n")):
        if token.kind in ("open", "close") and token.name != "b":
            if token.kind == "open":
                opened.append(token.name)
            else:
                assert opened.pop() == token.name
    assert not opened


def test_emphasis_begins_before_a_word_and_ends_behind_one() -> None:
    assert spans("**a b**") == [("open", "**"), ("text", "a b"), ("close", "**")]
    assert spans("**a *b***")[-2:] == [("close", "*"), ("close", "**")]
    assert spans("*a **b***")[-2:] == [("close", "**"), ("close", "*")]
    assert spans("***a** b*")[:2] == [("open", "*"), ("open", "**")]
    assert spans("___a_ b__")[:2] == [("open", "__"), ("open", "_")]
    assert spans("***a** b")[:2] == [("text", "*"), ("open", "**")]
    assert {kind for kind, _ in spans("2 * 3 * 4")} == {"text"}
    assert {kind for kind, _ in spans("a_b_c")} == {"text"}


def test_links_images_code_and_addresses() -> None:
    assert spans("[a](b(c) 'd')![e](f)``g`h``<i@j.k>https://l.m [^n]") == [
        ("open", "["),
        ("text", "a"),
        ("close", "](b(c) 'd')"),
        ("open", "!["),
        ("text", "e"),
        ("close", "](f)"),
        ("kept", "``g`h``"),
        ("kept", "<i@j.k>"),
        ("kept", "https://l.m"),
        ("text", " "),
        ("kept", "[^n]"),
    ]


@pytest.mark.parametrize(
    "end", ["](<b c.md>)", '](<b c.md> "t")', "](<b (c>)", "](b (a title))", "](a<b)", "](<b)"]
)
def test_targets_of_links_may_have_blanks_and_titles(end: str) -> None:
    assert spans(f"[a{end}") == [("open", "["), ("text", "a"), ("close", end)]


def test_an_address_as_the_text_of_a_link_ends_with_it() -> None:
    assert spans("[https://a.b](c)") == [
        ("open", "["),
        ("kept", "https://a.b"),
        ("close", "](c)"),
    ]
