"""DeepL's API: parameters that mean something work, others are ignored or refused in words."""

import re
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.testclient import TestClient
from tests.serve.conftest import SENTENCES, Serve

import heed
from heed.serve.settings import Limits, Store
from heed.serve.shapes import deepl
from heed.translate.glossary.glossary import Glossary

DOCS = Path(__file__).parents[3] / "docs" / "api.md"
PARAMETERS = {
    *("text", "source_lang", "target_lang", "context", "show_billed_characters", "formality"),
    *("split_sentences", "preserve_formatting", "model_type", "glossary_id", "glossary_ids"),
    *("style_id", "translation_memory_id", "translation_memory_threshold", "custom_instructions"),
    *("tag_handling", "tag_handling_version", "outline_detection", "enable_beta_languages"),
    *("non_splitting_tags", "splitting_tags", "ignore_tags"),
}
"""Of a request in DeepL's OpenAPI document 3.12."""
WITHOUT_EFFECT: dict[str, list[Any]] = {
    "context": ["A photograph of the sea.", ""],
    "preserve_formatting": [True, "0"],
    "enable_beta_languages": [True, "1"],
    "formality": ["default", "prefer_more", "prefer_less"],
}


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
        # A served language, which no model writes, and a source that must be detected.
        ({"source_lang": None, "target_lang": "EN"}, 400, "Value for 'target_lang' not supported."),
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


def test_every_parameter_of_deepl_is_known_and_in_the_table() -> None:
    known = {field.name for field in deepl.TRANSLATE} - {"auth_key"}
    assert known | set(deepl.UNSUPPORTED) == PARAMETERS
    assert not known & set(deepl.UNSUPPORTED)
    part = DOCS.read_text(encoding="utf-8").partition("## DeepL")[2].partition("\n## ")[0]
    cells = [line.split("|")[1:3] for line in part.splitlines() if line.startswith("| `")]
    rows = {name: about for names, about in cells for name in re.findall("`(\\w+)`", names)}
    assert set(rows) == PARAMETERS
    assert all("refused (400)" in rows[name] for name in deepl.UNSUPPORTED)
    assert all("no effect" in rows[name] for name in (*WITHOUT_EFFECT, "model_type"))


@pytest.mark.parametrize("name", WITHOUT_EFFECT)
def test_a_parameter_without_effect_has_none(client: TestClient, name: str) -> None:
    plain = translate(client).json()
    for value in WITHOUT_EFFECT[name]:
        assert translate(client, **{name: value}).json() == plain
    form = {"text": SENTENCES[0], "source_lang": "EN", "target_lang": "DE"}
    for value in WITHOUT_EFFECT[name]:
        assert client.post("/v2/translate", data={**form, name: str(value)}).json() == plain


@pytest.mark.parametrize("name", deepl.UNSUPPORTED)
def test_what_heed_cannot_do_is_refused_in_words(client: TestClient, name: str) -> None:
    refused = translate(client, **{name: ["x"]})
    assert (refused.status_code, refused.json()) == (
        400,
        {"message": f"'{name}' is not supported by heed."},
    )
    empties: tuple[Any, ...] = ("", [], None)
    for empty in empties:
        assert translate(client, **{name: empty}).status_code == 200


@pytest.mark.parametrize("asked", [{}, {"tag_handling_version": "v1"}])
def test_the_version_of_tag_handling_is_told_where_tags_are_read(
    client: TestClient, asked: dict[str, str]
) -> None:
    (found,) = translate(client, tag_handling="html", **asked).json()["translations"]
    assert found["tag_handling_version"] == asked.get("tag_handling_version", "v2")
    (found,) = translate(client, **asked).json()["translations"]
    assert "tag_handling_version" not in found
    refused = translate(client, tag_handling="html", tag_handling_version="v3")
    assert refused.json()["message"].endswith("it must be one of v1, v2.")


def test_terms_of_several_glossaries_are_used_together(
    serve: Serve, en_de: str, tmp_path: Path
) -> None:
    client = serve(en_de, store=Store(folder=str(tmp_path)))

    def create(entries: str) -> str:
        values = {"name": "a", "source_lang": "EN", "target_lang": "DE", "entries": entries}
        return str(client.post("/v2/glossaries", json=values).json()["glossary_id"])

    ids = [create("bike\tDrahtesel"), create("snow\tPulver\nbike\tVelo")]
    terms = Glossary.of({"bike": "Drahtesel", "snow": "Pulver"})
    (wanted,) = heed.load(en_de).translate(["bike snow"], glossary=terms)
    assert "Drahtesel" in wanted.text
    assert "Pulver" in wanted.text
    for given in (ids, ",".join(ids)):
        answer = translate(client, text="bike snow", glossary_ids=given)
        assert answer.json()["translations"][0]["text"] == wanted.text
    for values, status, sentence in (
        ({"source_lang": None}, 400, "Parameter 'source_lang' is needed with 'glossary_ids'."),
        (
            {"glossary_id": ids[0]},
            400,
            "'glossary_ids' cannot be used together with 'glossary_id'.",
        ),
        ({"glossary_ids": ["x"] * 6}, 400, "At most 5 glossaries, not 6."),
        ({"glossary_ids": [*ids, "nothing"]}, 404, "Glossary not found."),
    ):
        refused = translate(client, **{"glossary_ids": ids, **values})
        assert (refused.status_code, refused.json()["message"]) == (status, sentence)


@pytest.mark.parametrize("path", ["/v2/nothing", "/v3/nothing"])
def test_a_wrong_address_has_a_message_too(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert (answer.status_code, list(answer.json())) == (404, ["message"])


def test_languages_that_are_only_translated_into_are_no_sources(client: TestClient) -> None:
    assert client.get("/v2/languages").json() == [{"language": "EN", "name": "English"}]
    targets = client.get("/v2/languages", params={"type": "target"}).json()
    assert targets == [{"language": "DE", "name": "German", "supports_formality": False}]
