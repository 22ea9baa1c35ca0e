"""Language codes in requests, and texts that need no translation."""

from typing import Literal

from heed.serve.languages import resolve, resolve_pair
from heed.serve.request import AUTO, Answer, Request
from heed.serve.service import Service


class NotServedError(Exception):
    """A language or direction that is not served; each API words this error itself.

    Args:
        wrong: the part that is not served.
        source: the code as sent by the client; for a direction, the served code.
        target: likewise.
    """

    def __init__(
        self, wrong: Literal["source", "target", "direction"], source: str, target: str
    ) -> None:
        super().__init__(wrong)
        self.wrong = wrong
        self.source = source
        self.target = target


def resolve_direction(service: Service, source: str, target: str) -> tuple[str, str]:
    """The served codes of both languages; the source may be `AUTO`.

    Args:
        service: provides the languages.
        source: code as sent by a client.
        target: code as sent by a client.

    Raises:
        NotServedError: a language is not served, or the direction is not.
    """
    languages = service.all_languages()
    served = [(route.source, route.target) for route in service.routes]
    if source.lower() == AUTO:
        into = resolve(target, [each for _, each in served])
        if into is None:
            raise NotServedError("target", source, target)
        return AUTO, into
    given, into = resolve(source, languages), resolve(target, languages)
    if given is not None and given == into:
        return given, given
    if found := resolve_pair(source, target, served):
        return found
    if given is None:
        raise NotServedError("source", source, target)
    if into is None:
        raise NotServedError("target", source, target)
    raise NotServedError("direction", given, into)


async def translate_or_keep(service: Service, request: Request) -> list[Answer]:
    """The answers to a request; a text already in the target language is its own translation.

    Raises:
        Refusal: from the service.
    """
    if request.source == request.target:
        return [Answer(text=text, source=request.source, model="") for text in request.texts]
    return await service.translate(request)
