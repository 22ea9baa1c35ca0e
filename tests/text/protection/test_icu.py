"""ICU messages: where they begin and end, and where their texts stand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heed.text.protection.icu import find_messages, with_texts


def texts(text: str) -> list[tuple[str, list[str]]]:
    return [
        (text[message.start : message.end], [text[start:end] for start, end in message.texts])
        for message in find_messages(text)
    ]


@pytest.mark.parametrize(
    ("message", "inner"),
    [
        ("{n, plural, one {# file} other {# files}}", ["# file", "# files"]),
        ("{n,plural,=0{none}other{#}}", ["none", "#"]),
        ("{n, plural, offset:1 one {a} other {b}}", ["a", "b"]),
        ("{g, select, male {he} female {she} other {they}}", ["he", "she", "they"]),
        ("{n, selectordinal, one {#st} other {#th}}", ["#st", "#th"]),
        ("{n, plural, one {a {x}} other {{y} b}}", ["a {x}", "{y} b"]),
        (
            "{g, select, a {{n, plural, one {x} other {y}}} other {z}}",
            ["{n, plural, one {x} other {y}}", "z"],
        ),
        ("{n, plural, one {a '{' b} other {it''s '}' c}}", ["a '{' b", "it''s '}' c"]),
        ("{n, plural, one {don't} other {'#' d}}", ["don't", "'#' d"]),
        ("{n, plural, one {} other {\n  x\n}\n}", ["x"]),
    ],
)
def test_a_message_and_its_texts(message: str, inner: list[str]) -> None:
    assert texts(f"See {message}, {{x}}.") == [(message, inner)]


@pytest.mark.parametrize(
    "text",
    [
        "{n, plural}",
        "{n, plural, }",
        "{n, plural, one {a}",
        "{n, plural, one {a} other b}",
        "{n, plural, one {'{a}}",
        "{n, number, one {a}}",
        "one {a} other {b}",
    ],
)
def test_what_is_no_message(text: str) -> None:
    assert texts(text) == []


def test_a_message_behind_a_broken_one_is_found() -> None:
    assert texts("{n, plural, one {a {n, select, other {b}}") == [("{n, select, other {b}}", ["b"])]


_LEAF = st.sampled_from(["a b", "# files", "{x} of #", "'{' it''s", "word"])
_KEYS = st.lists(st.sampled_from(["=0", "one", "few", "other", "x"]), min_size=1, unique=True)


@st.composite
def _message(draw: st.DrawFn, depth: int = 2) -> tuple[str, list[str]]:
    """A message with messages in it, and its texts."""
    keys = draw(_KEYS)
    inner = [
        draw(_message(depth - 1))[0] if depth and draw(st.booleans()) else draw(_LEAF) for _ in keys
    ]
    kind = draw(st.sampled_from(["plural", "select", "selectordinal"]))
    branches = " ".join(f"{key} {{{text}}}" for key, text in zip(keys, inner, strict=True))
    return f"{{n, {kind}, {branches}}}", inner


@given(st.lists(_message(), max_size=3))
def test_messages_of_any_depth(messages: list[tuple[str, list[str]]]) -> None:
    assert texts("x ".join(message for message, _ in messages)) == messages


@pytest.mark.parametrize(("depth", "is_translated"), [(20, True), (21, False), (5000, False)])
def test_a_message_that_nests_too_deep_is_kept_as_it_is(depth: int, is_translated: bool) -> None:
    message = "{n, plural, other {" * depth + "a file" + "}}" * depth
    text = f"'{{' {message} a"
    [found] = find_messages(text)
    assert text[found.start : found.end] == message
    assert [text[start:end] for start, end in found.texts] == [message[19:-2]] * is_translated


def test_a_quoted_brace_is_no_depth() -> None:
    quoted = "'{' " * 50
    [found] = find_messages(f"{{n, plural, other {{{quoted}a file}}}}")
    assert len(found.texts) == 1


def test_a_message_gets_other_texts() -> None:
    message = "{n, plural, =0 {none} other { # files }}"
    assert (
        with_texts(message, ["keine", "# Dateien"]) == "{n, plural, =0 {keine} other { # Dateien }}"
    )


def test_an_apostrophe_of_a_new_text_begins_no_quotation() -> None:
    message = "{n, plural, other {the {x} of '{y}' and #}}"
    assert (
        with_texts(message, ["l'{x} d'un '{y}' et l'#"])
        == "{n, plural, other {l''{x} d'un '{y}' et l''#}}"
    )


def test_an_apostrophe_at_the_end_does_not_quote_the_closing_brace() -> None:
    assert with_texts("{n, plural, other {a}}", ["les amis'"]) == "{n, plural, other {les amis''}}"


@pytest.mark.parametrize("text", ["a } b", "a { b", "} x {y", "'{"])
def test_a_text_that_breaks_the_message_is_refused(text: str) -> None:
    assert with_texts("{n, plural, one {a} other {b}}", ["a", text]) is None


@given(_message(), st.lists(st.text(alphabet="a '#{}|", max_size=12), min_size=5, max_size=5))
def test_a_changed_message_is_a_message_of_these_texts(
    message: tuple[str, list[str]], words: list[str]
) -> None:
    new = words[: len(message[1])]
    changed = with_texts(message[0], new)
    if changed is not None:
        [(whole, inner)] = texts(changed)
        assert whole == changed
        plain = [text.replace("'", "").strip() for text in new]
        assert [text.replace("'", "").strip() for text in inner] == [text for text in plain if text]
