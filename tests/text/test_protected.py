"""Protected spans: what is found, what is not, and that pairs are well nested."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heed.errors import ConfigError
from heed.text.protected import Rules, Span, find_spans


def _found(text: str) -> list[str]:
    return [text[span.start : span.end] for span in find_spans(text, Rules.default())]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("%s %d %1$s %-12.12s %5.2f", ["%s", "%d", "%1$s", "%-12.12s", "%5.2f"]),
        ("%(name)s, %@ and %ld%%", ["%(name)s", "%@", "%ld", "%%"]),
        ("100 % of them", ["100"]),
        ("50% done", ["50"]),
        ("Left (%1).", ["%1"]),
        ("%PRODUCTNAME starts", ["%PRODUCTNAME"]),
        ("Dear {{name}}: {} {0} {x!r:>10}", ["{{name}}", "{}", "{0}", "{x!r:>10}"]),
        ("${name} or $(ARG1)", ["${name}", "$(ARG1)"]),
        ("{Broken Image}", []),
        ("See https://example.com/a?b=1.", ["https://example.com/a?b=1"]),
        ("(http://x.de/a_(b)), then", ["http://x.de/a_(b)"]),
        ("Write to a.b@x.co.uk.", ["a.b@x.co.uk"]),
        ("&amp; but not &File;", ["&amp;", "&File;"]),
        ("&File", []),
        ("it costs 1,234.50 in 2011年", ["1,234.50", "2011"]),
        ("12:30 on 2024-01-02", ["12:30", "2024-01-02"]),
        ("a 3D 1st A4 man", []),
        ("a < b > c", []),
        ("", []),
    ],
)
def test_spans_of_text(text: str, expected: list[str]) -> None:
    assert _found(text) == expected


def test_tags_are_paired() -> None:
    spans = find_spans("Press <b>OK</b><br/>", Rules.default())
    assert spans == [
        Span(6, 9, "open", "tag", 1),
        Span(11, 15, "close", "tag", 0),
        Span(15, 20, "thing", "tag"),
    ]


def test_crossing_tags_do_not_become_crossing_pairs() -> None:
    spans = find_spans("<b><i></b></i>", Rules.default())
    assert [span.kind for span in spans] == ["open", "thing", "close", "thing"]


def test_nothing_is_protected_on_request() -> None:
    assert find_spans("%s <b>5</b>", Rules.none()) == []


def test_an_unknown_rule_is_refused() -> None:
    with pytest.raises(ConfigError, match="there is no rule 'speed' for protected spans"):
        Rules(names=("speed",))


def test_rules_are_equal_when_they_say_the_same() -> None:
    assert Rules() == Rules.default()
    assert hash(Rules()) == hash(Rules.default())
    assert Rules.none() != Rules.default()


_PIECES = st.sampled_from(
    ["<b>", "</b>", "<i>", "</i>", "<br/>", "%s", "{0}", "5", " ", "a", "<", "%", "{", "&amp;"]
)


@given(st.lists(_PIECES, max_size=30).map("".join) | st.text(max_size=60))
def test_spans_are_disjoint_and_pairs_nest(text: str) -> None:
    spans = find_spans(text, Rules.default())
    place = 0
    waiting = []
    for index, span in enumerate(spans):
        assert place <= span.start < span.end <= len(text)
        place = span.end
        if span.kind == "open":
            waiting.append(index)
        elif span.kind == "close":
            assert span.partner == waiting.pop()
            assert spans[span.partner].partner == index
        else:
            assert span.partner is None
    assert not waiting


@given(st.text(alphabet="abcdefghijklmnopqrstuvwxyzäéß ,.!?'\"東京", max_size=80))
def test_plain_words_hold_no_span(text: str) -> None:
    assert find_spans(text.replace(".", ". "), Rules.default()) == []
