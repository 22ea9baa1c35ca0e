"""A page of another origin cannot store anything on a server without keys."""

from pathlib import Path
from typing import Any

import pytest
from starlette.datastructures import Headers
from starlette.testclient import TestClient
from tests.serve.conftest import Serve

from heed.serve.access.keys import Keys
from heed.serve.access.origins import is_of_other_page
from heed.serve.settings import Access, Store

EVIL = "https://evil.example"
DIRECTION = {"source": "en", "target": "de"}
GLOSSARY = {
    "name": "a",
    "source_lang": "en",
    "target_lang": "de",
    "entries": "dog\tHund",
    "entries_format": "tsv",
}
DICTIONARY = {key: value for key, value in GLOSSARY.items() if key != "name"}
FILE = {"file": ("a.txt", b"Two dogs")}
STORED: dict[str, dict[str, Any]] = {
    "/v2/glossaries": {"data": GLOSSARY},
    "/v3/glossaries": {"json": {"name": "a", "dictionaries": [DICTIONARY]}},
    "/v2/document": {"files": FILE, "data": {"target_lang": "DE"}},
    "/translate_file": {"files": FILE, "data": DIRECTION},
    "/suggest": {"data": {"q": "dog", "s": "Hund", **DIRECTION}},
}


@pytest.mark.parametrize(
    ("headers", "is_other"),
    [
        ({}, False),
        ({"Origin": EVIL}, True),
        ({"Origin": "null"}, True),
        ({"Origin": "http://own:5000"}, False),
        ({"Origin": "http://own"}, True),
        ({"Origin": "https://proxy", "X-Forwarded-Host": "proxy"}, False),
        ({"Origin": "https://friend.example"}, False),
        ({"Origin": "moz-extension://3f2a-b1"}, False),
        ({"Origin": "chrome-extension://abcd", "Sec-Fetch-Site": "cross-site"}, False),
        ({"Origin": "https://friend.example", "Sec-Fetch-Site": "cross-site"}, False),
        ({"Origin": "http://renamed", "Sec-Fetch-Site": "same-origin"}, False),
        ({"Sec-Fetch-Site": "none"}, False),
        ({"Sec-Fetch-Site": "cross-site"}, True),
        ({"Origin": "http://own:8000", "Sec-Fetch-Site": "same-site"}, True),
    ],
)
def test_browsers_tell_of_other_pages(headers: dict[str, str], is_other: bool) -> None:
    allowed = {"https://friend.example"}
    assert is_of_other_page(Headers({"Host": "own:5000", **headers}), allowed) is is_other


@pytest.fixture
def client(serve: Serve, en_de: str, tmp_path: Path) -> TestClient:
    access = Access(origins=("https://größe.example",))
    return serve(en_de, access=access, store=Store(folder=str(tmp_path), suggestions=10))


@pytest.mark.parametrize("path", STORED)
def test_a_page_of_another_origin_stores_nothing(client: TestClient, path: str) -> None:
    answer = client.post(path, **STORED[path], headers={"Origin": EVIL})
    assert answer.status_code == 403
    assert "A page of another origin may not store anything on this server" in answer.text
    for origin in (
        {},
        {"Origin": "https://xn--gre-6ka8i.example"},
        {"Origin": "http://testserver"},
    ):
        assert client.post(path, **STORED[path], headers=origin).status_code in (200, 201)


def test_a_page_of_another_origin_may_still_translate(client: TestClient) -> None:
    """Browser add-ons that work inside pages send the page's origin."""
    headers = {"Origin": EVIL, "Sec-Fetch-Site": "cross-site"}
    answer = client.post("/translate", json={"q": "a dog", **DIRECTION}, headers=headers)
    assert answer.status_code == 200 and "access-control-allow-origin" not in answer.headers


def test_a_key_is_enough(serve: Serve, en_de: str, tmp_path: Path) -> None:
    keys = Keys(tmp_path / "keys.sqlite")
    headers = {"Origin": EVIL, "Authorization": f"Bearer {keys.add('a')}"}
    keys.close()
    access = Access(keys="on", keys_file=str(tmp_path / "keys.sqlite"))
    client = serve(en_de, access=access, store=Store(folder=str(tmp_path)))
    assert client.post("/v2/glossaries", json=GLOSSARY, headers=headers).status_code == 201
