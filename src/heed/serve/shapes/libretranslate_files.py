"""Files of LibreTranslate's API: `/translate_file` and `/download_file`.

Source: LibreTranslate 1.9.6, `app.py`.
"""

from typing import Any
from urllib.parse import quote

from starlette.datastructures import URL
from starlette.responses import Response

from heed.documents.endings import SUPPORTED_FORMATS
from heed.serve.access.addresses import networks_of, uses_https
from heed.serve.refusal import Refusal
from heed.serve.service import Service
from heed.serve.shapes import schemas
from heed.serve.shapes.downloads import Downloads, keep_file
from heed.serve.shapes.endpoint import Asked, Endpoint, owner_of
from heed.serve.shapes.fields import Field
from heed.serve.shapes.libretranslate import API_KEY, SOURCE, STYLE, TAG, TARGET, direction
from heed.serve.shapes.stored import beside_store
from heed.serve.shapes.translated_file import FileOrder, attachment, translate_file

FILE = Field(
    name="file",
    kind="file",
    about=f"File to translate: {', '.join(SUPPORTED_FORMATS)}.",
    is_required=True,
)


async def _translate_file(service: Service, asked: Asked) -> dict[str, Any]:
    store = service.settings.store
    if store.files == 0:
        raise _disabled(403)
    values = asked.values
    name = values["file"].filename or ""
    if not name.lower().endswith(SUPPORTED_FORMATS):
        raise Refusal(
            400, "Invalid request: file format not supported", code="wrong_file", field="file"
        )
    source, target = direction(service, values["source"], values["target"])
    order = FileOrder(source=source, target=target, most_chars=asked.most_chars)
    found = await translate_file(service, values["file"], order)
    kept = await keep_file(service, found.name, found.content, owner=owner_of(asked))
    return {"translatedFileUrl": str(_address(service, asked, kept))}


def _address(service: Service, asked: Asked, kept: str) -> URL:
    """The address of a stored file, with the scheme that the client uses."""
    http = asked.http
    address = http.url_for("/download_file/{name}", name=quote(kept))
    trusted = networks_of(service.settings.listen.trusted_proxies)
    peer = http.client.host if http.client else ""
    if uses_https(peer, http.headers.getlist("x-forwarded-proto"), trusted):
        return address.replace(scheme="https")
    return address


async def _download_file(service: Service, asked: Asked) -> Response:
    store = service.settings.store
    if store.files == 0:
        raise _disabled(400)
    found = await beside_store(service, Downloads(store).read, asked.http.path_params["name"])
    if found is None:
        raise Refusal(404, "There is no file of this name, or no more.", code="not_found")
    return attachment(*found)


def _disabled(status: int) -> Refusal:
    return Refusal(status, "Files translation are disabled on this server.", code="disabled")


ENDPOINTS = (
    Endpoint(
        method="POST",
        path="/translate_file",
        handler=_translate_file,
        stores=True,
        style=STYLE,
        tag=TAG,
        summary="Translate a file, to be fetched from the address that is answered.",
        fields=(FILE, SOURCE, TARGET, API_KEY),
        answer=schemas.record(translatedFileUrl=schemas.TEXT),
    ),
    Endpoint(
        method="GET",
        path="/download_file/{name}",
        handler=_download_file,
        style=STYLE,
        tag=TAG,
        summary="Fetch a translated file.",
        answer={"type": "string", "format": "binary"},
        media_type="application/octet-stream",
    ),
)
