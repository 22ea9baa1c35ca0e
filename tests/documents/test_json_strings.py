"""Texts in JSON."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.documents.fakes import shouted, unchanged

from heed.documents.json_strings import split_arb, split_json
from heed.errors import DataError
from heed.translate.result import Translation

WORDS = st.sampled_from(["a b", 'it\'s "so"', "é\n", "\\", "", "12", "\ud800", "<i>x</i> y"])
VALUES = st.recursive(
    WORDS | st.text() | st.integers() | st.none() | st.booleans(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
)


def upper(value: Any) -> Any:
    if isinstance(value, str):
        return value.replace("a b", "A B")
    if isinstance(value, list):
        return [upper(each) for each in value]
    if isinstance(value, dict):
        return {key: upper(each) for key, each in value.items()}
    return value


@given(VALUES, st.sampled_from([None, 2]), st.booleans())
def test_a_file_that_does_not_change_keeps_its_bytes(
    value: Any, indent: int | None, is_ascii: bool
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=is_ascii)
    for split in (split_json, split_arb):
        assembly = split(text)
        assert assembly.join(unchanged(assembly.segments)) == text


@given(VALUES)
def test_only_string_values_change(value: Any) -> None:
    assembly = split_json(json.dumps(value))
    said = [Translation(text=one.text.replace("a b", "A B")) for one in assembly.segments]
    assert json.loads(assembly.join(said)) == upper(value)


def test_escapes_are_read_and_written_as_the_file_has_them() -> None:
    for text, done in (
        (r'{"a": "Z\u00fcrich \/ \"x\"\tb"}', r'{"a": "Z\u00dcRICH / \"X\"\tB"}'),
        ('{"a": "Zürich x\\n"}', '{"a": "ZÜRICH X\\n"}'),
        (r'["\ud83d\ude00 a"]', r'["\ud83d\ude00 A"]'),
    ):
        assembly = split_json(text)
        assert assembly.join(shouted(assembly.segments)) == done


@pytest.mark.parametrize(
    ("text", "done"),
    [
        ("Hello :name, you have :count dogs", "HELLO :name, YOU HAVE :count DOGS"),
        (
            ":Owner ends at 12:30, see: this :smile: ;:D",
            ":Owner ENDS AT 12:30, SEE: THIS :SMILE: ;:D",
        ),
        (
            "$t(common.dog) runs, $t(dog, {'count': 2})",
            "$t(common.dog) RUNS, $t(dog, {'count': 2})",
        ),
        ("a @:link.dog. b @.lower:dog c @:{'x y'} d", "A @:link.dog. B @.lower:dog C @:{'x y'} D"),
        ("pay $t or write to a@b.de: now", "PAY $T OR WRITE TO A@B.DE: NOW"),
    ],
)
def test_what_libraries_fill_in_by_name_is_kept(text: str, done: str) -> None:
    assembly = split_json(json.dumps({"key": text}))
    assert json.loads(assembly.join(shouted(assembly.segments))) == {"key": done}


def test_half_of_a_character_is_kept() -> None:
    assembly = split_json(r'{"a": "x \ud83d y", "b": "z"}')
    assert [segment.text for segment in assembly.segments] == ["z"]


@pytest.mark.parametrize("text", ['{"a": 1', '{"a" "b"}', "", "{'a': 'b'}", '"a\n"'])
def test_malformed_json_is_told_with_its_place(text: str) -> None:
    with pytest.raises(DataError, match=r"The JSON is malformed at line \d, column \d+: "):
        split_json(text)


@pytest.mark.parametrize("text", ["[" * 100_000 + "]" * 100_000, "[" + "9" * 5000 + "]"])
def test_json_that_python_cannot_read_is_told(text: str) -> None:
    with pytest.raises(DataError, match="The JSON (is nested too deeply|cannot be read)"):
        split_json(text)


def test_messages_of_an_extension_keep_their_descriptions() -> None:
    described = '"description": "a b", "placeholders": {"who": {"content": "$1", "example": "a b"}}'
    text = f'{{"hello": {{"message": "hello $WHO$", {described}}}}}'
    assembly = split_json(text)
    assert assembly.join(shouted(assembly.segments)) == text.replace("hello $", "HELLO $")
    assembly = split_json(text.replace("hello $", "hello $")[:-1] + ', "more": "a b"}')
    assert [segment.text for segment in assembly.segments if segment.text == "a b"] == ["a b"] * 3


def test_a_bundle_keeps_its_attributes_and_names_its_new_language() -> None:
    text = (
        '{"@@locale": "en", "@@context": "a b", "hello": "hello {who}",'
        ' "@hello": {"description": "a b", "placeholders": {"who": {"example": "a b"}}}}'
    )
    assembly = split_arb(text, "pt-BR")
    assert assembly.join(shouted(assembly.segments)) == text.replace("hello {", "HELLO {").replace(
        '"en"', '"pt_BR"'
    )
    assembly = split_arb(text)
    assert assembly.join(unchanged(assembly.segments)) == text
