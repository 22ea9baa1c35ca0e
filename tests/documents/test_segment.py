"""What is worth translating, and the blanks around it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heed.documents.segment import Segment, has_words, require_one_each, split_edges
from heed.errors import UsageError
from heed.text.normalize import BLANKS, normalize
from heed.translate.result import Translation


def test_blanks_are_what_normalizing_takes_for_blanks() -> None:
    for number in range(0x3001):
        character = chr(number)
        assert (character in BLANKS) == (normalize(f"a{character}b") == "a b"), hex(number)
    assert normalize("a\ufeffb") == "ab"


@pytest.mark.parametrize("text", ["a", "Привет!", "你", "mail a.b@c.org now", "see https://a.b"])
def test_a_letter_is_worth_translating(text: str) -> None:
    assert has_words(text)


@pytest.mark.parametrize(
    "text", ["", " ", "12 %", "😀", "—", "a.b@c.org", " https://a.b/c ", "www.a.b"]
)
def test_signs_numbers_and_lone_addresses_are_not(text: str) -> None:
    assert not has_words(text)


@given(st.text() | st.text(st.sampled_from(BLANKS + "ab")))
def test_edges_are_the_blanks_around_a_text(text: str) -> None:
    before, body, after = split_edges(text)
    assert before + body + after == text
    assert body.strip(BLANKS) == body
    assert not (before + after).strip(BLANKS)


def test_as_many_translations_as_segments_are_required() -> None:
    require_one_each([Segment("a")], [Translation(text="b")])
    with pytest.raises(UsageError, match="1 segments and 0 translations"):
        require_one_each([Segment("a")], [])
