"""The source language of a text, given or detected, and the model for it."""

from collections.abc import Sequence
from dataclasses import dataclass

from heed.serve.detect import Detection, Detector
from heed.serve.languages import base_of, name_of, resolve
from heed.serve.request import AUTO, Direction, Doubt
from heed.serve.work.directions import Route, find_route, no_model, no_such


@dataclass(frozen=True, kw_only=True)
class Source:
    """The language of a text.

    Attributes:
        code: code of a served language.
        confidence: probability of the detection, 0 to 1; None if the language was given.
        route: the direction and model; None = the text is already in the target language.
        doubts: one doubt, if the detection is doubtful.
    """

    code: str
    confidence: float | None = None
    route: Route | None
    doubts: tuple[Doubt, ...] = ()


def find_source(
    text: str,
    direction: Direction,
    *,
    routes: Sequence[Route],
    detector: Detector,
) -> Source:
    """Find the language of a text, and its route.

    Args:
        text: the text.
        direction: the requested direction.
        routes: the served directions.
        detector: detects the language for `AUTO`.

    Raises:
        Refusal: there is no such language, direction or model.
    """
    target, model = direction.target, direction.model
    if direction.source.lower() != AUTO:
        route = find_route(routes, direction)
        return Source(code=route.source, route=route)
    into = resolve(target, list(dict.fromkeys(route.target for route in routes)))
    if into is None:
        raise no_such("target", target, [route.target for route in routes])
    detection = detector.detect(text)
    ways = {
        route.source: route
        for route in reversed(routes)
        if route.target == into and model in (None, route.model)
    }
    is_there = _is_same(detection.best.code, into) and not detection.is_doubtful
    if is_there and not any(_is_same(code, into) for code in ways):
        return Source(code=into, confidence=detection.probability_of(into), route=None)
    guess = next((guess for guess in detection.guesses if guess.code in ways), None)
    if guess is None:
        raise no_model(model)
    return Source(
        code=guess.code,
        confidence=detection.probability_of(guess.code),
        route=ways[guess.code],
        doubts=_doubts(detection, guess.code),
    )


def _is_same(one: str, other: str) -> bool:
    """Whether two codes are of one language, perhaps of different regions."""
    return base_of(one) == base_of(other)


def _doubts(detection: Detection, code: str) -> tuple[Doubt, ...]:
    best = detection.best
    if not detection.is_doubtful and _is_same(best.code, code):
        return ()
    if detection.other is not None:
        likely = f"The text seems to be in {name_of(detection.other)}, which is not translated here"
    elif not _is_same(best.code, code):
        likely = (
            f"The text seems to be in {name_of(best.code)}, which is not translated into the "
            "target language"
        )
    else:
        likely = "The language of the text is not certain"
    sentence = f"{likely}; it was read as {name_of(code)}."
    return (Doubt(kind="language_doubtful", sentence=sentence),)
