"""LibreTranslate's settings and suggestions."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.serve.conftest import Serve

from heed.serve.access.keys import Keys
from heed.serve.settings import Access, Limits, Listen, Store
from heed.serve.shapes.storage import FILE, UPDATES

SUGGESTION = {"q": "bike", "s": "Rad", "source": "en", "target": "de"}


def test_the_settings_are_those_of_the_server(serve: Serve, en_de: str) -> None:
    client = serve(en_de, limits=Limits(chars=123), store=Store(suggestions=1))
    found = client.get("/frontend/settings").json()
    assert (found["charLimit"], found["suggestions"]) == (123, True)
    assert found["language"] == {
        "source": {"code": "auto", "name": "Auto Detect"},
        "target": {"code": "de", "name": "German"},
    }


@pytest.mark.parametrize(
    ("host", "keys", "needs_keys"),
    [("127.0.0.1", "auto", False), ("0.0.0.0", "auto", True), ("127.0.0.1", "on", True)],
)
def test_the_settings_tell_whether_a_key_is_needed(
    serve: Serve, en_de: str, tmp_path: Path, host: str, keys: Any, needs_keys: bool
) -> None:
    access = Access(keys=keys, keys_file=str(tmp_path / "keys.sqlite"))
    client = serve(en_de, access=access, listen=Listen(host=host))
    found = client.get("/frontend/settings").json()
    assert (found["apiKeys"], found["keyRequired"]) == (needs_keys, needs_keys)
    question = {"q": "A man.", "source": "en", "target": "de"}
    assert client.post("/translate", json=question).is_error == needs_keys


def test_suggestions_are_refused_unless_the_settings_allow_them(serve: Serve, en_de: str) -> None:
    answer = serve(en_de).post("/suggest", data=SUGGESTION)
    assert answer.status_code == 403
    assert answer.json() == {"error": "Suggestions are disabled on this server."}


def test_suggestions_are_kept_up_to_a_number(serve: Serve, en_de: str, tmp_path: Path) -> None:
    client = serve(en_de, store=Store(folder=str(tmp_path), suggestions=2))
    answers = [client.post("/suggest", data=SUGGESTION) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 403]
    assert answers[0].json() == {"success": True}
    assert answers[2].json() == {"error": "This server keeps at most 2 suggestions."}
    with closing(sqlite3.connect(tmp_path / FILE)) as connection:
        rows = connection.execute("select source, target, q, s from suggestions").fetchall()
    assert rows == [("en", "de", "bike", "Rad")] * 2
    missing = client.post("/suggest", data={**SUGGESTION, "s": ""})
    assert missing.json() == {"error": "Invalid request: missing s parameter"}


def test_a_key_may_not_fill_the_store(serve: Serve, en_de: str, tmp_path: Path) -> None:
    keys = Keys(tmp_path / "keys.sqlite")
    headers = [{"X-API-Key": keys.add(name)} for name in ("anna", "ben")]
    keys.close()
    access = Access(keys="on", keys_file=str(tmp_path / "keys.sqlite"))
    store = Store(folder=str(tmp_path), suggestions=3, suggestions_per_client=2)
    client = serve(en_de, access=access, store=store)

    def suggest(number: int) -> int:
        return client.post("/suggest", data=SUGGESTION, headers=headers[number]).status_code

    assert [suggest(0), suggest(0), suggest(0), suggest(1), suggest(1)] == [200, 200, 403, 200, 403]
    refused = client.post("/suggest", data=SUGGESTION, headers=headers[0])
    assert refused.json() == {"error": "This server keeps at most 2 suggestions of a client."}


def test_without_keys_an_address_may_not_fill_the_store(
    serve: Serve, en_de: str, tmp_path: Path
) -> None:
    store = Store(folder=str(tmp_path), suggestions=10, suggestions_per_client=1)
    app = serve(en_de, store=store).app
    addresses = "192.0.2.1", "192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2"
    codes = [
        TestClient(app, client=(address, 1)).post("/suggest", data=SUGGESTION).status_code
        for address in addresses
    ]
    assert codes == [200, 403, 200, 200, 403]
    with closing(sqlite3.connect(tmp_path / FILE)) as connection:
        owners = connection.execute("select owner from suggestions").fetchall()
    assert not any(address in str(owners) for address in addresses)


def test_a_store_of_an_earlier_version_keeps_its_suggestions(
    serve: Serve, en_de: str, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(tmp_path / FILE)) as connection, connection:
        for statement in UPDATES[0]:
            connection.execute(statement)
        connection.execute("pragma user_version = 1")
        connection.execute("insert into suggestions values ('en', 'de', 'bike', 'Fahrrad')")
    store = Store(folder=str(tmp_path), suggestions=2)
    assert serve(en_de, store=store).post("/suggest", data=SUGGESTION).status_code == 200
    with closing(sqlite3.connect(tmp_path / FILE)) as connection:
        rows = connection.execute("select s, owner = '' from suggestions").fetchall()
    assert rows == [("Fahrrad", 1), ("Rad", 0)]
