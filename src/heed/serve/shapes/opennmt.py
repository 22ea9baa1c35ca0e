"""The API of OpenNMT-py's server, `/translator`.

Source: OpenNMT-py 3, its translation server.
"""

from typing import Any

from heed.serve.refusal import Refusal
from heed.serve.service import Service
from heed.serve.shapes.addons import translate
from heed.serve.shapes.endpoint import Asked, Endpoint
from heed.serve.shapes.schemas import INTEGER, NUMBER, TEXT, listed, record
from heed.serve.shapes.style import Style
from heed.text.normalize import is_unicode

TAG = "OpenNMT"


def spell(refusal: Refusal, request_id: str) -> dict[str, Any]:
    """The body of an error response. OpenNMT-py sends it with status 200."""
    return {"error": refusal.sentence, "status": "error"}


STYLE = Style(
    missing="{name} is missing.",
    wrong="{name} must be {meaning}.",
    spell=spell,
    error=record(error=TEXT, status=TEXT),
    prefixes=("/translator/",),
)


def _directions(service: Service) -> list[tuple[str, str]]:
    """The directions; the id in a request is an index into this list."""
    return [
        (language.code, target) for language in service.languages() for target in language.targets
    ]


async def _translate(service: Service, asked: Asked) -> list[list[dict[str, Any]]]:
    inputs = asked.given.values.get("")
    if not isinstance(inputs, list) or not inputs:
        raise _wrong('The body must be a list such as [{"id": 0, "src": "a text"}].')
    if not all(isinstance(each, dict) and isinstance(each.get("src"), str) for each in inputs):
        raise _wrong('Each input must be an object with a text "src".')
    if not all(is_unicode(each["src"]) for each in inputs):
        raise Refusal(400, 'Each "src" must be valid Unicode.', code="not_unicode")
    source, target = _chosen(service, [each.get("id", 0) for each in inputs])
    texts = [each["src"] for each in inputs]
    answers = await translate(service, texts, source, target)
    return [
        [
            {
                "src": text,
                "tgt": answer.text,
                "n_best": 1,
                "pred_score": sum(one.translation.log_prob for one in answer.segments),
            }
            for text, answer in zip(texts, answers, strict=True)
        ]
    ]


def _texts(inputs: Any) -> list[str]:
    """The texts of inputs that may be invalid; an invalid one counts as an empty text."""
    if not isinstance(inputs, list):
        return []
    found = [each.get("src") if isinstance(each, dict) else None for each in inputs]
    return [text if isinstance(text, str) else "" for text in found]


def _chosen(service: Service, ids: list[Any]) -> tuple[str, str]:
    directions = _directions(service)
    if len(directions) == 1:
        # The client's configuration has the id that its old server used.
        return directions[0]
    id = ids[0]
    is_one = all(each == id for each in ids)
    if is_one and isinstance(id, int) and 0 <= id < len(directions):
        return directions[id]
    listed_ = ", ".join(
        f"{id} ({source} to {target})" for id, (source, target) in enumerate(directions)
    )
    raise _wrong(f"The id must be the same in all inputs, and one of {listed_}.")


def _wrong(sentence: str) -> Refusal:
    return Refusal(400, sentence, code="wrong_value")


async def _models(service: Service, asked: Asked) -> list[dict[str, Any]]:
    return [
        {"model_id": id, "status": "loaded", "model": f"{source}-{target}"}
        for id, (source, target) in enumerate(_directions(service))
    ]


_INPUT = {
    "type": "object",
    "properties": {"id": INTEGER, "src": TEXT},
    "required": ["src"],
}
ENDPOINTS = (
    Endpoint(
        method="POST",
        path="/translator/translate",
        handler=_translate,
        style=STYLE,
        tag=TAG,
        summary="Translate texts. The id is that of a direction.",
        texts_of_body=_texts,
        body={**listed(_INPUT), "minItems": 1},
        example=[{"id": 0, "src": "A man is riding a bike."}],
        answer=listed(listed(record(src=TEXT, tgt=TEXT, n_best=INTEGER, pred_score=NUMBER))),
    ),
    Endpoint(
        method="GET",
        path="/translator/models",
        handler=_models,
        style=STYLE,
        tag=TAG,
        summary="List the directions and their ids.",
        answer=listed(record(model_id=INTEGER, status=TEXT, model=TEXT)),
    ),
)
