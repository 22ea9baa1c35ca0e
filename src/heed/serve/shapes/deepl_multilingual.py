"""Glossaries of several directions in DeepL's API, `/v3/glossaries`, which can be edited.

A glossary holds one dictionary for each direction; those of `/v2/glossaries` hold one.
Source: DeepL's guide "Managing glossaries", and its Python client `deepl` 1.32.
"""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from starlette.responses import Response

from heed.serve.refusal import Refusal
from heed.serve.service import Service
from heed.serve.shapes.body import Parameters
from heed.serve.shapes.deepl import AUTH_KEY, NEXT_PREFIX, STYLE, TAG, base_pair
from heed.serve.shapes.deepl_dictionaries import (
    DICTIONARY,
    DIRECTION,
    NAME,
    read_dictionary,
    require_few,
    spelled_terms,
)
from heed.serve.shapes.endpoint import Asked, Endpoint
from heed.serve.shapes.fields import Field, example_of, take
from heed.serve.shapes.schemas import INTEGER, TEXT, listed, record
from heed.serve.shapes.storage import GlossarySummary, Pair, Storage, StoredGlossary, Terms
from heed.serve.shapes.stored import find_glossary, in_store, no_such_glossary, remove_glossary

PATH = f"{NEXT_PREFIX}/glossaries"
ONE = f"{PATH}/{{glossary_id}}"


async def _create(service: Service, asked: Asked) -> dict[str, Any]:
    dictionaries = await asyncio.to_thread(
        _read_dictionaries, service, asked.values["dictionaries"]
    )
    if not dictionaries:
        sentence = STYLE.missing.format(name="dictionaries")
        raise Refusal(400, sentence, code="missing", field="dictionaries")
    name = asked.values["name"]
    added = await in_store(service, Storage.add_glossary, asked.key, name, dictionaries)
    return _spelled(added.summary)


def _read_dictionaries(service: Service, given: list[dict[str, Any]]) -> dict[Pair, Terms]:
    found: dict[Pair, Terms] = {}
    for each in given:
        values = take(DICTIONARY, Parameters(values=each), STYLE)
        pair, terms = read_dictionary(service, values)
        if pair in found:
            sentence = f"There are two dictionaries from {pair[0]} to {pair[1]}."
            raise Refusal(400, sentence, code="wrong_value", field="dictionaries")
        found[pair] = terms
    return found


def _spelled(glossary: GlossarySummary) -> dict[str, Any]:
    return {
        "glossary_id": glossary.id,
        "name": glossary.name,
        "dictionaries": [
            _spelled_dictionary(pair, n_terms) for pair, n_terms in glossary.n_terms.items()
        ],
        "creation_time": glossary.created,
    }


def _spelled_dictionary(pair: Pair, n_terms: int) -> dict[str, Any]:
    return {"source_lang": pair[0], "target_lang": pair[1], "entry_count": n_terms}


async def _list(service: Service, asked: Asked) -> dict[str, Any]:
    found = await in_store(service, Storage.summaries, asked.key)
    return {"glossaries": [_spelled(glossary) for glossary in found]}


async def _get(service: Service, asked: Asked) -> dict[str, Any]:
    found = await find_glossary(service, asked, asked.http.path_params["glossary_id"])
    return _spelled(found.summary)


async def _entries(service: Service, asked: Asked) -> dict[str, Any]:
    glossary = await find_glossary(service, asked, asked.http.path_params["glossary_id"])
    pair = _pair(asked)
    return {
        "dictionaries": [
            {
                "source_lang": pair[0],
                "target_lang": pair[1],
                "entries": spelled_terms(_terms(glossary, pair)),
                "entries_format": "tsv",
            }
        ]
    }


def _pair(asked: Asked) -> Pair:
    return base_pair(asked.values["source_lang"], asked.values["target_lang"])


def _terms(glossary: StoredGlossary, pair: Pair) -> Terms:
    if pair not in glossary.dictionaries:
        sentence = f"The glossary has no dictionary from {pair[0]} to {pair[1]}."
        raise Refusal(404, sentence, code="no_such_dictionary")
    return glossary.dictionaries[pair]


async def _delete(service: Service, asked: Asked) -> Response:
    await remove_glossary(service, asked, asked.http.path_params["glossary_id"])
    return Response(status_code=204)


async def _edit(service: Service, asked: Asked) -> dict[str, Any]:
    """Rename the glossary, and add terms to its dictionaries."""
    name, given = asked.values["name"], asked.values["dictionaries"]
    if not name and not given:
        raise Refusal(400, "Parameter 'name' or 'dictionaries' is needed.", code="missing")
    added = await asyncio.to_thread(_read_dictionaries, service, given)

    def merge(glossary: StoredGlossary) -> StoredGlossary:
        merged = {
            pair: {**glossary.dictionaries.get(pair, {}), **terms} for pair, terms in added.items()
        }
        for terms in merged.values():
            require_few(service, terms)
        dictionaries = {**glossary.dictionaries, **merged}
        return replace(glossary, name=name or glossary.name, dictionaries=dictionaries)

    return _spelled((await _change(service, asked, merge)).summary)


async def _put(service: Service, asked: Asked) -> dict[str, Any]:
    """Create a dictionary, or replace all of its terms."""
    pair, terms = await asyncio.to_thread(read_dictionary, service, asked.values)
    await _change(
        service,
        asked,
        lambda glossary: replace(glossary, dictionaries={**glossary.dictionaries, pair: terms}),
    )
    return _spelled_dictionary(pair, len(terms))


async def _delete_dictionary(service: Service, asked: Asked) -> Response:
    pair = _pair(asked)

    def without(glossary: StoredGlossary) -> StoredGlossary:
        _terms(glossary, pair)
        left = {each: terms for each, terms in glossary.dictionaries.items() if each != pair}
        return replace(glossary, dictionaries=left)

    await _change(service, asked, without)
    return Response(status_code=204)


async def _change(
    service: Service, asked: Asked, change: Callable[[StoredGlossary], StoredGlossary]
) -> StoredGlossary:
    id = asked.http.path_params["glossary_id"]
    changed = await in_store(service, Storage.change_glossary, asked.key, id, change)
    if changed is None:
        raise no_such_glossary()
    return changed


_LANGUAGES = {"source_lang": TEXT, "target_lang": TEXT}
_DICTIONARY = record(**_LANGUAGES, entry_count=INTEGER)
_GLOSSARY = record(
    glossary_id=TEXT,
    name=TEXT,
    dictionaries=listed(_DICTIONARY),
    creation_time={"type": "string", "format": "date-time"},
)
DICTIONARIES = Field(
    name="dictionaries",
    kind="objects",
    about="One for each direction: `source_lang`, `target_lang`, `entries`, `entries_format`.",
    is_required=True,
    example=[example_of(DICTIONARY)],
)
ENDPOINTS = (
    Endpoint(
        method="POST",
        path=PATH,
        handler=_create,
        stores=True,
        style=STYLE,
        tag=TAG,
        summary="Create a glossary of one or more dictionaries.",
        fields=(NAME, DICTIONARIES, AUTH_KEY),
        answer=_GLOSSARY,
        status=201,
    ),
    Endpoint(
        method="GET",
        path=PATH,
        handler=_list,
        style=STYLE,
        tag=TAG,
        summary="List all glossaries.",
        fields=(AUTH_KEY,),
        answer=record(glossaries=listed(_GLOSSARY)),
    ),
    Endpoint(
        method="GET",
        path=ONE,
        handler=_get,
        style=STYLE,
        tag=TAG,
        summary="Describe a glossary and its dictionaries.",
        fields=(AUTH_KEY,),
        answer=_GLOSSARY,
    ),
    Endpoint(
        method="PATCH",
        path=ONE,
        handler=_edit,
        style=STYLE,
        tag=TAG,
        summary="Rename a glossary, or add terms to its dictionaries.",
        fields=(
            replace(NAME, is_required=False),
            replace(DICTIONARIES, is_required=False, default=[]),
            AUTH_KEY,
        ),
        answer=_GLOSSARY,
    ),
    Endpoint(
        method="DELETE",
        path=ONE,
        handler=_delete,
        style=STYLE,
        tag=TAG,
        summary="Delete a glossary and its dictionaries.",
        fields=(AUTH_KEY,),
        status=204,
    ),
    Endpoint(
        method="GET",
        path=f"{ONE}/entries",
        handler=_entries,
        style=STYLE,
        tag=TAG,
        summary="Give the entries of a dictionary.",
        fields=(*DIRECTION, AUTH_KEY),
        answer=record(dictionaries=listed(record(**_LANGUAGES, entries=TEXT, entries_format=TEXT))),
    ),
    Endpoint(
        method="PUT",
        path=f"{ONE}/dictionaries",
        handler=_put,
        style=STYLE,
        tag=TAG,
        summary="Create or replace a dictionary.",
        fields=(*DICTIONARY, AUTH_KEY),
        answer=_DICTIONARY,
    ),
    Endpoint(
        method="DELETE",
        path=f"{ONE}/dictionaries",
        handler=_delete_dictionary,
        style=STYLE,
        tag=TAG,
        summary="Delete a dictionary.",
        fields=(*DIRECTION, AUTH_KEY),
        status=204,
    ),
)
