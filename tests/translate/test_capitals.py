"""Lines in capitals are read in small letters and answered in capitals."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.translate.test_protect import SENTENCES, check, make_translator

from heed.text.extend import with_controls
from heed.text.letter_case import upper
from heed.text.protected import Rules, find_spans
from heed.text.slots import SLOT_PIECES
from heed.text.vocab import train_vocab
from heed.translate.lines import Line
from heed.translate.protect import Draft, with_spans
from heed.translate.result import Translation
from heed.translate.source import make_source
from heed.translate.translator import Translator
from heed.translate.words import is_byte_piece

SMALL = "The dog sleeps on the house"


@pytest.fixture(scope="module", params=[False, True])
def translator(request: pytest.FixtureRequest) -> Translator:
    """One without slots, and one with them."""
    vocab = train_vocab(SENTENCES * 5, size=340)
    return make_translator(with_controls(vocab, SLOT_PIECES) if request.param else vocab, 0)


def test_the_answer_is_that_of_the_line_in_small_letters(translator: Translator) -> None:
    small, large = translator.translate([SMALL, SMALL.upper()], alignment=True)
    assert large.text == upper(small.text)
    assert large.tokens == [
        token if is_byte_piece(token) else upper(token) for token in small.tokens
    ]
    assert (large.score, large.token_scores) == (small.score, small.token_scores)
    assert large.alignment == small.alignment


def test_a_line_that_must_begin_so_is_read_as_it_is(translator: Translator) -> None:
    begun = translator([Line(SMALL.upper(), prefix="Der")])
    assert begun[0].startswith("Der")


def test_a_model_of_text_in_capitals_reads_capitals() -> None:
    vocab = train_vocab([upper(sentence) for sentence in SENTENCES] * 5, size=340)
    reader = make_translator(vocab, 0).reader
    (chunk,) = reader.parts(Line(SMALL.upper()), 0, [])
    assert chunk.source is None
    assert chunk.src_ids[:-1] == vocab.encode(SMALL.upper())


@settings(max_examples=40, deadline=None)
@given(
    spans=st.lists(st.sampled_from(["%s", "{name}", "1,234.50", "<br/>", "a.b@c.org"]), max_size=5),
    place=st.integers(0, 5),
)
def test_spans_survive_in_capitals(translator: Translator, spans: list[str], place: int) -> None:
    words = SMALL.upper().split()
    source = " ".join([*words[:place], *spans, *words[place:]])
    answer = translator(source)
    check(source, answer)
    assert answer == "".join(_upper_around(answer, spans))


def _upper_around(text: str, spans: list[str]) -> list[str]:
    """The text in capitals, but for the spans."""
    for span in spans:
        if span in text:
            before, _, after = text.partition(span)
            return [*_upper_around(before, spans), span, *_upper_around(after, spans)]
    return [upper(text)]


def test_the_guessed_place_of_a_span_is_behind_letters_that_have_grown() -> None:
    line, rules = "the big street %s", Rules.default()
    source = make_source(line, find_spans(line, rules), rules, None, in_capitals=True)
    tokens = ["▁die", "▁große", "▁Straße"]
    draft = Draft(source=source, text="die große Straße", marks=(), tokens=tokens)
    read = ["▁the", "▁big", "▁street", "▁%s"]
    written = Translation(text="", token_scores=[0.0] * 3, source_tokens=read)
    found = with_spans(draft, written, None)
    (doubt,) = found.doubts
    assert doubt.kind == "span_moved"
    assert "GROSSE" in found.text.partition("%s")[0]
    assert found.text[doubt.start : doubt.end] == "%s"


def test_bytes_of_a_character_keep_their_names_in_capitals() -> None:
    source = make_source("the dog:", [], Rules.default(), None, in_capitals=True)
    tokens = ["▁der", "▁Hund", "<0x3A>"]
    draft = Draft(source=source, text="der Hund:", marks=(), tokens=tokens)
    written = Translation(text="", token_scores=[0.0] * 4, source_tokens=["▁the", "▁dog", ":"])
    found = with_spans(draft, written, None)
    assert (found.text, found.tokens) == ("DER HUND:", ["▁DER", "▁HUND", "<0x3A>"])


def test_nothing_protected_may_be_in_capitals(translator: Translator) -> None:
    lines = [Line(SMALL, rules=Rules.none()), Line(SMALL.upper(), rules=Rules.none())]
    small, large = translator.translate(lines)
    assert large.text == upper(small.text)
