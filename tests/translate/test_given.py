"""Translations that others have written are read as those of training were."""

import pytest
from tests.translate.test_protect import make_translator, slotted, vocab

from heed.text.vocab import Vocab
from heed.translate.given import read_as_translated, read_letters, read_with_slots
from heed.translate.given_spans import words_equal
from heed.translate.translator import Translator

__all__ = ["slotted", "vocab"]
PAIR = "The dog sleeps at %s.", "Zwei %s Hunde"


def test_common_spans_are_slots_where_the_model_has_some(slotted: Translator) -> None:
    read, spelled = (
        read_with_slots(slotted.reader, *PAIR, []),
        read_letters(slotted.reader, *PAIR, []),
    )
    slots = slotted.src_vocab.slots
    assert slots is not None
    (slot,) = set(read.src_ids) & set(slots.ids)
    assert slot in read.tgt_ids and not set(spelled.tgt_ids) & set(slots.ids)
    # What people see is the same text.
    assert "".join(read.source_tokens).replace("▁", " ").split() == PAIR[0].split()
    assert "%s" in read.tokens and read.tokens[-1] == spelled.tokens[-1]
    assert read_with_slots(slotted.reader, PAIR[0], "Zwei Hunde", []) == read_letters(
        slotted.reader, PAIR[0], "Zwei Hunde", []
    )


@pytest.mark.parametrize("pair", [PAIR, ("a dog", "Hund"), ("", "")])
def test_a_model_without_slots_reads_letters(pair: tuple[str, str], vocab: Vocab) -> None:
    plain = make_translator(vocab, 0)
    assert read_with_slots(plain.reader, *pair, []) == read_letters(plain.reader, *pair, [])


def test_a_word_is_not_found_within_a_longer_one_that_goes_on_with_a_vowel_sign() -> None:
    assert words_equal("रामायण, राम", "राम") == [(8, 11)]
    assert words_equal("कि, किताब", "कि") == [(0, 2)]


def test_a_pair_too_long_to_be_read_has_only_doubts_about_its_texts(slotted: Translator) -> None:
    src, tgt = "The dog sleeps in 2007. " * 300, "Zwei Hunde schlafen 2008. " * 300
    (found,) = slotted.judged([src], [tgt])
    assert (found.tokens, found.source_tokens, found.token_scores) == ([], [], [])
    assert [doubt.kind for doubt in found.doubts] == ["numbers"]


@pytest.mark.parametrize(
    ("source", "text", "sentence"),
    [
        ("Two %s dogs %s", "Zwei %s Hunde", "%s only in the source"),
        ("The {name} dog", "Der {nom} Hund", "{name} only in the source; {nom} only in the transl"),
        ("A <b>man</b>", "Ein <b>Mann", "</b> only in the source"),
        ("A <b>man</b> %s", "Ein Mann <b>%s</b>", None),
        ("UTF-8 text", "UTF-8-Text", None),
        ("2 dogs", "Zwei Hunde", None),
        ("{n, plural, one {dog} other {dogs}}", "{n, plural, one {Hund} other {Hunde}}", None),
        ("%s", "%s", None),
    ],
)
@pytest.mark.parametrize("has_slots", [False, True])
def test_spans_that_only_one_side_of_a_given_pair_has_are_in_doubt(
    vocab: Vocab, slotted: Translator, has_slots: bool, source: str, text: str, sentence: str | None
) -> None:
    translator = slotted if has_slots else make_translator(vocab, 0)
    (found,) = translator.judged([source], [text])
    sentences = [doubt.sentence for doubt in found.doubts if doubt.kind == "spans"]
    if sentence is None:
        assert sentences == []
    else:
        assert len(sentences) == 1
        assert sentences[0].startswith(f"Protected spans differ: {sentence}")


def test_places_of_doubts_are_those_of_the_text(slotted: Translator) -> None:
    (found,) = slotted.judged([PAIR[0]], ["Zwei %s Hunde Hunde Hunde"])
    (loop,) = [doubt for doubt in found.doubts if doubt.kind == "loop"]
    assert found.text[loop.start : loop.end].strip() == "Hunde Hunde Hunde"
    assert found.text == "Zwei %s Hunde Hunde Hunde"
    assert not [doubt for doubt in found.doubts if doubt.kind == "numbers"]


def test_a_pair_in_capitals_is_read_as_a_search_reads_and_writes_it(slotted: Translator) -> None:
    small = "The dog sleeps on the house %s", "Zwei hunde rennen mit %s"
    large = "THE DOG SLEEPS ON THE HOUSE %s", "ZWEI HUNDE RENNEN MIT %s"
    expected = read_as_translated(slotted.reader, *small, [])
    for read in (read_as_translated, read_with_slots):
        found = read(slotted.reader, *large, [])
        assert (found.src_ids, found.tgt_ids) == (expected.src_ids, expected.tgt_ids)
        assert found.source_tokens == expected.source_tokens
        *tokens, end = found.tokens
        assert "".join(tokens).replace("▁", " ").split() == large[1].split()
        assert end == expected.tokens[-1]


def test_a_translation_in_capitals_is_read_in_usual_case(slotted: Translator) -> None:
    """Letter by letter, it would repeat pieces and be improbable."""
    small = "The dog sleeps on the house %s", "Zwei hunde rennen mit %s"
    expected = read_with_slots(slotted.reader, *small, [])
    found = read_with_slots(slotted.reader, small[0], "ZWEI HUNDE RENNEN MIT %s", [])
    assert (found.src_ids, found.tgt_ids) == (expected.src_ids, expected.tgt_ids)
    *tokens, end = found.tokens
    assert "".join(tokens).replace("▁", " ").split() == ["ZWEI", "HUNDE", "RENNEN", "MIT", "%s"]
    assert end == expected.tokens[-1]


def test_a_source_in_capitals_may_have_a_translation_in_small_letters(slotted: Translator) -> None:
    """The source is read as usual, and the translation as it is."""
    large, small = "THE DOG SLEEPS ON THE HOUSE %s", "The dog sleeps on the house %s"
    for tgt in ("Zwei Hunde rennen mit %s", "Zwei Hunde rennen"):
        expected = read_as_translated(slotted.reader, small, tgt, [])
        for read in (read_as_translated, read_with_slots):
            assert read(slotted.reader, large, tgt, []) == expected
