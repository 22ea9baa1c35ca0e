"""A stored glossary, found for the client that it belongs to."""

import asyncio

from heed.serve.refusal import Refusal
from heed.serve.service import Service
from heed.serve.shapes.endpoint import Asked
from heed.serve.shapes.storage import Storage, StoredGlossary


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


def no_such_glossary() -> Refusal:
    """The refusal of an id that no glossary of the client has."""
    return Refusal(404, "Glossary not found.", code="no_such_glossary", field="glossary_id")
