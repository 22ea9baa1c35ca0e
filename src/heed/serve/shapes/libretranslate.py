"""LibreTranslate's API, at the root: `/translate`, `/languages`, `/health`.

Source: LibreTranslate 1.9, `app.py`.
"""

from typing import Any

from starlette.requests import Request as HttpRequest
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from heed.serve.refusal import Refusal
from heed.serve.request import Request
from heed.serve.service import Service
from heed.serve.shapes.body import read_parameters


def routes(service: Service) -> list[Route]:
    """The routes of this API."""

    async def translate(http: HttpRequest) -> Response:
        values = await read_parameters(http, service.settings.limits.body_bytes)
        return JSONResponse(await _translated(service, values))

    async def health(_: HttpRequest) -> Response:
        return JSONResponse({"status": "ok"})

    return [
        Route("/translate", translate, methods=["POST"]),
        Route("/health", health),
    ]


async def _translated(service: Service, values: dict[str, Any]) -> dict[str, Any]:
    for name in ("q", "source", "target"):
        if name not in values:
            raise Refusal(400, f"Invalid request: missing {name} parameter", field=name)
    q = values["q"]
    texts = q if isinstance(q, list) else [q]
    answers = await service.translate(
        Request(texts=texts, source=values["source"], target=values["target"])
    )
    found = [answer.text for answer in answers]
    return {"translatedText": found if isinstance(q, list) else found[0]}


def spell(refusal: Refusal) -> dict[str, Any]:
    """The body of an error answer."""
    return {"error": refusal.sentence}
