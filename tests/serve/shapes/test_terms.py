"""Tables of terms are read line by line, and a wrong line is named."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heed.serve.refusal import Refusal
from heed.serve.shapes.terms import FORBIDDEN, read_terms, spelled_terms

TERM = st.text(min_size=1, max_size=20).filter(
    lambda term: term == term.strip() and not FORBIDDEN.search(term)
)


@given(st.dictionaries(TERM, TERM, min_size=1))
def test_terms_are_read_as_they_are_spelled(terms: dict[str, str]) -> None:
    assert read_terms(spelled_terms(terms), "tsv", max_terms=1000) == terms


def test_blank_lines_and_blanks_are_no_terms() -> None:
    assert read_terms(" a \tb\r\n\n\t\nc\td x\n", "tsv", max_terms=2) == {"a": "b", "c": "d x"}


def test_commas_separate_columns_and_quotes_hold_them() -> None:
    assert read_terms('a,"b, c",en,de\r\n', "csv", max_terms=2) == {"a": "b, c"}


@pytest.mark.parametrize(
    ("entries", "entries_format", "words"),
    [
        ("", "tsv", "The glossary has no entries."),
        ("a\tb\nc", "tsv", "Entry 2 has no translation."),
        ("\tb", "tsv", "Entry 1 has an empty term."),
        ("a\t", "tsv", "Entry 1 has an empty term."),
        ("a\x0bb\tc", "tsv", "Entry 1 has a control character."),
        ("a\u2028b\tc", "tsv", "Entry 1 has a control character."),
        ("a\tb\na\tc", "tsv", "Entry 2 has a term that an earlier line has."),
        ("a\tb\nc\td\ne\tf", "tsv", "A glossary must have at most 2 entries."),
        ('a,"b', "csv", "The entries are not valid CSV: unexpected end of data."),
    ],
)
def test_a_table_that_cannot_be_read_is_refused(
    entries: str, entries_format: str, words: str
) -> None:
    with pytest.raises(Refusal) as refused:
        read_terms(entries, entries_format, max_terms=2)
    assert refused.value.sentence == words
