"""The codes of requests find the served ones."""

from pathlib import Path

import pytest
from tests.serve.conftest import Serve, make_model

from heed.serve.languages import name_of, resolve, resolve_pair


@pytest.mark.parametrize(
    ("code", "served", "found"),
    [
        ("de", ["en", "de"], "de"),
        ("DE", ["en", "de"], "de"),
        ("EN-GB", ["en", "de"], "en"),
        ("en-US", ["en", "en-GB"], "en"),
        ("en_gb", ["en", "en-GB"], "en-GB"),
        ("pb", ["pt", "pt-BR"], "pt-BR"),
        ("pb", ["pt"], "pt"),
        ("pt-BR", ["pt"], "pt"),
        ("pt", ["pt-BR"], "pt-BR"),
        ("pt", ["pt-BR", "pt-PT"], None),
        ("zh", ["zh-Hans", "zh-Hant"], "zh-Hans"),
        ("zt", ["zh-Hans"], None),
        ("zt", ["zh-Hans", "zh-Hant"], "zh-Hant"),
        ("ZH-HANT", ["zh"], "zh"),
        ("zh-TW", ["zh-Hans", "zh-Hant"], "zh-Hant"),
        ("zh_Hant_TW", ["zh", "zt"], "zt"),
        ("zh-Hant-HK", ["zh-Hans", "zh-Hant"], "zh-Hant"),
        ("zh-Hant-HK", ["zh-Hans"], None),
        ("zh-Hans-CN", ["zh", "zt"], "zh"),
        ("sr-Latn-RS", ["sr", "sr-Latn"], "sr-Latn"),
        ("sr-Cyrl-RS", ["sr", "sr-Latn"], "sr"),
        ("iw_IL", ["he"], "he"),
        ("nb", ["no"], "no"),
        ("NO", ["nb", "no"], "no"),
        ("fr", ["en", "de"], None),
        ("", ["en"], None),
    ],
)
def test_a_code_finds_the_served_one(code: str, served: list[str], found: str | None) -> None:
    assert resolve(code, served) == found


@pytest.mark.parametrize(
    ("source", "target", "served", "found"),
    [
        ("EN", "DE", ["en pt", "en-GB de"], "en-GB de"),
        ("EN", "PT", ["en pt", "en-GB de"], "en pt"),
        ("EN-GB", "DE", ["en-GB pt", "en de"], "en de"),
        ("EN", "DE", ["en pt", "en-GB de", "en-US fr"], "en-GB de"),
        ("EN", "DE", ["en pt", "en-GB de", "en-US de"], None),
        ("EN", "PT-BR", ["en pt", "en-GB pt-BR"], "en pt"),
        ("fr", "pt", ["en pt", "fr pt-BR"], "fr pt-BR"),
        ("pt", "de", ["pt-BR de", "pt-PT fr"], "pt-BR de"),
        ("de", "en", ["en de"], None),
        ("en", "de", [], None),
    ],
)
def test_codes_find_a_served_direction(
    source: str, target: str, served: list[str], found: str | None
) -> None:
    pairs = [(each.split()[0], each.split()[1]) for each in served]
    given = resolve_pair(source, target, pairs)
    assert (given and " ".join(given)) == found


def test_every_api_looks_at_directions(serve: Serve, tmp_path: Path) -> None:
    into = {"en": "pt", "en-GB": "de"}
    folders = [make_model(tmp_path / source, source, target) for source, target in into.items()]
    client = serve(*folders)
    for path, asked in (
        ("/v2/translate", {"text": ["a"], "source_lang": "EN", "target_lang": "DE"}),
        ("/translate", {"q": "a", "source": "en", "target": "de"}),
        ("/api/v1/translate", {"text": "a", "source": "en", "target": "de"}),
    ):
        answer = client.post(path, json=asked)
        assert answer.status_code == 200, (path, answer.text)


def test_a_language_without_a_name_is_called_by_its_code() -> None:
    assert name_of("de") == "German"
    assert name_of("x-klingon") == "x-klingon"
    assert name_of("en-GB") == "English (GB)"
    assert name_of("pt-BR") == "Portuguese (Brazil)"
