"""Clients that people have, unchanged, against the real program; only the address is ours."""

from collections.abc import Iterator
from typing import Any

import deepl
import pytest
import requests
from libretranslatepy import LibreTranslateAPI
from tests.serve.conftest import SENTENCES

import heed

SENTENCE = SENTENCES[0]


@pytest.fixture(scope="module")
def wanted(en_de: str) -> list[str]:
    """What `heed.load` gives for two sentences."""
    return heed.load(en_de)([SENTENCES[0], SENTENCES[2]])


@pytest.fixture(scope="module")
def client(program: str) -> Iterator[deepl.Translator]:
    translator = deepl.Translator("any-key", server_url=program)
    yield translator
    translator.close()


def test_deepl_translates_a_text_and_a_list(client: deepl.Translator, wanted: list[str]) -> None:
    one = client.translate_text(SENTENCE, source_lang="EN", target_lang="DE")
    assert isinstance(one, deepl.TextResult)
    assert (one.text, one.detected_source_lang) == (wanted[0], "EN")
    assert one.billed_characters == len(SENTENCE)
    many = client.translate_text([SENTENCES[0], SENTENCES[2]], source_lang="EN", target_lang="DE")
    assert [each.text for each in many] == wanted


def test_deepl_takes_every_option_of_a_text(client: deepl.Translator) -> None:
    found = client.translate_text(
        SENTENCE,
        source_lang="EN",
        target_lang="DE",
        context="A photograph.",
        split_sentences=deepl.SplitSentences.OFF,
        preserve_formatting=True,
        formality=deepl.Formality.PREFER_LESS,
        model_type="prefer_quality_optimized",
        tag_handling="html",
        tag_handling_version="v1",
        outline_detection=True,
        extra_body_parameters={"enable_beta_languages": True},
    )
    assert found.model_type_used == "quality_optimized"
    refused: list[dict[str, Any]] = [
        {"custom_instructions": ["Be brief."]},
        {"style_rule": "x"},
        {"translation_memory": "x", "translation_memory_threshold": 80},
    ]
    for options in refused:
        with pytest.raises(deepl.DeepLException, match="is not supported by heed"):
            client.translate_text(SENTENCE, source_lang="EN", target_lang="DE", **options)


def test_deepl_translates_with_two_glossaries(client: deepl.Translator) -> None:
    entries = [{"bike": "Drahtesel"}, {"dogs": "Dackel"}]
    both = [client.create_glossary("a", "EN", "DE", each) for each in entries]
    direction = {"source_lang": "EN", "target_lang": "DE"}
    found = client.translate_text("dogs bike", glossary_ids=both, **direction)
    for glossary in both:
        client.delete_glossary(glossary)
    assert "Drahtesel" in found.text
    assert "Dackel" in found.text


def test_deepl_translates_into_a_variant(client: deepl.Translator, de_en: str) -> None:
    found = client.translate_text(SENTENCES[1], source_lang="DE", target_lang="EN-GB")
    assert found.text == heed.load(de_en)(SENTENCES[1])


def test_deepl_lists_languages_and_usage(client: deepl.Translator) -> None:
    assert {each.code: each.name for each in client.get_source_languages()} == {
        "EN": "English",
        "DE": "German",
    }
    targets = client.get_target_languages()
    assert {each.code for each in targets} == {"DE", "EN-GB", "EN-US"}
    assert not any(each.supports_formality for each in targets)
    before = client.get_usage().character
    client.translate_text("bike", source_lang="EN", target_lang="DE")
    after = client.get_usage().character
    assert after.count == before.count + len("bike")
    assert not after.limit_reached


def test_deepl_creates_lists_reads_and_deletes_glossaries(client: deepl.Translator) -> None:
    terms = {"bike": "Rad", "snow": "Schnee"}
    glossary = client.create_glossary("Sports", "EN", "DE", terms)
    assert (glossary.name, glossary.source_lang, glossary.target_lang) == ("Sports", "EN", "DE")
    assert (glossary.ready, glossary.entry_count) == (True, 2)
    assert client.get_glossary_entries(glossary) == terms
    assert client.get_glossary(glossary.glossary_id).creation_time == glossary.creation_time
    assert glossary.glossary_id in {each.glossary_id for each in client.list_glossaries()}
    client.delete_glossary(glossary)
    with pytest.raises(deepl.GlossaryNotFoundException, match="Glossary not found"):
        client.get_glossary(glossary.glossary_id)
    with pytest.raises(deepl.GlossaryNotFoundException):
        client.delete_glossary(glossary)


def test_deepl_translates_with_a_glossary(client: deepl.Translator) -> None:
    glossary = client.create_glossary("Sports", "EN", "DE", {"bike": "Drahtesel"})
    direction = {"source_lang": "EN", "target_lang": "DE"}
    found = client.translate_text("dogs bike", glossary=glossary, **direction)
    assert "Drahtesel" in found.text
    assert "Drahtesel" not in client.translate_text("dogs bike", **direction).text
    client.delete_glossary(glossary)
    with pytest.raises(deepl.DeepLException, match="Glossary not found"):
        client.translate_text(SENTENCE, source_lang="EN", target_lang="DE", glossary=glossary)


def test_deepl_keeps_tags(client: deepl.Translator) -> None:
    found = client.translate_text(
        "<p>Two dogs</p><x>A man</x>",
        source_lang="EN",
        target_lang="DE",
        tag_handling="xml",
        ignore_tags=["x"],
        outline_detection=False,
        splitting_tags="p",
    )
    assert found.text.startswith("<p>")
    assert found.text.endswith("</p><x>A man</x>")


def test_deepl_detects_the_language(client: deepl.Translator) -> None:
    found = client.translate_text(SENTENCES, target_lang="DE")
    assert [each.detected_source_lang for each in found] == ["EN", "DE", "EN", "DE"]
    assert (found[1].text, found[3].text) == (SENTENCES[1], SENTENCES[3])


def test_deepl_creates_a_glossary_from_csv(client: deepl.Translator) -> None:
    glossary = client.create_glossary_from_csv("csv", "EN", "DE", 'bike,"Rad, das"\nsnow,Schnee')
    assert client.get_glossary_entries(glossary) == {"bike": "Rad, das", "snow": "Schnee"}
    client.delete_glossary(glossary)


def test_deepl_lists_directions_of_glossaries(client: deepl.Translator) -> None:
    pairs = {(each.source_lang, each.target_lang) for each in client.get_glossary_languages()}
    assert pairs == {("en", "de"), ("de", "en")}


def test_deepl_raises_its_exceptions(client: deepl.Translator) -> None:
    with pytest.raises(deepl.DeepLException, match="Value for 'target_lang' not supported"):
        client.translate_text("a", target_lang="XX")
    with pytest.raises(deepl.DeepLException, match="'formality' is not supported"):
        client.translate_text("a", source_lang="EN", target_lang="DE", formality="more")
    with pytest.raises(deepl.DeepLException, match="'style_id' is not supported by heed"):
        client.translate_text(
            "a", source_lang="EN", target_lang="DE", extra_body_parameters={"style_id": "x"}
        )


def test_deepl_is_told_where_the_endpoints_are_listed(program: str) -> None:
    client = deepl.DeepLClient("any-key", server_url=program)
    with pytest.raises(deepl.DeepLException, match="the page /docs lists all that there is"):
        client.rephrase_text(SENTENCE)
    client.close()


def test_libretranslatepy_translates_and_lists(program: str, wanted: list[str]) -> None:
    api = LibreTranslateAPI(program)
    assert api.translate(SENTENCE, "en", "de") == wanted[0]
    assert [each["code"] for each in api.languages()] == ["en", "de"]
    assert api.detect(SENTENCE)[0]["language"] == "en"


def test_weblate_translates_with_a_form(program: str, wanted: list[str]) -> None:
    """The request of weblate/machinery/libretranslate.py: a form, and a key that may be empty."""
    codes = [each["code"] for each in requests.get(f"{program}/languages", timeout=20).json()]
    assert {"en", "de"} <= set(codes)
    values = {"api_key": "", "q": SENTENCE, "source": "en", "target": "de"}
    answer = requests.post(f"{program}/translate", data=values, timeout=20)
    assert answer.json()["translatedText"] == wanted[0]
