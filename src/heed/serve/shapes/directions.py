"""Languages as the APIs offer them, and texts that need no translation."""

from heed.serve.languages import name_of
from heed.serve.request import Answer, Language, Request
from heed.serve.service import Service


def all_languages(service: Service) -> dict[str, Language]:
    """Every language by its code; those that are only translated into have no targets."""
    found = {language.code: language for language in service.languages()}
    for language in list(found.values()):
        for code in language.targets:
            found.setdefault(code, Language(code=code, name=name_of(code), targets=()))
    return found


async def translate_or_keep(service: Service, request: Request) -> list[Answer]:
    """The answers to a request; a text already in the target language is its own translation.

    Raises:
        Refusal: of the service.
    """
    if request.source == request.target:
        return [Answer(text=text, source=request.source, model="") for text in request.texts]
    return await service.translate(request)
