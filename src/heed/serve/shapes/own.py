"""heed's own API, `/api/v1`: translations with scores, tokens, alignments and doubts."""

import time
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from itertools import chain
from typing import Any

from starlette.responses import Response

from heed.errors import DataError
from heed.serve.refusal import Refusal
from heed.serve.request import AUTO, Answer, Direction, Request
from heed.serve.service import Service
from heed.serve.shapes import schemas
from heed.serve.shapes.answers import (
    count_tokens,
    spelled_answers,
    spelled_segment,
    spelling_chars,
)
from heed.serve.shapes.endpoint import Asked, Endpoint
from heed.serve.shapes.events import Event, event_stream
from heed.serve.shapes.fields import SOURCE, TARGET, Field, as_list
from heed.serve.shapes.json_answer import JsonAnswer
from heed.serve.shapes.style import Style
from heed.serve.work.aside import run_aside
from heed.translate.glossary.glossary import Glossary

TAG = "heed"
PREFIX = "/api/v1"
MAX_PATTERNS = 100
"""Most entries of `protect`."""
MAX_PATTERN_CHARS = 10_000
"""Most characters of them: a compiled expression takes about 70 bytes each."""
TERM_CHARS = 25
"""Reading a term of a glossary takes about as long as this many characters of text."""


def spell(refusal: Refusal, request_id: str) -> dict[str, Any]:
    """The body of an error response."""
    return {
        "error": {
            "code": refusal.code,
            "sentence": refusal.sentence,
            "field": refusal.field,
            "request_id": request_id,
        }
    }


STYLE = Style(
    missing="{name} is missing.",
    wrong="{name} must be {meaning}.",
    spell=spell,
    error=schemas.record(
        error=schemas.record(
            code=schemas.TEXT, sentence=schemas.TEXT, field=schemas.TEXT, request_id=schemas.TEXT
        )
    ),
    prefixes=(f"{PREFIX}/", PREFIX),
)
TEXT = Field(
    name="text",
    kind="texts",
    about="Text to translate, or a list of texts.",
    is_required=True,
    example="A man is riding a bike.",
)
OPTIONS = Field(
    name="options",
    kind="object",
    about="Options of decoding, such as `beam_size`.",
    default={},
    example={"beam_size": 2},
)
MODEL = Field(name="model", kind="word", about="Name of the model; by default the first that fits.")
TRANSLATE = (
    TEXT,
    SOURCE,
    TARGET,
    Field(
        name="format",
        kind="word",
        about="What the text is. Markup is kept.",
        default="text",
        choices=("text", "html"),
        example="text",
    ),
    Field(
        name="alternatives",
        kind="integer",
        about="How many other translations to add.",
        default=0,
        low=0,
        high=100,
        example=1,
    ),
    Field(
        name="details",
        kind="flag",
        about="Whether to add the tokens of each segment, their probabilities, and alignments.",
        default=False,
        example=True,
    ),
    Field(
        name="glossary",
        kind="object",
        about="Terms and their translations: forms with | between them, = keeps, !word forbids.",
        default={},
        example={"bike": "Rad"},
    ),
    Field(
        name="memory",
        kind="pairs",
        about="Translated pairs to follow where a sentence is like the source of one.",
        default=[],
    ),
    OPTIONS,
    Field(
        name="prefix",
        kind="text",
        about="How the translation must begin.",
    ),
    Field(
        name="protect",
        kind="texts",
        about="What must stay as it is, beside heed's own rules: regular expressions, or `none`.",
        example=["ACME-[0-9]+"],
        is_for_model=False,
    ),
    Field(
        name="localize_numbers",
        kind="flag",
        about="Whether to write numbers as the target language does.",
        default=False,
    ),
    Field(
        name="keep_typos",
        kind="flag",
        about="Whether to read misspelled words as they stand, not as what was probably meant.",
        default=False,
    ),
    MODEL,
)


def direction_of(values: Mapping[str, Any]) -> Direction:
    """Languages and model in a request."""
    return Direction(source=values["source"], target=values["target"], model=values["model"])


def request_of(service: Service, values: Mapping[str, Any]) -> Request:
    """The request in the fields of `TRANSLATE`.

    Raises:
        Refusal: it is too large.
    """
    texts = as_list(values["text"])
    limits = service.settings.limits
    require_at_most(limits.texts, len(texts), "texts", "text")
    require_at_most(limits.chars, sum(map(len, texts)), "characters", "text")
    require_at_most(limits.alternatives, values["alternatives"], "", "alternatives")
    memory, prefix = values["memory"], values["prefix"]
    protect = None if values["protect"] is None else as_list(values["protect"])
    require_at_most(MAX_PATTERNS, len(protect or ()), "entries", "protect")
    require_at_most(MAX_PATTERN_CHARS, sum(map(len, protect or ())), "characters", "protect")
    require_at_most(limits.memory_pairs, len(memory), "pairs", "memory")
    require_at_most(limits.chars, sum(map(len, chain(*memory))), "characters", "memory")
    return Request(
        texts=texts,
        source=values["source"].lower() if values["source"].lower() == AUTO else values["source"],
        target=values["target"],
        format=values["format"],
        alternatives=values["alternatives"],
        alignment=values["details"],
        prefixes=[prefix] * len(texts) if prefix else None,
        glossary=_terms(values["glossary"], service.settings.store.glossary_terms),
        options=values["options"],
        model=values["model"],
        protect=protect,
        localize_numbers=values["localize_numbers"],
        keep_typos=values["keep_typos"],
        memory=memory,
    )


def require_at_most(limit: int, size: int, unit: str, field: str) -> None:
    """Refuse a size above a limit of the server.

    Raises:
        Refusal: it is above (413 for texts, 400 for a number).
    """
    if size > limit:
        what = f"have at most {limit} {unit}" if unit else f"be at most {limit}"
        raise Refusal(
            413 if unit else 400,
            f"{field} must {what}, but has {size}." if unit else f"{field} must {what}.",
            code="too_large",
            field=field,
        )


def _terms(glossary: Mapping[str, Any], limit: int) -> Glossary | None:
    require_at_most(limit, len(glossary), "terms", "glossary")
    for term, translation in glossary.items():
        if not (term.strip() and isinstance(translation, str) and translation.strip()):
            raise Refusal(
                400,
                "glossary must map each term to its translation, as texts that are not blank.",
                code="wrong_value",
                field="glossary",
            )
    try:
        return Glossary.of(glossary) if glossary else None
    except DataError as error:
        raise Refusal(400, str(error), code="wrong_value", field="glossary") from None


def _spelled(answers: Sequence[Answer], start: float, *, details: bool) -> dict[str, Any]:
    return {
        "translations": spelled_answers(answers, details=details),
        "seconds": round(time.perf_counter() - start, 4),
        "n_tokens": count_tokens(answers),
    }


async def _translate(service: Service, asked: Asked) -> dict[str, Any] | JsonAnswer:
    request, start = await _request(service, asked), time.perf_counter()
    answers = await service.translate(request)
    if not asked.values["details"]:
        return _spelled(answers, start, details=False)
    return await run_aside(_spelling_chars(answers), _detailed, answers, start)


def _spelling_chars(answers: Sequence[Answer]) -> int:
    return spelling_chars(chain.from_iterable(answer.segments for answer in answers))


def _detailed(answers: Sequence[Answer], start: float) -> JsonAnswer:
    return JsonAnswer(_spelled(answers, start, details=True))


async def _stream(service: Service, asked: Asked) -> Response:
    request = await _request(service, asked)
    return await event_stream(asked, STYLE, _events(service, request, asked))


async def _request(service: Service, asked: Asked) -> Request:
    n_chars = TERM_CHARS * len(asked.values["glossary"])
    return await run_aside(n_chars, request_of, service, asked.values)


async def _events(service: Service, request: Request, asked: Asked) -> AsyncGenerator[Event]:
    details = asked.values["details"]
    start = time.perf_counter()
    async with aclosing(service.stream(request)) as found:
        async for each in found:
            if isinstance(each, list):
                n_chars = _spelling_chars(each)
                data = await run_aside(n_chars, _spelled, each, start, details=details)
                yield Event("done", data, n_chars)
            else:
                text_index, segment_index, segment = each
                place = {"text_index": text_index, "segment_index": segment_index}
                n_chars = spelling_chars([segment])
                data = await run_aside(n_chars, spelled_segment, segment, details=details)
                yield Event("segment", place | data, n_chars)


async def _languages(service: Service, asked: Asked) -> list[dict[str, Any]]:
    return [
        {"code": each.code, "name": each.name, "targets": list(each.targets)}
        for each in service.languages()
    ]


ANSWER = schemas.record(
    translations=schemas.listed(schemas.ref("Translation")),
    seconds=schemas.NUMBER,
    n_tokens=schemas.INTEGER,
)
ENDPOINTS = (
    Endpoint(
        method="POST",
        path=f"{PREFIX}/translate",
        handler=_translate,
        style=STYLE,
        tag=TAG,
        summary="Translate a text or a list of texts, with scores and doubts.",
        fields=TRANSLATE,
        answer=ANSWER,
    ),
    Endpoint(
        method="POST",
        path=f"{PREFIX}/translate/stream",
        handler=_stream,
        style=STYLE,
        tag=TAG,
        summary="Translate, and give each sentence as soon as it is there, as server-sent events.",
        fields=TRANSLATE,
        answer={
            **schemas.record(event={"enum": ["segment", "done", "error"]}, data=schemas.TEXT),
            "description": "One event of the stream. Its data is JSON: a segment with its places; "
            "at last the answer of /api/v1/translate; or an error.",
        },
        media_type="text/event-stream",
    ),
    Endpoint(
        method="GET",
        path=f"{PREFIX}/languages",
        handler=_languages,
        style=STYLE,
        tag=TAG,
        summary="List the languages, and into which each is translated.",
        answer=schemas.listed(schemas.ref("Language")),
    ),
)
