"""Catalogs of gettext: what is empty is filled."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.documents.fakes import backwards, shouted, unchanged

from heed.documents.assembly import Assembly
from heed.documents.fields import FIELD
from heed.documents.gettext import split_po
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


def with_rule(rule: str) -> str:
    return HEADER.replace("nplurals=2; plural=n != 1;", rule)


ARABIC = "nplurals=6; plural=n==0 ? 0 : n==1 ? 1 : n==2 ? 2 : n%100>=3 && n%100<=10 ? 3 : 4+(n<11);"
RUSSIAN = "nplurals=3; plural=n%10==1 && n%100!=11 ? 0 : n%10>1 && n%10<5 && n%100/10!=1 ? 1 : 2;"


@pytest.mark.parametrize(
    ("rule", "singular", "expected"),
    [
        ("nplurals=1; plural=0;", "%d file", ["%d files"]),
        ("nplurals=2; plural=(n != 1);", "%d file", ["%d file", "%d files"]),
        ("nplurals=2; plural=n>1;", "One file", ["One file", "%d files"]),
        (RUSSIAN, "%d file", ["%d file", "%d files", "%d files"]),
        # The form of 1 is the form of 21 there.
        (RUSSIAN, "One file", ["%d files", "%d files", "%d files"]),
        (ARABIC, "One file", ["%d files", "One file", *4 * ["%d files"]]),
        ("nplurals=2; plural=n==1;", "One file", ["%d files", "One file"]),
        # What cannot be read counts as two forms or as many as there are.
        ("nplurals=2; plural=n/0;", "One file", ["One file", "%d files"]),
        ("nplurals=2; plural=5;", "One file", ["One file", "%d files"]),
        ("nplurals=2; plural=(n;", "One file", ["One file", "%d files"]),
        ("nplurals=INTEGER; plural=EXPRESSION;", "One file", ["One file", "%d files"]),
    ],
)
def test_the_form_for_one_comes_from_the_singular(
    rule: str, singular: str, expected: list[str]
) -> None:
    entry = f'#, c-format\nmsgid "{singular}"\nmsgid_plural "%d files"\nmsgstr[0] ""\n'
    assembly = split_po(with_rule(rule) + entry + 'msgstr[1] ""\n\n# end\n')
    done = assembly.join(unchanged(assembly.segments))
    forms = "".join(f'msgstr[{n}] "{text}"\n' for n, text in enumerate(expected))
    assert done == with_rule(rule) + entry.partition("msgstr")[0] + forms + "\n# end\n"


def test_messages_get_as_many_forms_as_the_header_declares() -> None:
    entry = 'msgid "a"\r\nmsgid_plural "b"\r\n\r\n  msgstr[0] ""\r\n'
    assembly = split_po(with_rule("nplurals=3; plural=n==1?0:n==2?1:2;") + entry)
    assert texts(assembly) == ["a", "b", "b"]
    done = assembly.join(shouted(assembly.segments)).partition("  msgstr[0]")[2]
    assert done == ' "A"\r\n  msgstr[1] "B"\r\n  msgstr[2] "B"\r\n'
    assembly = split_po(HEADER + 'msgid "a"\nmsgid_plural "b"\nmsgstr[0] ""\n# c\nmsgstr[1] ""\n')
    assert texts(assembly) == ["a", "b"]


@pytest.mark.parametrize("old", ["", '"Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;\\n"\n'])
def test_a_header_without_plural_forms_gets_those_of_its_language(old: str) -> None:
    header = 'msgid ""\nmsgstr ""\n"Language: {}\\n"\n'
    rest = '"X: y\\n"\n\nmsgid "a"\nmsgid_plural "b"\nmsgstr[0] ""\nmsgstr[1] ""\n'
    for language, count in (("ja", 1), ("pt_BR", 2), ("sl", 4), ("de", 2)):
        assembly = split_po(header.format(language) + old + rest)
        done = assembly.join(shouted(assembly.segments))
        assert len(texts(assembly)) == count
        assert done.count(f'"Plural-Forms: nplurals={count}; plural=') == 1
        assert done.count("msgstr[") == count
    for language in ("tlh", ""):
        catalog = header.format(language) + old + rest
        assembly = split_po(catalog)
        assert assembly.join(shouted(assembly.segments)).startswith(header.format(language) + old)
        assert texts(assembly) == ["a", "b"]
    done = split_po(header.format("de") + old + 'msgid "a"\nmsgstr "A"\n').join([])
    assert done.count("Plural-Forms") == bool(old)


@pytest.mark.parametrize("line", ["", '"Language: \\n"\n'])
def test_a_header_without_a_language_gets_the_forms_of_the_model(line: str) -> None:
    """A template (.pot) names no language."""
    old = '"Plural-Forms: nplurals=INTEGER; plural=EXPRESSION;\\n"'
    text = f'msgid ""\nmsgstr ""\n{line}{old}\n\nmsgid "a"\nmsgid_plural "b"\nmsgstr[0] ""\n'
    done = split_po(text, "pl").join([Translation(text="c")] * 3)
    assert '"Plural-Forms: nplurals=3; plural=' in done
    assert "INTEGER" not in done
    assert 'msgstr[2] "c"' in done


def test_fields_come_back_once_in_any_order_of_words() -> None:
    assembly = split_po('msgid "a %1$s b {name} c %(n)d d"\nmsgstr ""\n')
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
        ("#, c-format\n", "a % d b %m c %<PRIu64> d", "d c %2$<PRIu64> b %m a %1$ d"),
        ("#, c-format\n", "a %1$*2$d b", "b a %1$*2$d"),
        ("#, python-format\n", "a %(b c)s b %(d.e)s c", "c b %(d.e)s a %(b c)s"),
        ("#, python-brace-format\n", "a {} b {:,} c", "c b {1:,} a {0}"),
        ("#, python-brace-format\n", "a {:{}} b {} c", "c b {:{}} a {}"),
        ("#, python-brace-format\n", "a {x[y]} b {n!r:> 4} c", "c b {n!r:> 4} a {x[y]}"),
        (
            "#, java-format\n",
            "a {0,date} b {1,choice,0#no| 1#one} c",
            "c b {1,choice,0#no| 1#one} a {0,date}",
        ),
        ("#, csharp-format\n", "a {0,10:N2} b {1} c", "c b {1} a {0,10:N2}"),
        ("#, java-printf-format\n", "a %tY b %n c %,d d", "d c %2$,d b %n a %1$tY"),
        ("#, qt-plural-format\n", "a %n b %L1 c", "c b %L1 a %n"),
        ("#, sh-format\n", "a $name b ${n} c", "c b ${n} a $name"),
        ("#, ruby-format\n", "a %<name>s b <i>%-5<n>d</i> c", "c b <i>%-5<n>d</i> a %<name>s"),
        ("#, boost-format\n", "a %1% b %|2$+5| c", "c b %|2$+5| a %1%"),
        ("#, gcc-internal-format\n", "a %qD b %q+s c", "c b %2$q+s a %1$qD"),
        ("#, scheme-format\n", "a ~a b ~,2f c", "c b ~a a ~,2f"),
        ("#, object-pascal-format\n", "a %0:s b %1:-8d c", "c b %1:-8d a %0:s"),
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


def test_a_java_apostrophe_is_written_twice() -> None:
    for source, read in (
        ("it''s a {0} '{x y}'", "it's a"),
        ("it's a {0}", "it's a"),
        ("it's", "it's"),
    ):
        assembly = split_po(f'#, java-format\nmsgid "{source}"\nmsgstr ""\n')
        assert texts(assembly) == [read]
        done = assembly.join([Translation(text="l'a d'b")])
        wanted = "l''a d''b" if "''" in source else "l'a d'b"
        assert done.partition("msgstr ")[2].startswith(f'"{wanted}')


def test_icu_messages_are_whole() -> None:
    text = "you have {n, plural, one {a dog} other {dogs}} and {g, select, male {him} other {them}}"
    assert texts(split_po(f'msgid "{text} {{x}}"\nmsgstr ""\n')) == [text]


def test_flags_of_obsolete_entries_are_not_those_of_the_next_one() -> None:
    assembly = split_po(
        '#, c-format\n#~ msgid "x"\n#~ msgstr ""\n\nmsgid "a %s b %s c"\nmsgstr ""\n'
    )
    assert "$" not in assembly.join(backwards(assembly.segments))


def test_a_malformed_line_is_named() -> None:
    for catalog in ('msgid "a"\nmsgstr "b\n', 'msgid "a"\nmsgstr b\n', '# c\n"a"\n'):
        with pytest.raises(DataError, match="malformed at line 2: a line must be a comment"):
            split_po(catalog)


def test_strings_may_share_a_line_and_lines_be_indented() -> None:
    catalog = 'domain "d"\n\n  msgid "a" "b" ""\n  msgstr ""\n\tmsgid "c"\n\tmsgstr "" ""\n'
    assembly = split_po(catalog)
    assert texts(assembly) == ["ab", "c"]
    done = catalog.replace('msgstr "" ""', 'msgstr "C"').replace('msgstr ""', 'msgstr "AB"')
    one_line = 'msgid "a" msgid_plural "b" msgstr [0] "" msgstr[ 1 ] "" msgid\n"c" msgstr\n""'
    assert texts(split_po(one_line)) == ["a", "b", "c"]
    shouting = split_po(one_line).join(shouted(split_po(one_line).segments))
    assert shouting.startswith('msgid "a" msgid_plural "b" msgstr[0] "A" msgstr[1] "B" msgid\n"c"')
    assert shouting.endswith(' msgstr "C"')
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
