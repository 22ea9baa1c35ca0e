"""Uploaded files that would take long to read are refused at once."""

import io
import json
import re
import zipfile
from pathlib import Path

import pytest
from httpx import Response
from starlette.testclient import TestClient
from tests.serve.conftest import Serve

from heed.documents import markdown, runs
from heed.serve.settings import Limits, Store
from heed.serve.shapes import translated_file

NEVER = re.compile(r"(?!)")


@pytest.fixture
def client(serve: Serve, en_de: str, tmp_path: Path) -> TestClient:
    return serve(en_de, store=Store(folder=str(tmp_path)), limits=Limits(chars=200))


def upload(client: TestClient, name: str, data: str | bytes) -> Response:
    file = (name, data.encode() if isinstance(data, str) else data)
    asked = {"source": "en", "target": "de"}
    return client.post("/translate_file", data=asked, files={"file": file})


@pytest.mark.parametrize(
    ("page", "words"),
    [
        ("*Dogs* play very well.\n\n" * 11, "request (more than 200) exceeds text limit (200)"),
        ("`a` " * 99, "more than 90 marks, links, cells"),
        ("1|2\n-|-\n" + "1|2\n" * 99, "more than 90 marks, links, cells"),
        ("<p>" * 99, "more than 90 marks, links, cells"),
    ],
)
def test_reading_markdown_stops_where_it_is_too_large(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, page: str, words: str
) -> None:
    monkeypatch.setattr(translated_file, "MOST_ELEMENTS", 90)
    reached: list[str] = []
    monkeypatch.setattr(markdown, "_end_of", lambda opening: reached.append(opening) or NEVER)
    answer = upload(client, "a.md", f"{page}\n\n~~~ code\n")
    assert answer.status_code == 413
    assert words in answer.json()["error"]
    assert not reached
    assert upload(client, "a.md", "~~~ code\n").status_code == 200
    assert reached == ["~~~"]


HOSTILE = {
    "html": "<b>" * 70,
    "xml": "<a>" + "<b/>" * 70 + "</a>",
    "txt": "1\n" * 70,
    "srt": "1\n0 --> 1\n" + "<b>" * 70,
    "json": json.dumps([["1"] * 21]),
    "arb": json.dumps({"a": ["1"] * 21}),
    "properties": "a = 1\n" * 21,
    "strings": '"a" = "1";' * 21,
    "po": 'msgid "1" msgstr ""\n' * 21,
    "xlf": "<xliff>" + "<trans-unit><source>1</source></trans-unit>" * 21 + "</xliff>",
    "xliff": f"<xliff><trans-unit><source>{'<x/>' * 70}</source></trans-unit></xliff>",
}


@pytest.mark.parametrize("ending", HOSTILE)
def test_a_file_of_very_many_elements_is_refused(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, ending: str
) -> None:
    name = f"a.{ending}"
    assert upload(client, name, HOSTILE[ending]).status_code == 200
    monkeypatch.setattr(translated_file, "MOST_ELEMENTS", 20)
    answer = upload(client, name, HOSTILE[ending])
    assert answer.status_code == 413
    assert "more than 20 marks, links, cells and other elements" in answer.json()["error"]


def test_a_document_of_very_many_tags_is_refused_before_they_are_read(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = packed("word/document.xml", f"<w:document>{'<w:p/>' * 70}</w:document>")
    assert upload(client, "a.docx", file).status_code == 200
    monkeypatch.setattr(translated_file, "MOST_ELEMENTS", 20)
    monkeypatch.setattr(runs, "read_tokens", lambda *_, **__: pytest.fail("tags were read"))
    answer = upload(client, "a.docx", file)
    assert answer.status_code == 413
    assert "3 tags, fields or lines count as one" in answer.json()["error"]


BLANKS, LINES = " " * 300_000, "1\n" * 999
REPEATING = {
    "docx": ("word/document.xml", f"<w:r a='{BLANKS}'>{'<w:t>a</w:t><w:tab/>' * 999}</w:r>"),
    "pptx": ("ppt/slides/slide1.xml", f"<a:r a='{BLANKS}'>{'<a:t>a</a:t>' * 999}</a:r>"),
    "xlsx": ("xl/sharedStrings.xml", f"<si><r><rPr a='{BLANKS}'/><t>{LINES}</t></r></si>"),
}


@pytest.mark.parametrize("ending", REPEATING)
def test_a_long_format_is_not_repeated_for_very_many_texts(client: TestClient, ending: str) -> None:
    """Each text may become a run of its own: 1 kB packed could become gigabytes."""
    name, content = REPEATING[ending]
    answer = upload(client, f"a.{ending}", packed(name, f"<root>{content}</root>"))
    assert answer.status_code == 413
    assert "more than 200000 marks, links, cells" in answer.json()["error"]


def packed(name: str, content: str) -> bytes:
    """An archive of one part."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr(name, content)
    return file.getvalue()
