"""The small APIs of browser add-ons: Immersive Translate, KISS Translator, and two of Google's.

Source: the add-ons' own requests, and MTranServer's responses; Google's Cloud Translation v2.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from heed.serve.refusal import Refusal
from heed.serve.request import AUTO, Answer, Format, Request
from heed.serve.service import Service
from heed.serve.shapes import libretranslate
from heed.serve.shapes.directions import translate_or_keep
from heed.serve.shapes.endpoint import Asked, Endpoint
from heed.serve.shapes.fields import SOURCE, TARGET, Field, as_list
from heed.serve.shapes.schemas import INTEGER, NUMBER, TEXT, listed, record
from heed.serve.shapes.style import Style

TAG = "Add-ons"
WHOLE_TEXT = Field(
    name="text",
    kind="text",
    about="Text to translate.",
    is_required=True,
    example="A man is riding a bike.",
)
GOOGLE_TAG = "Google"


def spell_google(refusal: Refusal, request_id: str) -> dict[str, Any]:
    """The body of an error response of Google's API."""
    return {"error": {"code": refusal.status, "message": refusal.sentence}}


STYLE = libretranslate.STYLE
GOOGLE_STYLE = Style(
    missing="Required parameter: {name}",
    wrong="Invalid value for {name}: it must be {meaning}",
    spell=spell_google,
    error=record(error=record(code=INTEGER, message=TEXT)),
    prefixes=("/language/translate/", "/translate_a/"),
)


async def translate(
    service: Service,
    texts: Sequence[str],
    source: str,
    target: str,
    format_: Format = "text",
    *,
    alternatives: int = 0,
) -> list[Answer]:
    """The answers to texts whose languages may be spelled in any way; empty = detected.

    Raises:
        Refusal: there are too many texts, or the direction is not served.
    """
    libretranslate.require_within_limits(service, texts)
    codes = libretranslate.direction(service, source or AUTO, target)
    request = Request(
        texts=texts,
        source=codes[0],
        target=codes[1],
        format=format_,
        alternatives=alternatives if format_ == "text" else 0,
    )
    return await translate_or_keep(service, request)


async def _immersive(service: Service, asked: Asked) -> dict[str, Any]:
    values = asked.values
    texts = as_list(values["text_list"])
    answers = await translate(service, texts, values["source_lang"], values["target_lang"])
    return {
        "translations": [
            {"detected_source_lang": answer.source, "text": answer.text} for answer in answers
        ]
    }


async def _kiss(service: Service, asked: Asked) -> dict[str, Any]:
    values = asked.values
    texts = values["texts"] or values["text"]
    if texts is None:
        raise Refusal(400, STYLE.missing.format(name="text"), code="missing", field="text")
    answers = await translate(service, as_list(texts), values["from"], values["to"])
    found = [{"text": answer.text, "src": answer.source} for answer in answers]
    return {"translations": found} if isinstance(texts, list) else found[0]


async def _google(service: Service, asked: Asked) -> dict[str, Any]:
    values = asked.values
    source = values["source"]
    answers = await translate(
        service, as_list(values["q"]), source, values["target"], values["format"]
    )
    return {
        "data": {
            "translations": [
                {"translatedText": answer.text}
                | ({} if source else {"detectedSourceLanguage": answer.source})
                for answer in answers
            ]
        }
    }


async def _google_single(service: Service, asked: Asked) -> Any:
    values = asked.values
    text = "\n".join(as_list(values["q"]))
    (answer,) = await translate(service, [text], values["sl"], values["tl"])
    confidence = 1.0 if answer.confidence is None else answer.confidence
    if values["dj"]:
        return {
            "sentences": [{"trans": answer.text, "orig": text, "backend": 1}],
            "src": answer.source,
            "confidence": confidence,
        }
    sentence = [answer.text, text, None, None, 1]
    languages = [[answer.source], None, [confidence], [answer.source]]
    return [[sentence], None, answer.source, None, None, None, confidence, [], languages]


_ASK = ("A man is riding a bike.", "en", "de")


def _field(name: str, about: str, example: Any = None, **more: Any) -> Field:
    return Field(name=name, kind=more.pop("kind", "word"), about=about, example=example, **more)


IMMERSIVE = (
    replace(SOURCE, name="source_lang"),
    replace(TARGET, name="target_lang"),
    _field("text_list", "Texts to translate.", [_ASK[0]], kind="texts", is_required=True),
)
KISS = (
    _field("text", "Text to translate.", _ASK[0], kind="texts"),
    _field("texts", "Texts to translate, in place of `text`.", kind="texts"),
    replace(SOURCE, name="from"),
    replace(TARGET, name="to"),
)
GOOGLE = (
    _field("q", "Text to translate, or a list of texts.", _ASK[0], kind="texts", is_required=True),
    replace(
        SOURCE, about="Language code of the text; detected where it is not given.", default=None
    ),
    TARGET,
    _field("format", "What the text is.", "text", choices=("html", "text"), default="html"),
    _field("key", "Key, where the server asks for one."),
)
SINGLE = (
    _field("q", "Text to translate.", _ASK[0], kind="texts", is_required=True),
    replace(SOURCE, name="sl"),
    replace(TARGET, name="tl"),
    _field("dj", "Whether to answer with an object.", True, kind="flag", default=False),
)
_GOOGLE_TRANSLATION = {
    "type": "object",
    "properties": {"translatedText": TEXT, "detectedSourceLanguage": TEXT},
    "required": ["translatedText"],
}
ENDPOINTS = (
    Endpoint(
        method="POST",
        path="/imme",
        handler=_immersive,
        style=STYLE,
        tag=TAG,
        summary="Translate for Immersive Translate.",
        fields=IMMERSIVE,
        answer=record(translations=listed(record(detected_source_lang=TEXT, text=TEXT))),
    ),
    Endpoint(
        method="POST",
        path="/kiss",
        handler=_kiss,
        style=STYLE,
        tag=TAG,
        summary="Translate for KISS Translator.",
        fields=KISS,
        answer={"type": "object"},
    ),
    *(
        Endpoint(
            method=method,
            path="/language/translate/v2",
            handler=_google,
            style=GOOGLE_STYLE,
            tag=GOOGLE_TAG,
            summary="Translate texts, as Google's Cloud Translation v2.",
            fields=GOOGLE,
            answer=record(data=record(translations=listed(_GOOGLE_TRANSLATION))),
        )
        for method in ("GET", "POST")
    ),
    *(
        Endpoint(
            method=method,
            path="/translate_a/single",
            handler=_google_single,
            style=GOOGLE_STYLE,
            tag=GOOGLE_TAG,
            summary="Translate a text, as the add-ons that use Google's page.",
            fields=SINGLE,
            answer={
                "oneOf": [
                    {"type": "array"},
                    record(sentences=listed({"type": "object"}), src=TEXT, confidence=NUMBER),
                ]
            },
        )
        for method in ("GET", "POST")
    ),
)
