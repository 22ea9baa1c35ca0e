"""LibreTranslate's settings and suggestions."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.serve.conftest import Serve

from heed.serve.settings import Access, Limits, Listen, Store
from heed.serve.shapes.storage import FILE

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
