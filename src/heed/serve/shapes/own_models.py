"""heed's own API, models: next words, scores, languages, cards."""

from typing import Any

from heed.serve.doubts import placed
from heed.serve.request import Direction, Doubt, ModelInfo
from heed.serve.service import IsWanted, Service
from heed.serve.shapes import schemas
from heed.serve.shapes.answers import rounded, spelled_doubt
from heed.serve.shapes.endpoint import Asked, Endpoint
from heed.serve.shapes.fields import SOURCE, TARGET, Field
from heed.serve.shapes.own import MODEL, PREFIX, STYLE, TAG, direction_of, require_at_most
from heed.serve.work.directions import Route
from heed.text.spans import BLANK_SIGN
from heed.translate.doubts.judge import doubts_of_pair
from heed.translate.translator import Translator

MAX_CHOICES = 100
DEFAULT_CHOICES = 5
JUDGED_CHARS = 2000
"""Most characters of a text, or of its translation, whose doubts are asked."""
_SENTENCE = Field(
    name="text",
    kind="text",
    about="The text: one sentence, because a model reads one at a time.",
    is_required=True,
    example="A man is riding a bike.",
)
_PREFIX = Field(
    name="prefix", kind="text", about="Its translation so far.", default="", example="Ein"
)
_K = Field(
    name="k",
    kind="integer",
    about="How many choices.",
    default=DEFAULT_CHOICES,
    low=1,
    high=MAX_CHOICES,
    example=3,
)
NEXT = (_SENTENCE, _PREFIX, SOURCE, TARGET, _K, MODEL)
SCORE = (
    Field(
        name="source_text",
        kind="text",
        about="The text.",
        is_required=True,
        example="A man is riding a bike.",
    ),
    Field(
        name="target_text",
        kind="text",
        about="The translation whose probability is asked.",
        is_required=True,
        example="Ein Mann fährt Fahrrad.",
    ),
    SOURCE,
    TARGET,
    MODEL,
    Field(
        name="doubts",
        kind="flag",
        about="Whether to add the reasons to check the translation. The model then translates the "
        f"text, too, and neither may have more than {JUDGED_CHARS} characters.",
        default=False,
        example=True,
    ),
)


def _asked_of_model(service: Service, asked: Asked, *texts: str) -> Direction:
    """The direction of a request, after checking the total length of its texts."""
    n_chars = sum(len(asked.values[name]) for name in texts)
    require_at_most(service.settings.limits.chars, n_chars, "characters", texts[0])
    return direction_of(asked.values)


async def _continue(service: Service, asked: Asked) -> dict[str, Any]:
    direction = _asked_of_model(service, asked, "text", "prefix")
    values = asked.values
    found = await service.continuations(values["text"], values["prefix"], direction, k=values["k"])
    return {
        "choices": [
            {
                "piece": one.token,
                "text": _read(one.token),
                "probability": rounded(one.probability),
                "translation": one.translation.text,
            }
            for one in found
        ]
    }


async def _next_word(service: Service, asked: Asked) -> dict[str, Any]:
    direction = _asked_of_model(service, asked, "text", "prefix")
    values = asked.values
    found = await service.next_words(values["text"], values["prefix"], direction, k=values["k"])
    return {
        "choices": [
            {
                "piece": one.token,
                "text": _read(one.token),
                "probability": rounded(one.probability),
            }
            for one in found
        ]
    }


def _read(piece: str) -> str:
    """A piece in readable form."""
    return piece.replace(BLANK_SIGN, " ")


async def _score(service: Service, asked: Asked) -> dict[str, Any]:
    direction = _asked_of_model(service, asked, "source_text", "target_text")
    values = asked.values
    texts = values["source_text"], values["target_text"]
    doubts = await _doubts(service, *texts, direction) if values["doubts"] else None
    found = await service.score(*texts, direction)
    answer = {
        "log_prob": rounded(found.log_prob),
        "score": rounded(found.score),
        "status": found.status,
        "tokens": [
            {"piece": piece, "log_prob": rounded(score)}
            for piece, score in zip(found.tokens, found.token_scores, strict=True)
        ],
    }
    return answer if doubts is None else {**answer, "doubts": doubts}


async def _doubts(
    service: Service, source: str, target: str, direction: Direction
) -> list[dict[str, Any]]:
    """The doubts about a translation, as JSON values.

    Raises:
        Refusal: as in `Service.score`; or one of the two is too long.
    """
    require_at_most(JUDGED_CHARS, len(source), "characters", "source_text")
    require_at_most(JUDGED_CHARS, len(target), "characters", "target_text")

    def run(translator: Translator, route: Route, is_wanted: IsWanted) -> list[Doubt]:
        ways: Any = {"target_lang": route.target, "is_wanted": lambda _: is_wanted()}
        (judged,) = translator.judged([source], [target], **ways)
        return placed(target, judged, doubts_of_pair(source, target, judged))

    found = await service.with_model(run, source, direction, given=target)
    return [spelled_doubt(doubt) for doubt in found]


async def _detect(service: Service, asked: Asked) -> dict[str, Any]:
    text = asked.values["text"]
    require_at_most(service.settings.limits.chars, len(text), "characters", "text")
    names = {language.code: language.name for language in service.languages()}
    found = await service.detect(text)
    return {
        "languages": [
            {
                "code": guess.code,
                "name": names.get(guess.code, guess.code),
                "probability": rounded(guess.probability),
            }
            for guess in found.guesses
        ],
        "is_doubtful": found.is_doubtful,
        "other": found.other,
    }


async def _models(service: Service, asked: Asked) -> list[dict[str, Any]]:
    return [_spelled_model(model) for model in await service.models_info()]


def _spelled_model(model: ModelInfo) -> dict[str, Any]:
    return {
        "name": model.name,
        "directions": [list(direction) for direction in model.directions],
        "parameters": model.parameters,
        "size_bytes": model.size_bytes,
        "dtype": model.dtype,
        "is_loaded": model.is_loaded,
        "tokens_per_s": rounded(model.tokens_per_s),
        "version": model.version,
        "card": model.card,
    }


_CHOICE = {"piece": schemas.TEXT, "text": schemas.TEXT, "probability": schemas.NUMBER}
_SCORED = schemas.record(
    log_prob=schemas.NUMBER_OR_NULL,
    score=schemas.NUMBER_OR_NULL,
    status=schemas.TEXT,
    tokens=schemas.listed(schemas.record(piece=schemas.TEXT, log_prob=schemas.NUMBER_OR_NULL)),
)
_SCORED["properties"]["doubts"] = schemas.listed(schemas.ref("Doubt"))  # only if asked
_GUESS = schemas.record(code=schemas.TEXT, name=schemas.TEXT, probability=schemas.NUMBER)
ENDPOINTS = (
    Endpoint(
        method="POST",
        path=f"{PREFIX}/continue",
        handler=_continue,
        style=STYLE,
        tag=TAG,
        summary="Choose how a translation may go on, each choice with the best whole translation.",
        fields=NEXT,
        answer=schemas.record(
            choices=schemas.listed(schemas.record(**_CHOICE, translation=schemas.TEXT))
        ),
    ),
    Endpoint(
        method="POST",
        path=f"{PREFIX}/next-word",
        handler=_next_word,
        style=STYLE,
        tag=TAG,
        summary="Name the most probable next pieces of a translation.",
        fields=NEXT,
        answer=schemas.record(choices=schemas.listed(schemas.record(**_CHOICE))),
    ),
    Endpoint(
        method="POST",
        path=f"{PREFIX}/score",
        handler=_score,
        style=STYLE,
        tag=TAG,
        summary="Give the log-probability of a translation, and the doubts about it.",
        fields=SCORE,
        answer=_SCORED,
    ),
    Endpoint(
        method="POST",
        path=f"{PREFIX}/detect",
        handler=_detect,
        style=STYLE,
        tag=TAG,
        summary="Name the language of a text, the likeliest first.",
        fields=(
            Field(
                name="text",
                kind="text",
                about="Text whose language is asked.",
                is_required=True,
                example="What language is this?",
            ),
        ),
        answer=schemas.record(
            languages=schemas.listed(_GUESS),
            is_doubtful=schemas.FLAG,
            other={"type": ["string", "null"]},
        ),
    ),
    Endpoint(
        method="GET",
        path=f"{PREFIX}/models",
        handler=_models,
        style=STYLE,
        tag=TAG,
        summary="Describe the models: directions, sizes, speeds, cards.",
        answer=schemas.listed(
            schemas.record(
                name=schemas.TEXT,
                directions=schemas.listed(schemas.listed(schemas.TEXT)),
                parameters=schemas.INTEGER,
                size_bytes=schemas.INTEGER,
                dtype=schemas.TEXT,
                is_loaded=schemas.FLAG,
                tokens_per_s=schemas.NUMBER_OR_NULL,
                version=schemas.TEXT,
                card=schemas.TEXT,
            )
        ),
    ),
)
