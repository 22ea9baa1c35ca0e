"""`normalize` and `replace_surrogates`."""

import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from heed.text.normalize import normalize, replace_surrogates

ANY_TEXT = st.text(alphabet=st.characters())  # lone surrogates, too


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("", ""),
        ("  \t\u3000\u00a0 ", ""),
        ("a  b", "a b"),
        (" a\u00a0\u2009b\u202fc ", "a b c"),
        ("a\u2028b\u2029c\x85d\x0be\x0cf\x00g\rh\ni", "a b c d e f g h i"),
        ("\x1ca\x7fb\x9fc", "a b c"),
        ("e\u0301", "é"),
        ("\ufeffThe", "The"),
        ("e\ufeff\u0301", "é"),
        ("a\ud800b", "a\ufffdb"),
        ("👩\u200d👩\u200d👧", "👩\u200d👩\u200d👧"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("ﬁ ① Ａ “x” …", "ﬁ ① Ａ “x” …"),
    ],
)
def test_a_line_gets_its_one_spelling(raw: str, expected: str) -> None:
    assert normalize(raw) == expected


@given(ANY_TEXT)
@example("e\x00\u0301")
@example("\u2000\u0300\ufeff\u0300")
@settings(max_examples=300)
def test_a_normal_line_is_composed_has_single_blanks_and_stays_as_it_is(text: str) -> None:
    line = normalize(text)
    assert normalize(line) == line
    assert unicodedata.is_normalized("NFC", line)
    assert line == line.strip()
    assert "  " not in line
    assert not any(unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in line)
    assert all(c == " " for c in line if c.isspace())
    line.encode()


@given(ANY_TEXT)
@settings(max_examples=200)
def test_only_lone_surrogates_are_replaced(text: str) -> None:
    assert replace_surrogates(text) == "".join(
        "\ufffd" if "\ud800" <= character <= "\udfff" else character for character in text
    )
