"""Catalogs of gettext: what is empty is filled."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.documents.fakes import backwards, shouted, unchanged

from heed.documents.assembly import Assembly
from heed.documents.gettext import FIELD, split_po
from heed.errors import DataError
from heed.translate.result import Translation

HEADER = 'msgid ""\nmsgstr ""\n"Plural-Forms: nplurals=2; plural=n != 1;\\n"\n\n'


def texts(assembly: Assembly) -> list[str]:
    return [segment.text for segment in assembly.segments]


@pytest.mark.parametrize(
    "entry",
    [
        'msgid "Done"\nmsgstr "Fertig"\n',
        '#, fuzzy\nmsgid "Done"\nmsgstr "Fertig?"\n',
        '#~ msgid "old"\n#~ msgstr ""\n',
        'msgid "%d"\nmsgstr ""\n',
        'msgid "a"\nmsgid_plural "b"\nmsgstr[0] ""\nmsgstr[1] "B"\n',
        'msgid ""\n"Done"\nmsgstr ""\n"Fertig"\n',
    ],
)
def test_what_is_translated_or_has_no_words_stays(entry: str) -> None:
    assembly = split_po(HEADER + entry)
    assert texts(assembly) == []
    assert assembly.join([]).startswith(HEADER)
    if "%d" not in entry or "plural" in entry:
        assert assembly.join([]) == HEADER + entry


def test_empty_translations_are_filled_and_all_else_is_kept() -> None:
    catalog = (
        HEADER
        + '#. note\n#: a.c:1\n#, c-format\nmsgctxt "menu"\nmsgid "Open %s in <b>a \\"tab\\"</b>"\n'
        + 'msgstr ""\n\nmsgid ""\n"One.\\n"\n"Two\\n"\nmsgstr ""\n'
    )
    assembly = split_po(catalog)
    assert texts(assembly) == ['Open  in a "tab"', "One.", "Two"]
    assert assembly.join(shouted(assembly.segments)) == (
        HEADER
        + '#. note\n#: a.c:1\n#, c-format\nmsgctxt "menu"\nmsgid "Open %s in <b>a \\"tab\\"</b>"\n'
        + 'msgstr "OPEN %s IN <b>A \\"TAB\\"</b>"\n\nmsgid ""\n"One.\\n"\n"Two\\n"\n'
        + 'msgstr ""\n"ONE.\\n"\n"TWO\\n"\n'
    )


def test_plural_forms_come_from_the_singular_and_the_plural() -> None:
    entry = 'msgid "%d file"\nmsgid_plural "%d files"\nmsgstr[0] ""\nmsgstr[1] ""\nmsgstr[2] ""\n'
    assembly = split_po(HEADER + entry)
    assert texts(assembly) == ["file", "files", "files"]
    done = assembly.join(shouted(assembly.segments))
    assert done.endswith('msgstr[0] "%d FILE"\nmsgstr[1] "%d FILES"\nmsgstr[2] "%d FILES"\n')
    one = split_po(entry.partition("msgstr[1]")[0])
    assert texts(one) == ["files"]


def test_fields_come_back_once_in_any_order_of_words() -> None:
    assembly = split_po('msgid "a %1$s b {name} c %(n)d d"\nmsgstr ""')
    done = assembly.join(backwards(assembly.segments))
    assert done.endswith('msgstr "d c %(n)d b {name} a %1$s"\n')


@pytest.mark.parametrize(
    ("flags", "source", "expected"),
    [
        ("#, c-format\n", "a %s b %d c", "c b %2$d a %1$s"),
        ("#, fuzzy, php-format\n", "a %s b %s c", "c b %2$s a %1$s"),
        ("#, c-format\n", "a %5.2f b %-3d c", "c b %2$-3d a %1$5.2f"),
        ("#, c-format\n", "a <b>%s</b> b <i>%d</i> c", "c b <i>%2$d</i> a <b>%1$s</b>"),
        ("", "a %s b %d c", "c b %s a %d"),
        ("#, python-format\n", "a %s b %d c", "c b %s a %d"),
        ("#, no-c-format\n", "a %s b %d c", "c b %s a %d"),
        ("#, c-format\n", "a %*d b %s c", "c b %*d a %s"),
        ("#, c-format\n", "a %s b %% c", "c b %% a %s"),
        ("#, c-format\n", "a %1 b %s c", "c b %s a %1"),
    ],
)
def test_fields_that_are_filled_in_turn_stay_with_their_values(
    flags: str, source: str, expected: str
) -> None:
    assembly = split_po(f'{flags}msgid "{source}"\nmsgstr ""\n')
    assert assembly.join(backwards(assembly.segments)).endswith(f'msgstr "{expected}"\n')
    assert assembly.join(unchanged(assembly.segments)).endswith(f'msgstr "{source}"\n')


@given(st.lists(st.sampled_from(["%s", "%d", "{}", "{name}", "word", ".", "<b>", "</b>", "\\n"])))
def test_no_field_is_lost_or_doubled(parts: list[str]) -> None:
    source = " ".join(["start", *parts])
    assembly = split_po(f'msgid "{source}"\nmsgstr ""\n')
    done = assembly.join(backwards(assembly.segments)).partition("msgstr")[2]
    assert sorted(FIELD.findall(done)) == sorted(FIELD.findall(source))


@pytest.mark.parametrize(
    ("text", "fields"),
    [
        ("%s %5.2f %-10s %ld %1$s %(a)s %% %1 ${x} {{ y }} {} {0} {a.b}", 13),
        ("100% of it, 50 % a day, {a b}", 0),
    ],
)
def test_fields_of_several_languages_are_known(text: str, fields: int) -> None:
    assert len(FIELD.findall(text)) == fields


def test_a_malformed_line_is_named() -> None:
    for catalog in ('msgid "a"\nmsgstr "b\n', 'msgid "a"\nmsgstr b\n', '# c\n"a"\n'):
        with pytest.raises(DataError, match="malformed at line 2, column 1: a line must be a comm"):
            split_po(catalog)


def test_strings_may_share_a_line_and_lines_be_indented() -> None:
    catalog = 'domain "d"\n\n  msgid "a" "b" ""\n  msgstr ""\n\tmsgid "c"\n\tmsgstr "" ""\n'
    assembly = split_po(catalog)
    assert texts(assembly) == ["ab", "c"]
    done = catalog.replace('msgstr "" ""', 'msgstr "C"').replace('msgstr ""', 'msgstr "AB"')
    assert assembly.join(shouted(assembly.segments)) == done


def test_codes_are_bytes_of_utf_8_or_else_of_latin_1() -> None:
    assert texts(split_po('msgid "na\\303\\251 \\xc3\\xa9 \\351"\nmsgstr ""\n')) == ["naé é é"]


def test_the_header_says_utf_8() -> None:
    header = 'msgid ""\nmsgstr ""\n"Content-Type: text/plain; charset=%s\\n"\n'
    assert split_po(header % "CHARSET").join([]) == header % "UTF-8"
    assert split_po(header % "utf-8").join([]) == header % "utf-8"


def test_escapes_are_read_and_written() -> None:
    assembly = split_po('msgid "a\\tb\\x41\\101 \\"c\\" \\\\ d"\nmsgstr ""\n')
    assert texts(assembly) == ["a", 'bAA "c" \\ d']
    assert assembly.join([Translation(text="x"), Translation(text='"\\')]).endswith(
        'msgstr "x\\t\\"\\\\"\n'
    )
