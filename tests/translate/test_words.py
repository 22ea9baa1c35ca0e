"""Words of both sides, and which belong together."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from heed.translate.result import Translation
from heed.translate.words import best_stretch, largest_sum, link_words, piece_spans, word_spans


def words(text: str) -> list[str]:
    return [text[start:end] for start, end in word_spans(text)]


def test_words_signs_and_characters_of_solid_scripts() -> None:
    assert words("It's 1,234.5 « high-end »!") == ["It's", "1,234.5", "«", "high-end", "»", "!"]
    assert words("一个man。") == ["一", "个", "man", "。"]
    assert words("हिन्दी में।") == ["हिन्दी", "में", "।"]
    assert words("_a house_ snake_case __b") == [*"_a", "house", "_", "snake_case", *"__b"]


@given(st.text())
def test_words_are_all_but_blanks(text: str) -> None:
    assert "".join(words(text)).split() == ["".join(text.split())] * bool(text.split())


def test_pieces_are_found_around_blanks_and_other_spellings() -> None:
    pieces = ["▁", "A", "▁b", "lue", "<0xF0>", "<0x9F>", "<0x98>", "<0x80>", "?", "▁x"]
    spans = piece_spans(pieces, "A  blue😀 x")
    assert spans == [(0, 0), (0, 1), (3, 4), (4, 7), *[(7, 8)] * 4, (9, 10), (10, 10)]


@given(st.lists(st.text(max_size=4), max_size=8), st.text(max_size=12))
def test_spans_of_any_pieces_lie_in_the_text_in_order(pieces: list[str], text: str) -> None:
    spans = piece_spans(pieces, text)
    assert len(spans) == len(pieces)
    places = [place for span in spans for place in span]
    assert all(0 <= place <= len(text) for place in places)
    assert all(start <= end for start, end in spans)


def test_each_target_word_shares_the_source_words() -> None:
    links = link_words("a b c", Translation(text="x y"))
    assert links.weights.shape == (2, 3)
    np.testing.assert_allclose(links.weights.sum(axis=1), 1)


def test_without_alignment_words_are_linked_by_place() -> None:
    links = link_words("a b c d", Translation(text="w x y z"))
    assert links.weights.argmax(axis=1).tolist() == [0, 1, 2, 3]


def test_an_alignment_that_does_not_fit_its_tokens_is_not_read() -> None:
    odd = Translation(text="w x", tokens=["w"], source_tokens=["a"], alignment=[[0.0, 1.0]])
    assert link_words("a b", odd).weights.argmax(axis=1).tolist() == [0, 1]


def test_an_article_that_read_its_noun_is_linked_with_the_article() -> None:
    """The attention of a real model: `eine`, `m` read blue and shirt more than the article."""
    translation = Translation(
        text="in einem blauen Hemd",
        tokens=["▁in", "▁eine", "m", "▁blauen", "▁Hemd"],
        source_tokens=["▁in", "▁a", "▁blue", "▁shirt"],
        alignment=[
            [0.24, 0.04, 0.11, 0.24],
            [0.02, 0.06, 0.49, 0.38],
            [0.06, 0.22, 0.05, 0.08],
            [0.03, 0.05, 0.63, 0.21],
            [0.01, 0.01, 0.02, 0.87],
        ],
    )
    links = link_words("in a blue shirt", translation)
    assert links.weights.argmax(axis=1).tolist() == [0, 1, 2, 3]


def test_a_cut_through_a_word_divides_its_equal_too() -> None:
    links = link_words("Word!", Translation(text="WORD !"), cuts=[1, 4])
    assert (links.src, links.tgt) == ([(0, 1), (1, 4), (4, 5)], [(0, 1), (1, 4), (5, 6)])


def test_a_text_without_words_has_no_links() -> None:
    assert link_words("", Translation(text="a")).weights.shape == (1, 0)
    assert link_words("a", Translation(text=" ")).weights.shape == (0, 1)


def test_the_stretch_of_the_largest_sum() -> None:
    assert largest_sum(np.array([1.0, -3.0, 2.0, -1.0, 2.0, -5.0])) == (2, 5)
    assert largest_sum(np.array([-2.0, -1.0])) == (1, 2)
    assert largest_sum(np.array([-2.0, -1.0]), above=0.0) == (0, 0)
    shares, free = np.array([0.9, 0.9, 0.9]), np.array([True, False, True])
    assert best_stretch(shares, free) == (0, 1)
