"""Doubts name a reason and the place in the text of the answer."""

import math
from dataclasses import replace

from heed.serve.doubts import find_doubts
from heed.serve.request import Doubt, SegmentAnswer
from heed.translate import result as translated
from heed.translate.result import Status, Translation


def segment(
    text: str,
    tokens: list[str],
    probabilities: list[float],
    *,
    status: Status = "ok",
) -> SegmentAnswer:
    return SegmentAnswer(
        source="…",
        translation=Translation(
            text=text,
            tokens=tokens,
            token_scores=[math.log(p) for p in [*probabilities, 0.9]],
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
        start=15,
        end=24,
    )
    assert text[15:24] == "Wanderer."


def test_a_translation_without_tokens_has_no_doubtful_word() -> None:
    assert not find_doubts("", [segment("", [], [])])


def test_a_doubt_of_a_translation_stands_at_its_place_and_hides_improbable_words() -> None:
    looping = segment(
        "er geht und geht und geht und",
        ["▁er", "▁geht", "▁und", "▁geht", "▁und", "▁geht", "▁und"],
        [0.9, 0.01, 0.9, 0.9, 0.9, 0.9, 0.9],
    )
    loop = translated.Doubt(kind="loop", sentence="Again.", start=3, end=29)
    looping = replace(looping, translation=replace(looping.translation, doubts=(loop,)))
    (doubt,) = find_doubts(f"Ja. {looping.translation.text}", [looping])
    assert (doubt.kind, doubt.segment, doubt.start, doubt.end) == ("loop", 0, 7, 33)


def test_a_place_behind_the_end_is_not_shown() -> None:
    short = segment("ein Hund", ["▁ein", "▁Hund"], [0.9, 0.9])
    late = translated.Doubt(kind="added", sentence="More.", start=5, end=60)
    (doubt,) = find_doubts(
        "ein Hund", [replace(short, translation=replace(short.translation, doubts=(late,)))]
    )
    assert (doubt.kind, doubt.start, doubt.end) == ("added", None, None)


def test_a_sentence_in_parts_is_a_doubt_about_all_of_it() -> None:
    split = segment("Ja. Nein.", ["▁Ja", ".", "▁Nein", "."], [0.9] * 4, status="split")
    (doubt,) = find_doubts("Das ist Ja. Nein.", [split])
    assert (doubt.kind, doubt.segment, doubt.start, doubt.end) == ("split", 0, 8, 17)


def test_a_place_that_markup_has_torn_apart_is_not_guessed() -> None:
    unsure = segment("ein Hund", ["▁ein", "▁Hund"], [0.9, 0.01])
    (doubt,) = find_doubts("<b>ein</b> Hund", [unsure])
    assert (doubt.start, doubt.end) == (None, None)


def test_a_term_without_a_place_is_named() -> None:
    plain = segment("ein Hund", ["ein", "Hund"], [])
    unplaced = translated.Doubt(kind="glossary_not_placed", sentence="No place for bakery.")
    translation = replace(plain.translation, doubts=(unplaced,))
    (doubt,) = find_doubts("ein Hund", [replace(plain, translation=translation)])
    assert doubt.kind == "glossary_not_placed"
    assert "bakery" in doubt.sentence
