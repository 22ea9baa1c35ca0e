"""DeepLX's API, for add-ons and apps that request DeepL translations from a custom server.

Source: OwO-Network/DeepLX, `service/service.go`.
"""

import secrets
from dataclasses import replace
from typing import Any

from heed.serve.refusal import Refusal
from heed.serve.service import Service
from heed.serve.shapes import addons, deepl, fields
from heed.serve.shapes.endpoint import Asked, Endpoint
from heed.serve.shapes.fields import Field
from heed.serve.shapes.schemas import INTEGER, TEXT, listed, record
from heed.serve.shapes.style import Style

TAG = "DeepLX"
PATHS = ("/deeplx", "/deeplx/translate")
"""Paths; some clients append the second part to the configured address."""
N_ALTERNATIVES = 3
MAX_ID = 2**53 - 1
"""The largest integer that JavaScript represents exactly."""


def spell(refusal: Refusal, request_id: str) -> dict[str, Any]:
    """The body of an error response."""
    return {"code": refusal.status, "message": refusal.sentence}


STYLE = Style(
    missing="Parameter {name} is missing.",
    wrong="Parameter {name} must be {meaning}.",
    spell=spell,
    error=record(code=INTEGER, message=TEXT),
    prefixes=PATHS[:1],
)


async def _translate(service: Service, asked: Asked) -> dict[str, Any]:
    values = asked.values
    (answer,) = await addons.translate(
        service,
        [values["text"]],
        values["source_lang"],
        values["target_lang"],
        values["tag_handling"] or "text",
        alternatives=min(N_ALTERNATIVES, service.settings.limits.alternatives),
    )
    return {
        "code": 200,
        "id": 1 + secrets.randbelow(MAX_ID),
        "data": answer.text,
        "alternatives": list(answer.alternatives),
        "source_lang": deepl.spelled_base(answer.source),
        "target_lang": values["target_lang"].upper(),
        "method": "Free",
    }


FIELDS = (
    addons.WHOLE_TEXT,
    replace(fields.SOURCE, name="source_lang", example="EN"),
    replace(fields.TARGET, name="target_lang", example="DE"),
    next(each for each in deepl.TRANSLATE if each.name == "tag_handling"),
    Field(name="token", kind="word", about="Key, where it is not in the header Authorization."),
)
ENDPOINTS = tuple(
    Endpoint(
        method="POST",
        path=path,
        handler=_translate,
        style=STYLE,
        tag=TAG,
        summary="Translate a text, as DeepLX.",
        fields=FIELDS,
        answer=record(
            code=INTEGER,
            id=INTEGER,
            data=TEXT,
            alternatives=listed(TEXT),
            source_lang=TEXT,
            target_lang=TEXT,
            method=TEXT,
        ),
    )
    for path in PATHS
)
