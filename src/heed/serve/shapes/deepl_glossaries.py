"""Glossaries of one direction in DeepL's API, `/v2/glossaries`: create, list, get, delete, entries.

A glossary that got more dictionaries through `/v3/glossaries` is not shown here.
"""

import asyncio
from typing import Any

from starlette.responses import Response

from heed.serve.refusal import Refusal
from heed.serve.service import Service
from heed.serve.shapes.deepl import AUTH_KEY, PREFIX, STYLE, TAG, spelled_base
from heed.serve.shapes.deepl_dictionaries import (
    DICTIONARY,
    NAME,
    read_dictionary,
    spelled_terms,
)
from heed.serve.shapes.endpoint import Asked, Endpoint
from heed.serve.shapes.schemas import FLAG, INTEGER, TEXT, listed, record
from heed.serve.shapes.storage import GlossarySummary, Storage, StoredGlossary
from heed.serve.shapes.stored import find_glossary, in_store, remove_glossary

TSV = "text/tab-separated-values"
PATH = f"{PREFIX}/glossaries"


async def _create(service: Service, asked: Asked) -> dict[str, Any]:
    pair, terms = await asyncio.to_thread(read_dictionary, service, asked.values)
    glossary = await in_store(
        service, Storage.add_glossary, asked.key, asked.values["name"], {pair: terms}
    )
    return _spelled(glossary.summary)


def _spelled(glossary: GlossarySummary) -> dict[str, Any]:
    (((source, target), n_terms),) = glossary.n_terms.items()
    return {
        "glossary_id": glossary.id,
        "name": glossary.name,
        "ready": True,
        "source_lang": source,
        "target_lang": target,
        "creation_time": glossary.created,
        "entry_count": n_terms,
    }


async def _list(service: Service, asked: Asked) -> dict[str, Any]:
    found = await in_store(service, Storage.summaries, asked.key)
    return {"glossaries": [_spelled(each) for each in found if len(each.n_terms) == 1]}


async def _get(service: Service, asked: Asked) -> dict[str, Any]:
    return _spelled((await _find(service, asked)).summary)


async def _find(service: Service, asked: Asked) -> StoredGlossary:
    glossary = await find_glossary(service, asked, asked.http.path_params["glossary_id"])
    if len(glossary.dictionaries) != 1:
        sentence = (
            f"This glossary has {len(glossary.dictionaries)} dictionaries: use /v3/glossaries."
        )
        raise Refusal(404, sentence, code="no_such_glossary", field="glossary_id")
    return glossary


async def _entries(service: Service, asked: Asked) -> Response:
    (terms,) = (await _find(service, asked)).dictionaries.values()
    return Response(spelled_terms(terms), media_type=TSV)


async def _delete(service: Service, asked: Asked) -> Response:
    await remove_glossary(service, asked, (await _find(service, asked)).id)
    return Response(status_code=204)


async def _pairs(service: Service, asked: Asked) -> dict[str, Any]:
    return {
        "supported_languages": [
            {
                "source_lang": spelled_base(language.code).lower(),
                "target_lang": spelled_base(target).lower(),
            }
            for language in service.languages()
            for target in language.targets
        ]
    }


_GLOSSARY = record(
    glossary_id=TEXT,
    name=TEXT,
    ready=FLAG,
    source_lang=TEXT,
    target_lang=TEXT,
    creation_time={"type": "string", "format": "date-time"},
    entry_count=INTEGER,
)
CREATE = (NAME, *DICTIONARY, AUTH_KEY)
ENDPOINTS = (
    Endpoint(
        method="POST",
        path=PATH,
        handler=_create,
        stores=True,
        style=STYLE,
        tag=TAG,
        summary="Create a glossary.",
        fields=CREATE,
        answer=_GLOSSARY,
        status=201,
    ),
    Endpoint(
        method="GET",
        path=PATH,
        handler=_list,
        style=STYLE,
        tag=TAG,
        summary="List the glossaries.",
        fields=(AUTH_KEY,),
        answer=record(glossaries=listed(_GLOSSARY)),
    ),
    Endpoint(
        method="GET",
        path=f"{PATH}/{{glossary_id}}",
        handler=_get,
        style=STYLE,
        tag=TAG,
        summary="Describe a glossary.",
        fields=(AUTH_KEY,),
        answer=_GLOSSARY,
    ),
    Endpoint(
        method="DELETE",
        path=f"{PATH}/{{glossary_id}}",
        handler=_delete,
        style=STYLE,
        tag=TAG,
        summary="Delete a glossary.",
        fields=(AUTH_KEY,),
        status=204,
    ),
    Endpoint(
        method="GET",
        path=f"{PATH}/{{glossary_id}}/entries",
        handler=_entries,
        style=STYLE,
        tag=TAG,
        summary="Give the entries of a glossary.",
        fields=(AUTH_KEY,),
        answer=TEXT,
        media_type=TSV,
    ),
    Endpoint(
        method="GET",
        path=f"{PREFIX}/glossary-language-pairs",
        handler=_pairs,
        style=STYLE,
        tag=TAG,
        summary="List the directions that glossaries may have.",
        fields=(AUTH_KEY,),
        answer=record(supported_languages=listed(record(source_lang=TEXT, target_lang=TEXT))),
    ),
)
