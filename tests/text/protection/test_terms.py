"""Terms of the user: whole words, in their case, the longest one first."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heed.errors import DataError
from heed.text.protection.terms import Terms


def found(terms: Terms, text: str) -> list[str]:
    return [text[start:end] for start, end in terms.find(text)]


@pytest.mark.parametrize(
    ("terms", "text", "expected"),
    [
        (["heed"], "heed, Heed, heeded and heed-x", ["heed", "heed"]),
        (
            ["New York", "New York Times"],
            "the New York Times of New York",
            ["New York Times", "New York"],
        ),
        (["C", "C++"], "C and C++", ["C", "C++"]),
        (["a b", "b c"], "a b c", ["a b"]),
        (["東京"], "東京都", ["東京"]),
        (["co"], "co-op, cocoa", ["co"]),
        (["Müller"], "Frau Müller, Müllers", ["Müller"]),
        # Vowel signs are parts of words.
        (["राम"], "रामायण, राम", ["राम"]),
        (["كتب"], "كتبَهُ, كتب", ["كتب"]),
        ([], "heed", []),
    ],
)
def test_terms_are_found_as_whole_words(terms: list[str], text: str, expected: list[str]) -> None:
    assert found(Terms(terms), text) == expected


def test_a_file_of_terms() -> None:
    terms = Terms.of_lines(["\ufeffheed", "", "  New   York ", "heed"], "terms.txt")
    assert sorted(terms) == ["New York", "heed"]
    assert len(terms) == 2
    assert repr(terms) == "Terms(2 terms)"


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        (["", " "], "terms.txt has no term. Write one a line"),
        (["a", "b\tc"], "terms.txt line 2: a term must be text without tabs"),
        (
            ["a", "b", "c" * 501],
            "terms.txt line 3: a term must have at most 500 characters, but has 501",
        ),
    ],
)
def test_lines_that_are_no_terms_are_refused(lines: list[str], words: str) -> None:
    with pytest.raises(DataError, match=words):
        Terms.of_lines(lines, "terms.txt")


_WORDS = st.lists(st.sampled_from(["a", "b", "c", "ab", "+", "東"]), min_size=1, max_size=3)


@given(st.lists(_WORDS.map(" ".join), max_size=5), st.lists(_WORDS, max_size=5))
def test_what_is_found_is_a_term_and_nothing_that_is_left_holds_one(
    terms: list[str], words: list[list[str]]
) -> None:
    text = " ".join(" ".join(each) for each in words)
    places = Terms(terms).find(text)
    assert all(text[start:end] in terms for start, end in places)
    rest = list(text)
    for start, end in places:
        rest[start:end] = "|" * (end - start)
    left = f" {''.join(rest)} "
    assert not [term for term in terms if f" {term} " in left]


@pytest.mark.timeout(120)
def test_a_million_terms() -> None:
    terms = Terms(f"Term {number}x" for number in range(1_000_000))
    assert found(terms, "a Term 999999x and Term 1000000x") == ["Term 999999x"]
