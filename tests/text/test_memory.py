"""A memory finds the pair whose source needs the fewest edits, and survives its file."""

from itertools import pairwise, permutations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heed.disk.tensors import encode_tensors
from heed.errors import FormatError
from heed.text.memory import LEAST_SIMILARITY, Nearest, TranslationMemory, distances

SIZES = 12, 9
WHERE = Path("run/memory.safetensors")

sequences = st.lists(st.integers(1, 5), max_size=9)
sources = st.lists(st.integers(1, 11), min_size=1, max_size=8)
targets = st.lists(st.integers(1, 8), min_size=1, max_size=5)


def edits(a: list[int], b: list[int]) -> int:
    """Levenshtein distance by its definition, a letter at a time."""
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, start=1):
        last, row = row, [i]
        for j, y in enumerate(b, start=1):
            row.append(min(last[j] + 1, row[-1] + 1, last[j - 1] + (x != y)))
    return row[-1]


@given(own=sequences, others=st.lists(sequences, min_size=1, max_size=6))
def test_distances_are_the_fewest_edits(own: list[int], others: list[list[int]]) -> None:
    found = distances(np.array(own, dtype=np.int64), [np.array(ids) for ids in others])
    assert found.tolist() == [edits(own, ids) for ids in others]


@given(pairs=st.lists(st.tuples(sources, targets), min_size=1, max_size=12), own=sources)
def test_a_match_is_as_similar_as_it_says(
    pairs: list[tuple[list[int], list[int]]], own: list[int]
) -> None:
    memory = TranslationMemory.of(pairs, SIZES)
    best = max(1 - edits(own, src) / max(len(own), len(src)) for src, _ in pairs)
    found = memory.match(own)
    if best < LEAST_SIMILARITY:
        assert found is None
    if found is None:  # a source that shares only frequent pieces may be passed over
        return
    assert LEAST_SIMILARITY <= found.similarity <= best + 1e-12
    src = memory.src(found.number).tolist()
    assert found.similarity == pytest.approx(1 - edits(own, src) / max(len(own), len(src)))
    assert memory.tgt(found.number).tolist() in [tgt for other, tgt in pairs if other == src]


@given(pairs=st.lists(st.tuples(sources, targets), min_size=1, max_size=12), data=st.data())
def test_a_source_of_the_memory_matches_itself(
    pairs: list[tuple[list[int], list[int]]], data: st.DataObject
) -> None:
    memory = TranslationMemory.of(pairs, SIZES)
    own = data.draw(st.sampled_from(pairs))[0]
    found = memory.match(own)
    assert found is not None and found.similarity == 1.0
    assert memory.src(found.number).tolist() == own
    assert memory.tgt(found.number).tolist() == {tuple(s): t for s, t in pairs}[tuple(own)]


def test_similar_sources_are_found_among_many() -> None:
    """2,000 random sources; for each of 200 that are changed in one place, the nearest is found."""
    random = np.random.default_rng(1)
    vocab_size, length = 500, 10
    all_ids = random.integers(1, vocab_size, (2000, length))
    memory = TranslationMemory.of(((ids.tolist(), [1]) for ids in all_ids), (vocab_size, 2))
    for number in range(200):
        changed = all_ids[number].copy()
        changed[random.integers(length)] = random.integers(1, vocab_size)
        found = memory.match(changed.tolist())
        assert found is not None
        assert memory.src(found.number).tolist() == all_ids[number].tolist()
        assert found.similarity >= 1 - 1 / length - 1e-9


def test_only_pairs_with_the_same_tag_match() -> None:
    memory = TranslationMemory.of([([1, 5, 6], [1]), ([2, 5, 6], [2])], SIZES)
    assert memory.match([2, 5, 6], n_tags=1) == Nearest(1, 1.0)
    assert memory.match([3, 5, 6], n_tags=1) is None
    assert memory.match([3], n_tags=1) is None


def test_other_orders_of_its_pieces_do_not_hide_an_equal_source(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where only the postings of its rarest piece are read."""
    orders = [list(order) for order in permutations([1, 2, 3, 4])]
    memory = TranslationMemory.of([(order, [1]) for order in orders], SIZES)
    for most_read in (1 << 14, 1):
        monkeypatch.setattr("heed.text.memory._MOST_READ", most_read)
        for number, order in enumerate(orders):
            assert memory.match(order) == Nearest(number, 1.0)


def test_pairs_with_another_tag_do_not_hide_those_of_one() -> None:
    others = [([1, 5, 6, 7, *order], [1]) for order in permutations([8, 9, 10, 11])]
    memory = TranslationMemory.of([*others, ([2, 5, 6, 7], [2])], SIZES)
    assert memory.match([2, 5, 6, 7, 8], n_tags=1) == Nearest(24, 0.75)
    assert memory.match([2, 5, 6, 7], n_tags=1) == Nearest(24, 1.0)


def test_a_tag_makes_no_source_more_similar() -> None:
    memory = TranslationMemory.of([([1, 5, 6, 7], [1]), ([1, 8, 9], [2])], SIZES)
    assert memory.match([1, 5, 10, 11], n_tags=1) is None
    assert memory.match([1, 8, 10], n_tags=1) == Nearest(1, 0.5)


def test_of_equal_sources_the_last_translation_counts() -> None:
    memory = TranslationMemory.of([([5, 6], [1]), ([7], [2]), ([5, 6], [3])], SIZES)
    assert len(memory) == 2
    found = memory.match([5, 6])
    assert found is not None and memory.tgt(found.number).tolist() == [3]


@pytest.mark.parametrize("own", [[], [9], [9, 8, 7, 5]])
def test_nothing_similar_is_no_match(own: list[int]) -> None:
    assert TranslationMemory.of([([5, 6], [1])], SIZES).match(own) is None


def test_an_empty_memory_matches_nothing() -> None:
    for pairs in ([], [([], [1]), ([5], [])]):
        memory = TranslationMemory.of(pairs, SIZES)
        assert len(memory) == 0 and memory.match([5, 6]) is None


@given(pairs=st.lists(st.tuples(sources, targets), max_size=8), own=sources)
@settings(max_examples=50)
def test_a_file_holds_the_same_memory(
    pairs: list[tuple[list[int], list[int]]], own: list[int]
) -> None:
    memory = TranslationMemory.of(pairs, SIZES).with_bonus(7.5)
    again = TranslationMemory.from_bytes(memory.to_bytes(), SIZES, WHERE)
    assert again.bonus == 7.5 and len(again) == len(memory)
    assert again.match(own) == memory.match(own)
    assert again.to_bytes() == memory.to_bytes()


@pytest.mark.parametrize("sizes", [(11, 9), (12, 8), (13, 9)])
def test_a_memory_of_another_vocabulary_is_refused(sizes: tuple[int, int]) -> None:
    data = TranslationMemory.of([([5, 11], [8])], SIZES).to_bytes()
    with pytest.raises(FormatError, match=r"memory\.safetensors is damaged, or belongs to another"):
        TranslationMemory.from_bytes(data, sizes, WHERE)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("src", np.array([5, 12], dtype=np.int32)),
        ("src", np.array([5, -1], dtype=np.int32)),
        ("src", np.array([5], dtype=np.int32)),
        ("src", np.array([5.0, 6.0], dtype=np.float32)),
        ("src_counts", np.array([2, 0], dtype=np.int32)),
        ("src_counts", np.array([3, -1], dtype=np.int32)),
        ("tgt_counts", np.array([[1]], dtype=np.int32)),
        ("postings", np.array([0, 1], dtype=np.int32)),
        ("posting_counts", np.zeros(12, dtype=np.int32)),
        ("more", np.array([1], dtype=np.int32)),
    ],
)
def test_a_damaged_file_is_refused(name: str, value: np.ndarray) -> None:
    arrays = {**TranslationMemory.of([([5, 6], [1])], SIZES).arrays, name: value}
    data = encode_tensors(arrays, metadata={"bonus": "5"})
    with pytest.raises(FormatError, match="is damaged"):
        TranslationMemory.from_bytes(data, SIZES, WHERE)


@pytest.mark.parametrize("bonus", ["", "nan", "-1", "1e9", "five"])
def test_a_file_without_a_sound_bonus_is_refused(bonus: str) -> None:
    data = encode_tensors(
        TranslationMemory.of([([5], [1])], SIZES).arrays, metadata={"bonus": bonus}
    )
    with pytest.raises(FormatError, match="is damaged"):
        TranslationMemory.from_bytes(data, SIZES, WHERE)


def test_the_index_lists_each_pair_once_for_each_of_its_pieces() -> None:
    memory = TranslationMemory.of([([5, 5, 6], [1]), ([6, 7], [2])], SIZES)
    ends = np.cumsum(memory.arrays["posting_counts"])
    found = {
        piece: memory.arrays["postings"][start:end].tolist()
        for piece, (start, end) in enumerate(pairwise([0, *ends.tolist()]))
        if end > start
    }
    assert found == {5: [0], 6: [0, 1], 7: [1]}
