"""Protected spans over HTTP: every API answers what Python answers, spans and all."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from heed.translate.translator import Translator, load

LINES = [
    "open the file %s.",
    "save {name} and the page 1,500.",
    "<i>print</i> the map https://example.org/a.",
    "the <b>line ACME-7</b> of the list",
    "close the file",
    "{n, plural, one {open the file} other {open # files}}",
]


@pytest.fixture(scope="module")
def translator(slots_model: Path) -> Translator:
    return load(slots_model, threads=1)


@pytest.fixture
def client(serve: Callable[..., TestClient], slots_model: Path) -> TestClient:
    return serve(str(slots_model))


def texts(translator: Translator, **options: Any) -> list[str]:
    return [found.text for found in translator.translate(LINES, **options)]


@pytest.mark.parametrize(
    "wishes",
    [
        {},
        {"protect": ["none"]},
        {"protect": [r"ACME-\d"]},
        {"protect": ["none", "the"], "localize_numbers": True},
        {"localize_numbers": True},
    ],
)
def test_heeds_own_api_answers_as_python_does(
    client: TestClient, translator: Translator, wishes: dict[str, Any]
) -> None:
    asked = {"text": LINES, "source": "en", "target": "de", **wishes}
    answer = client.post("/api/v1/translate", json=asked)
    assert answer.status_code == 200, answer.text
    found = [each["text"] for each in answer.json()["translations"]]
    assert found == texts(translator, **wishes)


def test_spans_are_protected_in_other_apis(client: TestClient, translator: Translator) -> None:
    wanted = texts(translator)
    assert "%s" in wanted[0] and "{name}" in wanted[1]
    asked = {"q": LINES, "source": "en", "target": "de"}
    assert client.post("/translate", json=asked).json()["translatedText"] == wanted
    deepl = {"text": LINES, "source_lang": "EN", "target_lang": "DE"}
    answers = client.post("/v2/translate", json=deepl).json()["translations"]
    assert [each["text"] for each in answers] == wanted


def test_ignored_tags_of_deepl_keep_their_text_with_spans_around(client: TestClient) -> None:
    text = "open the file <x>the %s page</x> {name}"
    deepl = {"text": [text], "source_lang": "EN", "target_lang": "DE", "tag_handling": "xml"}
    answer = client.post("/v2/translate", json={**deepl, "ignore_tags": ["x"]}).json()
    (found,) = [each["text"] for each in answer["translations"]]
    assert found.count("<x>the %s page</x>") == found.count("{name}") == 1


def test_a_wrong_wish_is_refused_in_words(client: TestClient) -> None:
    asked = {"text": LINES, "source": "en", "target": "de"}
    answer = client.post("/api/v1/translate", json={**asked, "protect": ["("]})
    assert answer.status_code == 400
    assert "'(' is not a valid regular expression" in answer.text
