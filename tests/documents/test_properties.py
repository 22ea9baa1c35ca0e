"""Keys and values of Java and of Apple."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.documents.fakes import backwards, shouted, unchanged

from heed.documents.assembly import Assembly
from heed.documents.files import open_document
from heed.documents.properties import split_properties, split_strings
from heed.errors import DataError
from heed.translate.result import Translation

SIGNS = [" ", "=", ":", "\\", "\n", "\r\n", "\\\n", "#", "!", "'", '"', ";", "/*", "*/", "//", "\t"]
WORDS = ["a", "\\u00e9", "\\ud800", "{0}", '"a" = "b";\n']
SOUP = st.lists(st.sampled_from([*SIGNS, *WORDS]) | st.text(max_size=2)).map("".join)


def texts(assembly: Assembly) -> list[str]:
    return [segment.text for segment in assembly.segments]


@given(SOUP)
def test_a_file_that_does_not_change_keeps_its_bytes(text: str) -> None:
    assembly = split_properties(text)
    assert assembly.join(unchanged(assembly.segments)) == text
    try:
        assembly = split_strings(text)
    except DataError:
        before = text.replace("*/", "/*").partition("/*")[0].partition("//")[0]
        assert '"a" = "b";' not in before.replace('\\"', "")
    else:
        assert assembly.join(unchanged(assembly.segments)) == text


# The examples of java.util.Properties.load, and others of its rules.
@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("Truth = Beauty", "Beauty"),
        ("  Truth:Beauty", "Beauty"),
        ("Truth                  :Beauty", "Beauty"),
        ("fruits  apple, banana, \\\n      pear", "apple, banana, pear"),
        ("fruits \\\r\n\t= apple", "apple"),
        ("a\\ b\\=c = d", "d"),
        ("a\\:b d", "d"),
        ("a =: d", ": d"),
        ("a = x \\# y", "x # y"),
        ("a = Z\\u00fcrich \\ud83d\\ude00", "Zürich 😀"),
        ("a = \\z", "z"),
    ],
)
def test_values_are_read_as_java_reads_them(line: str, value: str) -> None:
    assembly = split_properties(f"# note = x\n{line}\n! note\n\ncheeses\n")
    assert "".join(texts(assembly)) == value


def test_values_are_written_for_every_version_of_java() -> None:
    said = [Translation(text=" é\\😀\t")]
    assert split_properties("a = b").join(said) == "a = \\ \\u00E9\\\\\\uD83D\\uDE00\\t"
    assert split_properties("a b").join([Translation(text="= c")]) == "a \\= c"
    assert split_properties("# ł\na = b").join(said) == "# ł\na = \\ é\\\\😀\\t"


def test_the_encoding_is_latin_1_unless_the_file_is_utf_8() -> None:
    for data, done in (
        ("a = é b", b"a = \\u00C9 B"),
        ("a = b", b"a = B"),
    ):
        document = open_document("a.properties", data.encode("latin-1"))
        assert document.join(shouted(document.segments)) == done
    document = open_document("a.properties", "a = ł b".encode())
    assert document.join(shouted(document.segments)) == "a = Ł B".encode()


def test_an_apostrophe_of_a_pattern_is_written_twice() -> None:
    for value, read, done in (
        ("it''s {0} '{'x", "it's  x", "l''a '{' {0}"),
        ("it's {0}", "it's", "l'a {0}"),
        ("it's", "it's", "l'a"),
        ("{0,number,#.#} files", "files", "{0,number,#.#} l''a"),
    ):
        assembly = split_properties(f"a={value}")
        assert "".join(texts(assembly)).split() == read.split()
        assert assembly.join([Translation(text="l'a")]).count("''") == done.count("''")
        assert assembly.join(unchanged(assembly.segments)) == f"a={value}"


STRINGS = """/* A note with "x" = "y"; */
"Hello \\"%@\\"" = "Hello \\"%@\\", you have %d files\\n";
CFBundleName = "My App"; // "x" = "y";
"moon" = "\\U263E moon";
"""


def test_pairs_of_apple_are_read_and_written() -> None:
    assembly = split_strings(STRINGS)
    assert texts(assembly) == ['Hello "", you have  files', "My App", "☾ moon"]
    done = assembly.join(shouted(assembly.segments))
    assert done == STRINGS.replace(
        'Hello \\"%@\\", you have %d files', 'HELLO \\"%@\\", YOU HAVE %d FILES'
    ).replace("My App", "MY APP").replace("\\U263E moon", "☾ MOON")
    turned = assembly.join(backwards(assembly.segments))
    assert "%2$d" in turned
    assert "%1$@" in turned


def test_a_file_of_apple_may_be_in_utf_16() -> None:
    data = STRINGS.encode("utf-16")
    document = open_document("Localizable.strings", data)
    assert document.join(unchanged(document.segments)) == data
    assert "MY APP" in document.join(shouted(document.segments)).decode("utf-16")


def test_a_file_without_pairs_is_refused() -> None:
    assert texts(split_strings(" \n")) == texts(split_strings("/* none yet */")) == []
    with pytest.raises(DataError, match='must have lines such as "key" = "text";'):
        split_strings("<plist><dict/></plist>")
