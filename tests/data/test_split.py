"""No sentence of either side is shared between training, dev and test."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from heed.data.readers import Pair
from heed.data.split import DEV, TEST, TRAIN, sentence_key, shared_with, split


def keys(*sentences: Any) -> np.ndarray[Any, Any]:
    return np.array(sentences, dtype=np.uint64)


few_sentences = st.lists(st.tuples(st.integers(1, 30), st.integers(1, 30)), max_size=60)


@given(
    pairs=few_sentences,
    dev_size=st.integers(0, 20),
    test_size=st.integers(0, 20),
    seed=st.integers(0, 5),
)
def test_nothing_is_shared_and_no_part_is_larger_than_asked(
    pairs: list[tuple[int, int]], dev_size: int, test_size: int, seed: int
) -> None:
    src, tgt = keys(*[a for a, _ in pairs]), keys(*[b for _, b in pairs])
    parts = split(src, tgt, dev_size=dev_size, test_size=test_size, seed=seed)
    assert len(parts) == len(pairs)
    assert (parts == DEV).sum() <= dev_size
    assert (parts == TEST).sum() <= test_size
    for one, other in ((TRAIN, DEV), (TRAIN, TEST), (DEV, TEST)):
        for side in (src, tgt):
            assert not set(side[parts == one]) & set(side[parts == other])


def test_unrelated_pairs_give_exactly_what_is_asked_and_the_seed_decides_which() -> None:
    src = tgt = np.arange(1, 1001, dtype=np.uint64)

    def draw(seed: int) -> np.ndarray[Any, Any]:
        return split(src, tgt, dev_size=50, test_size=20, seed=seed)

    assert np.bincount(draw(1)).tolist() == [930, 50, 20]
    assert draw(1).tolist() == draw(1).tolist()
    assert draw(1).tolist() != draw(2).tolist()


def test_pairs_tied_through_others_stay_together() -> None:
    # 1-1 and 1-2 share a source, 1-2 and 2-2 a target: three pairs, one knot.
    src, tgt = keys(1, 1, 2, 9), keys(1, 2, 2, 9)
    for seed in range(10):
        parts = split(src, tgt, dev_size=1, test_size=0, seed=seed)
        assert parts.tolist() == [TRAIN, TRAIN, TRAIN, DEV]


def test_a_knot_too_large_for_test_is_left_for_dev() -> None:
    # The first two pairs share a source.
    src, tgt = keys(1, 1, 2), keys(1, 2, 3)
    for seed in range(10):
        parts = split(src, tgt, dev_size=2, test_size=1, seed=seed)
        assert parts.tolist() == [DEV, DEV, TEST]


def test_a_sentence_with_many_translations_stays_in_training_while_there_is_a_choice() -> None:
    src = keys(*[1] * 50, *range(2, 52))
    tgt = keys(*range(1, 101))
    parts = split(src, tgt, dev_size=50, test_size=0, seed=3)
    assert (parts[:50] == TRAIN).all()
    assert (parts[50:] == DEV).all()
    parts = split(src, tgt, dev_size=100, test_size=0, seed=3)
    assert (parts == DEV).all()


@pytest.mark.parametrize("variant", ["a dog runs", "A dog runs.", " A DOG RUNS!", "a dog runs。"])
def test_case_and_final_marks_do_not_make_another_sentence(variant: str) -> None:
    assert sentence_key(variant) == sentence_key("A dog runs")


def test_other_words_and_bare_marks_are_other_sentences() -> None:
    texts = ["A dog runs", "A dog ran", "A dog, runs", "?", "!", ".", "..."]
    assert len({sentence_key(text) for text in texts}) == len(texts)


def test_a_training_pair_that_shares_a_side_with_dev_is_told() -> None:
    rule = shared_with([Pair("A dog runs.", "Ein Hund rennt.")], "dev")
    assert rule(Pair("a dog runs", "Es rennt ein Hund")) == "in_dev"
    assert rule(Pair("One dog is running", "Ein Hund rennt")) == "in_dev"
    assert rule(Pair("Ein Hund rennt", "A dog runs")) is None
