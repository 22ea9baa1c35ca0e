"""Files by the ending of their names."""

from contextlib import suppress

import pytest
from tests.documents.fakes import shouted, unchanged

from heed.documents.archives import ARCHIVE_FORMATS
from heed.documents.endings import SUPPORTED_FORMATS
from heed.documents.files import BILINGUAL_FORMATS, TEXT_FORMATS, open_document
from heed.errors import DataError, UsageError
from heed.translate.result import Translation

SAMPLES = {
    ".txt": "a b.\r\n\r\nc",
    ".html": "<p title='t'>a <b>b</b></p>",
    ".htm": "<p>a</p>",
    ".xhtml": "<p>a</p>",
    ".xml": "<?xml version='1.0'?>\n<a>b <c/></a>",
    ".md": "# a\n\n*b* c\n",
    ".markdown": "- a\n",
    ".srt": "1\n0 --> 1\na\n",
    ".vtt": "WEBVTT\n\n0 --> 1\na\n",
    ".ass": "Dialogue: 0,0,0,a,,0,0,0,,{\\i1}b\\Nc\n",
    ".ssa": "[Events]\nFormat: Start, Text\nDialogue: 0,a, b\n",
    ".json": '{"a": "b \\"c\\"", "d": [1, "e"]}',
    ".properties": "# a\nb = c\nd : e \\t f\n",
    ".resx": "<root><data name='a'><value>b &amp; c</value></data></root>",
    ".resw": "<root><data name='a'><value>b</value></data></root>",
    ".ts": "<TS><message><source>a</source><translation>b</translation></message></TS>",
    ".strings": '/* a */\n"b" = "c";\n',
    ".po": 'msgid "a"\nmsgstr "b"\n',
    ".xlf": "<xliff><trans-unit><source>a</source><target>b</target></trans-unit></xliff>",
    ".xliff": "<xliff><unit><segment><source/><target>b</target></segment></unit></xliff>",
    ".sdlxliff": "<xliff><trans-unit><source>a</source><target>b</target></trans-unit></xliff>",
    ".arb": '{"@@locale": "x", "a": "b {c}", "@a": {"d": "e"}}',
    ".mqxliff": "<xliff><trans-unit><source>a</source><target>b</target></trans-unit></xliff>",
}
FILLED = (".po", ".ts", ".xlf", ".xliff", ".sdlxliff", ".mqxliff")
"""Formats in which only what is missing is translated."""


def test_every_supported_format_has_a_sample_here() -> None:
    archives = [f".{ending}" for ending in ARCHIVE_FORMATS]
    assert sorted([*SAMPLES, *archives]) == sorted(SUPPORTED_FORMATS)
    formats = (*TEXT_FORMATS, *BILINGUAL_FORMATS, *ARCHIVE_FORMATS)
    assert [f".{each}" for each in formats] == [*SUPPORTED_FORMATS]


def test_archives_are_opened_too() -> None:
    with pytest.raises(DataError, match="a.docx is damaged, or is not a .docx file"):
        open_document("a.docx", b"a")


@pytest.mark.parametrize("ending", SAMPLES)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_file_comes_back_with_its_encoding(ending: str, encoding: str) -> None:
    data = SAMPLES[ending].encode(encoding)
    document = open_document(f"some.file{ending.upper()}", data)
    assert document.join(unchanged(document.segments)) == data
    done = document.join(shouted(document.segments))
    assert (done != data) == (ending not in FILLED)
    assert done.decode(encoding).lower() == SAMPLES[ending].lower()


@pytest.mark.parametrize("name", ["a.exe", "txt", "a.", ""])
def test_another_format_is_refused_with_those_that_are_supported(name: str) -> None:
    with pytest.raises(DataError, match=r"must end with a supported suffix: \.txt, \.html"):
        open_document(name, b"a")


def test_a_file_without_a_name_is_told() -> None:
    with pytest.raises(DataError, match=r"The name of the file must end with .*: \.txt"):
        open_document("", b"a")


def test_a_page_in_another_encoding_stays_in_it() -> None:
    page = '<meta charset="latin1"><p title="x">Cafe &amp; more</p>'
    document = open_document("a.html", page.encode())
    said = [Translation(text="中é"), Translation(text="é中 & <b>")]
    done = document.join(said)
    assert done.decode("latin-1") == (
        '<meta charset="latin1"><p title="&#20013;é">é&#20013; &amp; &lt;b&gt;</p>'
    )


def test_malformed_xml_and_wrong_bytes_are_errors_in_words() -> None:
    with pytest.raises(DataError, match=r"a\.xml: The XML is malformed: <a> at line 1"):
        open_document("a.xml", b"<a>")
    with pytest.raises(DataError, match=r"a\.txt must be UTF-8"):
        open_document("a.txt", b"\xff")


def test_a_file_that_says_another_language_is_refused() -> None:
    catalog = 'msgid ""\nmsgstr "Language: fr\\n"\n\nmsgid "a"\nmsgstr ""\n'
    segments = '<file target-language="fr"><trans-unit><source>a</source></trans-unit></file>'
    message = '<message><source>a</source><translation type="unfinished"/></message>'
    texts = {
        "a.po": catalog,
        "a.xlf": f"<xliff>{segments}</xliff>",
        "a.ts": f'<TS language="fr">{message}</TS>',
    }
    for name, text in texts.items():
        for language in ("", "fr", "fr-CA"):
            assert len(open_document(name, text.encode(), language).segments) == 1
        with pytest.raises(DataError, match=f"{name}: The .* must be translated into de, but .*fr"):
            open_document(name, text.encode(), "de")


def test_another_number_of_translations_is_refused() -> None:
    for ending, sample in SAMPLES.items():
        document = open_document("a" + ending, sample.encode())
        with pytest.raises(UsageError, match="one translation for each segment"):
            document.join([*unchanged(document.segments), Translation(text="")])


def nested(before: str, after: str, n: int) -> str:
    return f"{before * n}a{after * n}"


UNIT = "<xliff><trans-unit><source>a</source>{}</trans-unit></xliff>"
DATA = nested("<data id='d'>", "</data>", 60_000)
SEGMENTS = "".join(f"<mrk mtype='seg' mid='{number}'>" for number in range(10_000))
ENDS = "</mrk>" * 10_000
HOSTILE = [
    ("a.strings", "/* a " * 60_000),
    ("a.strings", "a" * 300_000),
    ("a.strings", '\\"' * 100_000),
    ("a.xml", f"<resources><string name='a'>a{' ' * 300_000}b</string></resources>"),
    ("a.json", f'["a %{"0" * 100_000}"]'),
    ("a.json", f'["{"{n, plural, other {x}} %s " * 15_000}"]'),
    ("a.po", f'#, c-format\nmsgid "a %{"0" * 100_000}"\nmsgstr ""\n'),
    ("a.po", f'#, java-printf-format\nmsgid "a %{"0" * 100_000}"\nmsgstr ""\n'),
    ("a.po", f'#, python-format\nmsgid "a %(b){"0" * 100_000}"\nmsgstr ""\n'),
    ("a.ts", f"<TS>{nested('<message><source>', '</source></message>', 80_000)}</TS>"),
    ("a.xlf", UNIT.format(f"<originalData>{DATA}</originalData>")),
    (
        "a.xlf",
        UNIT.format(
            f"<seg-source>{SEGMENTS}a{ENDS}</seg-source><target>b{SEGMENTS}{ENDS}</target>"
        ),
    ),
]


@pytest.mark.timeout(60)
@pytest.mark.parametrize(("name", "text"), HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_texts_of_programs_take_one_pass(name: str, text: str) -> None:
    """Some seconds each; in a quadratic time they took minutes, in calls that stop all threads."""
    with suppress(DataError):
        document = open_document(name, text.encode(), "de")
        assert document.join(unchanged(document.segments))
