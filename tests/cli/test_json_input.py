import json
from collections import deque
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heed.cli.json_input import json_lines
from heed.errors import DataError
from heed.text.protected import Rules
from heed.translate.glossary.glossary import Glossary
from heed.translate.lines import Line, with_glossary

TEXTS = st.text(max_size=8)


def read(*lines: str) -> tuple[list[Line], list[dict[str, int]]] | None:
    passed_on: deque[Any] = deque()
    return list(json_lines(lines, "in", passed_on)), list(passed_on)


@given(st.lists(st.tuples(TEXTS, TEXTS, st.one_of(st.none(), TEXTS), st.integers())))
def test_every_object_is_read_as_it_was_meant(values: list[Any]) -> None:
    lines = [
        json.dumps({"text": text, "prefix": prefix, "target_lang": lang, "id": name})
        for text, prefix, lang, name in values
    ]
    found, passed_on = read(*lines)
    assert found == [Line(text, prefix, lang) for text, prefix, lang, _ in values]
    assert passed_on == [{"id": name} for *_, name in values]


def test_a_string_is_a_text_alone() -> None:
    assert read('"a\\nb"', ' "c" ') == ([Line("a\nb"), Line("c")], [{}, {}])


def test_a_byte_order_mark_is_no_json_and_no_harm() -> None:
    assert read('\ufeff"a"')[0] == [Line("a")]


def test_a_line_is_read_when_it_is_asked_for() -> None:
    passed_on: deque[Any] = deque()
    lines = json_lines(iter(['{"text": "a", "id": 1}', "broken"]), "in", passed_on)
    assert next(lines) == Line("a")
    assert list(passed_on) == [{"id": 1}]


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", r"in line 2 is not JSON \(Expecting value, at character 1\)\. Each line must be a"),
        ("A man", r"in line 2 is not JSON \(Expecting value, at character 1\)"),
        ('{"text": "a"} x', r"in line 2 is not JSON \(Extra data, at character 15\)"),
        ('{"text": "a", "id": NaN}', r"in line 2 is not JSON \(NaN is not a valid JSON number\)"),
        ('{"text": "a", "id": ' + "9" * 5000 + "}", r"in line 2 is not JSON \(Exceeds the limit"),
        ("[" * 100_000, r"in line 2 is not usable JSON: nested too deeply\."),
        ("3", r"in line 2 must be a JSON string or object, but is 3\."),
        ("null", r"in line 2 must be a JSON string or object, but is null\."),
        ("{}", r'in line 2 has no "text" to translate\.'),
        ('{"id": 4}', r'in line 2 has no "text" to translate\.'),
        ('{"text": null}', r'in line 2: "text" must be a string, but is null\.'),
        ('{"text": ["a"]}', r'in line 2: "text" must be a string, but is \["a"\]\.'),
        ('{"text": "a", "prefix": 3}', r'in line 2: "prefix" must be a string, but is 3\.'),
        ('{"texts": "a"}', r'in line 2: "texts" is not a key; did you mean "text"\?'),
        ('{"text": "a", "text": "b"}', r"in line 2 is not JSON \(the key 'text' is repeated\)"),
        (
            '{"text": "a", "glossary": {"dog": "b", "dog": "c"}}',
            r"in line 2 is not JSON \(the key 'dog' is repeated\)",
        ),
        (
            '{"text": "a", "targetLang": "de"}',
            r'in line 2: "targetLang" is not a key; did you mean "target_lang"\?',
        ),
    ],
)
def test_a_wrong_line_is_named_with_what_is_wrong(line: str, words: str) -> None:
    with pytest.raises(DataError, match=words):
        read('"fine"', line)


def test_a_line_has_its_own_glossary_that_of_the_command_or_none() -> None:
    (lines, _) = read(
        '{"text": "a", "glossary": {"dog": "Dackel"}}',
        '{"text": "a", "glossary": null}',
        '{"text": "a", "glossary": {}}',
    )
    command = Glossary.of({"dog": "Hund"})
    used = [line.glossary.entries for line in with_glossary(lines, command)]
    assert used == [{"dog": "Dackel"}, {"dog": "Hund"}, {}]


def test_a_line_says_what_is_protected_in_it() -> None:
    wishes = '"protect": ["none", "x+"], "localize_numbers": true, "keep_typos": true'
    (lines, _) = read(f'{{"text": "a", {wishes}}}', '"b"')
    rules = Rules.of(["none", "x+"])
    assert lines == [Line("a", rules=rules, localize_numbers=True, keep_typos=True), Line("b")]


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ('"protect": 3', '"protect" must be a string or a list of strings, but is 3'),
        ('"protect": "("', "in line 1: .*is not a valid regular expression"),
        ('"localize_numbers": 1', '"localize_numbers" must be true or false, but is 1'),
        ('"keep_typos": "no"', '"keep_typos" must be true or false, but is "no"'),
    ],
)
def test_wrong_wishes_for_protection_are_refused(keys: str, words: str) -> None:
    with pytest.raises(DataError, match=words):
        read(f'{{"text": "a", {keys}}}')
