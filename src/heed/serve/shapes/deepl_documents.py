"""Documents of DeepL's API, `/v2/document`: upload, status, result.

A document is translated while it is uploaded, so its status is `done` from the beginning.
"""

import hashlib
import secrets
from typing import Any

from starlette.responses import Response

from heed.serve.refusal import Refusal
from heed.serve.service import Service
from heed.serve.shapes.deepl import (
    AUTH_KEY,
    FORMALITY,
    GLOSSARIES,
    GLOSSARY,
    PREFIX,
    SOURCE,
    STYLE,
    TAG,
    TARGET,
    count_chars,
    direction,
    find_terms,
    refuse_unsupported,
)
from heed.serve.shapes.downloads import Downloads, keep_file
from heed.serve.shapes.endpoint import Asked, Endpoint, owner_of
from heed.serve.shapes.fields import Field
from heed.serve.shapes.libretranslate_files import FILE
from heed.serve.shapes.schemas import INTEGER, TEXT, record
from heed.serve.shapes.stored import beside_store
from heed.serve.shapes.translated_file import FileOrder, attachment, translate_file

PATH = f"{PREFIX}/document"
_COUNT = 8
"""Digits of a document's key with its number of characters."""
KEY = Field(
    name="document_key", kind="word", about="The key that the upload answered.", is_required=True
)
FILENAME = Field(
    name="filename", kind="word", about="Name of the file; default: the one it is sent with."
)
OUTPUT_FORMAT = Field(
    name="output_format", kind="word", about="Ending of the translated file: that of the file."
)


async def _upload(service: Service, asked: Asked) -> dict[str, Any]:
    values = asked.values
    values["file"].filename = values["filename"] or values["file"].filename
    refuse_unsupported(asked)
    if service.settings.store.files == 0:
        raise Refusal(403, "Documents are disabled on this server.", code="disabled")
    ending = (values["file"].filename or "").rpartition(".")[2].lower()
    if (values["output_format"] or ending).lower() != ending:
        raise Refusal(
            400,
            "Value for 'output_format' not supported: it must be that of the file.",
            code="wrong_value",
            field="output_format",
        )
    source, target = direction(service, values)
    order = FileOrder(
        source=source,
        target=target,
        most_chars=asked.most_chars,
        glossary=await find_terms(service, asked, source, target),
    )
    found = await translate_file(service, values["file"], order)
    # Its end tells the status how many characters there were; the lock protects all of it.
    key = f"{secrets.token_hex(32 - _COUNT // 2)}{found.n_chars:0{_COUNT}x}"
    kept = await keep_file(
        service, found.name, found.content, lock=_lock(key), owner=owner_of(asked)
    )
    count_chars(asked, found.n_chars)
    return {"document_id": kept.partition("-")[0].upper(), "document_key": key}


def _lock(key: str) -> str:
    return hashlib.sha256(key.encode()).hexdigest()


async def _status(service: Service, asked: Asked) -> dict[str, Any]:
    await _find(service, asked)
    id = asked.http.path_params["document_id"]
    n_chars = int(asked.values["document_key"][-_COUNT:], 16)
    return {
        "document_id": id,
        "status": "done",
        "seconds_remaining": 0,
        "billed_characters": n_chars,
    }


async def _result(service: Service, asked: Asked) -> Response:
    name = await _find(service, asked)
    found = await beside_store(service, Downloads(service.settings.store).read, name)
    if found is None:
        raise _not_found()
    return attachment(*found)


async def _find(service: Service, asked: Asked) -> str:
    id = asked.http.path_params["document_id"].lower()
    downloads, lock = Downloads(service.settings.store), _lock(asked.values["document_key"])
    found = await beside_store(service, downloads.find, id, lock)
    if found is None:
        raise _not_found()
    return found


def _not_found() -> Refusal:
    return Refusal(404, "Document not found.", code="no_such_document", field="document_id")


ENDPOINTS = (
    Endpoint(
        method="POST",
        path=PATH,
        handler=_upload,
        stores=True,
        style=STYLE,
        tag=TAG,
        summary="Upload a document and translate it.",
        fields=(
            FILE,
            TARGET,
            SOURCE,
            GLOSSARY,
            GLOSSARIES,
            FORMALITY,
            FILENAME,
            OUTPUT_FORMAT,
            AUTH_KEY,
        ),
        answer=record(document_id=TEXT, document_key=TEXT),
    ),
    Endpoint(
        method="POST",
        path=f"{PATH}/{{document_id}}",
        handler=_status,
        style=STYLE,
        tag=TAG,
        summary="Tell how far the translation of a document is.",
        fields=(KEY, AUTH_KEY),
        answer=record(
            document_id=TEXT, status=TEXT, seconds_remaining=INTEGER, billed_characters=INTEGER
        ),
    ),
    Endpoint(
        method="POST",
        path=f"{PATH}/{{document_id}}/result",
        handler=_result,
        style=STYLE,
        tag=TAG,
        summary="Fetch a translated document.",
        fields=(KEY, AUTH_KEY),
        answer={"type": "string", "format": "binary"},
        media_type="application/octet-stream",
    ),
)
