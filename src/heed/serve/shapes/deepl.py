"""DeepL's API, `/v2`: translate, usage and languages, as the official clients expect them.

Source: DeepL's OpenAPI document 3.12, and its Python client `deepl` 1.32.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from heed.serve.access.usage import Usage
from heed.serve.refusal import Refusal
from heed.serve.request import AUTO, Answer, Format, MarkupOptions, Request, Split
from heed.serve.service import Service
from heed.serve.shapes import fields
from heed.serve.shapes.directions import NotServedError, resolve_direction, translate_or_keep
from heed.serve.shapes.endpoint import Asked, Endpoint
from heed.serve.shapes.fields import Field
from heed.serve.shapes.schemas import FLAG, INTEGER, TEXT, listed, record
from heed.serve.shapes.storage import Pair
from heed.serve.shapes.stored import compiled, find_glossary
from heed.serve.shapes.style import Style
from heed.translate.glossary.glossary import Glossary

TAG = "DeepL"
PREFIX = "/v2"
NEXT_PREFIX = "/v3"
"""Prefix of multilingual glossaries; clients read their errors in the same way."""
UNLIMITED = 1_000_000_000_000
"""The character limit that DeepL itself reports for unlimited accounts."""
VARIANTS = {
    "EN": (("EN-GB", "English (British)"), ("EN-US", "English (American)")),
    "PT": (("PT-BR", "Portuguese (Brazilian)"), ("PT-PT", "Portuguese (European)")),
}
"""DeepL's clients reject `EN` and `PT` as targets, but accept these."""


def spell(refusal: Refusal, request_id: str) -> dict[str, Any]:
    """The body of an error response."""
    return {"message": refusal.sentence}


STYLE = Style(
    missing="Parameter '{name}' not specified.",
    wrong="Value for '{name}' not supported: it must be {meaning}.",
    spell=spell,
    error=record(message=TEXT),
    prefixes=(f"{PREFIX}/", PREFIX, f"{NEXT_PREFIX}/", NEXT_PREFIX),
    statuses={401: 403},
)
AUTH_KEY = Field(
    name="auth_key", kind="word", about="Key, where it is not in the header Authorization."
)
FORMALITY = Field(
    name="formality",
    kind="word",
    about="Ignored, as DeepL does for languages without it; `more` and `less` are refused.",
    choices=("default", "more", "less", "prefer_more", "prefer_less"),
    default="default",
)
SOURCE = replace(
    fields.SOURCE,
    name="source_lang",
    about="Language code of the text; detected where it is not given.",
    example="EN",
)
TARGET = replace(fields.TARGET, name="target_lang", example="DE")
GLOSSARY = Field(
    name="glossary_id",
    kind="word",
    about="Glossary to use; needs `source_lang`.",
    names_stored=True,
)
GLOSSARIES = Field(
    name="glossary_ids",
    kind="words",
    about="Glossaries to use together, at most 5; the first with a term counts.",
    default=[],
    names_stored=True,
)
MAX_GLOSSARIES = 5
TAG_VERSIONS = ("v1", "v2")
_TAGS = (
    ("splitting_tags", "Tags that split sentences."),
    ("non_splitting_tags", "Tags that do not split sentences."),
    ("ignore_tags", "Tags whose content is not translated."),
)
TRANSLATE = (
    Field(
        name="text",
        kind="texts",
        about="Texts to translate.",
        is_required=True,
        example=["A man is riding a bike."],
    ),
    TARGET,
    SOURCE,
    Field(
        name="split_sentences",
        kind="word",
        about="What splits a text: `1` sentences and line breaks, `0` line breaks, `nonewlines` "
        "sentences. The default is `nonewlines` for `tag_handling=html`, else `1`.",
        choices=("0", "1", "nonewlines"),
    ),
    Field(
        name="tag_handling",
        kind="word",
        about="What the texts are, if they are not plain.",
        choices=("xml", "html"),
    ),
    *(Field(name=name, kind="words", about=about, default=[]) for name, about in _TAGS),
    Field(
        name="outline_detection",
        kind="flag",
        about="Whether the tags that split XML are found by themselves.",
        default=True,
    ),
    GLOSSARY,
    GLOSSARIES,
    FORMALITY,
    Field(
        name="show_billed_characters",
        kind="flag",
        about="Whether to add `billed_characters`.",
        default=False,
        example=True,
    ),
    Field(
        name="model_type",
        kind="word",
        about="Ignored: heed has one model a direction.",
        choices=("quality_optimized", "latency_optimized", "prefer_quality_optimized"),
    ),
    Field(
        name="preserve_formatting",
        kind="flag",
        about="Ignored: formatting is always preserved.",
        default=False,
    ),
    Field(
        name="context",
        kind="text",
        about="Ignored: models read one sentence at a time.",
        is_for_model=False,
    ),
    Field(
        name="tag_handling_version",
        kind="word",
        about="Ignored: heed reads tags in one way.",
        choices=TAG_VERSIONS,
        default=TAG_VERSIONS[-1],
    ),
    Field(name="enable_beta_languages", kind="flag", about="Ignored, as DeepL does."),
    AUTH_KEY,
)
UNSUPPORTED = (
    "style_id",
    "custom_instructions",
    "translation_memory_id",
    "translation_memory_threshold",
)
"""Parameters whose effect on a translation heed does not support."""


async def _translate(service: Service, asked: Asked) -> dict[str, Any]:
    values = asked.values
    refuse_unsupported(asked)
    texts = values["text"] if isinstance(values["text"], list) else [values["text"]]
    _require_within_limits(service, texts)
    source, target = direction(service, values)
    format_, split = _format(values)
    answers = await translate_or_keep(
        service,
        Request(
            texts=texts,
            source=source,
            target=target,
            format=format_,
            split=split,
            glossary=await find_terms(service, asked, source, target),
            markup=MarkupOptions(
                **{name: values[name] for name, _ in _TAGS},
                outline_detection=values["outline_detection"],
            ),
        ),
    )
    count_chars(asked, sum(map(len, texts)))
    return {
        "translations": [
            _spelled(answer, text, values) for answer, text in zip(answers, texts, strict=True)
        ]
    }


async def _usage(service: Service, asked: Asked) -> dict[str, Any]:
    return {"character_count": count_chars(asked, 0), "character_limit": UNLIMITED}


def count_chars(asked: Asked, n_chars: int) -> int:
    """Add a request's characters to those of its key, and return that sum."""
    usage: Usage = asked.http.app.state.usage
    return usage.add(asked.key, n_chars)


async def find_terms(service: Service, asked: Asked, source: str, target: str) -> Glossary | None:
    """The terms of a request's glossaries, or None."""
    id, ids = asked.values["glossary_id"], asked.values["glossary_ids"]
    if id and ids:
        raise _wrong("glossary_ids", "'glossary_ids' cannot be used together with 'glossary_id'.")
    if len(ids) > MAX_GLOSSARIES:
        raise _wrong("glossary_ids", f"At most {MAX_GLOSSARIES} glossaries, not {len(ids)}.")
    name, ids = ("glossary_id", [id]) if id else ("glossary_ids", ids)
    if not ids:
        return None
    if source == AUTO:
        raise _wrong("source_lang", f"Parameter 'source_lang' is needed with '{name}'.")
    glossaries = [await find_glossary(service, asked, each) for each in ids]
    pair = base_pair(source, target)
    if any(pair not in each.dictionaries for each in glossaries):
        raise _wrong(name, "The glossary is for another pair of languages.")
    return await asyncio.to_thread(compiled, [each.dictionaries[pair] for each in glossaries])


def base_pair(source: str, target: str) -> Pair:
    """The codes of a direction in the form of glossaries: without region, in lower case."""
    return spelled_base(source).lower(), spelled_base(target).lower()


def _spelled(answer: Answer, text: str, values: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "detected_source_language": spelled_base(answer.source),
        "text": answer.text,
    }
    if values["show_billed_characters"]:
        found["billed_characters"] = len(text)
    if values["model_type"]:
        found["model_type_used"] = values["model_type"].removeprefix("prefer_")
    if values["tag_handling"]:
        found["tag_handling_version"] = values["tag_handling_version"]
    return found


def _format(values: Mapping[str, Any]) -> tuple[Format, Split]:
    handling = values["tag_handling"]
    split: Split = values["split_sentences"] or ("nonewlines" if handling == "html" else "1")
    return handling or "text", split


def refuse_unsupported(asked: Asked) -> None:
    """Refuse parameters that heed does not support.

    Raises:
        Refusal: names such a parameter.
    """
    for name in UNSUPPORTED:
        if asked.given.values.get(name) not in (None, "", [], [""]):
            raise _wrong(name, f"'{name}' is not supported by heed.")
    if asked.values["formality"] in ("more", "less"):
        raise _wrong("formality", "'formality' is not supported for given 'target_lang'.")


def _wrong(field: str, sentence: str, *, status: int = 400) -> Refusal:
    return Refusal(status, sentence, code="wrong_value", field=field)


def _require_within_limits(service: Service, texts: Sequence[str]) -> None:
    limits = service.settings.limits
    n_chars = sum(map(len, texts))
    if len(texts) > limits.texts:
        raise _wrong(
            "text", f"At most {limits.texts} texts, but there are {len(texts)}.", status=413
        )
    if n_chars > limits.chars:
        sentence = f"At most {limits.chars} characters, but there are {n_chars}."
        raise _wrong("text", sentence, status=413)


def direction(service: Service, values: Mapping[str, Any]) -> tuple[str, str]:
    """The served codes of `source_lang`, which may be `AUTO`, and `target_lang`.

    Raises:
        Refusal: a language is not served, or the direction is not.
    """
    try:
        return resolve_direction(service, values["source_lang"], values["target_lang"])
    except NotServedError as error:
        raise _wrong(*_NOT_SERVED[error.wrong]) from None


_NOT_SERVED = {
    "source": ("source_lang", "Value for 'source_lang' not supported."),
    "target": ("target_lang", "Value for 'target_lang' not supported."),
    "direction": (
        "target_lang",
        "Value for 'target_lang' not supported for given 'source_lang'.",
    ),
}


def spelled_base(code: str) -> str:
    """A code in DeepL's form for source languages: without region, in upper case."""
    return code.replace("_", "-").partition("-")[0].upper()


async def _languages(service: Service, asked: Asked) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    is_target = asked.values["type"] == "target"
    for language in service.all_languages().values():
        base = spelled_base(language.code)
        if not is_target and language.targets:
            found.setdefault(base, {"language": base, "name": language.name})
        elif is_target and any(language.code in each.targets for each in service.languages()):
            spelled = language.code.upper().replace("_", "-")
            for code, name in VARIANTS.get(spelled, ((spelled, language.name),)):
                found[code] = {"language": code, "name": name, "supports_formality": False}
    return list(found.values())


_LANGUAGE = {
    "type": "object",
    "properties": {"language": TEXT, "name": TEXT, "supports_formality": FLAG},
    "required": ["language", "name"],
}
_TRANSLATION = {
    "type": "object",
    "properties": {
        "detected_source_language": TEXT,
        "text": TEXT,
        "billed_characters": INTEGER,
        "model_type_used": TEXT,
        "tag_handling_version": TEXT,
    },
    "required": ["detected_source_language", "text"],
}
ENDPOINTS = (
    Endpoint(
        method="POST",
        path=f"{PREFIX}/translate",
        handler=_translate,
        style=STYLE,
        tag=TAG,
        summary="Translate texts.",
        fields=TRANSLATE,
        answer=record(translations=listed(_TRANSLATION)),
    ),
    *(
        Endpoint(
            method=method,
            path=f"{PREFIX}/usage",
            handler=_usage,
            style=STYLE,
            tag=TAG,
            summary="Count the characters translated with the key since the server started.",
            fields=(AUTH_KEY,),
            answer=record(character_count=INTEGER, character_limit=INTEGER),
        )
        for method in ("GET", "POST")
    ),
    *(
        Endpoint(
            method=method,
            path=f"{PREFIX}/languages",
            handler=_languages,
            style=STYLE,
            tag=TAG,
            summary="List the languages.",
            fields=(
                Field(
                    name="type",
                    kind="word",
                    about="Which languages.",
                    choices=("source", "target"),
                    default="source",
                    example="target",
                ),
                AUTH_KEY,
            ),
            answer=listed(_LANGUAGE),
        )
        for method in ("GET", "POST")
    ),
)
