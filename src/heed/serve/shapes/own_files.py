"""Files in heed's own API: the response to a file is its translation."""

from starlette.responses import Response

from heed.serve.service import Service
from heed.serve.shapes.endpoint import Asked, Endpoint
from heed.serve.shapes.fields import SOURCE, TARGET
from heed.serve.shapes.libretranslate import direction
from heed.serve.shapes.libretranslate_files import FILE
from heed.serve.shapes.own import PREFIX, STYLE, TAG
from heed.serve.shapes.translated_file import FileOrder, attachment, translate_file


async def _translate_file(service: Service, asked: Asked) -> Response:
    values = asked.values
    source, target = direction(service, values["source"], values["target"])
    order = FileOrder(source=source, target=target, most_chars=asked.most_chars)
    found = await translate_file(service, values["file"], order)
    return attachment(found.name, found.content)


ENDPOINTS = (
    Endpoint(
        method="POST",
        path=f"{PREFIX}/files",
        handler=_translate_file,
        style=STYLE,
        tag=TAG,
        summary="Translate a file.",
        fields=(FILE, SOURCE, TARGET),
        answer={"type": "string", "format": "binary"},
        media_type="application/octet-stream",
    ),
)
