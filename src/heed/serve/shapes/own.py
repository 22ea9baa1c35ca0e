"""heed's own API, `/api/v1`: translations with scores, tokens, alignments and doubts."""

import time
from collections.abc import Mapping
from typing import Any

from heed.decode.options import DecodeOptions, options_from, require_storable
from heed.errors import ConfigError
from heed.serve.refusal import Refusal
from heed.serve.request import AUTO, Request
from heed.serve.service import Service
from heed.serve.shapes.answers import count_tokens, spelled_answers
from heed.serve.shapes.endpoint import Asked, Endpoint
from heed.serve.shapes.fields import Field
from heed.serve.shapes.style import Style

TAG = "heed"
PREFIX = "/api/v1"
RESERVED_OPTIONS = ("n_best", "suppress")
"""What requests say otherwise, or have no words for."""


def spell(refusal: Refusal, request_id: str) -> dict[str, Any]:
    """The body of an error answer."""
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
    prefixes=(f"{PREFIX}/", PREFIX),
)
TEXT = Field(
    name="text",
    kind="texts",
    about="Text to translate, or a list of texts.",
    is_required=True,
    example="A man is riding a bike.",
)
SOURCE = Field(
    name="source",
    kind="word",
    about="Language code of the text, or `auto` to detect it.",
    default=AUTO,
    example="en",
)
TARGET = Field(
    name="target",
    kind="word",
    about="Language code of the translation.",
    is_required=True,
    example="de",
)
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
        name="options",
        kind="object",
        about="Options of decoding, such as `beam_size`.",
        default={},
        example={"beam_size": 2},
    ),
    Field(
        name="prefix",
        kind="text",
        about="How the translation must begin.",
    ),
    Field(name="model", kind="word", about="Name of the model; by default the first that fits."),
)


def request_of(service: Service, values: Mapping[str, Any]) -> Request:
    """The request that the fields of `TRANSLATE` describe.

    Raises:
        Refusal: it is too large, or an option is wrong.
    """
    text = values["text"]
    texts = text if isinstance(text, list) else [text]
    limits = service.settings.limits
    require_at_most(limits.texts, len(texts), "texts", "text")
    require_at_most(limits.chars, sum(map(len, texts)), "characters", "text")
    require_at_most(limits.alternatives, values["alternatives"], "", "alternatives")
    prefix = values["prefix"]
    return Request(
        texts=texts,
        source=values["source"].lower() if values["source"].lower() == AUTO else values["source"],
        target=values["target"],
        format=values["format"],
        alternatives=values["alternatives"],
        alignment=values["details"],
        prefixes=[prefix] * len(texts) if prefix else None,
        options=_options(values["options"]),
        model=values["model"],
    )


def require_at_most(limit: int, size: int, unit: str, field: str) -> None:
    """Refuse what is larger than a limit of the server.

    Raises:
        Refusal: it is (413 for texts, 400 for a number).
    """
    if size > limit:
        what = f"have at most {limit} {unit}" if unit else f"be at most {limit}"
        raise Refusal(
            413 if unit else 400,
            f"{field} must {what}, but has {size}." if unit else f"{field} must {what}.",
            code="too_large",
            field=field,
        )


def _options(options: Mapping[str, Any]) -> Mapping[str, Any]:
    try:
        for name in RESERVED_OPTIONS:
            if name in options:
                raise ConfigError(f"{name} is not an option of a request.")
        require_storable(options_from(DecodeOptions(), options))
    except (ConfigError, TypeError) as error:
        raise _wrong_option(error) from None
    return options


def _wrong_option(error: Exception) -> Refusal:
    sentence = str(error).replace("decoding.", "options.")
    return Refusal(400, sentence, code="wrong_option", field="options")


async def translate(service: Service, request: Request, *, details: bool) -> dict[str, Any]:
    """The answer to a request.

    Raises:
        Refusal: of the service; or the model does not take an option.
    """
    start = time.perf_counter()
    try:
        answers = await service.translate(request)
    except ConfigError as error:
        # Options are checked against the model's own only where they meet.
        raise _wrong_option(error) from None
    return {
        "translations": spelled_answers(answers, details=details),
        "seconds": round(time.perf_counter() - start, 4),
        "n_tokens": count_tokens(answers),
    }


async def _translate(service: Service, asked: Asked) -> dict[str, Any]:
    request = request_of(service, asked.values)
    return await translate(service, request, details=asked.values["details"])


async def _languages(service: Service, asked: Asked) -> list[dict[str, Any]]:
    return [
        {"code": each.code, "name": each.name, "targets": list(each.targets)}
        for each in service.languages()
    ]


ANSWER = {
    "type": "object",
    "properties": {
        "translations": {"type": "array", "items": {"$ref": "#/components/schemas/Translation"}},
        "seconds": {"type": "number"},
        "n_tokens": {"type": "integer"},
    },
    "required": ["translations", "seconds", "n_tokens"],
}
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
        method="GET",
        path=f"{PREFIX}/languages",
        handler=_languages,
        style=STYLE,
        tag=TAG,
        summary="List the languages, and into which each is translated.",
        answer={"type": "array", "items": {"$ref": "#/components/schemas/Language"}},
    ),
)
