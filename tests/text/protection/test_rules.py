"""Rules: what a user can set, and what is refused in words."""

import pytest

from heed.errors import ConfigError
from heed.text.protection.rules import NAMES, Rules
from heed.text.protection.terms import Terms


def test_rules_that_say_the_same_are_equal() -> None:
    assert Rules() == Rules.default() == Rules.of([]) == Rules.of(["none", "default"])
    assert hash(Rules()) == hash(Rules.default())
    assert Rules(names=("url", "email")) == Rules(names=("email", "url"))
    assert Rules.none() != Rules.default()
    assert Rules.of([], Terms(["a"])) == Rules.of([], Terms(["a"])) != Rules.of([], Terms(["b"]))


def test_settings_are_read_in_order() -> None:
    assert Rules.of(["none"]) == Rules.none()
    assert Rules.of([r"\d+", "none"]).is_empty
    assert Rules.of(["none", "url", "-url", "email"]).names == ("email",)
    assert Rules.of(["-url"]).names == tuple(name for name in NAMES if name != "url")
    assert Rules.of(["none", "x+", "x+"]).patterns == ("x+",)


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(ConfigError, match="there is no rule 'speed' for protected spans. Use icu,"):
        Rules(names=("speed",))


def test_rules_describe_themselves() -> None:
    lines = dict(Rules.of([r"ACME-\d+"], Terms(["heed", "C++"])).describe())
    assert lines["regex"] == r"ACME-\d+"
    assert lines["term"] == "2 terms"
    assert lines["url"] == "URLs"
    assert set(NAMES) < set(lines)
    assert all(lines.values())
    assert Rules.none().describe() == []


def test_rules_within_a_message_are_the_same_but_for_that() -> None:
    inner = Rules.of(["-url"]).within_icu()
    assert inner.is_within_icu
    assert inner.names == Rules.of(["-url"]).names
    assert inner.within_icu() is inner
