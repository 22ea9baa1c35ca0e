"""Texts that need no translation."""

from heed.serve.request import Answer, Request
from heed.serve.service import Service


async def translate_or_keep(service: Service, request: Request) -> list[Answer]:
    """The answers to a request; a text already in the target language is its own translation.

    Raises:
        Refusal: of the service.
    """
    if request.source == request.target:
        return [Answer(text=text, source=request.source, model="") for text in request.texts]
    return await service.translate(request)
