"""Each request has an id and a line without what the client sent; each answer, its headers."""

import logging
from collections.abc import Iterator
from unittest.mock import Mock

import pytest
from starlette.testclient import TestClient
from tests.serve.conftest import Serve

from heed.serve.access.rates import Taken
from heed.serve.service import Service
from heed.serve.settings import Access
from heed.serve.watch.logs import REQUESTS

CANARY = "zq7canaryx"
QUESTION = {"q": "A man.", "source": "en", "target": "de"}


@pytest.fixture
def client(serve: Serve, en_de: str) -> TestClient:
    return serve(en_de)


def test_a_client_may_name_its_request(client: TestClient) -> None:
    answer = client.get("/health", headers={"X-Request-Id": "my-id.7"})
    assert answer.headers["x-request-id"] == "my-id.7"
    for bad in ("a b", "x" * 65, "é", ""):
        made = client.get("/health", headers={"X-Request-Id": bad.encode()}).headers["x-request-id"]
        assert len(made) == 16


def test_errors_have_the_id_too(client: TestClient) -> None:
    answer = client.post("/api/v1/translate", json={}, headers={"X-Request-Id": "my-id"})
    assert answer.json()["error"]["request_id"] == "my-id"


def test_unexpected_errors_are_logged_also_where_requests_are_not(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(logging.getLogger(REQUESTS), "disabled", True)
    monkeypatch.setattr(Service, "translate", Mock(side_effect=ValueError(CANARY)))
    assert client.post("/translate", json=QUESTION).status_code == 500
    assert [record.message for record in caplog.records if record.exc_info] == ["failed"]


@pytest.mark.parametrize("path", ["/", "/health", "/ready", "/nowhere", "/translate"])
def test_every_answer_is_safe_in_a_browser(client: TestClient, path: str) -> None:
    headers = client.get(path).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert "server" not in headers
    assert "access-control-allow-origin" not in headers


def test_only_listed_origins_may_read_answers(serve: Serve, en_de: str) -> None:
    client = serve(en_de, access=Access(origins=("https://a.example",)))
    found = {
        origin: client.get("/languages", headers={"Origin": origin}).headers
        for origin in ("https://a.example", "https://b.example", "http://a.example", "null")
    }
    allowed = found.pop("https://a.example")
    assert allowed["access-control-allow-origin"] == "https://a.example"
    assert "access-control-allow-credentials" not in allowed
    readable = allowed["access-control-expose-headers"].lower().split(", ")
    taken = Taken(is_allowed=False, limit=1, remaining=0, reset_s=1, wait_s=1)
    assert {name.lower() for name in taken.headers()} <= set(readable)
    assert "content-disposition" in readable  # the name of a translated file
    for headers in found.values():
        assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize(
    ("listed", "sent"),
    [
        ("https://Größe.example:8443", "https://xn--gre-6ka8i.example:8443"),
        ("safari-web-extension://0A-1", "safari-web-extension://0A-1"),
    ],
)
def test_origins_are_compared_as_browsers_send_them(
    serve: Serve, en_de: str, listed: str, sent: str
) -> None:
    client = serve(en_de, access=Access(origins=(listed,)))
    headers = client.get("/languages", headers={"Origin": sent}).headers
    assert headers["access-control-allow-origin"] == sent


def test_a_preflight_of_another_origin_is_refused(serve: Serve, en_de: str) -> None:
    client = serve(en_de, access=Access(origins=("https://a.example",)))
    asked = {"Access-Control-Request-Method": "POST"}
    codes = [
        client.options("/translate", headers={"Origin": origin, **asked}).status_code
        for origin in ("https://a.example", "https://b.example")
    ]
    assert codes == [200, 400]


@pytest.mark.parametrize(
    "path",
    [
        "/../etc/passwd",
        "/..%2f..%2fetc/passwd",
        "/%2e%2e/%2e%2e/etc/passwd",
        "/page/..%2f..%2fsettings.py",
        "/page/x/..%5c..%5csettings.py",
        "/page/%252e%252e/settings.py",
        "/page/%00",
        "/page//etc/passwd",
        "/docs/..%2f..%2fapp.py",
        "/docs/%2e%2e%2fapp.py",
        "/page2",
        "/download_file/..%2f..%2fetc%2fpasswd",
    ],
)
def test_paths_lead_nowhere_but_to_routes(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert "root:" not in answer.text and "import" not in answer.text


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Iterator[pytest.LogCaptureFixture]:
    with caplog.at_level("INFO"):
        yield caplog


def test_what_a_client_sends_is_in_no_log_figure_or_error(
    client: TestClient, logged: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = {"X-API-Key": CANARY, "Authorization": f"Bearer {CANARY}"}
    errors = [
        client.post("/translate", json={**QUESTION, "target": "zz", "q": CANARY}, headers=key),
        client.post("/translate", json={"q": CANARY, "api_key": CANARY}, headers=key),
        client.post("/translate", content=f'{{"q": "{CANARY}'.encode(), headers=key),
        client.post("/v2/translate", json={"text": [CANARY], "auth_key": CANARY}),
        client.post("/api/v1/translate", json={"text": CANARY, "target": "zz"}),
        client.get(f"/{CANARY}?q={CANARY}", headers=key),
        client.request("ZQCANARYX", "/translate", headers=key),
    ]
    client.post("/translate", json={**QUESTION, "q": CANARY}, headers=key)

    def fail(*_: object) -> None:
        raise ValueError(CANARY)

    monkeypatch.setattr("heed.serve.service.Service.translate", fail)
    errors.append(client.post("/translate", json={**QUESTION, "q": CANARY}, headers=key))
    assert [answer.status_code // 100 for answer in errors] == [4] * 7 + [5]
    for answer in errors:
        assert CANARY not in answer.text.lower()
    assert CANARY not in client.get("/metrics").text.lower()
    from heed.serve.watch.logs import Lines

    lines = [Lines(is_json=True).format(record) for record in logged.records]
    ours = [line for line, r in zip(lines, logged.records, strict=True) if r.name == REQUESTS]
    assert len(ours) >= 9
    for record, line in zip(logged.records, lines, strict=True):
        if record.name.startswith(("heed", "uvicorn")):
            assert CANARY not in line.lower()


def test_health_checks_are_logged_only_when_debugging(
    client: TestClient, logged: pytest.LogCaptureFixture
) -> None:
    client.get("/health")
    client.get("/languages")
    fields = [r.fields for r in logged.records if r.name == REQUESTS]  # type: ignore[attr-defined]
    assert [each["route"] for each in fields] == ["/languages"]
    assert logging.getLogger(REQUESTS).isEnabledFor(logging.INFO)
