"""Glossaries: files read, contradictions refused, terms found as a naive search finds them."""

import random
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heed.errors import DataError, UsageError
from heed.translate.glossary.glossary import Glossary
from heed.translate.glossary.matching import Matcher, folded_words
from heed.translate.glossary.reading import rows_of
from heed.translate.glossary.terms import MAX_TERM_CHARS
from heed.translate.words import word_spans


def read(text: str, format: str = "tsv") -> Glossary:
    return Glossary(rows_of(text, format))


# Reading


def test_tab_and_comma_separated_entries_are_read() -> None:
    assert read("\ufeffa\tb\n\n c d \t e \tnote\r\n").entries == {"a": "b", "c d": "e"}
    assert read('"a, b",c\n"d ""e""",f\n', "csv").entries == {"a, b": "c", 'd "e"': "f"}
    assert read('a, b;c\n"d; e";1,5\n', "csv").entries == {"a, b": "c", "d; e": "1,5"}
    assert read("sep=;\r\na, b;c\r\nd,e;f\r\n", "csv").entries == {"a, b": "c", "d,e": "f"}
    assert read('"sep=|"\na, b|c\n', "csv").entries == {"a, b": "c"}


def test_forms_kept_terms_forbidden_words_and_case_rules_are_read() -> None:
    glossary = read(
        "dog\tHund|Hunde\ncat\tKatze|!Kater\ncat\t!Mieze\nIKEA\t=\nus\tUSA\tcase\tnote\n"
        "US\tuns\tany\n\t!Köter|!Tier\na|b\tx\\|y\n"
    )
    assert glossary.entries == {
        "dog": "Hund|Hunde",
        "cat": "Katze|!Kater|!Mieze",
        "IKEA": "=",
        "us": "USA",
        "US": "uns",
        "a|b": "x\\|y",
    }
    assert glossary.banned == ("Köter", "Tier")
    assert glossary.terms["a|b"].targets == ("x|y",)
    assert glossary.terms["us"].case == "case" and glossary.terms["US"].case == "any"
    assert Glossary.of(glossary.entries).entries == glossary.entries
    assert len(glossary) == 8


@pytest.mark.parametrize(
    ("text", "format", "words"),
    [
        ("a\tb\nc\n", "tsv", "Line 2 of the glossary must have a source term, a tab .* but is 'c'"),
        ("a|b\n", "csv", "Line 1 of the glossary must have a source term, a comma and a target"),
        ("sep=;\na;b\nc\n", "csv", "Line 3 of the glossary must have a source term"),
        ('a,b\n"c\n', "csv", "Line 2 of the glossary is not valid CSV: unexpected end of data"),
        ("a\tb\n\na \tc", "tsv", "Line 3 of the glossary repeats the source term 'a' of line 1"),
        ("\tb", "tsv", "The source term in line 1 of the glossary must hold a letter or a digit"),
        ("a\t!", "tsv", "The target term in line 1 .* must hold a letter or a digit, but is '!'"),
        ("a\tb||c", "tsv", "The target term in line 1 .* must hold a letter or a digit, but is ''"),
        ("a\t" + "b" * 1001, "tsv", f"must have at most {MAX_TERM_CHARS} characters, but has 1001"),
        ('a,"b\nc"', "csv", "The target term in line 1 of the glossary must be one line"),
        ("\n \n", "tsv", "The glossary must have at least one entry, but is empty"),
        ("a\tb|=", "tsv", "Line 1 .* must have either = .keep the term. or other forms"),
        ("a\tb|!b", "tsv", "Line 1 of the glossary asks for 'b' and forbids it"),
        ("a\tb\na\t!b", "tsv", "Line 2 .* contradicts line 1: one asks for 'b' and the other"),
        ("\t!b\nx\ty\na\tb", "tsv", "Line 3 of the glossary asks for 'b', which another line"),
    ],
)
def test_a_malformed_glossary_is_an_error_that_names_the_line(
    text: str, format: str, words: str
) -> None:
    with pytest.raises(DataError, match=words):
        read(text, format)


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(UsageError, match="format must be one of tsv, csv, but is 'xls'"):
        read("a\tb", "xls")


def test_what_is_no_glossary_is_refused() -> None:
    with pytest.raises(UsageError, match="Use Glossary.of for a dict"):
        Glossary({"man": "Mann"})
    with pytest.raises(UsageError, match="rows must be the rows of a glossary file"):
        Glossary(5)
    with pytest.raises(UsageError, match="entries must be a dict .* but is 3"):
        Glossary.of(3)


@pytest.mark.parametrize("target", [5, None, ["a", "b"], b"b"])
def test_terms_that_are_not_strings_are_refused(target: Any) -> None:
    with pytest.raises(UsageError) as refused:
        Glossary.of({"dog": target})
    assert f"The target term of 'dog' must be a string, but is {target!r}." in str(refused.value)
    with pytest.raises(UsageError, match=r"A source term must be a string, but is 5\."):
        Glossary.of({5: "x"})


@pytest.mark.parametrize("path", [None, 5, b"g.tsv", {"a": "b"}])
def test_only_a_path_is_read(path: Any) -> None:
    with pytest.raises(UsageError, match=r"path must be the path of a glossary file, but is "):
        Glossary.read(path)


def test_an_error_in_a_file_names_the_file(tmp_path: Path) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text("dog\tHund\ndog\n", encoding="utf-8")
    with pytest.raises(DataError) as refused:
        Glossary.read(path)
    assert str(refused.value).startswith(f"{path}: Line 2 of the glossary must have a source term")
    path.write_text("", encoding="utf-8")
    with pytest.raises(DataError, match=r"terms\.tsv: The glossary must have at least one entry"):
        Glossary.read(path)


def test_an_empty_glossary_has_no_terms() -> None:
    assert len(Glossary.empty()) == 0
    assert Glossary.empty().occurrences("a dog") == []
    assert Glossary.empty().digest != Glossary.of({"a": "b"}).digest


def test_too_many_entries_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("heed.translate.glossary.glossary.MAX_ENTRIES", 1)
    with pytest.raises(DataError, match="must have at most 1 entries, but line 2 is one more"):
        read("a\tb\nc\td")


def test_a_file_that_is_not_utf_8_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "terms.tsv"
    path.write_bytes("dog\tHund\nhouse\tGebäude\n".encode("latin-1"))
    with pytest.raises(DataError, match=r"terms.tsv line 2: the glossary must be UTF-8, .* 0xe4"):
        Glossary.read(path)
    path.write_bytes("dog\tHund\n".encode("utf-16"))
    assert Glossary.read(path).entries == {"dog": "Hund"}
    path.with_suffix(".csv").write_bytes("\ufeffdog,Hund\n".encode())
    assert Glossary.read(path.with_suffix(".csv")).entries == {"dog": "Hund"}


def test_what_is_odd_but_usable_is_a_warning(tmp_path: Path) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text("a\tb\na\tb\n", encoding="utf-8")
    with pytest.warns(UserWarning, match="Line 2 is the same as line 1"):
        Glossary.read(path)
    path.write_text("a " * 60 + "\tb\n", encoding="utf-8")
    with pytest.warns(UserWarning, match="line 1 has more than 50 words.* hardly ever be found"):
        Glossary.read(path)


# Finding


def test_terms_are_found_as_whole_words_and_the_longest_wins() -> None:
    glossary = Glossary.of({"cat": "Katze", "cat flap": "Klappe", "US": "USA"})
    found = glossary.occurrences("A cat, a Cat  flap, cats, us and US")
    assert [(one.term, one.target) for one in found] == [
        ("cat", "Katze"),
        ("cat flap", "Klappe"),
        ("US", "USA"),
    ]


def test_a_case_rule_decides_what_is_found() -> None:
    glossary = read("us\tuns\tcase\nApple\tApfel\tany\n")
    assert [one.target for one in glossary.occurrences("US us apple x APPLE")] == [
        "uns",
        "Apfel",
        "APFEL",
    ]


def test_a_kept_term_stays_as_it_is_written() -> None:
    (one,) = read("ikea\t=").occurrences("at IKEA")
    assert one.targets == ("IKEA",)


def test_a_glossary_over_another_hides_its_terms() -> None:
    own = read("house\tBau\nUS\tuns\tcase\ngarden gate\tPforte\n\t!Tor\n")
    other = read("House\tHaus\tcase\nUS\tUSA\nus\tuns beide\tcase\ngarden\tGarten\n\t!Bau|!Laube\n")
    both = own.over(other)
    text = "House, house, US, us, garden gate, garden"
    found = [one.target for one in both.occurrences(text)]
    assert found == ["Bau", "Bau", "uns", "uns beide", "Pforte", "Garten"]
    assert both.banned == ("Tor", "Laube")
    assert len(both) == len(both.terms) + 2 == 8 and both.digest != other.over(own).digest
    assert [
        one.target for one in Glossary.of({"gate": "Tor"}).over(both).occurrences(text)
    ] == found
    assert not Glossary.empty().over(Glossary.empty()) and Glossary.empty().over(other)


def test_terms_do_not_touch_what_is_taken() -> None:
    glossary = Glossary.of({"cat": "Katze", "cat flap": "Klappe"})
    assert [one.start for one in glossary.occurrences("cat flap cat", [(4, 8)])] == [0, 9]


def naive(terms: list[str], text: str) -> list[tuple[int, int]]:
    """Every stretch of whole words compared with every term; leftmost, then longest."""
    spans = word_spans(text)
    words = [text[start:end].casefold() for start, end in spans]
    found, place = [], 0
    while place < len(words):
        fits = [
            n
            for n in range(len(words) - place, 0, -1)
            if any(folded_words(term) == words[place : place + n] for term in terms)
        ]
        if fits:
            found.append((spans[place][0], spans[place + fits[0] - 1][1]))
        place += fits[0] if fits else 1
    return found


TEXTS = st.text("aAbß-.' 中文ไ", max_size=12)


@settings(max_examples=300)
@given(st.lists(TEXTS, max_size=8), st.text("aAbß-.' 中文ไ", max_size=40))
def test_terms_are_found_where_a_naive_search_finds_them(terms: list[str], text: str) -> None:
    matcher = Matcher((term, term) for term in terms)
    assert [(one.start, one.end) for one in matcher.find(text)] == naive(
        [term for term in terms if folded_words(term)], text
    )


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_million_terms_are_read_and_found(tmp_path: Path) -> None:
    rng = random.Random(1)
    words = ["".join(rng.choices("abcdefghijklmnop", k=6)) for _ in range(60_000)]
    terms = {" ".join(rng.choices(words, k=rng.choice((1, 2, 3)))) for _ in range(1_100_000)}
    chosen = sorted(terms)[:1_000_000]
    path = tmp_path / "terms.tsv"
    path.write_text("".join(f"{term}\tx\n" for term in chosen), encoding="utf-8")
    tracemalloc.start()
    glossary = Glossary.read(path)
    line = f"so {chosen[5]} and {chosen[-7]} then"
    found = {one.term for one in glossary.occurrences(line)}
    assert tracemalloc.get_traced_memory()[1] < 1.5e9
    tracemalloc.stop()
    assert len(glossary) == 1_000_000
    # Two terms beside one another may make up a longer one: none does here.
    assert found == {chosen[5], chosen[-7]}
