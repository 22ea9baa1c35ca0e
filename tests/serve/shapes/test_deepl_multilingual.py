"""Glossaries of several directions over DeepL's API: edited, kept, and refused in words."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import deepl
import pytest
from deepl.api_data import MultilingualGlossaryDictionaryEntries
from starlette.testclient import TestClient
from tests.serve.conftest import Serve

from heed.serve.access.keys import Keys
from heed.serve.settings import Access, Store
from heed.serve.shapes.storage import FILE, Storage

TO_GERMAN = {"source_lang": "en", "target_lang": "de", "entries": "bike\tRad"}
TO_ENGLISH = {"source_lang": "de", "target_lang": "en", "entries": "Rad\tbike\nHund\tdog"}
BOTH = {"name": "a", "dictionaries": [TO_GERMAN, TO_ENGLISH]}
PATH = "/v3/glossaries"


@pytest.fixture
def client(serve: Serve, en_de: str, de_en: str, tmp_path: Path) -> TestClient:
    return serve(en_de, de_en, store=Store(folder=str(tmp_path), glossaries=2, glossary_terms=3))


@pytest.fixture
def glossary(client: TestClient) -> Any:
    created = client.post(PATH, json=BOTH)
    assert created.status_code == 201
    return created.json()


def entries_of(client: TestClient, glossary: Any, pair: str) -> str:
    source, target = pair.split("-")
    answer = client.get(
        f"{PATH}/{glossary['glossary_id']}/entries",
        params={"source_lang": source, "target_lang": target},
    )
    (found,) = answer.json()["dictionaries"]
    assert found.items() >= {"source_lang": source, "target_lang": target}.items()
    return str(found["entries"])


def translated(client: TestClient, glossary: Any, pair: str, text: str) -> Any:
    source, target = pair.split("-")
    wanted = {"text": [text], "source_lang": source, "target_lang": target}
    return client.post("/v2/translate", json={**wanted, "glossary_id": glossary["glossary_id"]})


def test_a_glossary_holds_a_dictionary_for_each_direction(
    client: TestClient, glossary: Any
) -> None:
    counted = [{**TO_GERMAN, "entry_count": 1}, {**TO_ENGLISH, "entry_count": 2}]
    assert glossary["dictionaries"] == [
        {name: value for name, value in each.items() if name != "entries"} for each in counted
    ]
    assert client.get(PATH).json() == {"glossaries": [glossary]}
    assert client.get(f"{PATH}/{glossary['glossary_id']}").json() == glossary
    assert entries_of(client, glossary, "de-en") == TO_ENGLISH["entries"]


def test_a_translation_uses_the_terms_of_its_direction(client: TestClient, glossary: Any) -> None:
    for pair, text, term in (("en-de", "a bike", "Rad"), ("de-en", "ein Rad", "bike")):
        found = translated(client, glossary, pair, text).json()["translations"][0]["text"]
        assert term in found


def test_an_edit_renames_adds_terms_and_changes_terms(client: TestClient, glossary: Any) -> None:
    path = f"{PATH}/{glossary['glossary_id']}"
    renamed = client.patch(path, json={"name": "b"}).json()
    assert renamed == {**glossary, "name": "b"}
    more = {**TO_GERMAN, "entries": "bike\tDrahtesel\nsnow\tSchnee"}
    edited = client.patch(path, json={"dictionaries": [more]}).json()
    assert [each["entry_count"] for each in edited["dictionaries"]] == [2, 2]
    assert entries_of(client, glossary, "en-de") == "bike\tDrahtesel\nsnow\tSchnee"
    assert entries_of(client, glossary, "de-en") == TO_ENGLISH["entries"]
    found = translated(client, glossary, "en-de", "a bike").json()
    assert "Drahtesel" in found["translations"][0]["text"]


def test_a_dictionary_is_replaced_and_deleted(client: TestClient, glossary: Any) -> None:
    path = f"{PATH}/{glossary['glossary_id']}"
    other = {**TO_ENGLISH, "entries": "Schnee,snow", "entries_format": "csv"}
    replaced = client.put(f"{path}/dictionaries", json=other)
    assert (replaced.status_code, replaced.json()["entry_count"]) == (200, 1)
    assert entries_of(client, glossary, "de-en") == "Schnee\tsnow"
    direction = {"source_lang": "DE", "target_lang": "EN"}
    deleted = client.delete(f"{path}/dictionaries", params=direction)
    assert (deleted.status_code, deleted.content) == (204, b"")
    again = client.delete(f"{path}/dictionaries", params=direction)
    sentence = "The glossary has no dictionary from de to en."
    assert (again.status_code, again.json()) == (404, {"message": sentence})
    assert client.get(f"{path}/entries", params=direction).status_code == 404
    assert translated(client, glossary, "de-en", "ein Rad").status_code == 400
    assert translated(client, glossary, "en-de", "a bike").status_code == 200


def test_the_older_version_shows_glossaries_of_one_dictionary(
    client: TestClient, glossary: Any
) -> None:
    single = client.post("/v2/glossaries", json={"name": "one", **TO_GERMAN}).json()
    assert client.get("/v2/glossaries").json() == {"glossaries": [single]}
    listed = client.get(PATH).json()["glossaries"]
    assert [each["name"] for each in listed] == ["a", "one"]
    path = f"/v2/glossaries/{glossary['glossary_id']}"
    sentence = "This glossary has 2 dictionaries: use /v3/glossaries."
    for answer in (client.get(path), client.get(f"{path}/entries"), client.delete(path)):
        assert (answer.status_code, answer.json()) == (404, {"message": sentence})
    assert client.delete(f"{PATH}/{single['glossary_id']}").status_code == 204
    assert client.get("/v2/glossaries").json() == {"glossaries": []}


@pytest.mark.parametrize(
    ("values", "status", "sentence"),
    [
        ({"name": ""}, 400, "Parameter 'name' not specified."),
        ({"dictionaries": []}, 400, "Parameter 'dictionaries' not specified."),
        (
            {"dictionaries": ["en"]},
            400,
            "Value for 'dictionaries' not supported: it must be a list of objects.",
        ),
        ({"dictionaries": [{}]}, 400, "Parameter 'source_lang' not specified."),
        (
            {"dictionaries": [{**TO_GERMAN, "entries": 3}]},
            400,
            "Value for 'entries' not supported: it must be text.",
        ),
        (
            {"dictionaries": [TO_GERMAN, {**TO_GERMAN, "source_lang": "EN-US"}]},
            400,
            "There are two dictionaries from en to de.",
        ),
        (
            {"dictionaries": [TO_ENGLISH, {**TO_ENGLISH, "target_lang": "fr"}]},
            400,
            "Unsupported glossary source and target language pair.",
        ),
        (
            {"dictionaries": [{**TO_GERMAN, "entries": "a\tb\nc\td\ne\tf\ng\th"}]},
            413,
            "A glossary must have at most 3 entries.",
        ),
    ],
)
def test_what_is_no_glossary_is_refused(
    client: TestClient, values: dict[str, Any], status: int, sentence: str
) -> None:
    answer = client.post(PATH, json={**BOTH, **values})
    assert (answer.status_code, answer.json()) == (status, {"message": sentence})
    assert client.get(PATH).json() == {"glossaries": []}


def test_an_edit_that_is_refused_changes_nothing(client: TestClient, glossary: Any) -> None:
    path = f"{PATH}/{glossary['glossary_id']}"
    longer = {**TO_ENGLISH, "entries": "Schnee\tsnow\nBerg\tmountain"}
    refused = client.patch(path, json={"name": "b", "dictionaries": [TO_GERMAN, longer]})
    assert (refused.status_code, refused.json()) == (
        413,
        {"message": "A glossary must have at most 3 entries."},
    )
    nothing = client.patch(path, json={})
    assert (nothing.status_code, nothing.json()) == (
        400,
        {"message": "Parameter 'name' or 'dictionaries' is needed."},
    )
    assert client.get(path).json() == glossary


def test_a_glossary_of_another_key_is_not_there(
    serve: Serve, en_de: str, de_en: str, tmp_path: Path
) -> None:
    keys = Keys(tmp_path / "keys.sqlite")
    ours, theirs = ({"Authorization": f"DeepL-Auth-Key {keys.add(name)}"} for name in "ab")
    keys.close()
    access = Access(keys="on", keys_file=str(tmp_path / "keys.sqlite"))
    client = serve(en_de, de_en, store=Store(folder=str(tmp_path)), access=access)
    created = client.post(PATH, json=BOTH, headers=ours).json()
    path = f"{PATH}/{created['glossary_id']}"
    direction = {"source_lang": "en", "target_lang": "de"}
    for answer in (
        client.get(path, headers=theirs),
        client.patch(path, json={"name": "b"}, headers=theirs),
        client.put(f"{path}/dictionaries", json=TO_GERMAN, headers=theirs),
        client.delete(f"{path}/dictionaries", params=direction, headers=theirs),
        client.get(f"{path}/entries", params=direction, headers=theirs),
        client.delete(path, headers=theirs),
    ):
        assert (answer.status_code, answer.json()) == (404, {"message": "Glossary not found."})
    assert client.get(PATH, headers=theirs).json() == {"glossaries": []}
    assert client.get(path, headers=ours).json() == created
    assert client.get(PATH).status_code == 403


def test_a_store_of_an_older_version_keeps_its_glossaries(
    serve: Serve, en_de: str, tmp_path: Path
) -> None:
    with closing(sqlite3.connect(tmp_path / FILE)) as connection, connection:
        connection.execute(
            "create table glossaries (id text primary key, owner text not null, name text not"
            " null, source text not null, target text not null, created text not null, terms"
            " text not null)"
        )
        for id, owner in (("1", ""), ("2", "another")):
            row = (id, owner, "old", "en", "de", "2026-11-01T00:00:00.000Z", '{"bike": "Rad"}')
            connection.execute("insert into glossaries values (?, ?, ?, ?, ?, ?, ?)", row)
    client = serve(en_de, store=Store(folder=str(tmp_path)))
    (found,) = client.get("/v2/glossaries").json()["glossaries"]
    assert (found["glossary_id"], found["name"], found["entry_count"]) == ("1", "old", 1)
    assert client.get("/v2/glossaries/1/entries").text == "bike\tRad"
    assert "Rad" in translated(client, found, "en-de", "a bike").text
    storage = Storage(Store(folder=str(tmp_path)))
    (other,) = storage.summaries("another")
    assert other.n_terms == {("en", "de"): 1}
    stored = storage.glossary("another", other.id)
    assert stored is not None
    assert stored.dictionaries == {("en", "de"): {"bike": "Rad"}}


@pytest.fixture
def official(program: str) -> Iterator[deepl.DeepLClient]:
    """DeepL's own client, against the real program."""
    client = deepl.DeepLClient("any-key", server_url=program)
    yield client
    client.close()


def test_the_official_client_creates_edits_and_deletes(official: deepl.DeepLClient) -> None:
    made = MultilingualGlossaryDictionaryEntries
    glossary = official.create_multilingual_glossary(
        "Sports", [made("EN", "DE", {"bike": "Rad"}), made("DE", "EN-US", {"Rad": "bike"})]
    )
    pairs = [(each.source_lang, each.target_lang) for each in glossary.dictionaries]
    assert (glossary.name, pairs) == ("Sports", [("EN", "DE"), ("DE", "EN")])
    for text, source, target, term in (
        ("a bike", "EN", "DE", "Rad"),
        ("Rad", "DE", "EN-GB", "bike"),
    ):
        found = official.translate_text(
            text, source_lang=source, target_lang=target, glossary=glossary
        )
        assert term in found.text
    official.update_multilingual_glossary_name(glossary, "Winter sports")
    official.update_multilingual_glossary_dictionary(glossary, made("EN", "DE", {"snow": "Schnee"}))
    (entries,) = official.get_multilingual_glossary_entries(glossary, "EN", "DE").dictionaries
    assert entries.entries == "bike\tRad\nsnow\tSchnee"  # the client leaves it as it came
    replaced = official.replace_multilingual_glossary_dictionary(
        glossary, made("EN", "DE", {"bike": "Drahtesel"})
    )
    assert replaced.entry_count == 1
    assert official.get_multilingual_glossary(glossary.glossary_id).name == "Winter sports"
    assert "Winter sports" in [each.name for each in official.list_multilingual_glossaries()]
    official.delete_multilingual_glossary_dictionary(glossary, replaced)
    official.delete_multilingual_glossary(glossary)
    with pytest.raises(deepl.GlossaryNotFoundException):
        official.get_multilingual_glossary(glossary.glossary_id)
