"""The OpenAPI document says what the server does: its paths, its examples, its answers."""

import itertools
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from starlette.applications import Starlette
from starlette.routing import Match, Route
from starlette.testclient import TestClient
from tests.serve.conftest import Serve

from heed.serve.connection import SENTENCES
from heed.serve.settings import Access, Store


@pytest.fixture
def client(serve: Serve, en_de: str, de_en: str, tmp_path_factory: pytest.TempPathFactory) -> Any:
    return serve(en_de, de_en, store=Store(folder=str(tmp_path_factory.mktemp("store"))))


def operations(described: Any) -> list[tuple[str, str, Any]]:
    """Method, path and description of every operation."""
    return [
        (method.upper(), path, operation)
        for path, item in described["paths"].items()
        for method, operation in item.items()
    ]


def ask(client: TestClient, method: str, path: str, operation: Any) -> Any:
    """Ask with the examples of the document; None if a place in the path has none."""
    parameters = operation.get("parameters", [])
    if any(each["in"] == "path" for each in parameters):
        return None
    query = {each["name"]: each["example"] for each in parameters if "example" in each}
    content = operation.get("requestBody", {}).get("content", {})
    body = content.get("application/json")
    if content and (body is None or "example" not in body):
        return None
    return client.request(method, path, params=query, json=body["example"] if body else None)


OPERATORS = {"/ready", "/metrics"}
"""For load balancers and Prometheus; both have an own description."""


def innermost(client: TestClient) -> Starlette:
    """The application inside all layers that watch requests."""
    app: Any = client.app
    while not isinstance(app, Starlette):
        app = next(inner for inner in vars(app).values() if callable(inner))
    return app


def routes_of_app(client: TestClient) -> list[Route]:
    """Its routes with paths of their own."""
    return [route for route in innermost(client).routes if isinstance(route, Route)]


def test_a_path_found_at_once_has_the_route_that_a_search_finds(client: TestClient) -> None:
    at_once, *routes = innermost(client).routes
    fixed = [route for route in routes_of_app(client) if "{" not in route.path]
    assert len(fixed) > 40
    for path, method in itertools.product((route.path for route in fixed), ("GET", "POST")):
        scope = {"type": "http", "method": method, "path": path}
        matches = ((route, *route.matches(scope)) for route in routes)
        route, match, found = next(each for each in matches if each[1] is not Match.NONE)
        assert at_once.matches(scope) == (match, {**found, "route": route})
    for path in ("/nothing", "/api/v1/trace/1", "/translate/"):
        scope = {"type": "http", "method": "GET", "path": path}
        assert at_once.matches(scope) == (Match.NONE, {})


def test_the_document_has_the_routes_of_the_app(client: TestClient) -> None:
    described = client.get("/openapi.json").json()
    documented = {(method, path) for method, path, _ in operations(described)}
    served = {
        (method, route.path)
        for route in routes_of_app(client)
        if route.path not in OPERATORS | {"/"} and not route.path.startswith("/page/")
        for method in route.methods - {"HEAD"}
    }
    assert served == documented


def test_every_example_is_answered_as_documented(client: TestClient) -> None:
    described = client.get("/openapi.json").json()
    n_asked = 0
    for method, path, operation in operations(described):
        answer = ask(client, method, path, operation)
        if answer is None:
            continue
        n_asked += 1
        responses = operation["responses"]
        status = next(iter(responses))
        assert str(answer.status_code) == status, (method, path, answer.text)
        ((media_type, content),) = responses[status]["content"].items()
        assert answer.headers["content-type"].startswith(media_type)
        if media_type == "application/json":
            schema = {**content["schema"], "components": described["components"]}
            jsonschema.validate(answer.json(), schema)
    assert n_asked >= 20


def test_an_error_is_spelled_as_documented(client: TestClient) -> None:
    described = client.get("/openapi.json").json()
    for method, path, operation in operations(described):
        if method == "POST":
            answer = client.post(path, content=b"{", headers={"Content-Type": "application/json"})
            assert answer.status_code == 400
            content = operation["responses"]["400"]["content"]["application/json"]
            schema = {**content["schema"], "components": described["components"]}
            jsonschema.validate(answer.json(), schema)


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (415, {"Content-Type": "text/plain"}),
        (421, {"Content-Type": "application/json", "Host": "evil.example"}),
    ],
)
def test_a_body_of_another_type_and_another_host_name_have_documented_answers(
    serve: Serve, en_de: str, status: int, headers: dict[str, str]
) -> None:
    client = serve(en_de, access=Access(hosts=("mt.example.org",)))
    described = client.get("/openapi.json", headers={"Host": "localhost"}).json()
    for method, path, operation in operations(described):
        if method not in ("POST", "PUT", "PATCH"):
            continue
        answer = client.request(
            method, path, content=b"{}", headers={"Host": "localhost", **headers}
        )
        assert answer.status_code == status, (method, path, answer.text)
        response = operation["responses"][str(status)]
        schema = response["content"]["application/json"]["schema"]
        jsonschema.validate(answer.json(), {**schema, "components": described["components"]})


def resolved(described: Any, response: Any) -> Any:
    """A response, itself or where it points to."""
    if "$ref" not in response:
        return response
    found = described
    for part in response["$ref"].removeprefix("#/").split("/"):
        found = found[part]
    return found


def test_what_a_connection_refuses_is_documented_for_every_operation(client: TestClient) -> None:
    described = client.get("/openapi.json").json()
    for _, path, operation in operations(described):
        for status in (408, 431):
            response = resolved(described, operation["responses"][str(status)])
            assert response["description"] == SENTENCES[status], path
            schema = response["content"]["application/json"]["schema"]
            jsonschema.validate({"error": SENTENCES[status]}, schema)
            with pytest.raises(jsonschema.ValidationError):
                jsonschema.validate({"message": SENTENCES[status]}, schema)


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v2/translate", {"text": ["a"], "source_lang": "EN", "glossary_id": "x" * 32}),
        ("/api/v1/runs/differences", {"names": ["nothing"]}),
    ],
)
def test_what_a_parameter_names_may_be_missing(client: TestClient, path: str, body: Any) -> None:
    described = client.get("/openapi.json").json()
    answer = client.post(path, json={"target_lang": "DE", **body})
    assert answer.status_code == 404
    response = described["paths"][path]["post"]["responses"]["404"]
    schema = response["content"]["application/json"]["schema"]
    jsonschema.validate(answer.json(), {**schema, "components": described["components"]})
    assert "404" not in described["paths"]["/translate"]["post"]["responses"]


def test_a_missing_key_has_the_documented_status(serve: Serve, en_de: str, tmp_path: Path) -> None:
    client = serve(en_de, access=Access(keys="on", keys_file=str(tmp_path / "keys.sqlite")))
    described = client.get("/openapi.json").json()
    n_asked = 0
    for method, path, operation in operations(described):
        answer = ask(client, method, path, operation)
        if answer is not None and answer.status_code != 200:
            n_asked += 1
            assert str(answer.status_code) in operation["responses"], (method, path)
            is_401 = answer.status_code == 401
            assert is_401 == ("401" in operation["responses"]), (method, path)
    assert n_asked >= 20


def test_every_operation_has_a_name_of_its_own(client: TestClient) -> None:
    described = client.get("/openapi.json").json()
    names = [operation["operationId"] for _, _, operation in operations(described)]
    assert len(set(names)) == len(names)


def test_the_specification_of_libretranslate_is_swagger(client: TestClient) -> None:
    spec = client.get("/spec").json()
    assert spec["swagger"] == "2.0"
    assert {"/translate", "/languages", "/health"} <= set(spec["paths"])
    translate = spec["paths"]["/translate"]["post"]
    assert {each["name"] for each in translate["parameters"]} == {
        "q",
        "source",
        "target",
        "format",
        "alternatives",
        "api_key",
    }
    assert all(not path.startswith("/v2") for path in spec["paths"])
