"""Pairs from catalogs of gettext."""

import time
from pathlib import Path

import pytest

from heed.data.po import entries, unescaped
from heed.data.readers import Pair, ParallelFiles, read_part
from heed.errors import DataError

HEADER = """\
# Translators
msgid ""
msgstr ""
"Language: de\\n"
"Plural-Forms: nplurals=2; plural=(n != 1);\\n"

"""


def read(path: Path, text: str, target: str = "de", source: str = "en") -> list[Pair]:
    path.write_text(text, "utf-8")
    part = ParallelFiles(files=(str(path),), source_lang=source, target_lang=target)
    return list(read_part(part))


def sides(pairs: list[Pair]) -> list[tuple[str, str]]:
    return [(pair.src, pair.tgt) for pair in pairs]


def test_messages_are_pairs_with_their_lines(tmp_path: Path) -> None:
    path = tmp_path / "de.po"
    text = HEADER + (
        '#: main.c:3\nmsgctxt "menu"\nmsgid "Open"\nmsgstr "Öffnen"\n\n'
        'msgid ""\n"Two "\n"\\"lines\\"\\n"\nmsgstr "Zwei "\n"»Zeilen«\\n"\n'
        'msgid "x" msgstr "y"\n'
    )
    assert read(path, text) == [
        Pair("Open", "Öffnen", 8, str(path), "en", "de"),
        Pair('Two "lines"\n', "Zwei »Zeilen«\n", 12, str(path), "en", "de"),
        Pair("x", "y", 17, str(path), "en", "de"),
    ]


def test_untranslated_fuzzy_and_obsolete_messages_are_left_out(tmp_path: Path) -> None:
    text = HEADER + (
        'msgid "a"\nmsgstr ""\n\n#, fuzzy, c-format\nmsgid "b"\nmsgstr "c"\n\n'
        '#~ msgid "d"\n#~ msgstr "e"\n\n#, c-format\n#| msgid "old"\nmsgid "f"\nmsgstr "g"\n'
    )
    assert sides(read(tmp_path / "de.po", text)) == [("f", "g")]


@pytest.mark.parametrize(
    ("source", "target", "is_reversed"),
    [("de", "en", True), ("de-AT", "", True), ("de", "de-AT", False), ("", "de", False)],
)
def test_a_catalog_into_the_source_language_is_read_backwards(
    tmp_path: Path, source: str, target: str, is_reversed: bool
) -> None:
    text = HEADER + 'msgid "Open"\nmsgstr "Öffnen"\n' + forms("ein Hund", "%d Hunde")
    found = sides(read(tmp_path / "de.po", text, target, source))
    straight = [("Open", "Öffnen"), ("a dog", "ein Hund"), ("%d dogs", "%d Hunde")]
    assert found == ([pair[::-1] for pair in straight] if is_reversed else straight)


def forms(*texts: str) -> str:
    lines = [f'msgstr[{number}] "{text}"\n' for number, text in enumerate(texts)]
    return f'msgid "a dog"\nmsgid_plural "%d dogs"\n{"".join(lines)}'


def test_forms_of_plurals_go_with_the_text_that_they_translate(tmp_path: Path) -> None:
    path = tmp_path / "x.po"
    assert sides(read(path, forms("%d 条狗"))) == [("%d dogs", "%d 条狗")]
    two = [("a dog", "ein Hund"), ("%d dogs", "%d Hunde")]
    assert sides(read(path, forms("ein Hund", "%d Hunde"))) == two
    three = [("a dog", "pies"), ("%d dogs", "%d psów")]
    assert sides(read(path, forms("pies", "%d psy", "%d psów"))) == three
    assert sides(read(path, forms("0", "1", "2", "3", "11", "100"))) == [("%d dogs", "100")]
    assert sides(read(path, forms("ein Hund", ""))) == [("a dog", "ein Hund")]


@pytest.mark.parametrize("between", ["\n", "# note\n", "\n#, c-format\n"])
def test_plural_forms_may_be_apart(tmp_path: Path, between: str) -> None:
    text = f'msgid "a"\nmsgid_plural "b"\nmsgstr[0] "c"\n{between}msgstr [1]\n"d"\n'
    assert sides(read(tmp_path / "x.po", text)) == [("a", "c"), ("b", "d")]


def test_a_comment_inside_a_message_does_not_end_it(tmp_path: Path) -> None:
    assert sides(read(tmp_path / "x.po", 'msgid "a"\n# note\nmsgstr "b"\n')) == [("a", "b")]


def test_a_text_of_many_strings_is_joined_once() -> None:
    """They took quadratic time: twelve megabytes half a minute, now half a second."""
    line = "a" * 200
    text = HEADER + 'msgid ""\n' + f'"{line}"\n' * 60_000 + 'msgstr ""\n"b"\n# remark\n"c"\n'
    started_at = time.process_time()
    _, entry = entries(text)
    assert time.process_time() - started_at < 4
    assert entry.texts == {"msgid": line * 60_000, "msgstr": "bc"}


@pytest.mark.parametrize(
    ("written", "text"),
    [
        (r"a\tb\n", "a\tb\n"),
        (r"\"q\" \\n", '"q" \\n'),
        (r"\303\244\x41", "äA"),
        (r"\344", "ä"),
    ],
)
def test_escapes_are_read(written: str, text: str) -> None:
    assert unescaped(written) == text


def test_the_encoding_that_a_catalog_declares_is_read(tmp_path: Path) -> None:
    path = tmp_path / "de.po"
    text = (
        HEADER.rstrip() + '\n"Content-Type: text/plain; charset={}\\n"\n\nmsgid "a"\nmsgstr "ä"\n'
    )
    part = ParallelFiles(files=(str(path),), source_lang="en", target_lang="de")
    for charset, codec in (("ISO-8859-1", "latin-1"), ("CP1252", "cp1252"), ("koi8-r", "utf-8")):
        path.write_bytes(text.format(charset).replace("\n", "\r\n").encode(codec))
        assert [(pair.src, pair.tgt, pair.line) for pair in read_part(part)] == [("a", "ä", 8)]
    path.write_bytes(text.format("ascii").encode("latin-1"))
    with pytest.raises(DataError, match="de.po line 9: must be ascii, which the catalog declares"):
        list(read_part(part))
    path.write_bytes(text.format("CHARSET").encode("latin-1"))
    with pytest.raises(DataError, match="de.po line 9: must be UTF-8"):
        list(read_part(part))


def test_another_language_and_other_files_are_refused_in_words(tmp_path: Path) -> None:
    path = tmp_path / "x.po"
    with pytest.raises(
        DataError, match=r"x.po: The catalog must be translated into fr, but its .*"
    ):
        read(path, HEADER, "fr")
    for language in ("de_AT", "de@formal"):
        assert read(path, HEADER.replace("de", language)) == []
    with pytest.raises(
        DataError, match=r"x.po: The catalog is malformed at line 2: a line must be"
    ):
        read(path, 'msgid "a"\nno catalog\n')
    for text in ('"a"\n', 'msgid "a\n'):
        with pytest.raises(DataError, match="malformed at line 1: a line must be"):
            read(path, text)
