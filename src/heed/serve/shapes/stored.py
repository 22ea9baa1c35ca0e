"""Use the store for a client, beside the event loop."""

import asyncio
import logging
import time
from collections import ChainMap
from collections.abc import Callable, Sequence
from functools import lru_cache, partial
from typing import Concatenate, ParamSpec, TypeVar

from heed.errors import DataError
from heed.serve.refusal import Refusal
from heed.serve.service import Service
from heed.serve.shapes.endpoint import Asked
from heed.serve.shapes.storage import NO_STORE, THREADS, WAIT_S, Storage, StoredGlossary, Terms
from heed.serve.work.deadline import Deadline
from heed.translate.glossary.glossary import Glossary

Found = TypeVar("Found")
Arguments = ParamSpec("Arguments")

log = logging.getLogger(__name__)


async def in_store(
    service: Service,
    method: Callable[Concatenate[Storage, Arguments], Found],
    *arguments: Arguments.args,
    **named: Arguments.kwargs,
) -> Found:
    """Call a method of the store in a thread.

    Args:
        service: with the settings of the store.
        method: of `Storage`, with its arguments.

    Raises:
        Refusal: as the method; or the file cannot be used within `WAIT_S` (503, logged), or its
            disk does not answer (504).
    """
    until = time.monotonic() + WAIT_S

    def run() -> Found:
        wait_s = max(0.0, until - time.monotonic())
        storage = Storage(service.settings.store, wait_s=wait_s)
        return method(storage, *arguments, **named)

    try:
        return await beside_store(service, run)
    except Refusal as refusal:
        if refusal.code == NO_STORE:
            log.error("the store cannot be used: %s", refusal.__cause__)
        raise


async def beside_store(
    service: Service,
    function: Callable[Arguments, Found],
    *arguments: Arguments.args,
    **named: Arguments.kwargs,
) -> Found:
    """Call a function in a thread for the disk of the store.

    Raises:
        Refusal: as the function; or it takes too long (504).
    """
    # If all threads hang, the pool keeps the call that was given up, but not what it would store.
    calls = [partial(function, *arguments, **named)]
    del function, arguments, named
    try:
        async with Deadline(service.settings.work.timeout_s).enforced():
            loop = asyncio.get_running_loop()
            return await loop.run_in_executor(THREADS, lambda: calls.pop()())
    finally:
        calls.clear()


async def find_glossary(service: Service, asked: Asked, id: str) -> StoredGlossary:
    """A glossary of the client.

    Raises:
        Refusal: the client has no glossary with this id (404).
    """
    found = await in_store(service, Storage.glossary, asked.key, id)
    if found is None:
        raise no_such_glossary()
    return found


async def remove_glossary(service: Service, asked: Asked, id: str) -> None:
    """Delete a glossary of the client.

    Raises:
        Refusal: it has none of this id (404).
    """
    if not await in_store(service, Storage.delete_glossary, asked.key, id):
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
