"""`encode_with` and `decode_with`: spans of a text as single ids."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heed.text.extend import with_controls
from heed.text.slots import SLOT_PIECES, decode_with, encode_with
from heed.text.vocab import Kind, Vocab, train_vocab

WORDS = "the a man woman dog child blue red house street runs sleeps reads on in with and two"


@pytest.fixture(scope="module", params=get_args(Kind))
def vocab(request: pytest.FixtureRequest) -> Vocab:
    """A small vocabulary with slots."""
    kind: Kind = request.param
    size = 400 if kind != "char" else 330
    plain = train_vocab([WORDS, "red dogs, blue houses."] * 20, size=size, kind=kind)
    assert plain.slots is None
    return with_controls(plain, SLOT_PIECES)


@st.composite
def marked_texts(draw: st.DrawFn) -> tuple[str, list[str]]:
    """Stretches of text, and the spans between them."""
    stretch = st.one_of(
        st.sampled_from(["", " ", "  ", "the ", " dog", "red, ", ".", " ▁ ", "\ufdd0", "\u0301"]),
        st.text(max_size=8),
    )
    span = st.sampled_from(["%s", "<b>", "1,234.50 €", "x", " ", "ضد", "\u200d"])
    n_spans = draw(st.integers(0, 6))
    return draw(stretch), [draw(span) + "\0" + draw(stretch) for _ in range(n_spans)]


@given(texts=marked_texts())
def test_a_text_with_spans_comes_back(vocab: Vocab, texts: tuple[str, list[str]]) -> None:
    assert vocab.slots is not None
    text, rest = texts
    marks, spans = [], {}
    for slot, (span, stretch) in zip(
        vocab.slots.things, (part.split("\0", 1) for part in rest), strict=False
    ):
        marks.append((len(text), len(text) + len(span), slot))
        spans[slot] = span
        text += span + stretch
    ids = encode_with(vocab, text, marks)
    assert [id for id in ids if id in vocab.slots.ids] == [slot for _, _, slot in marks]
    same = "".join(chr(0xFFFD) if 0xD800 <= ord(c) < 0xE000 else c for c in text)
    assert decode_with(vocab, ids, spans) == (same, marks)


def test_a_span_is_one_id_and_words_beside_it_are_whole(vocab: Vocab) -> None:
    assert vocab.slots is not None
    slot = vocab.slots.numbers[0]
    text = "the man 42 sleeps"
    ids = encode_with(vocab, text, [(8, 10, slot)])
    place = ids.index(slot)
    assert ids[place + 1 :] == vocab.encode("sleeps")
    assert ids[:place] == vocab.encode("the man ")


def test_pairs_know_their_partner(vocab: Vocab) -> None:
    slots = vocab.slots
    assert slots is not None
    for opening, closing in zip(slots.opens, slots.closes, strict=True):
        assert slots.partner(opening) == closing
        assert slots.partner(closing) == opening
    assert slots.partner(slots.things[0]) is None


def test_no_text_encodes_to_a_slot(vocab: Vocab) -> None:
    assert vocab.slots is not None
    assert not vocab.slots.ids & set(vocab.encode(" ".join(SLOT_PIECES)))
