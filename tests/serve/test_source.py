"""The source language is given or detected, and says when it is not certain."""

import pytest

from heed.serve.detect import Detector
from heed.serve.refusal import Refusal
from heed.serve.request import Direction
from heed.serve.source import Source, find_source
from heed.serve.work.directions import Route

ROUTES = [
    Route(source="en", target="de", model="one"),
    Route(source="de", target="en", model="two"),
    Route(source="en", target="de", model="better"),
    Route(source="pl", target="en", model="three"),
]
DETECTOR = Detector(["en", "de", "pl"])
ENGLISH = "Where is the next bakery?"
GERMAN = "Wo ist die nächste Bäckerei?"
POLISH = "Gdzie jest najbliższa piekarnia?"
FRENCH = "Où est la boulangerie la plus proche ?"


def find(text: str, target: str, source: str = "auto", model: str | None = None) -> Source:
    direction = Direction(source=source, target=target, model=model)
    return find_source(text, direction, routes=ROUTES, detector=DETECTOR)


def test_a_given_language_is_believed() -> None:
    assert find(GERMAN, "DE", "EN") == Source(code="en", route=ROUTES[0])


def test_a_named_model_is_taken() -> None:
    assert find(ENGLISH, "de", "en", "better").route == ROUTES[2]
    assert find(ENGLISH, "de", "auto", "better").route == ROUTES[2]


def test_a_detected_language_finds_the_first_model() -> None:
    found = find(ENGLISH, "de")
    assert (found.code, found.route, found.doubts) == ("en", ROUTES[0], ())
    assert found.confidence is not None
    assert found.confidence > 0.99


def test_a_text_in_the_target_language_stays() -> None:
    found = find(GERMAN, "de", "AUTO")
    assert (found.code, found.route, found.doubts) == ("de", None, ())


def test_a_language_that_is_not_served_is_reported() -> None:
    found = find(FRENCH, "de")
    assert (found.code, found.route) == ("en", ROUTES[0])
    assert found.confidence is not None
    assert found.confidence < 0.1
    (doubt,) = found.doubts
    assert doubt.kind == "language_doubtful"
    assert "seems to be in French" in doubt.sentence
    assert "read as English" in doubt.sentence


def test_a_served_language_without_that_direction_is_reported() -> None:
    found = find(POLISH, "de")
    assert (found.code, found.route) == ("en", ROUTES[0])
    sentence = found.doubts[0].sentence
    assert "seems to be in Polish, which is not translated into the target language" in sentence


def test_a_text_without_evidence_is_doubtful() -> None:
    found = find("123", "de")
    assert found.route == ROUTES[0]
    assert "is not certain; it was read as English" in found.doubts[0].sentence


def test_a_text_in_the_target_language_stays_whatever_regions_are_served() -> None:
    routes = [
        Route(source=source, target=target, model="one")
        for source, target in (("en", "pt-BR"), ("en", "pt-PT"), ("pt-PT", "en"))
    ]
    detector = Detector(["en", "pt-BR", "pt-PT"])
    text = "Onde fica a padaria mais próxima?"

    def found(target: str) -> Source:
        return find_source(text, Direction(target=target), routes=routes, detector=detector)

    for target in ("pt-BR", "pt-PT"):
        assert (found(target).code, found(target).route) == (target, None)
    assert (found("en").route, found("en").doubts) == (routes[2], ())
    assert (found("en").confidence or 0) > 0.99


@pytest.mark.parametrize(
    ("asked", "words"),
    [
        ({"source": "fr", "target": "de"}, "source must be one of en, de, pl, but is 'fr'"),
        ({"source": "en", "target": "pl"}, "target must be one of de, but is 'pl'"),
        ({"source": "auto", "target": "fr"}, "target must be one of"),
        ({"source": "en", "target": "de", "model": "none"}, "no model 'none' here"),
        ({"source": "auto", "target": "de", "model": "none"}, "no model 'none' here"),
    ],
)
def test_what_is_not_served_is_refused(asked: dict[str, str], words: str) -> None:
    with pytest.raises(Refusal, match=words) as caught:
        find(ENGLISH, **asked)
    assert caught.value.status == 400
