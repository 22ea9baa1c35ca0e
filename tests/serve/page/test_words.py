"""The page's pure functions, called in a browser, against values worked out by hand."""

from typing import Any

import pytest
from playwright.sync_api import Page
from tests.serve.page.conftest import CHAR_LIMIT, Open

from heed.serve.page.files import read_page


@pytest.fixture
def page(open_page: Open) -> Page:
    return open_page()


def call(page: Page, module: str, name: str, *arguments: Any) -> Any:
    version, _ = read_page(CHAR_LIMIT)
    code = """async ([path, name, given]) =>
        (await import(new URL(path, document.baseURI).href))[name](...given)"""
    return page.evaluate(code, [f"page/{version}/{module}", name, list(arguments)])


def test_words_and_what_is_between_them_are_the_whole_text(page: Page) -> None:
    parts = call(page, "words.js", "splitWords", "Ja, gut!", "de")
    assert [(part["start"], part["end"], part["isWord"]) for part in parts] == [
        (0, 2, True),
        (2, 3, False),
        (3, 4, False),
        (4, 7, True),
        (7, 8, False),
    ]


def test_a_script_without_blanks_has_words_too(page: Page) -> None:
    parts = call(page, "words.js", "splitWords", "私は学生です", "ja")
    assert len(parts) > 2


def test_weights_are_summed_over_source_pieces_and_averaged_over_target_pieces(page: Page) -> None:
    segment = {
        "tokens": [{"start": 0, "end": 2}, {"start": 2, "end": 4}],
        "source_tokens": [{"start": 0, "end": 1}, {"start": 1, "end": 3}, {"start": 4, "end": 6}],
        "alignment": [[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]],
    }
    target, source = [{"start": 0, "end": 4}], [{"start": 0, "end": 3}, {"start": 4, "end": 6}]
    assert call(page, "words.js", "alignWords", target, source, segment) == [[0.75, 0.25]]


def test_the_probability_of_a_word_is_the_product_over_its_pieces(page: Page) -> None:
    tokens = [
        {"start": 0, "end": 2, "probability": 0.5},
        {"start": 2, "end": 4, "probability": 0.25},
    ]
    assert call(page, "words.js", "probabilityOf", {"start": 0, "end": 4}, tokens) == 0.125
    assert call(page, "words.js", "probabilityOf", {"start": 5, "end": 6}, tokens) is None


def test_differences_are_the_words_outside_the_longest_common_subsequence(page: Page) -> None:
    parts = call(page, "words.js", "differences", "a red ball", "a big blue ball", "en")
    assert parts == [
        {"text": "a ", "isChanged": False},
        {"text": "big blue", "isChanged": True},
        {"text": " ball", "isChanged": False},
    ]


def test_a_place_where_words_were_left_out_is_marked(page: Page) -> None:
    def parts(base: str, text: str) -> list[tuple[str, bool]]:
        found = call(page, "words.js", "differences", base, text, "en")
        return [(part["text"], part["isChanged"]) for part in found]

    assert parts("a red ball", "a ball") == [("a ", False), ("", True), ("ball", False)]
    assert parts("a ball now", "a ball") == [("a ball", False), ("", True)]
    assert parts("a red big ball", "a blue ball") == [
        ("a ", False),
        ("blue", True),
        (" ball", False),
    ]


def test_equal_texts_have_no_differences(page: Page) -> None:
    assert call(page, "words.js", "differences", "a b", "a b", "en") == [
        {"text": "a b", "isChanged": False}
    ]


def test_a_choice_shows_its_whole_word_and_the_signs_before_it(page: Page) -> None:
    assert call(page, "words.js", "wordAt", "Zwei Hunde, die spielen", 10, "de") == ", die"
    assert call(page, "words.js", "wordAt", "Zwei Hunde", 4, "de") == "Hunde"
    assert call(page, "words.js", "wordAt", "Zwei", 4, "de") == ""


def test_a_sentence_is_replaced_and_the_doubts_behind_it_move(page: Page) -> None:
    old = {
        "text": "Ab. Cd. Ef.",
        "sourceText": "1. 2. 3.",
        "segments": [
            {"source": "1.", "text": "Ab.", "start": 0},
            {"source": "2.", "text": "Cd.", "start": 4},
            {"source": "3.", "text": "Ef.", "start": 8},
        ],
        "doubts": [
            {"start": 0, "end": 2},
            {"start": 4, "end": 6},
            {"start": 8, "end": 10},
        ],
        "alternatives": [],
    }
    other = {
        "text": "Longer.",
        "segments": [{"source": "2.", "text": "Longer."}],
        "doubts": [{"start": 0, "end": 6}],
        "alternatives": [],
    }
    new = call(page, "answer.js", "withSentence", old, 1, other)
    assert new["text"] == "Ab. Longer. Ef."
    assert [segment["start"] for segment in new["segments"]] == [0, 4, 12]
    assert [(doubt["start"], doubt["end"]) for doubt in new["doubts"]] == [
        (0, 2),
        (4, 10),
        (12, 14),
    ]


def test_sentences_that_have_arrived_keep_the_blanks_of_the_source(page: Page) -> None:
    segments = [{"source": "One.", "text": "Eins."}, {"source": "Two.", "text": "Zwei."}]
    answer = call(page, "answer.js", "readPartial", "One.\n\nTwo. Three.", segments)
    assert answer["text"] == "Eins.\n\nZwei."


def test_events_are_read_whatever_lines_they_have(page: Page) -> None:
    block = 'event: segment\ndata: {"a":\ndata: 1}'
    assert call(page, "api.js", "readEvent", block) == ["segment", {"a": 1}]
    assert call(page, "api.js", "readEvent", ": still here") is None


def test_a_shell_reads_any_text_back(page: Page) -> None:
    assert call(page, "request.js", "shellQuoted", "it's") == r"'it'\''s'"
