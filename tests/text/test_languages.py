import pytest

from heed.errors import ConfigError
from heed.text.languages import (
    Directions,
    as_directions,
    directions_to_store,
    implied_source,
    implied_target,
    known_directions,
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


DEMO: Directions = (("zh", "en"), ("en", "es"), ("en", "fr"), ("en", "zh"))
WRITTEN = ("en", "es", "fr", "zh")


def test_directions_are_stored_where_the_languages_do_not_imply_them() -> None:
    assert directions_to_store(DEMO, "", "", WRITTEN) == DEMO
    assert known_directions("", "", WRITTEN, DEMO) == DEMO
    for implied, *languages in (
        ((), "en", "", ()),
        ((("en", "de"),), "en", "de", ()),
        ((("en", "de"), ("en", "fr")), "en", "", ("de", "fr")),
        ((("en", "de"), ("de", "en")), "en", "de", ("de", "en")),
    ):
        assert known_directions(*languages) == implied
        assert directions_to_store(implied[::-1], *languages) == ()
    both_of_two = (("en", "de"), ("de", "en"), ("en", "fr"), ("fr", "en"))
    assert directions_to_store(both_of_two, "en", "", ("de", "fr", "en")) == both_of_two
    assert directions_to_store((), "", "", WRITTEN) == ()


def test_a_model_that_stores_directions_goes_nowhere_else() -> None:
    languages = "", WRITTEN, DEMO
    assert source_languages(*languages) == ("zh", "en")
    assert [implied_target(code, *languages) for code in WRITTEN] == [None, None, None, "en"]
    assert [implied_source(code, *languages) for code in WRITTEN] == ["zh", "en", "en", "en"]
    assert spelled_direction("", "", WRITTEN, DEMO) == "zh → en; en → es, fr, zh"
    into_one = (("zh", "en"), ("de", "en"))
    assert implied_source("en", "", (), into_one) == ""
    assert spelled_direction("", "en", (), into_one) == "zh → en; de → en"


def test_the_source_of_a_model_of_few_languages_is_implied() -> None:
    assert implied_source("de", "en", ()) == "en"
    assert implied_source("en", "en", ("de", "en")) == "de"
    assert implied_source("fr", "en", ("de", "en", "fr")) == "en"
    assert implied_source("en", "en", ("de", "en", "fr")) == ""
    assert implied_source("", "en", ()) == "en"
    assert implied_source("de", "", ("de", "en")) == ""


@pytest.mark.parametrize(
    "value",
    [None, "en", {}, ["enfr"], [["en"]], [["en", ""]], [["en", 3]], [["en", "de"], ["en", "de"]]],
)
def test_what_are_no_directions_is_not_read(value: object) -> None:
    assert as_directions(value) is None
    assert as_directions([["en", "de"], ["de", "en"]]) == (("en", "de"), ("de", "en"))


@pytest.mark.parametrize("code", ["de", "pt-BR", "zh_Hans", "eng_Latn", "x" * 35])
def test_a_language_code_is_letters_digits_and_two_signs(code: str) -> None:
    require_language(code)


@pytest.mark.parametrize(
    "code", ["", "a\tb", "de\n", " de", "../de", "x" * 36, "\x1b[31m", "1", "-de", "日本", "d.e"]
)
def test_what_cannot_be_a_language_code_is_refused(code: str) -> None:
    with pytest.raises(ConfigError, match=r"^a language code, .* but is '.*'\.$"):
        require_language(code)
