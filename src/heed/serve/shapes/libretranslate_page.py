"""Requests of LibreTranslate's own page: `/frontend/settings`, and `/suggest`.

Source: LibreTranslate 1.9.6, `app.py`.
"""

from typing import Any

from heed.documents.endings import SUPPORTED_FORMATS
from heed.serve.refusal import Refusal
from heed.serve.request import AUTO
from heed.serve.service import Service
from heed.serve.shapes import schemas
from heed.serve.shapes.endpoint import Asked, Endpoint, owner_of
from heed.serve.shapes.fields import Field
from heed.serve.shapes.libretranslate import (
    API_KEY,
    SOURCE,
    STYLE,
    TAG,
    TARGET,
    direction,
    require_within_limits,
    spelled_code,
)
from heed.serve.shapes.storage import Storage
from heed.serve.shapes.stored import in_store

TIMEOUT_MS = 500
"""The time that LibreTranslate's page waits after a keystroke."""


async def _settings(service: Service, asked: Asked) -> dict[str, Any]:
    service.require_models()
    settings = service.settings
    # The first language that is a target of another one.
    target = next(code for each in service.languages() for code in each.targets)
    return {
        "charLimit": settings.limits.chars,
        "frontendTimeout": TIMEOUT_MS,
        "apiKeys": settings.needs_keys,
        "keyRequired": settings.needs_keys,
        "suggestions": settings.store.suggestions > 0,
        "filesTranslation": settings.store.files > 0,
        "supportedFilesFormat": list(SUPPORTED_FORMATS) if settings.store.files else [],
        "language": {
            "source": {"code": AUTO, "name": "Auto Detect"},
            "target": {"code": spelled_code(target), "name": service.all_languages()[target].name},
        },
    }


async def _suggest(service: Service, asked: Asked) -> dict[str, Any]:
    if service.settings.store.suggestions == 0:
        raise Refusal(403, "Suggestions are disabled on this server.", code="disabled")
    values = asked.values
    require_within_limits(service, [values["q"], values["s"]])
    source, target = direction(service, values["source"], values["target"])
    await in_store(
        service,
        Storage.add_suggestion,
        owner_of(asked),
        source,
        target,
        values["q"],
        values["s"],
    )
    return {"success": True}


_LANGUAGE = schemas.record(code=schemas.TEXT, name=schemas.TEXT)
ENDPOINTS = (
    Endpoint(
        method="GET",
        path="/frontend/settings",
        handler=_settings,
        style=STYLE,
        tag=TAG,
        summary="Tell the limits and the default languages.",
        answer=schemas.record(
            charLimit=schemas.INTEGER,
            frontendTimeout=schemas.INTEGER,
            apiKeys=schemas.FLAG,
            keyRequired=schemas.FLAG,
            suggestions=schemas.FLAG,
            filesTranslation=schemas.FLAG,
            supportedFilesFormat=schemas.listed(schemas.TEXT),
            language=schemas.record(source=_LANGUAGE, target=_LANGUAGE),
        ),
    ),
    Endpoint(
        method="POST",
        path="/suggest",
        handler=_suggest,
        stores=True,
        style=STYLE,
        tag=TAG,
        summary="Suggest a better translation, where the server keeps them.",
        fields=(
            *(
                Field(name=name, kind="text", about=about, is_required=True, is_for_model=False)
                for name, about in (("q", "The text."), ("s", "A better translation."))
            ),
            SOURCE,
            TARGET,
            API_KEY,
        ),
        answer=schemas.record(success=schemas.FLAG),
    ),
)
