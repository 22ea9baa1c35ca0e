"""DeepL's API: parameters that mean something work, others are ignored or refused in words."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient
from tests.serve.conftest import SENTENCES, Serve

import heed
from heed.serve.settings import Limits, Store
from heed.translate.glossary.glossary import Glossary


@pytest.fixture
def client(serve: Serve, en_de: str) -> TestClient:
    return serve(en_de, limits=Limits(chars=200, texts=5))


def translate(client: TestClient, **values: Any) -> httpx.Response:
    sent = {"text": [SENTENCES[0]], "source_lang": "EN", "target_lang": "DE", **values}
    return client.post("/v2/translate", json=sent)


def test_json_and_form_give_the_same_answer(client: TestClient, en_de: str) -> None:
    texts = [SENTENCES[0], SENTENCES[2]]
    wanted = [{"detected_source_language": "EN", "text": text} for text in heed.load(en_de)(texts)]
    assert translate(client, text=texts).json() == {"translations": wanted}
    form = {"text": texts, "source_lang": "en", "target_lang": "de", "auth_key": "k"}
    assert client.post("/v2/translate", data=form).json() == {"translations": wanted}


def test_the_number_of_characters_is_told_where_it_is_asked_for(client: TestClient) -> None:
    answer = translate(client, show_billed_characters="1").json()["translations"][0]
    assert answer["billed_characters"] == len(SENTENCES[0])


def test_line_breaks_split_or_do_not(client: TestClient, en_de: str) -> None:
    text = "Two dogs play\nin the snow."
    whole = translate(client, text=text, split_sentences="nonewlines").json()
    lines = translate(client, text=text, split_sentences="1").json()
    assert lines["translations"][0]["text"] == "\n".join(heed.load(en_de)(text.split("\n")))
    assert whole != lines


def test_a_text_in_the_target_language_is_returned_as_it_is(client: TestClient) -> None:
    answer = translate(client, text=" zwei  Hunde ", source_lang="DE").json()
    assert answer["translations"] == [{"detected_source_language": "DE", "text": " zwei  Hunde "}]


@pytest.mark.parametrize(
    ("values", "status", "sentence"),
    [
        ({"text": None}, 400, "Parameter 'text' not specified."),
        ({"text": []}, 400, "Parameter 'text' not specified."),
        ({"target_lang": None}, 400, "Parameter 'target_lang' not specified."),
        ({"target_lang": "XX"}, 400, "Value for 'target_lang' not supported."),
        ({"source_lang": "XX"}, 400, "Value for 'source_lang' not supported."),
        (
            {"source_lang": "DE", "target_lang": "EN"},
            400,
            "Value for 'target_lang' not supported for given 'source_lang'.",
        ),
        (
            {"tag_handling": "pdf"},
            400,
            "Value for 'tag_handling' not supported: it must be one of xml, html.",
        ),
        ({"formality": "less"}, 400, "'formality' is not supported for given 'target_lang'."),
        ({"custom_instructions": ["x"]}, 400, "'custom_instructions' is not supported by heed."),
        ({"text": "x" * 201}, 413, "At most 200 characters, but there are 201."),
        ({"text": ["x"] * 6}, 413, "At most 5 texts, but there are 6."),
    ],
)
def test_errors_have_a_message(
    client: TestClient, values: dict[str, Any], status: int, sentence: str
) -> None:
    answer = translate(client, **values)
    assert (answer.status_code, answer.json()) == (status, {"message": sentence})


def test_tags_stay_and_ignored_ones_keep_their_text(client: TestClient, en_de: str) -> None:
    text = "<p>Two dogs</p><x>A man</x>"
    answer = translate(client, text=text, tag_handling="xml", ignore_tags=["x"])
    dogs = heed.load(en_de)("Two dogs")
    assert answer.json()["translations"][0]["text"] == f"<p>{dogs}</p><x>A man</x>"
    form = {"text": text, "target_lang": "DE", "source_lang": "EN", "tag_handling": "xml"}
    as_form = client.post("/v2/translate", data={**form, "ignore_tags": "x,y"})
    assert as_form.json() == answer.json()


def test_terms_of_a_glossary_stand_in_the_translation(
    serve: Serve, en_de: str, de_en: str, tmp_path: Path
) -> None:
    client = serve(en_de, de_en, store=Store(folder=str(tmp_path)))
    glossary = {"name": "a", "source_lang": "EN", "target_lang": "DE", "entries": "bike\tDrahtesel"}
    id = client.post("/v2/glossaries", json=glossary).json()["glossary_id"]
    terms = Glossary.of({"bike": "Drahtesel"})
    (wanted,) = heed.load(en_de).translate(["dogs bike"], glossary=terms)
    assert "Drahtesel" in wanted.text
    answer = translate(client, text="dogs bike", glossary_id=id)
    assert answer.json()["translations"][0]["text"] == wanted.text
    for values, status, sentence in (
        ({"source_lang": None}, 400, "Parameter 'source_lang' is needed with 'glossary_id'."),
        (
            {"source_lang": "DE", "target_lang": "EN-GB"},
            400,
            "The glossary is for another pair of languages.",
        ),
        ({"glossary_id": "nothing"}, 404, "Glossary not found."),
    ):
        refused = translate(client, **{"glossary_id": id, **values})
        assert (refused.status_code, refused.json()["message"]) == (status, sentence)


def test_a_wrong_address_has_a_message_too(client: TestClient) -> None:
    answer = client.get("/v2/nothing")
    assert (answer.status_code, list(answer.json())) == (404, ["message"])


def test_languages_that_are_only_translated_into_are_no_sources(client: TestClient) -> None:
    assert client.get("/v2/languages").json() == [{"language": "EN", "name": "English"}]
    targets = client.get("/v2/languages", params={"type": "target"}).json()
    assert targets == [{"language": "DE", "name": "German", "supports_formality": False}]
