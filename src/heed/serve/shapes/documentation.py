"""The API documentation: `/openapi.json`, LibreTranslate's `/spec`, and `/docs`."""

import json
from collections.abc import Sequence
from importlib.resources import files
from typing import Any

from starlette.responses import Response

from heed.serve.refusal import Refusal
from heed.serve.service import Service
from heed.serve.shapes import libretranslate, openapi, swagger
from heed.serve.shapes.endpoint import Asked, Endpoint

TAG = "Documentation"
MEDIA_TYPES = {
    "docs.html": "text/html; charset=utf-8",
    "docs.css": "text/css; charset=utf-8",
    "docs.js": "text/javascript; charset=utf-8",
}
CONTENT_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
"""The page's content security policy: only its own files and this server's responses."""


def endpoints(documented: Sequence[Endpoint]) -> tuple[Endpoint, ...]:
    """The endpoints that document the given ones and themselves."""
    files_of_page = {name: _read(name) for name in MEDIA_TYPES}

    async def show_page(service: Service, asked: Asked) -> Response:
        return _file(files_of_page, "docs.html")

    async def show_file(service: Service, asked: Asked) -> Response:
        return _file(files_of_page, asked.http.path_params["name"])

    async def show_openapi(service: Service, asked: Asked) -> Response:
        return Response(described, media_type="application/json")

    async def show_swagger(service: Service, asked: Asked) -> Response:
        return Response(spec, media_type="application/json")

    rows = (
        ("/openapi.json", show_openapi, "Describe all endpoints in OpenAPI 3.1."),
        ("/spec", show_swagger, "Describe LibreTranslate's endpoints in Swagger 2.0."),
        ("/docs", show_page, "Show all endpoints as a page."),
        ("/docs/{name}", show_file, "Give a file of that page."),
    )
    own = tuple(
        Endpoint(
            method="GET",
            path=path,
            handler=handler,
            style=libretranslate.STYLE,
            tag=TAG,
            summary=summary,
            answer={"type": "object"} if path in ("/openapi.json", "/spec") else {"type": "string"},
            media_type="application/json" if path in ("/openapi.json", "/spec") else "text/html",
        )
        for path, handler, summary in rows
    )
    described = _compact(openapi.document((*documented, *own)))
    spec = _compact(
        swagger.document([each for each in documented if each.tag == libretranslate.TAG])
    )
    return own


def _compact(document: dict[str, Any]) -> bytes:
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()


def _read(name: str) -> bytes:
    return files("heed.serve.shapes").joinpath("static", name).read_bytes()


def _file(contents: dict[str, bytes], name: str) -> Response:
    if name not in contents:
        raise Refusal(404, "There is nothing at this address.", code="not_found")
    return Response(
        contents[name],
        headers={
            "Content-Type": MEDIA_TYPES[name],
            "Content-Security-Policy": CONTENT_POLICY,
            "Cache-Control": "no-cache",
            "X-Content-Type-Options": "nosniff",
        },
    )
