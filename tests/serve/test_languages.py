"""The codes of requests find the served ones."""

import pytest

from heed.serve.languages import name_of, resolve


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


def test_a_language_without_a_name_is_called_by_its_code() -> None:
    assert name_of("de") == "German"
    assert name_of("x-klingon") == "x-klingon"
    assert name_of("en-GB") == "English (GB)"
    assert name_of("pt-BR") == "Portuguese (Brazil)"
