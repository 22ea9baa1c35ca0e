"""Requests as browser add-ons and OpenNMT's clients send them."""

import json
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient
from tests.serve.conftest import SENTENCES, Serve, make_model

import heed

TEXTS = [SENTENCES[0], SENTENCES[2]]


@pytest.fixture
def client(serve: Serve, en_de: str, de_en: str) -> TestClient:
    return serve(en_de, de_en)


@pytest.fixture
def wanted(en_de: str) -> list[str]:
    return heed.load(en_de)(TEXTS)


def post(client: TestClient, path: str, **values: Any) -> Any:
    answer = client.post(path, json=values)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_immersive_translate(client: TestClient, wanted: list[str]) -> None:
    values = {"source_lang": "en", "target_lang": "de", "text_list": TEXTS}
    assert post(client, "/imme", **values) == {
        "translations": [{"detected_source_lang": "en", "text": text} for text in wanted]
    }


def test_kiss_translator_asks_for_one_or_many(client: TestClient, wanted: list[str]) -> None:
    direction = {"from": "en", "to": "de"}
    one = {"text": wanted[0], "src": "en"}
    assert post(client, "/kiss", text=TEXTS[0], **direction) == one
    many = post(client, "/kiss", texts=TEXTS, **direction)
    assert many == {"translations": [one, {"text": wanted[1], "src": "en"}]}
    answer = client.post("/kiss", json=direction)
    assert answer.json() == {"error": "Invalid request: missing text parameter"}


def test_hcfy_names_languages_in_chinese(client: TestClient, wanted: list[str]) -> None:
    values = {"text": TEXTS[0], "destination": ["德语", "英语"], "name": "heed"}
    found = {"text": TEXTS[0], "from": "英语", "to": "德语", "result": [wanted[0]]}
    assert post(client, "/hcfy", **values, source="英语") == found
    assert post(client, "/hcfy", text=TEXTS[0], destination="de", source="en") == found
    lines = post(client, "/hcfy", **{**values, "text": "\n".join(TEXTS), "source": "英语"})
    assert lines["result"] == wanted


def test_hcfy_takes_the_second_language_for_a_text_in_the_first(
    client: TestClient, de_en: str
) -> None:
    german = "Der Hund schläft."
    answer = heed.load(de_en)(german)
    for source in ({"source": "德语"}, {}):
        found = post(client, "/hcfy", text=german, destination=["德语", "英语"], **source)
        assert found == {"text": german, "from": "德语", "to": "英语", "result": [answer]}
    kept = post(client, "/hcfy", text=german, destination=["德语"], source="德语")
    assert kept["result"] == [german]


def test_hcfy_gets_its_own_name_of_a_language_with_another_code(
    serve: Serve, tmp_path: Path
) -> None:
    client = serve(make_model(tmp_path / "zh-en", "zh-Hans", "en-GB"))
    found = post(client, "/hcfy", text="两只狗。", source="中文(简体)", destination="英语")
    assert (found["from"], found["to"]) == ("中文(简体)", "英语")
    found = post(client, "/hcfy", text="两只狗。", source="zh-Hans", destination="en-GB")
    assert (found["from"], found["to"]) == ("中文(简体)", "英语")


@pytest.mark.parametrize("destination", [[], [" ", ","], [""], "", None])
def test_hcfy_needs_a_language(client: TestClient, destination: Any) -> None:
    answer = client.post("/hcfy", json={"text": TEXTS[0], "destination": destination})
    assert answer.status_code == 400
    assert "destination" in answer.json()["error"]


DEEPLX = {"text": TEXTS[0], "source_lang": "EN", "target_lang": "DE"}


@pytest.mark.parametrize("path", ["/deeplx", "/deeplx/translate"])
def test_deeplx_answers_with_three_alternatives(client: TestClient, en_de: str, path: str) -> None:
    found = post(client, path, **DEEPLX)
    assert 0 < found.pop("id") < 2**53
    (best,) = heed.load(en_de).translate(TEXTS[:1], beam_size=4, n_best=4)
    others = [other.text for other in best.alternatives]
    assert others
    assert found == {
        "code": 200,
        "data": best.text,
        "alternatives": others[:3],
        "source_lang": "EN",
        "target_lang": "DE",
        "method": "Free",
    }


@pytest.mark.parametrize("source", [{"source_lang": "auto"}, {"source_lang": ""}, {}])
def test_deeplx_detects_the_language(client: TestClient, de_en: str, source: Any) -> None:
    german = "Der Hund schläft."
    found = post(client, "/deeplx", text=german, target_lang="en", **source)
    (best,) = heed.load(de_en).translate([german], beam_size=4)
    assert (found["data"], found["source_lang"], found["target_lang"]) == (best.text, "DE", "EN")


def test_deeplx_keeps_tags(client: TestClient) -> None:
    markup = {"text": "<b>A man is riding a bike.</b>", "tag_handling": "html"}
    found = post(client, "/deeplx", **{**DEEPLX, **markup})
    assert found["data"].startswith("<b>")
    assert found["alternatives"] == []


def test_the_number_of_a_deeplx_answer_is_not_made_from_the_request(client: TestClient) -> None:
    assert post(client, "/deeplx", **DEEPLX)["id"] != post(client, "/deeplx", **DEEPLX)["id"]


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"text": ""}, "Parameter text is missing."),
        ({"target_lang": None}, "Parameter target_lang is missing."),
        ({"tag_handling": "md"}, "Parameter tag_handling must be one of xml, html."),
        ({"target_lang": "xx"}, "xx is not supported"),
    ],
)
def test_deeplx_has_errors_of_its_own(client: TestClient, changed: Any, sentence: str) -> None:
    answer = client.post("/deeplx", json={**DEEPLX, **changed})
    assert answer.status_code == 400
    assert answer.json() == {"code": 400, "message": sentence}
    missing = client.get("/deeplx")
    assert (missing.status_code, missing.json()["code"]) == (405, 405)


def test_google_cloud_translation(client: TestClient, wanted: list[str]) -> None:
    values = {"q": TEXTS, "source": "en", "target": "de", "format": "text"}
    found = {"data": {"translations": [{"translatedText": text} for text in wanted]}}
    assert post(client, "/language/translate/v2", **values) == found
    assert client.get("/language/translate/v2", params=values).json() == found


def test_google_cloud_translation_has_errors_of_its_own(client: TestClient) -> None:
    answer = client.get("/language/translate/v2", params={"q": "a"})
    assert answer.status_code == 400
    assert answer.json() == {"error": {"code": 400, "message": "Required parameter: target"}}


def test_the_page_of_google_has_two_shapes(client: TestClient, wanted: list[str]) -> None:
    values = {"client": "gtx", "sl": "en", "tl": "de", "dt": "t", "q": TEXTS[0]}
    listed = client.get("/translate_a/single", params=values).json()
    assert listed[0][0][:2] == [wanted[0], TEXTS[0]]
    assert listed[2] == "en"
    named = client.get("/translate_a/single", params={**values, "dj": "1"}).json()
    assert named["sentences"][0]["trans"] == wanted[0]
    assert named["src"] == "en"


def test_opennmt_answers_inputs_in_order(client: TestClient, wanted: list[str]) -> None:
    inputs = [{"id": 0, "src": text} for text in TEXTS]
    (found,) = client.post("/translator/translate", json=inputs).json()
    assert [each["tgt"] for each in found] == wanted
    assert [each["src"] for each in found] == TEXTS
    assert all(each["pred_score"] < 0 for each in found)
    models = client.get("/translator/models").json()
    assert [each["model"] for each in models] == ["en-de", "de-en"]


def test_the_number_of_an_old_configuration_is_taken_where_there_is_one_direction(
    serve: Serve, en_de: str, wanted: list[str]
) -> None:
    answer = serve(en_de).post("/translator/translate", json=[{"id": 100, "src": TEXTS[0]}])
    assert answer.json()[0][0]["tgt"] == wanted[0]


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        ([], "must be a list"),
        ({"src": "a"}, "must be a list"),
        ([{"id": 0}], 'a text "src"'),
        ([{"src": "a\ud800"}], 'Each "src" must be valid Unicode.'),
        ([5], 'a text "src"'),
        ([{"id": 100, "src": "a"}], "one of 0 (en to de), 1 (de to en)."),
        ([{"id": 0, "src": "a"}, {"id": 1, "src": "a"}], "the same in all inputs"),
        ([{"id": [], "src": "a"}], "the same in all inputs"),
    ],
)
def test_opennmt_refuses_in_words(client: TestClient, inputs: Any, words: str) -> None:
    as_json = {"Content-Type": "application/json"}
    answer = client.post("/translator/translate", content=json.dumps(inputs), headers=as_json)
    assert answer.status_code == 400
    assert words in answer.json()["error"]
