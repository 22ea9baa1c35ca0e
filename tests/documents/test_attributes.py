"""Attributes: which are translated, which forbid translation."""

import pytest

from heed.documents.attributes import forbids_translation, render, tag_template
from heed.documents.segment import Segment
from heed.translate.result import Translation


def test_readable_attributes_become_segments_and_all_others_stay() -> None:
    segments = [Segment("before")]
    template = tag_template(
        "<img src='a b' ALT = \"One. Two.\" title=x data-title='no' >", segments
    )
    assert [segment.text for segment in segments] == ["before", "One.", "Two.", "x"]
    said = [Translation(text=text) for text in ("", "1", "2", "3 4")]
    assert render(template, said) == "<img src='a b' ALT = \"1 2\" title=\"3 4\" data-title='no' >"


@pytest.mark.parametrize(
    ("tag", "found"),
    [
        ("<optgroup label='a'>", ["a"]),
        ("<div aria-description='a' aria-live='b'>", ["a"]),
        ("<input value='a' type=SUBMIT>", ["a"]),
        ("<input type='text' value='a' placeholder='b'>", ["b"]),
        ("<input value='a'>", []),
        ("<option value='a' type='submit'>", []),
    ],
)
def test_what_a_browser_shows_or_speaks_is_read(tag: str, found: list[str]) -> None:
    segments: list[Segment] = []
    tag_template(tag, segments)
    assert [segment.text for segment in segments] == found


def test_an_unchanged_value_keeps_its_quotes_and_entities() -> None:
    segments: list[Segment] = []
    tag = "<a title=word><img alt='a &amp; b'>"
    template = tag_template(tag, segments)
    assert render(template, [Translation(text=segment.text) for segment in segments]) == tag


@pytest.mark.parametrize(
    "tag", ["<a title>", "<a title=''>", "<a title='12'>", "<title>", "<alt=x>"]
)
def test_nothing_to_read_is_no_segment(tag: str) -> None:
    segments: list[Segment] = []
    assert (render(tag_template(tag, segments), []), segments) == (tag, [])


@pytest.mark.parametrize(
    ("tag", "is_forbidden"),
    [
        ("<p translate=no>", True),
        ("<p TRANSLATE='No'>", True),
        ("<p its:translate='no'/>", True),
        ("<p class='a notranslate b'>", True),
        ("<p translate='yes' class='notranslated'>", False),
        ("<p title='translate=no'>", False),
        ("<p data-translate='no'>", False),
    ],
)
def test_a_tag_may_forbid_translation(tag: str, is_forbidden: bool) -> None:
    assert forbids_translation(tag) == is_forbidden


def test_a_hostile_tag_takes_one_pass() -> None:
    for unit in ("a ", "a=", "=", "'", "a='", " ", "title=x "):
        tag = "<p " + unit * (100_000 // len(unit)) + ">"
        segments: list[Segment] = []
        template = tag_template(tag, segments)
        assert render(template, [Translation(text=s.text) for s in segments]) == tag
