"""Every endpoint that costs something asks for a key and counts, in the words of its API."""

import json
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.serve.conftest import Serve
from tests.serve.program import Program
from tests.serve.test_process import HANGS

from heed.serve.access import keys as keys_module
from heed.serve.access.gate import keys_path
from heed.serve.access.keys import Key, Keys
from heed.serve.settings import Access, Listen
from heed.serve.shapes.table import ENDPOINTS

OPEN = {
    "/languages",
    "/health",
    "/api/v1/languages",
    "/api/v1/models",
    "/translator/models",
    "/openapi.json",
    "/spec",
    "/docs",
    "/docs/{name}",
    "/frontend/settings",
    "/download_file/{name}",
}
"""What needs no key: what the server is, and files under names that nobody can guess."""

QUESTION = {"q": "A man.", "source": "en", "target": "de"}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "keys.sqlite"


@pytest.fixture
def client(serve: Serve, en_de: str, path: Path) -> TestClient:
    return serve(en_de, access=Access(keys="on", keys_file=str(path), per_minute=3))


def made(path: Path, name: str = "a", **limits: Any) -> str:
    keys = Keys(path)
    key = keys.add(name, **limits)
    keys.close()
    return key


@pytest.mark.parametrize(
    "sent",
    [
        lambda key: {"json": {**QUESTION, "api_key": key}},
        lambda key: {"data": {**QUESTION, "api_key": key}},
        lambda key: {"json": QUESTION, "params": {"api_key": key}},
        lambda key: {"json": QUESTION, "headers": {"Authorization": f"Bearer {key}"}},
        lambda key: {"json": QUESTION, "headers": {"Authorization": f"DeepL-Auth-Key {key}"}},
        lambda key: {"json": QUESTION, "headers": {"X-API-Key": key}},
    ],
)
def test_a_key_may_stand_where_clients_put_it(client: TestClient, path: Path, sent: Any) -> None:
    assert client.post("/translate", **sent(made(path))).status_code == 200
    refused = client.post("/translate", **sent("heed_a_wrong"))
    assert refused.status_code == 403
    assert refused.json()["error"] == "Invalid API key"


def test_each_api_refuses_in_its_own_way(client: TestClient) -> None:
    deepl = client.post("/v2/translate", json={"text": ["a"], "target_lang": "DE"})
    assert (deepl.status_code, deepl.json()["message"]) == (403, "Invalid API key")
    own = client.post("/api/v1/translate", json={"text": "a", "source": "en", "target": "de"})
    assert own.status_code == 401
    assert own.json()["error"]["code"] == "invalid_key"
    assert own.headers["www-authenticate"] == "Bearer"


def test_each_key_has_a_usage_of_its_own(client: TestClient, path: Path) -> None:
    a, b = ({"headers": {"X-API-Key": made(path, name)}} for name in "ab")
    client.post("/v2/translate", json={"text": ["A man.", "a"], "target_lang": "DE"}, **a)
    client.post("/v2/translate", json={"text": ["A"], "target_lang": "DE"}, **b)
    usages = [client.get("/v2/usage", **key).json() for key in (a, b)]
    assert [usage["character_count"] for usage in usages] == [len("A man.a"), 1]


def test_deeplx_takes_a_key_as_its_clients_send_it(client: TestClient, path: Path) -> None:
    body = {"text": "A man.", "source_lang": "EN", "target_lang": "DE"}
    key = made(path)
    for good in ({"params": {"token": key}}, {"headers": {"Authorization": f"Bearer {key}"}}):
        assert client.post("/deeplx", json=body, **good).status_code == 200
    refused = client.post("/deeplx", json=body, params={"token": "heed_a_wrong"})
    assert refused.status_code == 401
    assert refused.json() == {"code": 401, "message": "Invalid API key"}


OWN = {"source": "en", "target": "de"}
ADDON = {"source_lang": "EN", "target_lang": "DE"}


@pytest.mark.parametrize(
    ("address", "values", "name"),
    [
        ("/translate", OWN, "q"),
        ("/detect", {}, "q"),
        ("/kiss", {"from": "en", "to": "de"}, "text"),
        ("/kiss", {"from": "en", "to": "de"}, "texts"),
        ("/imme", ADDON, "text_list"),
        ("/hcfy", {"source": "en", "destination": ["de"]}, "text"),
        ("/deeplx", ADDON, "text"),
        ("/deeplx/translate", ADDON, "text"),
        ("/language/translate/v2", OWN, "q"),
        ("/translate_a/single", {"sl": "en", "tl": "de"}, "q"),
        ("/v2/translate", ADDON, "text"),
        ("/api/v1/translate", OWN, "text"),
        ("/api/v1/translate", {**OWN, "text": "A man."}, "prefix"),
        ("/api/v1/translate/stream", OWN, "text"),
        ("/api/v1/detect", {}, "text"),
        ("/api/v1/next-word", OWN, "text"),
        ("/api/v1/next-word", {**OWN, "text": "A man."}, "prefix"),
        ("/api/v1/continue", OWN, "text"),
        ("/api/v1/score", {**OWN, "target_text": "Ja."}, "source_text"),
        ("/api/v1/score", {**OWN, "source_text": "A man."}, "target_text"),
        ("/api/v1/search", OWN, "text"),
        ("/api/v1/trace", OWN, "text"),
        ("/api/v1/trace", {**OWN, "text": "A man."}, "translation"),
    ],
)
def test_no_path_takes_more_text_than_the_key_allows(
    client: TestClient, path: Path, address: str, values: dict[str, Any], name: str
) -> None:
    is_list = name in ("text_list", "texts") or address == "/v2/translate"
    for text, is_refused in (("A man.", False), ("A man. A man.", True)):
        given = [text] if is_list else text
        limit = 9 + sum(len(values[each]) for each in values if each.endswith("text"))
        key = {"X-API-Key": made(path, f"n{len(text)}", chars=limit)}
        answer = client.post(address, json={**values, name: given}, headers=key)
        assert ("text limit" in answer.text) == is_refused, answer.text
        assert (answer.status_code == 400) == is_refused, answer.text


def test_a_list_that_is_the_whole_body_has_characters_too(client: TestClient, path: Path) -> None:
    headers = {"X-API-Key": made(path, chars=10)}
    answer = client.post("/translator/translate", json=[{"src": "A man."}], headers=headers)
    assert answer.status_code == 200
    answer = client.post("/translator/translate", json=[{"src": "A man."}] * 2, headers=headers)
    assert answer.status_code == 400
    assert answer.json()["error"].endswith("(12) exceeds text limit (10)")
    for wrong in ([{"src": 1}, None, {"src": "A man."}], {"src": "A man."}):
        answer = client.post("/translator/translate", json=wrong, headers=headers)
        assert answer.status_code == 400
        assert "src" in answer.json()["error"]


@pytest.mark.parametrize("address", ["/translate_file", "/api/v1/files", "/v2/document"])
def test_the_text_of_a_file_counts(client: TestClient, path: Path, address: str) -> None:
    values = ADDON if address.startswith("/v2") else OWN
    for chars, status in ((11, 413), (100, 200)):
        answer = client.post(
            address,
            data=values,
            files={"file": ("a.txt", b"A man. A man.")},
            headers={"X-API-Key": made(path, f"n{chars}", chars=chars)},
        )
        assert answer.status_code == status
        assert ("text limit (11)" in answer.text) == (status == 413)


def test_what_no_model_reads_does_not_count(client: TestClient, path: Path) -> None:
    headers = {"X-API-Key": made(path, chars=10, per_minute=2)}
    asked = {**OWN, "text": "A man.", "protect": ["ACME-[0-9]+", "none", "x+"]}
    answer = client.post("/api/v1/translate", json=asked, headers=headers)
    assert answer.status_code == 200
    assert answer.headers["ratelimit-remaining"] == "1"
    asked = {**ADDON, "text": ["A man."], "context": "He came home at last."}
    assert client.post("/v2/translate", json=asked, headers=headers).status_code == 200


def test_missing_wrong_expired_and_revoked_keys_get_the_same_answer(
    client: TestClient, path: Path
) -> None:
    revoked, expired = made(path), made(path, "b", expires_at=time.time() - 1)
    keys = Keys(path)
    keys.revoke("a")
    keys.close()
    answers = set()
    for key in ("", "x", revoked, expired, made(path, "c")[:-1]):
        answer = client.post("/translate", json={**QUESTION, "api_key": key})
        answers.add((answer.status_code, json.dumps(answer.json())))
    assert len(answers) == 1


def test_a_file_of_keys_that_became_unusable_is_a_refusal_and_logged(
    client: TestClient, path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    key = made(path)
    with closing(sqlite3.connect(path)) as file:
        file.execute("ALTER TABLE keys RENAME TO others")
    for sent in ({"headers": {"X-API-Key": key}}, {}):  # at the head of the request, and after it
        answer = client.post("/translate", json=QUESTION, **sent)
        assert answer.status_code == 503
        assert answer.json()["error"].startswith("The server cannot check keys at the moment.")
        assert answer.headers["retry-after"] == "1"
    assert caplog.text.count(f"The file of keys {path} cannot be used: no such table") == 2
    with closing(sqlite3.connect(path)) as file:
        file.execute("ALTER TABLE others RENAME TO keys")
    answer = client.post("/translate", json=QUESTION, headers={"X-API-Key": key})
    assert answer.status_code == 200


def test_a_disk_of_the_keys_that_does_not_answer_for_a_while_is_a_refusal_for_so_long(
    client: TestClient,
    path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    key, find, answers, asked = made(path), Keys.find, threading.Event(), []

    def find_later(keys: Keys, given: str) -> Key | None:
        asked.append(given)
        assert answers.wait(60)
        return find(keys, given)

    monkeypatch.setattr(Keys, "find", find_later)
    monkeypatch.setattr(keys_module, "WAIT_S", 0.2)
    sent: dict[str, Any] = {"json": QUESTION, "headers": {"X-API-Key": key}}
    for _ in range(2):
        answer = client.post("/translate", **sent)
        assert answer.status_code == 503
        assert answer.json()["error"].startswith("The server cannot check keys at the moment.")
    assert asked == [key]  # the second one was not left to wait, too
    assert caplog.text.count(f"The disk of the file of keys {path} does not answer.") == 2
    answers.set()
    deadline = time.monotonic() + 60
    while (status := client.post("/translate", **sent).status_code) == 503:
        assert time.monotonic() < deadline
    assert status == 200


KEYS_HANG = (
    HANGS
    + """
from heed.serve.access import keys
keys.Keys.find, keys.WAIT_S = hang, 0.2
"""
)


def test_a_disk_of_the_keys_that_never_answers_does_not_keep_the_process(
    en_de: str, path: Path
) -> None:
    wants_keys = ("--set", "access.keys=on", "--set", f"access.keys_file={path}")
    with Program("-m", en_de, *wants_keys, before=KEYS_HANG) as program:
        for _ in range(2):
            assert program.ask("/translate", QUESTION)[0] == 503
            assert program.ask("/health")[0] == 200
        assert program.stop() == 0
        assert "heed: a thread is still busy" in program.lines[-1]


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda each: f"{each.method} {each.path}")
def test_whatever_is_not_listed_as_open_needs_a_key(endpoint: Any) -> None:
    assert endpoint.needs_key or (endpoint.method == "GET" and endpoint.path in OPEN)


def test_a_request_longer_than_the_key_allows_is_refused(client: TestClient, path: Path) -> None:
    key = made(path, chars=5)
    answer = client.post("/translate", json={**QUESTION, "api_key": key})
    assert answer.status_code == 400
    assert answer.json()["error"] == "Invalid request: request (6) exceeds text limit (5)"


def test_a_bare_list_costs_its_length_too(client: TestClient, path: Path) -> None:
    headers = {"X-API-Key": made(path, per_minute=9)}
    answer = client.post("/translator/translate", json=[{"src": "a"}] * 4, headers=headers)
    assert answer.headers["ratelimit-remaining"] == "5"


def test_a_key_has_its_own_limit_and_a_list_costs_its_length(
    client: TestClient, path: Path
) -> None:
    key = made(path, per_minute=4)
    asked = {**QUESTION, "q": ["a", "b", "c"], "api_key": key}
    first = client.post("/translate", json=asked)
    assert first.status_code == 200
    assert first.headers["ratelimit-limit"] == "4"
    assert first.headers["ratelimit-remaining"] == "1"
    second = client.post("/translate", json=asked)
    assert second.status_code == 429
    assert int(second.headers["retry-after"]) in range(28, 32)
    assert second.json()["error"].startswith("Slowdown: 4 per 1 minute")
    unlimited = made(path, "b")
    for _ in range(9):
        answer = client.post("/translate", json={**QUESTION, "api_key": unlimited})
        assert answer.status_code == 200
        assert "ratelimit-limit" not in answer.headers


def test_without_keys_addresses_are_counted_behind_trusted_proxies(
    serve: Serve, en_de: str
) -> None:
    client = serve(en_de, access=Access(per_minute=1), listen=Listen(trusted_proxies=("::2",)))
    client = TestClient(client.app, client=("::2", 1))
    codes = [
        client.post(
            "/translate", json=QUESTION, headers={"X-Forwarded-For": f"6.6.6.6, {address}"}
        ).status_code
        for address in ("192.0.2.1", "192.0.2.1", "192.0.2.2")
    ]
    assert codes == [200, 429, 200]


def test_a_client_cannot_choose_its_address(serve: Serve, en_de: str) -> None:
    client = serve(en_de, access=Access(per_minute=1))
    codes = [
        client.post("/translate", json=QUESTION, headers={"X-Forwarded-For": address}).status_code
        for address in ("192.0.2.1", "192.0.2.2")
    ]
    assert codes == [200, 429]


def test_keys_lie_in_heeds_home_unless_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEED_HOME", "/somewhere")
    assert keys_path(Access()) == Path("/somewhere/keys.sqlite")
    assert keys_path(Access(keys_file="/k")) == Path("/k")
