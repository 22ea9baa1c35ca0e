"""`/spec`: LibreTranslate's endpoints as Swagger 2.0, for programs that read its document."""

from collections.abc import Sequence
from typing import Any

from heed import __version__
from heed.serve.shapes.endpoint import Endpoint
from heed.serve.shapes.fields import Field

TYPES = {"integer": "integer", "number": "number", "flag": "boolean", "file": "file"}


def document(endpoints: Sequence[Endpoint]) -> dict[str, Any]:
    """Make the document."""
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in endpoints:
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = _operation(endpoint)
    return {
        "swagger": "2.0",
        "info": {
            "title": "LibreTranslate",
            "description": "Machine translation by heed, in LibreTranslate's API.",
            "version": __version__,
        },
        "basePath": "/",
        "paths": paths,
    }


def _operation(endpoint: Endpoint) -> dict[str, Any]:
    has_file = any(each.kind == "file" for each in endpoint.fields)
    found: dict[str, Any] = {
        "summary": endpoint.summary,
        "parameters": [_parameter(each) for each in endpoint.fields],
        "responses": {
            "200": {"description": "The answer.", "schema": dict(endpoint.answer)},
            **{
                str(status): {"description": words, "schema": dict(endpoint.style.error)}
                for status, words in ((400, "Invalid request"), (403, "Banned"), (429, "Slow down"))
            },
        },
    }
    return {**found, "consumes": ["multipart/form-data"]} if has_file else found


def _parameter(field: Field) -> dict[str, Any]:
    found: dict[str, Any] = {
        "name": field.name,
        "in": "formData",
        "type": TYPES.get(field.kind, "string"),
        "required": field.is_required,
        "description": field.about,
    }
    if field.default is not None:
        found["default"] = field.default
    return found
