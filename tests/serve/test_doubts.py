"""Doubts name a reason and the place in the text of the answer."""

import math
from dataclasses import replace

from heed.serve.doubts import find_doubts
from heed.serve.request import Doubt, SegmentAnswer
from heed.translate.result import Status, Translation


def segment(
    text: str,
    tokens: list[str],
    probabilities: list[float],
    *,
    status: Status = "ok",
    source_tokens: tuple[str, ...] = (),
) -> SegmentAnswer:
    return SegmentAnswer(
        source="…",
        translation=Translation(
            text=text,
            tokens=tokens,
            token_scores=[math.log(p) for p in [*probabilities, 0.9]],
            source_tokens=list(source_tokens),
            status=status,
        ),
    )


def test_an_improbable_word_is_underlined_whole() -> None:
    sure = segment("Ein Hund.", ["▁Ein", "▁Hund", "."], [0.9, 0.9, 0.9])
    unsure = segment("Ein Wanderer.", ["▁Ein", "▁Wand", "er", "er", "."], [0.9, 0.3, 0.5, 0.4, 0.9])
    text = "Ein Hund.  Ein Wanderer."
    (doubt,) = find_doubts(text, [sure, unsure])
    assert doubt == Doubt(
        kind="low_probability",
        sentence="The model gives this word a probability of 5 %.",
        segment=1,
        tokens=(1, 5),
        start=15,
        end=24,
    )
    assert text[15:24] == "Wanderer."


def test_a_translation_without_tokens_has_no_doubtful_word() -> None:
    assert not find_doubts("", [segment("", [], [])])


def test_a_search_in_a_loop_is_one_doubt() -> None:
    looping = segment(
        "er geht und geht und geht und",
        ["▁er", "▁geht", "▁und", "▁geht", "▁und", "▁geht", "▁und"],
        [0.9, 0.01, 0.9, 0.9, 0.9, 0.9, 0.9],
    )
    (doubt,) = find_doubts(looping.translation.text, [looping])
    assert (doubt.kind, doubt.tokens, doubt.start, doubt.end) == ("repeated", (1, 7), 3, 29)


def test_two_equal_words_are_no_loop() -> None:
    assert not find_doubts("die die", [segment("die die", ["▁die", "▁die"], [0.9, 0.9])])


def test_the_status_of_a_segment_is_a_doubt_about_all_of_it() -> None:
    cut = segment("Das ist", ["▁Das", "▁ist"], [0.9, 0.9], status="max_length")
    split = segment("Ja. Nein.", ["▁Ja", ".", "▁Nein", "."], [0.9] * 4, status="split")
    first, second = find_doubts("Das ist Ja. Nein.", [cut, split])
    assert (first.kind, first.segment, first.start, first.end) == ("max_length", 0, 0, 7)
    assert (second.kind, second.segment, second.start, second.end) == ("split", 1, 8, 17)


def test_characters_that_the_model_spells_in_bytes_are_named() -> None:
    odd = segment(
        "a", ["▁a"], [0.9], source_tokens=("▁", "<0xE7>", "<0xBA>", "<0xBD>", "▁b", "<unk>")
    )
    (doubt,) = find_doubts("a", [odd])
    assert doubt.kind == "unknown_word"
    assert doubt.sentence == "The model has not learned these characters: 纽, ?"


def test_a_place_that_markup_has_torn_apart_is_not_guessed() -> None:
    unsure = segment("ein Hund", ["▁ein", "▁Hund"], [0.9, 0.01])
    (doubt,) = find_doubts("<b>ein</b> Hund", [unsure])
    assert (doubt.tokens, doubt.start, doubt.end) == ((1, 2), None, None)


def test_a_term_without_a_place_is_named() -> None:
    applied = replace(segment("ein Hund", ["ein", "Hund"], []), unplaced=("bakery",))
    (doubt,) = find_doubts("ein Hund", [applied])
    assert doubt.kind == "glossary_not_placed"
    assert "bakery" in doubt.sentence
