"""A stored glossary, found for the client that it belongs to."""

import asyncio
from collections import ChainMap
from collections.abc import Sequence
from functools import lru_cache

from heed.serve.refusal import Refusal
from heed.serve.service import Service
from heed.serve.shapes.endpoint import Asked
from heed.serve.shapes.storage import Storage, StoredGlossary, Terms
from heed.translate.glossary.glossary import Glossary


async def find_glossary(service: Service, asked: Asked, id: str) -> StoredGlossary:
    """A glossary of the client.

    Raises:
        Refusal: it has none of this id (404).
    """
    storage = Storage(service.settings.store)
    found = await asyncio.to_thread(storage.glossary, asked.key, id)
    if found is None:
        raise no_such_glossary()
    return found


def compiled(dictionaries: Sequence[Terms]) -> Glossary:
    """Stored dictionaries as one glossary, compiled when they are first used.

    Args:
        dictionaries: the first that has a term says its translation.
    """
    terms = ChainMap(*(dict(each) for each in dictionaries))
    return _compiled(tuple(terms.items()))


@lru_cache(maxsize=64)
def _compiled(terms: tuple[tuple[str, str], ...]) -> Glossary:
    return Glossary.of(dict(terms))


def no_such_glossary() -> Refusal:
    """The refusal of an id that no glossary of the client has."""
    return Refusal(404, "Glossary not found.", code="no_such_glossary", field="glossary_id")
