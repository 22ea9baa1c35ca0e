"""Glossaries of DeepL's API, `/v2/glossaries`: create, list, get, delete, entries."""

import asyncio
from collections.abc import Mapping
from typing import Any

from starlette.responses import Response

from heed.errors import DataError
from heed.serve.languages import resolve
from heed.serve.refusal import Refusal
from heed.serve.service import Service
from heed.serve.shapes.deepl import AUTH_KEY, PREFIX, STYLE, TAG, spelled_base
from heed.serve.shapes.endpoint import Asked, Endpoint
from heed.serve.shapes.fields import Field
from heed.serve.shapes.schemas import FLAG, INTEGER, TEXT, listed, record
from heed.serve.shapes.storage import Storage, StoredGlossary
from heed.serve.shapes.stored import find_glossary, no_such_glossary
from heed.translate.glossary.glossary import Glossary
from heed.translate.glossary.reading import rows_of

TSV = "text/tab-separated-values"
PATH = f"{PREFIX}/glossaries"


async def _create(service: Service, asked: Asked) -> dict[str, Any]:
    values = asked.values
    source, target = values["source_lang"], values["target_lang"]
    if not _is_served(service, source, target):
        raise Refusal(
            400, "Unsupported glossary source and target language pair.", code="wrong_value"
        )
    settings = service.settings.store
    terms = _read_terms(values["entries"], values["entries_format"], settings.glossary_terms)
    glossary = await asyncio.to_thread(
        Storage(settings).add_glossary,
        asked.key,
        values["name"],
        spelled_base(source).lower(),
        spelled_base(target).lower(),
        terms,
    )
    return _spelled(glossary)


def _read_terms(entries: str, entries_format: str, limit: int) -> Mapping[str, str]:
    try:
        rows = list(rows_of(entries, entries_format))
        terms = Glossary(rows).entries
    except DataError as error:
        raise Refusal(400, str(error), code="wrong_value", field="entries") from None
    # CSV may have the languages of each entry behind it, which are those of the glossary.
    longer = [line for line, *_, rest in rows if rest and entries_format == "tsv"]
    if longer:
        sentence = f"Line {longer[0]} of the glossary has more than two columns."
        raise Refusal(400, sentence, code="wrong_value", field="entries")
    if len(terms) > limit:
        sentence = f"A glossary must have at most {limit} entries."
        raise Refusal(413, sentence, code="too_large", field="entries")
    return terms


def _spelled_terms(terms: Mapping[str, str]) -> str:
    """Tab-separated; a tab inside a term, which only CSV can give, is a blank."""
    return "\n".join(
        "\t".join(each.replace("\t", " ") for each in entry) for entry in terms.items()
    )


def _is_served(service: Service, source: str, target: str) -> bool:
    languages = {language.code: language for language in service.languages()}
    code = resolve(source, languages)
    return code is not None and resolve(target, languages[code].targets) is not None


def _spelled(glossary: StoredGlossary) -> dict[str, Any]:
    return {
        "glossary_id": glossary.id,
        "name": glossary.name,
        "ready": True,
        "source_lang": glossary.source,
        "target_lang": glossary.target,
        "creation_time": glossary.created,
        "entry_count": len(glossary.terms),
    }


async def _list(service: Service, asked: Asked) -> dict[str, Any]:
    storage = Storage(service.settings.store)
    found = await asyncio.to_thread(storage.glossaries, asked.key)
    return {"glossaries": [_spelled(glossary) for glossary in found]}


async def _get(service: Service, asked: Asked) -> dict[str, Any]:
    return _spelled(await find_glossary(service, asked, asked.http.path_params["glossary_id"]))


async def _entries(service: Service, asked: Asked) -> Response:
    glossary = await find_glossary(service, asked, asked.http.path_params["glossary_id"])
    return Response(_spelled_terms(glossary.terms), media_type=TSV)


async def _delete(service: Service, asked: Asked) -> Response:
    storage = Storage(service.settings.store)
    id = asked.http.path_params["glossary_id"]
    if not await asyncio.to_thread(storage.delete_glossary, asked.key, id):
        raise no_such_glossary()
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
CREATE = (
    Field(
        name="name", kind="word", about="Name of the glossary.", is_required=True, example="Sports"
    ),
    Field(
        name="source_lang",
        kind="word",
        about="Language code of the terms.",
        is_required=True,
        example="en",
    ),
    Field(
        name="target_lang",
        kind="word",
        about="Language code of their translations.",
        is_required=True,
        example="de",
    ),
    Field(
        name="entries",
        kind="text",
        about="A term and its translation a line.",
        is_required=True,
        example="bike\tRad",
        is_for_model=False,
    ),
    Field(
        name="entries_format",
        kind="word",
        about="What separates them: tabs or commas.",
        choices=("tsv", "csv"),
        default="tsv",
        example="tsv",
    ),
    AUTH_KEY,
)
ENDPOINTS = (
    Endpoint(
        method="POST",
        path=PATH,
        handler=_create,
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
