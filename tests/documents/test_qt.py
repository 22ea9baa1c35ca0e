"""Qt's translation files: what is empty and unfinished is filled."""

import pytest
from tests.documents.fakes import backwards, shouted

from heed.documents.qt import split_ts
from heed.errors import DataError


def file(*messages: str) -> str:
    whole = "".join(f"<message>{message}</message>\n" for message in messages)
    return f'<?xml version="1.0"?>\n<!DOCTYPE TS>\n<TS version="2.1">{whole}</TS>\n'


@pytest.mark.parametrize(
    "message",
    [
        "<source>a</source><translation>b</translation>",
        '<source>a</source><translation type="unfinished">b</translation>',
        '<source>a</source><translation type="vanished"></translation>',
        "<source>a</source><translation></translation>",
        '<source>a<byte value="x1"/></source><translation type="unfinished"></translation>',
        '<source></source><translation type="unfinished"></translation>',
        '<source>%n a</source><translation type="unfinished"><numerusform>b</numerusform>'
        "<numerusform></numerusform></translation>",
    ],
)
def test_what_is_finished_begun_or_gone_is_kept(message: str) -> None:
    assembly = split_ts(file(message))
    assert assembly.segments == []
    assert assembly.join([]) == file(message)


def test_unfinished_translations_are_filled_and_stay_unfinished() -> None:
    source = "<location line='1'/><source>a &lt;b&gt;b&lt;/b&gt; &amp;%1 c</source>"
    before = '<translation type="unfinished">'
    for empty in (
        f"{before}</translation>",
        '<translation type="unfinished"/>',
        f"{before}\n </translation>",
    ):
        assembly = split_ts(file(source + empty, source + empty))
        done = f"{source}{before}A &lt;b&gt;B&lt;/b&gt; &amp;%1 C</translation>"
        assert assembly.join(shouted(assembly.segments)) == file(done, done)


def test_each_plural_form_is_filled() -> None:
    forms = "<numerusform></numerusform><numerusform/>"
    message = f'<source>%n dogs (%1)</source><translation type="unfinished">{forms}</translation>'
    assembly = split_ts(file(message))
    assert [segment.text for segment in assembly.segments] == ["dogs ()"] * 2
    done = assembly.join(backwards(assembly.segments))
    assert done.partition("<translation")[2].count("<numerusform>%n ) (%1 dogs</numerusform>") == 2


@pytest.mark.parametrize("text", ["const a = 1;", "<xliff/>", ""])
def test_another_file_is_refused(text: str) -> None:
    with pytest.raises(DataError, match="must begin with <TS>, but does not, at line 1"):
        split_ts(text)
