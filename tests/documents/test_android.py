"""Android's resources."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.documents.fakes import backwards, shouted, unchanged

from heed.documents.android import is_resources, split_resources
from heed.documents.files import open_document
from heed.errors import DataError
from heed.translate.result import Translation

PARTS = ["a b", " ", "\\'", '\\"', '"', "\\n", "\n", "\\u0041", "\\@", "@string/x", "%1$s", "&amp;"]
PARTS += ["<b>x</b>", "<xliff:g id='n'>y</xliff:g>", ".", "<!-- c -->", "<![CDATA[d]]>", "\\", "?"]
STRING = st.lists(st.sampled_from(PARTS) | st.text("ab'\\\"@{}%\n", max_size=3)).map("".join)


def resources(*values: str) -> str:
    strings = "".join(f'  <string name="s">{value}</string>\n' for value in values)
    return f'<?xml version="1.0"?>\n<!-- c -->\n<resources>\n{strings}</resources>\n'


def read(text: str) -> list[str]:
    return [segment.text for segment in split_resources(text).segments]


def written(value: str, translation: str) -> str:
    document = split_resources(resources(value))
    done = document.join([Translation(text=translation)])
    found = re.search(r'"s">(.*)</string>', done, re.S)
    assert found
    return found[1]


@given(st.lists(STRING))
def test_a_file_that_does_not_change_keeps_its_bytes(values: list[str]) -> None:
    text = resources(*values)
    document = split_resources(text)
    assert document.join(unchanged(document.segments)) == text


@given(st.lists(st.sampled_from(["a", "b c", "%1$s", "%d", "{x}", "<b>", "</b>"])))
def test_no_field_is_lost_or_changed(parts: list[str]) -> None:
    value = " ".join(parts)
    if value.count("<b>") != value.count("</b>") or "</b>" in value.partition("<b>")[0]:
        value = value.replace("<b>", "").replace("</b>", "")
    try:
        document = split_resources(resources(value))
    except DataError:
        return  # tags that are not nested
    fields = re.compile(r"%1\$s|%d|\{x\}")
    for done in (
        document.join(backwards(document.segments)),
        document.join(shouted(document.segments)),
    ):
        assert sorted(fields.findall(done)) == sorted(fields.findall(value))


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ('It\\\'s \\"so\\"', 'It\'s "so"'),
        ("a\n      b", "a b"),
        ('"it\'s a"', "it's a"),
        ("Z\\u00fcrich &amp; bar", "Zürich & bar"),
        ("\\@home \\?", "@home ?"),
        ("a <b>b</b> c", "a b c"),
        ("a <xliff:g id='n' example='12'>Heed</xliff:g> b", "a Heed b"),
        ("a <xliff:g id='n'>%1$d</xliff:g> b", "a  b"),
    ],
)
def test_a_text_is_read_as_android_reads_it(value: str, text: str) -> None:
    assert read(resources(value)) == [text]


@pytest.mark.parametrize(
    ("translation", "value"),
    [
        ('l\'a "b"', 'l\\\'a \\"b\\"'),
        ("a & <b>", "a &amp; &lt;b&gt;"),
        ("@home", "\\@home"),
        ("?", "\\?"),
        ("C:\\x", "C:\\\\x"),
    ],
)
def test_a_translation_is_escaped(translation: str, value: str) -> None:
    assert written("text", translation) == value


def test_lines_are_texts_of_their_own() -> None:
    assert read(resources("One two\\nthree. Four")) == ["One two", "three.", "Four"]


def test_what_is_no_text_is_kept() -> None:
    kept = (
        '<color name="c">red</color><bool name="b">true</bool><item type="id" name="i">x y</item>'
        '<style name="t"><item name="u">wide</item></style><string name="k" translatable="false">no'
        '<b>!</b></string><string name="r">@string/other</string><string name="q">?attr/x</string>'
        '<string-array name="a" translatable="false"><item>no</item></string-array>'
    )
    texts = (
        '<string name="a">yes</string><string-array name="b"><item>one</item></string-array>'
        '<plurals name="p"><item quantity="one">%d file</item>'
        '<item quantity="other">%d files</item></plurals>'
    )
    text = f'<resources xmlns:xliff="u">{kept}{texts}</resources>'
    assert read(text) == ["yes", "one", "file", "files"]
    document = split_resources(text)
    assert kept in document.join(shouted(document.segments))


def test_other_xml_is_not_for_android() -> None:
    assert is_resources("\ufeff<?xml version='1.0'?>\n<!-- a - b --><resources/>")
    for text in ("<a><resources/></a>", "<!-- <resources> --><a/>", "<resourcesx/>", ""):
        assert not is_resources(text)
    document = open_document("strings.xml", resources("it\\'s").encode())
    assert [segment.text for segment in document.segments] == ["it's"]


def test_malformed_resources_are_told() -> None:
    with pytest.raises(DataError, match=r"strings.xml: The XML is malformed at line 1"):
        open_document("strings.xml", b"<resources><string>a</resources>")
