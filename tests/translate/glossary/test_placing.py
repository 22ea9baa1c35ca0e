"""Glossaries: where terms stand, and where their translations go."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.documents.fakes import changed, reversed_words

from heed.documents.markup import parse_markup
from heed.documents.segment import Segment
from heed.translate.glossary.glossary import Glossary
from heed.translate.glossary.honored import find_targets
from heed.translate.glossary.placing import Applied, Site
from heed.translate.result import Translation


def site_of(glossary: Glossary, source: str, translation: Translation) -> Site:
    occurrences = glossary.occurrences(source)
    is_large = source.isupper() and translation.text.isupper()
    there = find_targets(translation.text, occurrences, is_large=is_large)
    return Site.of(occurrences, there, source, translation, [], is_large=is_large)


def apply_glossary(glossary: Glossary, source: str, translation: Translation) -> Applied:
    return site_of(glossary, source, translation).placed()


def applied(entries: dict[str, str], source: str, *, backwards: bool = False) -> str:
    """The terms put into `source`, as if each word were translated by itself."""
    segment = Segment(source)
    translation = reversed_words(segment) if backwards else changed(segment, str)
    return apply_glossary(Glossary.of(entries), source, translation).translation.text


# Finding


def test_a_term_in_small_letters_takes_the_case_of_its_occurrence() -> None:
    assert applied({"cat": "katze"}, "a cat a Cat a CAT") == "a katze a Katze a KATZE"
    assert applied({"Cat": "katze"}, "a cat a Cat") == "a cat a katze"


def test_the_capital_at_the_beginning_of_a_sentence_is_that_of_the_translation() -> None:
    assert applied({"cat": "katze"}, "Cat here") == "Katze here"
    assert applied({"cat": "katze"}, "Cat here", backwards=True) == "here katze"


@pytest.mark.parametrize("said", ["Handy hier", "IPhone hier"])
def test_a_term_that_stays_as_it_is_gets_no_capital_at_the_beginning(said: str) -> None:
    done = apply_glossary(Glossary.of({"iPhone": "="}), "iPhone here", Translation(text=said))
    assert done.translation.text == "iPhone hier"


@pytest.mark.parametrize(("source", "wanted"), [("iPhone here", "iPhone"), ("IPHONE!", "IPHONE")])
def test_a_translation_in_capitals_keeps_the_case_of_a_term(source: str, wanted: str) -> None:
    glossary = Glossary.of({"iPhone": "="} if wanted == "iPhone" else {"iphone": "iPhone"})
    assert apply_glossary(glossary, source, Translation(text="IPHONE")).translation.text == wanted


@pytest.mark.parametrize(
    ("source", "said", "wanted"),
    [
        ("GIMP file", "GIMP", "Datei"),  # a name, not a line in capitals
        ("OPEN THE FILE", "DAS AUF", "DATEI"),
        ("THE FILE NAME", "DER NAME", "DATEI"),
    ],
)
def test_a_term_is_in_capitals_only_in_lines_in_capitals(
    source: str, said: str, wanted: str
) -> None:
    glossary = Glossary.of({"file": "Datei"})
    done = apply_glossary(glossary, source, Translation(text=said))
    assert wanted in done.translation.text


def test_a_field_of_a_term_does_not_become_capitals() -> None:
    done = apply_glossary(Glossary.of({"dog": "%s Hund"}), "THE DOG", Translation(text="DER KÖTER"))
    assert done.translation.text == "DER %s HUND"


# Placing


def test_aligned_words_are_replaced_at_every_occurrence_in_any_order() -> None:
    entries = {"blue shirt": "Blauhemd", "man": "Herr"}
    source = "a man in a blue shirt saw a man"
    assert applied(entries, source) == "a Herr in a Blauhemd saw a Herr"
    assert applied(entries, source, backwards=True) == "Herr a saw Blauhemd a in Herr a"


def test_a_term_that_is_there_already_stays() -> None:
    glossary = Glossary.of({"man": "Mann"})
    translation = Translation(text="der alte Mann")
    done = apply_glossary(glossary, "the old man", translation)
    assert (done.translation, done.unplaced) == (translation, [])


def test_scripts_without_blanks_are_matched_by_characters() -> None:
    translation = Translation(
        text="a boy eats",
        tokens=["▁a", "▁boy", "▁eats"],
        source_tokens=["一个", "男孩", "吃"],
        alignment=[[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]],
    )
    done = apply_glossary(Glossary.of({"男孩": "lad"}), "一个男孩吃", translation)
    assert done.translation.text == "a lad eats"
    translation = Translation(
        text="一个男孩吃",
        tokens=["一个", "男孩", "吃"],
        source_tokens=["▁a", "▁boy", "▁eats"],
        alignment=[[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0]],
    )
    done = apply_glossary(Glossary.of({"boy": "小子"}), "a boy eats", translation)
    assert done.translation.text == "一个小子吃"


def test_a_term_that_finds_no_words_is_named() -> None:
    glossary = Glossary.of({"man": "Herr", "dog": "Hund"})
    done = apply_glossary(glossary, "man dog", Translation(text="x"))
    assert len(done.unplaced) == 1
    done = apply_glossary(glossary, "man", Translation(text=""))
    assert (done.translation.text, done.unplaced) == ("", ["man"])


def test_a_text_too_long_to_be_aligned_is_left_as_it_is() -> None:
    text = "man " * 3000
    done = apply_glossary(Glossary.of({"man": "Herr"}), text, Translation(text=text))
    assert (done.translation.text, len(done.unplaced)) == (text, 3000)


def test_tags_are_placed_around_terms_that_were_put_in() -> None:
    markup = parse_markup("a <b>blue shirt</b> on a <i>man</i>")
    (segment,) = markup.segments
    glossary = Glossary.of({"blue shirt": "Hemd, das blau ist", "man": "Herr"})
    done = apply_glossary(glossary, segment.text, reversed_words(segment))
    assert done.translation.text == "Herr a on Hemd, das blau ist a"
    assert markup.join([done.translation]) == "<i>Herr</i> a on <b>Hemd, das blau ist</b> a"


@given(st.text("ab .A中", max_size=20), st.text("ab .中", max_size=20))
def test_any_texts_give_the_term_or_name_it(source: str, said: str) -> None:
    glossary = Glossary.of({"a b": "x y", "ab": "z", "中": "w"})
    found = glossary.occurrences(source)
    done = apply_glossary(glossary, source, Translation(text=said))
    placed = len(found) - len(done.unplaced)
    text = done.translation.text.casefold()
    assert placed == text.count("x y") + text.count("z") + text.count("w")


# Variants


def of(entries: dict[str, str], source: str, said: Translation) -> list[str]:
    return [each.text for each in site_of(Glossary.of(entries), source, said).variants()]


def test_all_forms_are_named_for_the_words_that_belong_to_a_term() -> None:
    source = "a man here"
    said = changed(Segment(source), str)
    assert of({"man": "Herr|Herrn"}, source, said) == ["a Herr here", "a Herrn here"]
    assert of({"man": "Herr"}, source, Translation(text="a Herr here")) == []


def test_only_terms_of_one_form_are_placed_where_the_others_can_be_scored() -> None:
    source = "man dog"
    glossary = Glossary.of({"man": "Herr|Herrn", "dog": "Hund"})
    done = site_of(glossary, source, changed(Segment(source), str)).placed(is_certain=True)
    assert (done.translation.text, done.unplaced) == ("man Hund", ["man"])


def test_a_term_without_words_of_its_own_is_put_beside_its_neighbors() -> None:
    said = Translation(
        text="ein Mann (hier).",
        tokens=["▁ein", "▁Mann", "▁(", "hier", ")", "."],
        source_tokens=["▁a", "▁man", "▁sees", "▁(", "here", ")", "."],
        alignment=[
            [1.0, 0, 0, 0, 0, 0, 0],
            [0, 1.0, 0, 0, 0, 0, 0],
            [0, 0, 0, 1.0, 0, 0, 0],
            [0, 0, 0, 0, 1.0, 0, 0],
            [0, 0, 0, 0, 0, 1.0, 0],
            [0, 0, 0, 0, 0, 0, 1.0],
        ],
    )
    found = of({"sees": "sieht"}, "a man sees (here).", said)
    assert "ein Mann sieht (hier)." in found
    assert all(" ".join(each.split()) == each and "sieht" in each for each in found)
    assert of({"man": "Herr"}, "man", Translation(text="")) == ["Herr"]


def test_a_term_before_a_field_is_separated_from_it() -> None:
    said = Translation(
        text="ein Mann %s.",
        tokens=["▁ein", "▁Mann", "▁%", "s", "."],
        source_tokens=["▁a", "▁man", "▁sees", "▁%", "s", "."],
        alignment=[
            [1.0, 0, 0, 0, 0, 0],
            [0, 1.0, 0, 0, 0, 0],
            [0, 0, 0, 1.0, 0, 0],
            [0, 0, 0, 0, 1.0, 0],
            [0, 0, 0, 0, 0, 1.0],
        ],
    )
    assert "ein Mann sieht %s." in of({"sees": "sieht"}, "a man sees %s.", said)


def test_characters_are_put_in_without_blanks() -> None:
    said = Translation(
        text="老人他它小狗",
        tokens=["老", "人", "他", "它", "小", "狗"],
        source_tokens=["▁he", "▁sees", "▁it"],
        alignment=[[1.0, 0, 0], [1.0, 0, 0], [1.0, 0, 0], [0, 0, 1.0], [0, 0, 1.0], [0, 0, 1.0]],
    )
    found = of({"sees": "看"}, "he sees it", said)
    assert found and all("看" in each and " " not in each for each in found)


@given(st.text("ab .A中(", max_size=20), st.text("ab .中(", max_size=20))
def test_a_variant_has_one_more_term_and_loses_one_word_at_most(source: str, said: str) -> None:
    glossary = Glossary.of({"a b": "x y", "ab": "z", "中": "w"})
    for text in of(glossary.entries, source, Translation(text=said)):
        assert sum(map(text.casefold().count, ("x y", "z", "w"))) == 1
        left = text.casefold().replace("x y", "").replace("z", "").replace("w", "")
        lost = len("".join(said.split())) - len("".join(left.split()))
        assert 0 <= lost <= max(map(len, said.split()), default=0)
