import pytest

from heed.errors import ConfigError
from heed.text.languages import (
    implied_target,
    require_language,
    source_languages,
    spelled_direction,
)


def test_a_model_that_counts_its_source_among_its_targets_goes_both_ways() -> None:
    assert spelled_direction("en", "de", ()) == "en → de"
    assert spelled_direction("en", "de", ("de", "en")) == "en ↔ de"
    assert spelled_direction("en", "", ("de", "fr")) == "en → de, fr"
    assert spelled_direction("en", "de", ("de", "en", "fr")) == "en → de, en, fr"
    assert spelled_direction("", "", ()) == "? → ?"


def test_a_two_way_model_reads_both_languages() -> None:
    assert source_languages("en", ("de", "en")) == ("en", "de")
    assert source_languages("en", ()) == ("en",)
    assert source_languages("", ("de", "en")) == ()


def test_only_a_two_way_model_implies_the_target() -> None:
    assert implied_target("de", "en", ("de", "en")) == "en"
    assert implied_target("en", "en", ("de", "en")) == "de"
    assert implied_target("fr", "en", ("de", "en")) is None
    assert implied_target("en", "en", ("de", "fr")) is None
    assert implied_target("en", "en", ("de", "en", "fr")) is None


@pytest.mark.parametrize("code", ["de", "pt-BR", "zh_Hans", "eng_Latn", "x" * 35])
def test_a_language_code_is_letters_digits_and_two_signs(code: str) -> None:
    require_language(code)


@pytest.mark.parametrize(
    "code", ["", "a\tb", "de\n", " de", "../de", "x" * 36, "\x1b[31m", "1", "-de", "日本", "d.e"]
)
def test_what_cannot_be_a_language_code_is_refused(code: str) -> None:
    with pytest.raises(ConfigError, match=r"^a language code, .* but is '.*'\.$"):
        require_language(code)
