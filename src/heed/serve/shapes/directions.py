"""Language codes in requests, and texts that need no translation."""

from typing import Literal

from heed.serve.languages import resolve
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
    into = resolve(target, languages)
    given = AUTO if source.lower() == AUTO else resolve(source, languages)
    if given is None:
        raise NotServedError("source", source, target)
    if into is None:
        raise NotServedError("target", source, target)
    if given == AUTO and not any(into in language.targets for language in languages.values()):
        raise NotServedError("target", source, target)
    if given not in (AUTO, into) and into not in languages[given].targets:
        raise NotServedError("direction", given, into)
    return given, into


async def translate_or_keep(service: Service, request: Request) -> list[Answer]:
    """The answers to a request; a text already in the target language is its own translation.

    Raises:
        Refusal: from the service.
    """
    if request.source == request.target:
        return [Answer(text=text, source=request.source, model="") for text in request.texts]
    return await service.translate(request)
