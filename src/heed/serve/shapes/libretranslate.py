"""LibreTranslate's API, at the root: `/translate` and related paths.

Source: LibreTranslate 1.9.6, `app.py`.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from heed.serve.languages import resolve
from heed.serve.refusal import Refusal
from heed.serve.request import AUTO, Answer, Request
from heed.serve.service import Service
from heed.serve.shapes import fields, schemas
from heed.serve.shapes.directions import NotServedError, resolve_direction, translate_or_keep
from heed.serve.shapes.endpoint import Asked, Endpoint
from heed.serve.shapes.fields import Field, as_list
from heed.serve.shapes.style import Style

TAG = "LibreTranslate"
MAX_CODE_CHARS = 35
"""Longest language code, by RFC 5646, section 4.4.1; messages repeat at most this much."""
N_DETECTED = 3
"""Maximum number of languages in a response of `/detect`."""
ALIASES = {"pb": "pt-BR", "zh": "zh-Hans", "zt": "zh-Hant"}
"""LibreTranslate's codes for languages whose models have other codes."""


def spell(refusal: Refusal, request_id: str) -> dict[str, Any]:
    """The body of an error response."""
    return {"error": refusal.sentence}


STYLE = Style(
    missing="Invalid request: missing {name} parameter",
    wrong="Invalid request: {name} parameter must be {meaning}",
    not_a_number="Invalid request: {name} parameter is not a number",
    spell=spell,
    error=schemas.record(error=schemas.TEXT),
    prefixes=("/",),
    statuses={401: 403},
)

SOURCE = replace(fields.SOURCE, is_required=True, default=None)
TARGET = fields.TARGET
API_KEY = Field(name="api_key", kind="word", about="Key, where the server asks for one.")
TRANSLATE = (
    Field(
        name="q",
        kind="texts",
        about="Text to translate, or a list of texts.",
        is_required=True,
        example="A man is riding a bike.",
    ),
    SOURCE,
    TARGET,
    Field(name="format", kind="word", about="What the text is.", default="text", example="text"),
    Field(
        name="alternatives",
        kind="integer",
        about="How many other translations to add.",
        default=0,
        example=1,
    ),
    API_KEY,
)


async def _translate(service: Service, asked: Asked) -> dict[str, Any]:
    values = asked.values
    q = values["q"]
    texts = as_list(q)
    if asked.given.is_form:
        texts = [text.replace("\r\n", "\n").replace("\r", "\n") for text in texts]
    n_alternatives = max(0, values["alternatives"])
    require_within_limits(service, texts, n_others=n_alternatives)
    source, target = direction(service, values["source"], values["target"])
    format_ = values["format"]
    if format_ not in ("text", "html"):
        raise Refusal(
            400,
            f"{format_[:MAX_CODE_CHARS]} format is not supported",
            code="wrong_value",
            field="format",
        )
    wants_others = n_alternatives > 0 and format_ == "text"
    request = Request(
        texts=texts,
        source=source,
        target=target,
        format=format_,
        alternatives=n_alternatives if wants_others else 0,
    )
    answers = await translate_or_keep(service, request)
    return _spelled(answers, q, is_auto=source == AUTO, has_others=n_alternatives > 0)


def _spelled(
    answers: Sequence[Answer], q: str | list[str], *, is_auto: bool, has_others: bool
) -> dict[str, Any]:
    columns: dict[str, list[Any]] = {"translatedText": [answer.text for answer in answers]}
    if is_auto:
        columns["detectedLanguage"] = [
            _spelled_detection(answer.source, answer.confidence or 0.0) for answer in answers
        ]
    if has_others:
        columns["alternatives"] = [list(answer.alternatives) for answer in answers]
    if isinstance(q, list):
        return columns
    return {name: column[0] for name, column in columns.items()}


def require_within_limits(service: Service, texts: Sequence[str], *, n_others: int = 0) -> None:
    """Refuse a request that exceeds the server's limits.

    Raises:
        Refusal: there are too many texts, characters or alternatives.
    """
    limits = service.settings.limits
    if n_others > limits.alternatives:
        raise Refusal(
            400,
            f"Invalid request: alternatives parameter must be <= {limits.alternatives}",
            code="too_many_alternatives",
            field="alternatives",
        )
    n_chars = sum(map(len, texts))
    for size, limit in ((len(texts), limits.texts), (n_chars, limits.chars)):
        if size > limit:
            raise Refusal(
                400,
                f"Invalid request: request ({size}) exceeds text limit ({limit})",
                code="too_large",
                field="q",
            )


def direction(service: Service, asked_source: str, asked_target: str) -> tuple[str, str]:
    """The served codes of both languages; the source may be `AUTO`.

    Raises:
        Refusal: a language is not served, or the direction is not.
    """
    try:
        return resolve_direction(service, asked_source, asked_target)
    except NotServedError as error:
        raise _not_served(service, error) from None


def _not_served(service: Service, error: NotServedError) -> Refusal:
    names = service.all_languages()
    if error.wrong != "direction":
        code = error.source if error.wrong == "source" else error.target
        sentence = f"{code[:MAX_CODE_CHARS].lower()} is not supported"
        if known := resolve(code, names):  # but never as a target
            sentence = f"{names[known].name} ({spelled_code(known)}) is not a target language here"
        return Refusal(400, sentence, code="no_such_language", field=error.wrong)
    return Refusal(
        400,
        f"{names[error.target].name} ({spelled_code(error.target)}) is not available as a target "
        f"language from {names[error.source].name} ({spelled_code(error.source)})",
        code="no_such_direction",
        field="target",
    )


def spelled_code(code: str) -> str:
    """A code as LibreTranslate spells it."""
    return ALIASES.get(code.lower(), code)


def _spelled_detection(code: str, probability: float) -> dict[str, Any]:
    return {"confidence": round(100.0 * probability, 1), "language": spelled_code(code)}


async def _detect(service: Service, asked: Asked) -> list[dict[str, Any]]:
    texts = as_list(asked.values["q"])
    require_within_limits(service, texts)
    found = await service.detect("\n".join(texts))
    return [
        _spelled_detection(guess.code, guess.probability) for guess in found.guesses[:N_DETECTED]
    ]


async def _languages(service: Service, asked: Asked) -> list[dict[str, Any]]:
    return [
        {
            "code": spelled_code(language.code),
            "name": language.name,
            # LibreTranslate lists every language among its own targets, and echoes such texts.
            "targets": sorted({spelled_code(code) for code in (language.code, *language.targets)}),
        }
        for language in service.all_languages().values()
    ]


async def _health(service: Service, asked: Asked) -> dict[str, Any]:
    return {"status": "ok"}


_ONE_OR_MANY = {"oneOf": [schemas.TEXT, schemas.listed(schemas.TEXT)]}
_DETECTION = schemas.record(confidence=schemas.NUMBER, language=schemas.TEXT)
ENDPOINTS = (
    Endpoint(
        method="POST",
        path="/translate",
        handler=_translate,
        style=STYLE,
        tag=TAG,
        summary="Translate a text or a list of texts.",
        fields=TRANSLATE,
        answer={
            "type": "object",
            "properties": {
                "translatedText": _ONE_OR_MANY,
                "detectedLanguage": {
                    "oneOf": [_DETECTION, {"type": "array", "items": _DETECTION}],
                },
                "alternatives": {"type": "array"},
            },
            "required": ["translatedText"],
        },
    ),
    Endpoint(
        method="POST",
        path="/detect",
        handler=_detect,
        style=STYLE,
        tag=TAG,
        summary="Name the language of a text, the likeliest first.",
        fields=(
            Field(
                name="q",
                kind="texts",
                about="Text whose language is asked.",
                is_required=True,
                example="What language is this?",
            ),
            API_KEY,
        ),
        answer=schemas.listed(_DETECTION),
    ),
    Endpoint(
        method="GET",
        path="/languages",
        handler=_languages,
        style=STYLE,
        tag=TAG,
        summary="List the languages, and into which each is translated.",
        # Not a reference, because Swagger, which has this too, keeps shared schemas elsewhere.
        answer=schemas.listed(schemas.SHARED["Language"]),
    ),
    Endpoint(
        method="GET",
        path="/health",
        handler=_health,
        style=STYLE,
        tag=TAG,
        summary="Say that the server is alive.",
        answer=schemas.record(status=schemas.TEXT),
    ),
)
