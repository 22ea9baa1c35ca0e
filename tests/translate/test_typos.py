"""Misspelled words and odd case are read as what was meant, and the translation says so."""

import pytest
from tests.translate.test_protect import SENTENCES, make_translator

from heed.text.extend import with_controls
from heed.text.known import KnownWords
from heed.text.slots import SLOT_PIECES
from heed.text.vocab import Vocab, train_vocab
from heed.translate.doubts.judge import is_doubtful
from heed.translate.doubts.spelling import spelled
from heed.translate.given import read_with_slots
from heed.translate.glossary.glossary import Glossary
from heed.translate.lines import Line
from heed.translate.result import Translation
from heed.translate.translator import Translator

KNOWN = ("The dog sleeps on the house and cats run", "A man reads a book in Berlin and runs")

NAMES = ("Marika", "Obeto", "Quilloz")


def new_vocab() -> Vocab:
    vocab = with_controls(train_vocab(SENTENCES * 5, size=340), SLOT_PIECES)
    pairs = [(line, "x") for line in KNOWN * 100]
    pairs += [(f"The dog of {name} sleeps", f"Hund von {name}") for name in NAMES]
    vocab.known_words = KnownWords.learn(lambda: pairs)
    return vocab


@pytest.fixture(scope="module")
def translator() -> Translator:
    return make_translator(new_vocab(), 0)


def read(found: Translation) -> str:
    return spelled(found.source_tokens)


def remarks(found: Translation) -> list[str]:
    return [doubt.sentence for doubt in found.doubts if doubt.kind == "read_as"]


@pytest.mark.parametrize("way", [{}, {"beam_size": 3}, {"sample": True, "seed": 3}])
def test_the_meant_word_is_read_and_the_translation_says_so(
    translator: Translator, way: dict[str, object]
) -> None:
    wrong, right = translator.translate(
        ["The dgo sleeps on hte house.", "The dog sleeps on the house."], **way
    )
    assert read(wrong) == read(right) == "The dog sleeps on the house."
    (remark,) = remarks(wrong)
    assert remark == "Misspelled words were read as others: dgo as dog, hte as the"
    assert not remarks(right)
    if "sample" not in way:
        assert wrong.text == right.text
        assert is_doubtful(wrong) == is_doubtful(right)


@pytest.mark.parametrize("end", ["", " %s"])
def test_a_source_with_a_given_translation_is_read_as_for_translation(
    translator: Translator, end: str
) -> None:
    given = f"Der Hund{end}"
    usual, *others = (
        read_with_slots(translator.reader, line + end, given, [])
        for line in (
            "The dog sleeps on the house",
            "The dgo sleeps on hte house",
            "The Dog Sleeps On The House",
            "THE DOG SLEEPS ON THE HOUSE",
        )
    )
    assert others == [usual] * 3


def test_spans_and_names_stay_where_they_are(translator: Translator) -> None:
    line = "The dgo of {dgo} <b>raeds</b> a bookk in Trondvik, %s."
    (chunk,) = translator.reader.parts(Line(line), 0, [])
    assert chunk.source is not None
    assert chunk.source.text == "The dog of {dgo} <b>reads</b> a book in Trondvik, %s."
    for span in chunk.source.spans:
        assert chunk.source.text[slice(*span.place)] == span.written
    assert [span.text for span in chunk.source.spans] == ["{dgo}", "<b>", "</b>", "Trondvik", "%s"]
    (found,) = translator.translate([line])
    assert all(found.text.count(span) == 1 for span in ("{dgo}", "<b>", "Trondvik", "%s"))


def test_texts_of_messages_are_corrected_too(translator: Translator) -> None:
    (found,) = translator.translate(["A dog {n, plural, one {raeds a book} other {# cats run}}"])
    assert remarks(found) == ["Misspelled words were read as others: raeds as reads"]


def test_who_wants_words_as_they_stand_gets_them(translator: Translator) -> None:
    text = "The dgo sleeps."
    (found,) = translator.translate([Line(text, keep_typos=True)])
    assert read(found) == text
    assert not remarks(found)
    other = make_translator(new_vocab(), 0)
    other.reader.keep_typos = True
    assert read(*other.translate([text])) == text
    assert read(*other.translate([Line(text, keep_typos=False)])) == "The dog sleeps."


def test_terms_of_a_glossary_are_not_misspelled(translator: Translator) -> None:
    glossary = Glossary.of({"hosue": "Hosue"})
    text = "The dgo in the hosue."
    (found,) = translator.translate([text], glossary=glossary)
    assert remarks(found) == ["Misspelled words were read as others: dgo as dog"]
    assert "Hosue" in found.text


def test_a_line_of_odd_case_is_read_in_usual_case(translator: Translator) -> None:
    lines = ["The Man Reads A Book In Berlin", "the man reads in berlin", "THE MAN READS IN BERLIN"]
    found = translator.translate(lines)
    assert [read(each) for each in found] == [
        "The man reads a book in Berlin",
        "The man reads in Berlin",
        "The man reads in Berlin",
    ]
    assert found[2].text == found[2].text.upper()
    assert not any(map(remarks, found))


def test_a_line_in_another_language_is_in_doubt_without_calibration(translator: Translator) -> None:
    found = translator.translate(["Il gatto dorme sotto il tavolo.", "The man runs."])
    kinds = [[doubt.kind for doubt in each.doubts] for each in found]
    assert kinds[0].count("source_language") == 1
    assert "source_language" not in kinds[1]
