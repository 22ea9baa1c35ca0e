"""Glossaries over DeepL's API: within limits, and refused in words."""

import sqlite3
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.serve.conftest import Serve
from tests.serve.event_loop import beside_loop

from heed.serve.access.keys import Keys
from heed.serve.settings import Access, Store, Work
from heed.serve.shapes import deepl_dictionaries, stored
from heed.serve.shapes import storage as storage_module
from heed.serve.shapes.storage import FILE, Storage

GLOSSARY = {"name": "a", "source_lang": "EN", "target_lang": "DE", "entries": "bike\tRad"}


@pytest.fixture
def client(serve: Serve, en_de: str, tmp_path: Path) -> TestClient:
    return serve(en_de, store=Store(folder=str(tmp_path), glossaries=2, glossary_terms=3))


def create(client: TestClient, **values: Any) -> Any:
    return client.post("/v2/glossaries", json={**GLOSSARY, **values})


def test_a_glossary_is_created_and_read(client: TestClient) -> None:
    created = create(client)
    assert created.status_code == 201
    path = f"/v2/glossaries/{created.json()['glossary_id']}"
    assert client.get(path).json() == created.json()
    entries = client.get(f"{path}/entries")
    assert entries.text == "bike\tRad"
    assert entries.headers["content-type"].startswith("text/tab-separated-values")
    deleted = client.delete(path)
    assert (deleted.status_code, deleted.content) == (204, b"")
    assert client.get("/v2/glossaries").json() == {"glossaries": []}


def test_a_list_of_glossaries_reads_no_terms(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    created = create(client, entries="bike\tRad\ndog\tHund").json()
    empty = client.post("/v3/glossaries", json={"name": "b", "dictionaries": [GLOSSARY]}).json()
    path = f"/v3/glossaries/{empty['glossary_id']}/dictionaries"
    pair = {"source_lang": "EN", "target_lang": "DE"}
    assert client.delete(path, params=pair).status_code == 204
    monkeypatch.setattr(storage_module, "_dictionaries", lambda *_: pytest.fail("terms were read"))
    assert client.get("/v2/glossaries").json() == {"glossaries": [created]}
    listed = client.get("/v3/glossaries").json()["glossaries"]
    assert [each["name"] for each in listed] == ["a", "b"]
    assert listed[0]["dictionaries"] == [
        {"source_lang": "en", "target_lang": "de", "entry_count": 2}
    ]
    assert listed[1]["dictionaries"] == []


def test_entries_are_read_beside_the_event_loop(
    client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = beside_loop(deepl_dictionaries._read_terms)
    monkeypatch.setattr(deepl_dictionaries, "_read_terms", read)
    assert create(client).status_code == 201
    given = {"name": "b", "dictionaries": [{**GLOSSARY}]}
    created = client.post("/v3/glossaries", json=given)
    assert created.status_code == 201
    path = f"/v3/glossaries/{created.json()['glossary_id']}"
    assert client.patch(path, json=given).status_code == 200
    assert client.put(f"{path}/dictionaries", json=GLOSSARY).status_code == 200


def test_a_locked_store_stops_no_other_work(
    client: TestClient,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(stored, "WAIT_S", 3.0)
    create(client)
    client.post("/detect", json={"q": "Two dogs"})  # loads the detector
    with closing(sqlite3.connect(tmp_path / FILE)) as other, ThreadPoolExecutor(40) as pool:
        other.execute("begin exclusive")
        began_at = time.monotonic()
        waiting = [pool.submit(client.get, "/v2/glossaries") for _ in range(40)]
        time.sleep(0.2)
        assert client.post("/detect", json={"q": "Two dogs"}).status_code == 200
        assert not any(each.done() for each in waiting)
        assert {each.result().status_code for each in waiting} == {503}
        assert time.monotonic() - began_at < 12  # and not 3 s for each four of them
    assert "the store cannot be used: database is locked" in caplog.text
    assert client.get("/v2/glossaries").status_code == 200


def test_a_store_on_a_disk_that_does_not_answer_is_given_up_in_time(
    serve: Serve, en_de: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_over = threading.Event()
    monkeypatch.setattr(Storage, "summaries", lambda *_: [] if is_over.wait(60) else None)
    client = serve(en_de, work=Work(timeout_s=0.2))
    answers = [client.get("/v2/glossaries") for _ in range(6)]  # of four threads
    is_over.set()
    assert [answer.status_code for answer in answers] == [504] * 6
    assert client.get("/v2/glossaries").json() == {"glossaries": []}


def test_only_the_servers_own_user_reads_the_store(client: TestClient, tmp_path: Path) -> None:
    create(client)
    assert (tmp_path / FILE).stat().st_mode & 0o077 == 0


def test_a_glossary_outlives_the_server(
    client: TestClient, serve: Serve, en_de: str, tmp_path: Path
) -> None:
    created = create(client).json()
    other = serve(en_de, store=Store(folder=str(tmp_path)))
    assert other.get("/v2/glossaries").json() == {"glossaries": [created]}


@pytest.mark.parametrize(
    ("values", "status", "sentence"),
    [
        ({"name": ""}, 400, "Parameter 'name' not specified."),
        ({"target_lang": "FR"}, 400, "Unsupported glossary source and target language pair."),
        (
            {"entries": "bike\tRad\nsnow\tSchnee\tcase"},
            400,
            "Line 2 of the glossary has more than two columns.",
        ),
        (
            {"entries": "bike"},
            400,
            "Line 1 of the glossary must have a source term, a tab and a target term, but is "
            "'bike'.",
        ),
        (
            {"entries": "bike\tRad\n\t!Fahrrad"},
            400,
            "Each line of the glossary must have a source term.",
        ),
        ({"entries": "a\tb\nc\td\ne\tf\ng\th"}, 413, "A glossary must have at most 3 entries."),
        (
            {"entries_format": "xlsx"},
            400,
            "Value for 'entries_format' not supported: it must be one of tsv, csv.",
        ),
    ],
)
def test_what_is_no_glossary_is_refused(
    client: TestClient, values: dict[str, Any], status: int, sentence: str
) -> None:
    answer = create(client, **values)
    assert (answer.status_code, answer.json()) == (status, {"message": sentence})


def test_there_are_only_so_many_glossaries(client: TestClient) -> None:
    assert [create(client).status_code for _ in range(3)] == [201, 201, 403]
    assert create(client).json() == {"message": "This server keeps at most 2 glossaries."}


def test_a_path_knows_all_its_methods(client: TestClient) -> None:
    answer = client.put("/v2/glossaries/x")
    assert answer.status_code == 405
    assert set(answer.headers["allow"].split(", ")) == {"GET", "HEAD", "DELETE"}


def test_a_store_that_cannot_be_used_is_told(serve: Serve, en_de: str, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    client = serve(en_de, store=Store(folder=str(tmp_path / "file" / "store")))
    answer = client.get("/v2/glossaries")
    assert answer.status_code == 503
    assert answer.headers["retry-after"] == "1"
    assert "store of glossaries" in answer.json()["message"]


def test_entries_are_told_as_tabs_separate_them(client: TestClient) -> None:
    entries = '"a\tb","c, d"\r\nsnow,Schnee\r\n'
    created = create(client, entries=entries, entries_format="csv").json()
    found = client.get(f"/v2/glossaries/{created['glossary_id']}/entries")
    assert found.text == "a b\tc, d\nsnow\tSchnee"


@pytest.mark.parametrize(
    ("terms", "sentence"),
    [
        ({}, ""),
        ({"bike": ""}, "The stored glossary cannot be used: The target term in line 1"),
    ],
)
def test_a_glossary_of_an_earlier_version_is_empty_or_refused_in_words(
    client: TestClient, tmp_path: Path, terms: dict[str, str], sentence: str
) -> None:
    stored = Storage(Store(folder=str(tmp_path))).add_glossary("", "a", {("en", "de"): terms})
    wanted = {"text": ["bike"], "source_lang": "EN", "target_lang": "DE"}
    answer = client.post("/v2/translate", json={**wanted, "glossary_id": stored.id})
    if sentence:
        assert answer.status_code == 400
        assert answer.json()["message"].startswith(sentence)
    else:
        assert answer.status_code == 200
        assert answer.json() == client.post("/v2/translate", json=wanted).json()
    path = f"/v2/glossaries/{stored.id}"
    assert client.get(path).json()["entry_count"] == len(terms)
    assert client.get(f"{path}/entries").status_code == 200


def test_a_key_leaves_room_for_the_glossaries_of_others(
    serve: Serve, en_de: str, tmp_path: Path
) -> None:
    keys = Keys(tmp_path / "keys.sqlite")
    ours, theirs = ({"X-API-Key": keys.add(name)} for name in "ab")
    keys.close()
    client = serve(
        en_de,
        store=Store(folder=str(tmp_path), glossaries=3, glossaries_per_key=2),
        access=Access(keys="on", keys_file=str(tmp_path / "keys.sqlite")),
    )

    def answers(headers: dict[str, str]) -> list[int]:
        answers = [client.post("/v2/glossaries", json=GLOSSARY, headers=headers) for _ in range(3)]
        assert "at most" in answers[-1].json()["message"]
        return [answer.status_code for answer in answers]

    assert answers(ours) == [201, 201, 403]
    assert answers(theirs) == [201, 403, 403]
    refused = client.post("/v2/glossaries", json=GLOSSARY, headers=ours)
    assert refused.json() == {"message": "This server keeps at most 2 glossaries of a key."}


def test_a_client_sees_the_glossaries_of_its_own_key_only(
    serve: Serve, en_de: str, tmp_path: Path
) -> None:
    keys = Keys(tmp_path / "keys.sqlite")
    ours, theirs = ({"Authorization": f"DeepL-Auth-Key {keys.add(name)}"} for name in "ab")
    keys.close()
    client = serve(
        en_de,
        store=Store(folder=str(tmp_path)),
        access=Access(keys="on", keys_file=str(tmp_path / "keys.sqlite")),
    )
    created = client.post("/v2/glossaries", json=GLOSSARY, headers=ours).json()
    path = f"/v2/glossaries/{created['glossary_id']}"
    assert client.get("/v2/glossaries", headers=ours).json() == {"glossaries": [created]}
    assert client.get("/v2/glossaries", headers=theirs).json() == {"glossaries": []}
    assert client.get(path, headers=theirs).status_code == 404
    assert client.delete(path, headers=theirs).status_code == 404
    wanted = {"text": ["bike"], "target_lang": "DE", "glossary_id": created["glossary_id"]}
    wanted["source_lang"] = "EN"
    assert client.post("/v2/translate", json=wanted, headers=theirs).status_code == 404
    assert client.post("/v2/translate", json=wanted, headers=ours).status_code == 200
    assert client.get(path).status_code == 403
