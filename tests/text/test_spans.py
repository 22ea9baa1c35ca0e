"""Places of pieces: they spell the text, in order."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heed.text.spans import overlaps, spans_of
from heed.text.vocab import Vocab, train_vocab


@pytest.fixture(scope="module")
def vocab() -> Vocab:
    return train_vocab(["A man is riding a bike.", "Ein Mann fährt Fahrrad."] * 5, size=300)


@pytest.mark.parametrize(
    ("pieces", "text", "spans"),
    [
        (["▁A", "▁man", "."], "A man.", [(0, 1), (2, 5), (5, 6)]),
        (["<2de>", "▁A"], "A", [(0, 0), (0, 1)]),
        (["▁", "<0xC3>", "<0xA9>", "t"], "ét", [(0, 0), (0, 1), (0, 1), (1, 2)]),
        (["▁a", "<0xC3>", "b"], "a\ufffdb", [(0, 1), (1, 1), (2, 3)]),
        (["▁1", "▁m"], "①  m", [(0, 1), (3, 4)]),
        (["▁fi", "n"], "ﬁn", [(0, 1), (1, 2)]),
        (["é", "a"], "e\u0301a", [(0, 2), (2, 3)]),
        (["▁never", "▁a"], "a", [(0, 0), (0, 1)]),
        (["<0xC3>"], "", [(0, 0)]),
        ([], "a", []),
    ],
)
def test_places_of_pieces(pieces: list[str], text: str, spans: list[tuple[int, int]]) -> None:
    assert spans_of(pieces, text) == spans


@given(st.sets(st.integers(0, 12)), st.integers(0, 12), st.integers(0, 12))
def test_a_stretch_overlaps_a_place_if_they_share_a_character(
    ends: set[int], start: int, end: int
) -> None:
    edges = sorted(ends)
    for places in (list(zip(edges[::2], edges[1::2], strict=False)), list(pairwise(edges))):
        shared = {index for place in places for index in range(*place)} & {*range(start, end)}
        if start < end:
            assert overlaps(places, start, end) == bool(shared)


@given(st.text(max_size=50))
def test_places_stand_in_the_text_in_order(vocab: Vocab, text: str) -> None:
    ids = vocab.encode(text)
    spans = spans_of(vocab.pieces(ids), text)
    assert len(spans) == len(ids)
    assert all(0 <= start <= end <= len(text) for start, end in spans)
    assert all(before[0] <= after[0] for before, after in pairwise(spans))


def test_what_no_place_holds_is_blank(vocab: Vocab) -> None:
    text = "A man is riding a bike. 東京 é 😀"
    spans = spans_of(vocab.pieces(vocab.encode(text)), text)
    held = {index for start, end in spans for index in range(start, end)}
    assert {text[index] for index in set(range(len(text))) - held} == {" "}
