"""The directions of a served model: those that it has learned, and no others."""

from dataclasses import replace
from pathlib import Path

import pytest
from tests.serve.conftest import FOUR_WAYS, Serve, make_model

from heed.bundle.bundle import load_bundle, save_bundle
from heed.errors import ConfigError
from heed.serve.work.directions import read_routes
from heed.serve.work.versions import open_version
from heed.translate.translator import load


def directions_of(folder: str) -> list[tuple[str, str]]:
    return [(route.source, route.target) for route in read_routes([folder])[1]]


def test_a_model_has_a_route_for_each_direction_that_it_stores(four_ways: str) -> None:
    assert directions_of(four_ways) == list(FOUR_WAYS)


def test_a_model_of_several_sources_and_one_target_is_served(tmp_path: Path) -> None:
    directions = (("zh", "en"), ("de", "en"))
    assert directions_of(make_model(tmp_path / "m", "", "en", directions=directions)) == list(
        directions
    )


def test_without_directions_the_languages_imply_them(en_de: str, tmp_path: Path) -> None:
    assert directions_of(en_de) == [("en", "de")]
    both = make_model(tmp_path / "both", "en", "de", target_langs=("de", "en"))
    assert directions_of(both) == [("en", "de"), ("de", "en")]


def test_an_unknown_direction_is_refused_with_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"does not say .* in a copy: heed quantize MODEL"):
        read_routes([make_model(tmp_path / "one", "", "")])
    several = make_model(tmp_path / "several", "", "", target_langs=("en", "fr"))
    with pytest.raises(ConfigError, match=r"several does not say which .* Train it again from"):
        read_routes([several])


def test_each_direction_is_translated_as_in_python_and_no_other(
    serve: Serve, four_ways: str
) -> None:
    client, translator = serve(four_ways), load(four_ways, threads=1)
    for source, target in FOUR_WAYS:
        question = {"q": "Two dogs play.", "source": source, "target": target}
        answer = client.post("/translate", json=question)
        assert answer.json()["translatedText"] == translator("Two dogs play.", target_lang=target)
    for source, target, words in (
        ("en", "en", "target must be one of es, fr, zh, but is 'en'."),
        ("fr", "zh", "source must be one of zh, en, but is 'fr'."),
        ("zh", "fr", "target must be one of en, but is 'fr'."),
    ):
        question = {"text": "a", "source": source, "target": target}
        answer = client.post("/api/v1/translate", json=question)
        assert (answer.status_code, answer.json()["error"]["sentence"]) == (400, words)


def test_menus_and_models_list_what_can_be_translated(serve: Serve, four_ways: str) -> None:
    client = serve(four_ways)
    listed = {each["code"]: each["targets"] for each in client.get("/api/v1/languages").json()}
    assert {code: into for code, into in listed.items() if into} == {
        "zh": ["en"],
        "en": ["es", "fr", "zh"],
    }
    (model,) = client.get("/api/v1/models").json()
    assert model["directions"] == [list(direction) for direction in FOUR_WAYS]


def test_the_source_is_detected_among_those_of_the_target(serve: Serve, four_ways: str) -> None:
    client = serve(four_ways)
    for text, target, source in (
        ("纽约是一座城市", "en", "zh"),
        ("New York is a city", "zh", "en"),
        ("New York is a city", "fr", "en"),
    ):
        question = {"text": text, "source": "auto", "target": target}
        (found,) = client.post("/api/v1/translate", json=question).json()["translations"]
        assert found["source"] == source


def test_a_version_of_other_directions_is_not_the_same(four_ways: str, tmp_path: Path) -> None:
    before = open_version(Path(four_ways), "demo").languages
    for directions, is_same in ((FOUR_WAYS[::-1], True), (FOUR_WAYS[:3], False)):
        other = tmp_path / str(is_same)
        save_bundle(other, replace(load_bundle(four_ways), directions=directions))
        opened = open_version(other, "demo")
        if is_same:
            opened.require_languages(before)
            continue
        with pytest.raises(ConfigError, match="demo translated en to es, en to fr, en to zh, zh"):
            opened.require_languages(before)
