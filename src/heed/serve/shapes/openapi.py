"""The OpenAPI 3.1 document of all endpoints, generated from their table."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from heed import __version__
from heed.serve.shapes.body import JSON, MULTIPART, URLENCODED
from heed.serve.shapes.endpoint import Endpoint
from heed.serve.shapes.fields import MAX_WORD_CHARS, Field, Kind, example_of
from heed.serve.shapes.schemas import SHARED, TEXT, listed, record, ref

_STRINGS = {"type": "array", "items": {"type": "string"}}
SCHEMAS: Mapping[Kind, Mapping[str, Any]] = {
    "text": {"type": "string"},
    "texts": {"oneOf": [{"type": "string"}, _STRINGS]},
    "integer": {"type": "integer"},
    "integers": {"type": "array", "items": {"type": "integer"}},
    "number": {"type": "number"},
    "flag": {"type": "boolean"},
    "word": {"type": "string", "maxLength": MAX_WORD_CHARS},
    "words": {"oneOf": [_STRINGS, {"type": "string"}]},
    "object": {"type": "object"},
    "objects": {"type": "array", "items": {"type": "object"}},
    "pairs": listed(record(source=TEXT, target=TEXT)),
    "file": {"type": "string", "contentMediaType": "application/octet-stream"},
}
ERRORS = {
    400: "A parameter is missing or wrong.",
    403: "The key is missing or wrong, or the server does not offer this.",
    413: "Larger than the server accepts.",
    421: "The server does not answer under the name in the Host header.",
    429: "Too many requests; the Retry-After header says when to retry.",
    503: "The server is busy or shutting down; the Retry-After header says when to retry.",
    504: "The answer was not ready in time.",
}
NOT_THERE = "Nothing has this name."
NO_KEY = "The key is missing or wrong."
WRONG_TYPE = "The body is of another media type, or compressed."
OF_CONNECTIONS = {
    408: "The request took too long to arrive.",
    431: "The request line and headers are too long.",
}
"""Errors before a request has a path, so they have the same format for all APIs."""
WITH_BODY = ("POST", "PUT", "PATCH")
"""Methods whose parameters are in a body."""
_PLACEHOLDER = re.compile(r"{(\w+)}")


def document(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    """The document of all endpoints."""
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        operations = paths.setdefault(endpoint.path, {})
        operations[endpoint.method.lower()] = _operation(endpoint)
    errors = {f"{each.tag} error": each.style.error for each in endpoints}
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "heed",
            "version": __version__,
            "summary": "Translation: the APIs of LibreTranslate and DeepL, and heed's own.",
        },
        "servers": [{"url": "."}],
        "tags": [{"name": tag} for tag in dict.fromkeys(each.tag for each in endpoints)],
        "paths": paths,
        "components": {
            "responses": {
                str(status): _described(words, record(error=TEXT))
                for status, words in OF_CONNECTIONS.items()
            },
            "schemas": {**SHARED, **{_key(name): dict(error) for name, error in errors.items()}},
            "securitySchemes": {
                "bearer": {"type": "http", "scheme": "bearer"},
                "deepl": {
                    "type": "apiKey",
                    "in": "header",
                    "name": "Authorization",
                    "description": "`DeepL-Auth-Key` and the key.",
                },
                "header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
            },
        },
        # The empty one is for a server that only programs on its own machine can reach: no key.
        "security": [{}, {"bearer": []}, {"deepl": []}, {"header": []}],
    }


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    names = _PLACEHOLDER.findall(endpoint.path)
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
        for name in names
    ]
    operation: dict[str, Any] = {
        "tags": [endpoint.tag],
        "summary": endpoint.summary,
        "operationId": f"{endpoint.method.lower()}{re.sub(r'[^A-Za-z0-9]+', '_', endpoint.path)}",
        "responses": _responses(endpoint),
    }
    if endpoint.body is not None:
        content = {"schema": dict(endpoint.body), "example": endpoint.example}
        operation["requestBody"] = {"required": True, "content": {JSON: content}}
    elif endpoint.method in WITH_BODY and endpoint.fields:
        operation["requestBody"] = _body(endpoint)
    else:
        parameters += [_parameter(each) for each in endpoint.fields]
    if parameters:
        operation["parameters"] = parameters
    return operation


def _body(endpoint: Endpoint) -> dict[str, Any]:
    schema = {
        "type": "object",
        "properties": {each.name: schema_of(each) for each in endpoint.fields},
        "required": [each.name for each in endpoint.fields if each.is_required],
    }
    kinds = {each.kind for each in endpoint.fields}
    # A form can send only strings, and JSON cannot send files.
    media_types = [MULTIPART] if "file" in kinds else [JSON]
    if not kinds & {"file", "object", "objects", "pairs"}:
        media_types.append(URLENCODED)
    content: dict[str, Any] = {media_type: {"schema": schema} for media_type in media_types}
    has_example = all(each.example is not None for each in endpoint.fields if each.is_required)
    if JSON in content and has_example:
        content[JSON]["example"] = example_of(endpoint.fields)
    return {"required": bool(schema["required"]), "content": content}


def _parameter(field: Field) -> dict[str, Any]:
    found = {
        "name": field.name,
        "in": "query",
        "description": field.about,
        "required": field.is_required,
        "schema": schema_of(field),
    }
    return found if field.example is None else {**found, "example": field.example}


def schema_of(field: Field) -> dict[str, Any]:
    """JSON Schema of a parameter."""
    schema: dict[str, Any] = {**SCHEMAS[field.kind], "description": field.about}
    if field.choices:
        schema["enum"] = list(field.choices)
    if field.default not in (None, [], {}):
        schema["default"] = field.default
    for name, limit in (("minimum", field.low), ("maximum", field.high)):
        if abs(limit) != float("inf"):
            schema[name] = limit
    return schema


def _responses(endpoint: Endpoint) -> dict[str, Any]:
    good: dict[str, Any] = {"description": "The answer."}
    if endpoint.status != 204:
        good["content"] = {endpoint.media_type: {"schema": dict(endpoint.answer)}}
    error = ref(_key(f"{endpoint.tag} error"))
    answers = {status: _described(words, error) for status, words in _errors(endpoint).items()}
    for status in OF_CONNECTIONS:
        answers[status] = {"$ref": f"#/components/responses/{status}"}
    return {
        str(endpoint.status): good,
        **{str(status): answers[status] for status in sorted(answers)},
    }


def _errors(endpoint: Endpoint) -> dict[int, str]:
    """Descriptions of the application's error responses, by status."""
    found = {**ERRORS, **endpoint.errors}
    if "{" in endpoint.path or any(each.names_stored for each in endpoint.fields):
        found[404] = NOT_THERE
    if endpoint.needs_key and 401 not in endpoint.style.statuses:
        found[401] = NO_KEY
    if endpoint.method in WITH_BODY:
        found[415] = WRONG_TYPE
    return found


def _described(words: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"description": words, "content": {JSON: {"schema": dict(schema)}}}


def _key(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9]+", "_", name)
