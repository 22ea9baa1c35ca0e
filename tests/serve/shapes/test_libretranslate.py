"""LibreTranslate's API: its answers and its sentences."""

from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient
from tests.serve.conftest import SENTENCES, Serve

import heed
from heed.serve.settings import Limits

LIMITS = Limits(chars=200, texts=5, alternatives=3)


@pytest.fixture
def client(serve: Serve, en_de: str, de_en: str) -> TestClient:
    return serve(en_de, de_en, limits=LIMITS)


def translate(client: TestClient, **values: Any) -> httpx.Response:
    return client.post("/translate", json={"source": "en", "target": "de", **values})


def test_a_text_is_answered_with_a_text_and_a_list_with_a_list(
    client: TestClient, en_de: str
) -> None:
    texts = [SENTENCES[0], SENTENCES[2]]
    wanted = heed.load(en_de)(texts)
    assert translate(client, q=texts).json() == {"translatedText": wanted}
    assert translate(client, q=texts[0]).json() == {"translatedText": wanted[0]}


def test_alternatives_are_added_where_they_are_asked_for(client: TestClient) -> None:
    one = translate(client, q="Two dogs", alternatives=2).json()
    assert set(one) == {"translatedText", "alternatives"}
    assert 1 <= len(one["alternatives"]) <= 2
    assert one["translatedText"] not in one["alternatives"]
    many = translate(client, q=["Two dogs", "A man"], alternatives="2").json()
    assert many["alternatives"][0] == one["alternatives"]
    assert len(many["alternatives"]) == 2


def test_html_has_no_alternatives(client: TestClient) -> None:
    answer = translate(client, q=["<b>Two</b> dogs"], format="html", alternatives=2)
    assert answer.json()["alternatives"] == [[]]


def test_codes_are_found_in_any_case_and_with_a_region(client: TestClient) -> None:
    plain = translate(client, q="Two dogs").json()
    assert translate(client, q="Two dogs", source="EN-GB", target="De").json() == plain


def test_a_text_in_the_target_language_is_returned_as_it_is(client: TestClient) -> None:
    assert translate(client, q=" Zwei  Hunde\n", source="de").json() == {
        "translatedText": " Zwei  Hunde\n"
    }


def test_names_given_again_in_a_form_make_a_list(client: TestClient) -> None:
    values = {"q": ["Two dogs", "A man"], "source": "en", "target": "de"}
    as_form = client.post("/translate", data=values).json()
    assert as_form == translate(client, q=values["q"]).json()


def test_line_ends_of_a_form_are_those_of_unix(client: TestClient) -> None:
    values = {"q": "Two dogs\r\nA man", "source": "en", "target": "de"}
    answer = client.post("/translate", data=values).json()
    assert answer == translate(client, q="Two dogs\nA man").json()


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({}, "Invalid request: missing q parameter"),
        ({"q": ""}, "Invalid request: missing q parameter"),
        ({"q": []}, "Invalid request: missing q parameter"),
        ({"q": "a", "source": None}, "Invalid request: missing source parameter"),
        ({"q": "a", "target": ""}, "Invalid request: missing target parameter"),
        (
            {"q": "a", "alternatives": "x"},
            "Invalid request: alternatives parameter is not a number",
        ),
        ({"q": "a", "alternatives": 4}, "Invalid request: alternatives parameter must be <= 3"),
        ({"q": "x" * 201}, "Invalid request: request (201) exceeds text limit (200)"),
        ({"q": ["a"] * 6}, "Invalid request: request (6) exceeds text limit (5)"),
        ({"q": "a", "source": "ZZ"}, "zz is not supported"),
        ({"q": "a", "target": "zz"}, "zz is not supported"),
        ({"q": "a", "format": "pdf"}, "pdf format is not supported"),
    ],
)
def test_errors_have_the_sentences_of_libretranslate(
    client: TestClient, values: dict[str, Any], sentence: str
) -> None:
    answer = translate(client, **values)
    assert answer.status_code == 400
    assert answer.json() == {"error": sentence}


def test_a_direction_without_a_model_is_named(serve: Serve, en_de: str) -> None:
    answer = translate(serve(en_de), q="a", source="de", target="en")
    assert answer.json() == {
        "error": "English (en) is not available as a target language from German (de)"
    }


def test_a_language_that_no_model_writes_is_named_in_the_words_of_libretranslate(
    serve: Serve, en_de: str
) -> None:
    client = serve(en_de)
    sentence = "English (en) is not a target language here"
    answer = translate(client, q="a", source="auto", target="en")
    assert (answer.status_code, answer.json()) == (400, {"error": sentence})
    # Other APIs have other names for the parameter.
    other = client.post("/kiss", json={"text": "a", "from": "auto", "to": "en"})
    assert (other.status_code, other.json()) == (400, {"error": sentence})


def test_languages_have_names_and_targets(client: TestClient, serve: Serve, en_de: str) -> None:
    assert client.get("/languages").json() == [
        {"code": "en", "name": "English", "targets": ["de", "en"]},
        {"code": "de", "name": "German", "targets": ["de", "en"]},
    ]
    assert serve(en_de).get("/languages").json()[1] == {
        "code": "de",
        "name": "German",
        "targets": ["de"],
    }


def test_a_wrong_address_and_a_wrong_method_are_errors_in_json(client: TestClient) -> None:
    nothing = client.get("/nothing")
    assert (nothing.status_code, list(nothing.json())) == (404, ["error"])
    wrong = client.get("/translate")
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "POST")
    assert list(wrong.json()) == ["error"]
    assert client.get("/languages/").status_code == 404
    assert client.head("/health").status_code == 200
