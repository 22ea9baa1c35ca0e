"""Expressions of the user: invalid, empty and slow ones are refused in words."""

from itertools import count

import pytest

from heed.errors import ConfigError
from heed.text.protection import expressions
from heed.text.protection.expressions import TimeLimit, compiled, find_matches


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


def test_the_time_for_all_texts_together_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds = count()
    monkeypatch.setattr(f"{expressions.__name__}.time.thread_time", lambda: float(next(seconds)))
    limit = TimeLimit(2.5)
    assert [find_matches("b", "a b", limit) for _ in range(2)] == [[(2, 3)]] * 2
    for _ in range(2):  # the time runs out while it searches, and has run out before
        with pytest.raises(ConfigError, match=r"take more than 2\.5 s for all texts\. Avoid"):
            find_matches("b", "a b", limit)
    assert next(seconds) == 6


def test_a_text_takes_no_longer_than_what_remains_for_all() -> None:
    with pytest.raises(ConfigError, match="the protected patterns? .* for (all|some) texts"):
        find_matches(r"(q|qq|qqq)+\1+$(?<=x)", "q" * 100, TimeLimit(0.05))
