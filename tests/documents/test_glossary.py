"""Glossaries: where terms stand, and where their translations go."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.documents.fakes import changed, reversed_words

from heed.documents.glossary import (
    MAX_TERM_CHARS,
    Glossary,
    apply_glossary,
    make_glossary,
    read_glossary,
)
from heed.documents.markup import parse_markup
from heed.documents.segment import Segment
from heed.errors import DataError, UsageError
from heed.translate.result import Translation


def applied(entries: dict[str, str], source: str, *, backwards: bool = False) -> str:
    """The terms put into `source`, as if each word were translated by itself."""
    segment = Segment(source)
    translation = reversed_words(segment) if backwards else changed(segment, str)
    return apply_glossary(Glossary(entries), source, translation).text


# Reading


def test_tab_and_comma_separated_entries_are_read() -> None:
    assert read_glossary("\ufeffa\tb\n\n c d \t e \tnote\r\n").entries == {"a": "b", "c d": "e"}
    assert read_glossary('"a, b",c\n"d ""e""",f\n', format="csv").entries == {
        "a, b": "c",
        'd "e"': "f",
    }


@pytest.mark.parametrize(
    ("text", "format", "words"),
    [
        ("a\tb\nc\n", "tsv", "Line 2 of the glossary must have a source term, a tab .* but is 'c'"),
        ("a;b\n", "csv", "Line 1 of the glossary must have a source term, a comma and a target"),
        ('a,b\n"c\n', "csv", "Line 2 of the glossary is no CSV: unexpected end of data"),
        ("a\tb\n\na \tc", "tsv", "Line 3 of the glossary repeats the source term 'a' of line 1"),
        ("\tb", "tsv", "The source term in line 1 of the glossary must hold a letter or a digit"),
        ("a\t!", "tsv", "The target term in line 1 .* must hold a letter or a digit, but is '!'"),
        ("a\t" + "b" * 1001, "tsv", f"must have at most {MAX_TERM_CHARS} characters, but has 1001"),
        ('a,"b\nc"', "csv", "The target term in line 1 of the glossary must be one line"),
        ("\n \n", "tsv", "The glossary must have at least one entry, but is empty"),
    ],
)
def test_a_malformed_glossary_is_an_error_that_names_the_line(
    text: str, format: str, words: str
) -> None:
    with pytest.raises(DataError, match=words):
        read_glossary(text, format)


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(UsageError, match="format must be one of tsv, csv, but is 'xls'"):
        read_glossary("a\tb", "xls")


def test_too_many_entries_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heed.documents.glossary.MAX_ENTRIES", 1)
    with pytest.raises(DataError, match="must have at most 1 entries"):
        make_glossary([(1, "a", "b"), (2, "c", "d")])


# Finding


def test_terms_are_found_as_whole_words_and_the_longest_wins() -> None:
    glossary = Glossary({"cat": "Katze", "cat flap": "Klappe", "US": "USA"})
    found = glossary.occurrences("A cat, a Cat  flap, cats, us and US")
    assert [(one.term, one.target) for one in found] == [
        ("cat", "Katze"),
        ("cat flap", "Klappe"),
        ("US", "USA"),
    ]


def test_a_term_in_small_letters_takes_the_case_of_its_occurrence() -> None:
    assert applied({"cat": "katze"}, "a cat a Cat a CAT") == "a katze a Katze a KATZE"
    assert applied({"Cat": "katze"}, "a cat a Cat") == "a cat a katze"


def test_the_capital_at_the_beginning_of_a_sentence_is_that_of_the_translation() -> None:
    assert applied({"cat": "katze"}, "Cat here") == "Katze here"
    assert applied({"cat": "katze"}, "Cat here", backwards=True) == "here katze"


# Placing


def test_aligned_words_are_replaced_at_every_occurrence_in_any_order() -> None:
    entries = {"blue shirt": "Blauhemd", "man": "Herr"}
    source = "a man in a blue shirt saw a man"
    assert applied(entries, source) == "a Herr in a Blauhemd saw a Herr"
    assert applied(entries, source, backwards=True) == "Herr a saw Blauhemd a in Herr a"


def test_a_term_that_is_there_already_stays() -> None:
    glossary = Glossary({"man": "Mann"})
    translation = Translation(text="der alte Mann")
    done = apply_glossary(glossary, "the old man", translation)
    assert (done.translation, done.unplaced) == (translation, [])


def test_scripts_without_blanks_are_matched_by_characters() -> None:
    translation = Translation(
        text="a boy eats",
        tokens=["▁a", "▁boy", "▁eats"],
        source_tokens=["一个", "男孩", "吃"],
        alignment=[[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]],
    )
    done = apply_glossary(Glossary({"男孩": "lad"}), "一个男孩吃", translation)
    assert done.text == "a lad eats"
    translation = Translation(
        text="一个男孩吃",
        tokens=["一个", "男孩", "吃"],
        source_tokens=["▁a", "▁boy", "▁eats"],
        alignment=[[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]],
    )
    assert apply_glossary(Glossary({"boy": "小子"}), "a boy eats", translation).text == "一个小子吃"


def test_a_term_that_finds_no_words_is_named() -> None:
    glossary = Glossary({"man": "Herr", "dog": "Hund"})
    done = apply_glossary(glossary, "man dog", Translation(text="x"))
    assert len(done.unplaced) == 1
    done = apply_glossary(glossary, "man", Translation(text=""))
    assert (done.text, done.unplaced) == ("", ["man"])


def test_a_text_too_long_to_be_aligned_is_left_as_it_is() -> None:
    text = "man " * 3000
    done = apply_glossary(Glossary({"man": "Herr"}), text, Translation(text=text))
    assert (done.text, len(done.unplaced)) == (text, 3000)


def test_tags_are_placed_around_terms_that_were_put_in() -> None:
    markup = parse_markup("a <b>blue shirt</b> on a <i>man</i>")
    (segment,) = markup.segments
    glossary = Glossary({"blue shirt": "Hemd, das blau ist", "man": "Herr"})
    done = apply_glossary(glossary, segment.text, reversed_words(segment))
    assert done.text == "Herr a on Hemd, das blau ist a"
    assert markup.join([done.translation]) == "<i>Herr</i> a on <b>Hemd, das blau ist</b> a"


@given(st.text("ab .A中", max_size=20), st.text("ab .中", max_size=20))
def test_any_texts_give_the_term_or_name_it(source: str, said: str) -> None:
    glossary = Glossary({"a b": "x y", "ab": "z", "中": "w"})
    found = glossary.occurrences(source)
    done = apply_glossary(glossary, source, Translation(text=said))
    placed = len(found) - len(done.unplaced)
    text = done.text.casefold()
    assert placed == text.count("x y") + text.count("z") + text.count("w")
