"""The served languages of a text, with honest probabilities."""

import pytest

from heed.serve.detect import Detector


@pytest.fixture(scope="module")
def detector() -> Detector:
    return Detector(["en", "de", "zh-Hans"])


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("Where is the next bakery?", "en"),
        ("Wo ist die nächste Bäckerei?", "de"),
        ("最近的面包店在哪里？", "zh-Hans"),
        ("Wo ist die nächste Bäckerei? " * 1000, "de"),
    ],
)
def test_a_served_language_is_found_with_certainty(
    detector: Detector, text: str, code: str
) -> None:
    found = detector.detect(text)
    assert found.best.code == code
    assert found.best.probability > 0.99
    assert not found.is_doubtful
    assert found.other is None
    assert {guess.code for guess in found.guesses} == {"en", "de", "zh-Hans"}


def test_a_language_that_is_not_served_is_named(detector: Detector) -> None:
    found = detector.detect("Où est la boulangerie la plus proche ?")
    assert found.other == "fr"
    assert found.is_doubtful
    assert sum(guess.probability for guess in found.guesses) < 0.05


@pytest.mark.parametrize("text", ["", "123", "!?", "👍🏽", "\ud800", "die"])
def test_without_evidence_there_is_doubt(detector: Detector, text: str) -> None:
    found = detector.detect(text)
    assert found.is_doubtful
    assert found.other is None


def test_probabilities_leave_room_for_other_languages(detector: Detector) -> None:
    found = detector.detect("123")
    assert [round(guess.probability, 2) for guess in found.guesses] == [0.32, 0.32, 0.32]


def test_two_codes_of_one_language_share_its_probability() -> None:
    found = Detector(["pt", "pt-BR", "en"]).detect("Onde fica a padaria mais próxima?")
    assert [guess.code for guess in found.guesses] == ["pt", "pt-BR", "en"]
    assert found.guesses[0].probability == found.guesses[1].probability
    assert 0.49 < found.guesses[0].probability <= 0.5


def test_a_language_that_the_library_does_not_know_is_never_certain() -> None:
    found = Detector(["x-klingon"]).detect("Where is the next bakery?")
    assert (found.best.code, found.best.probability, found.other) == ("x-klingon", 0.0, "en")


def test_regions_make_no_doubt_about_the_language() -> None:
    found = Detector(["pt-BR", "pt-PT", "en"]).detect("Onde fica a padaria mais próxima?")
    assert not found.is_doubtful
    assert found.probability_of("pt-PT") == found.probability_of("pt") > 0.99
