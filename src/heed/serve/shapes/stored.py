"""Find a stored glossary for its client."""

import asyncio
from collections import ChainMap
from collections.abc import Sequence
from functools import lru_cache

from heed.errors import DataError
from heed.serve.refusal import Refusal
from heed.serve.service import Service
from heed.serve.shapes.endpoint import Asked
from heed.serve.shapes.storage import Storage, StoredGlossary, Terms
from heed.translate.glossary.glossary import Glossary


async def find_glossary(service: Service, asked: Asked, id: str) -> StoredGlossary:
    """A glossary of the client.

    Raises:
        Refusal: the client has no glossary with this id (404).
    """
    storage = Storage(service.settings.store)
    found = await asyncio.to_thread(storage.glossary, asked.key, id)
    if found is None:
        raise no_such_glossary()
    return found


async def remove_glossary(service: Service, asked: Asked, id: str) -> None:
    """Delete a glossary of the client.

    Raises:
        Refusal: it has none of this id (404).
    """
    storage = Storage(service.settings.store)
    if not await asyncio.to_thread(storage.delete_glossary, asked.key, id):
        raise no_such_glossary()


def compiled(dictionaries: Sequence[Terms]) -> Glossary:
    """Stored dictionaries as one glossary, compiled at its first use.

    Args:
        dictionaries: the first one that has a term decides its translation.

    Raises:
        Refusal: terms that an earlier version stored are not valid now (400).
    """
    terms = ChainMap(*(dict(each) for each in dictionaries))
    return _compiled(tuple(terms.items()))


@lru_cache(maxsize=64)
def _compiled(terms: tuple[tuple[str, str], ...]) -> Glossary:
    if not terms:  # earlier versions stored empty dictionaries, too
        return Glossary.empty()
    try:
        return Glossary.of(dict(terms))
    except DataError as error:
        sentence = f"The stored glossary cannot be used: {error} Delete it, or replace its terms."
        raise Refusal(400, sentence, code="wrong_glossary", field="glossary_id") from None


def no_such_glossary() -> Refusal:
    """The refusal for an id that is not of the client's glossaries."""
    return Refusal(404, "Glossary not found.", code="no_such_glossary", field="glossary_id")
