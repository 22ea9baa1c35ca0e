"""From structure to segments."""

import pytest

from heed.documents import flow as flow_module
from heed.documents.flow import flow
from heed.documents.structure import Rules, structure
from heed.documents.tags import read_tokens
from heed.text.protected import Rules as SpanRules
from heed.text.protected import Span, find_spans
from heed.text.segment import split_sentences
from heed.translate.result import Translation

RULES = Rules(is_xml=False)


def parts_of(source: str) -> tuple[list[tuple[str, bool]], list[str]]:
    """The segments of a page, and its parts with `*` in the place of each segment's text."""
    found = structure(source, read_tokens(source, is_xml=False), RULES)
    segments, parts = flow(found, is_html=True, split=split_sentences, escape=str)
    said = [Translation(text="*") for _ in segments]
    shown = [part if isinstance(part, str) else part.render(said) for part in parts]
    return [(s.text, s.needs_alignment) for s in segments], [part for part in shown if part]


def test_blanks_and_tags_at_the_edges_of_a_sentence_are_parts_of_their_own() -> None:
    segments, parts = parts_of(" <b> One</b>. <i>Two.</i> <br>")
    assert segments == [("One.", True), ("Two.", False)]
    assert "".join(parts) == " <b> *</b> <i>*</i> <br>"


def test_a_line_break_parts_words_for_the_model() -> None:
    assert parts_of("one<br>two <br>three")[0] == [("one two three", True)]


def test_a_sentence_end_within_an_entity_or_a_kept_element_parts_nothing() -> None:
    assert parts_of("see <code>a. B c</code> now")[0] == [("see a. B c now", True)]


@pytest.mark.parametrize(
    ("source", "parts"),
    [
        ("Blue. <a><i></i>Dog</a>", ["*", " ", "<a><i></i>", "*", "</a>"]),
        ("<b>Blue. </b><a><i></i>Dog</a>", ["<b>", "*", " ", "</b>", "<a><i></i>", "*", "</a>"]),
        ("<b>Blue.</b> <a></a><a>Dog</a>", ["<b>", "*", "</b>", " ", "<a></a><a>", "*", "</a>"]),
        ("<i></i>! <b><u></u>Tree</b>", ["<i></i>!", " ", "<b><u></u>", "*", "</b>"]),
    ],
)
def test_a_pair_that_begins_a_sentence_holds_what_it_holds(source: str, parts: list[str]) -> None:
    assert "".join(parts_of(source)[1]) == "".join(parts)
    assert len(parts_of(source)[0]) == parts.count("*")


def test_tags_between_two_sentences_go_with_the_sentence_they_belong_to() -> None:
    assert parts_of("<b>One.</b> <img><i>Two</i> three.") == (
        [("One.", False), ("Two three.", True)],
        ["<b>", "*", "</b>", " ", "<img>", "<i>*</i>"],
    )


@pytest.mark.parametrize(
    ("start", "rest"),
    [
        ("<textarea placeholder=", ">b</textarea>"),
        ("<pre id=x title=", "><b title='c'>d</b></pre>"),
        ("<iframe title=", "></iframe>"),
        ("<svg aria-label=", "><title>b</title></svg>"),
        ("<code title=", ">y</code>"),
    ],
)
def test_attributes_of_kept_elements_are_texts_unless_all_is_kept(start: str, rest: str) -> None:
    segments, parts = parts_of(f"{start}'Say it'{rest}")
    assert segments == [("Say it", False)]
    assert "".join(parts) == f"{start}'*'{rest}"
    for word in ("translate=no", "class=notranslate"):
        source = f"{start}'Say it' {word}{rest}"
        assert parts_of(source) == ([], [source])


@pytest.mark.parametrize(
    ("source", "text", "n_searches"),
    [
        ("about <b>17</b>, they said", "about 17, they said", 3),
        ("the 1<sup>st</sup> house", "the 1st house", 0),
        ("at 12:30<b>today</b> again", "at 12:30 today again", 4),
    ],
)
def test_a_number_beside_a_tag_is_searched_only_as_often_as_needed(
    monkeypatch: pytest.MonkeyPatch, source: str, text: str, n_searches: int
) -> None:
    """A search takes about as long as all else for such a place."""
    searched: list[str] = []

    def counted(text: str, rules: SpanRules) -> list[Span]:
        searched.append(text)
        return find_spans(text, rules)

    monkeypatch.setattr(flow_module, "find_spans", counted)
    assert parts_of(source)[0] == [(text, True)]
    assert len(searched) == n_searches
