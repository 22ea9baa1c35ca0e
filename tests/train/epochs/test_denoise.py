"""Gaps in sentences: of the promised lengths, never side by side, others in every epoch."""

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from heed.data.store import Store
from heed.train.epochs.denoise import MIN_PIECES, DenoisedText, draw, with_gaps

MASK, TAG, HASH = 4, 5, "ab" * 32


@pytest.fixture
def store(tmp_path: Path) -> Store:
    with Store.create(tmp_path / "mono.bin", HASH, HASH) as writer:
        for n_pieces in range(1, 41):
            writer.add([], list(range(100, 100 + n_pieces)))
    return Store.open(tmp_path / "mono.bin", HASH, HASH)


def denoised(store: Store, **wishes: Any) -> DenoisedText:
    settings = {"tag": TAG, "mask_id": MASK, "at_most": 99, "seed": 1, "epoch": 0, **wishes}
    return DenoisedText(store, **settings)


def rows(pairs: DenoisedText) -> list[tuple[list[int], list[int]]]:
    return [(pairs.src(i).tolist(), pairs.tgt(i).tolist()) for i in range(len(pairs.src_lengths))]


def test_what_a_gap_hides_is_gone_and_the_rest_stays_in_order() -> None:
    for n_pieces in range(MIN_PIECES, 60):
        ids = np.arange(100, 100 + n_pieces, dtype=np.int32)
        found = with_gaps(ids, MASK, np.random.default_rng(n_pieces)).tolist()
        kept = [id for id in found if id != MASK]
        assert kept == sorted(set(kept))
        assert set(kept) < set(ids.tolist())
        assert len(ids) - len(kept) == max(1, round(0.3 * n_pieces))
        assert all({a, b} != {MASK} for a, b in itertools.pairwise(found))


def test_lengths_are_known_before_a_gap_is_made(store: Store) -> None:
    pairs = denoised(store)
    assert len(pairs.src_lengths) == 40 - MIN_PIECES + 1  # shorter sentences are left out
    for src_length, tgt_length, (src, tgt) in zip(
        pairs.src_lengths, pairs.tgt_lengths, rows(pairs), strict=True
    ):
        assert (len(src) + 1, len(tgt) + 1) == (src_length, tgt_length)
        assert src[0] == TAG


def test_an_epoch_is_the_same_each_time_and_another_one_is_other(store: Store) -> None:
    assert rows(denoised(store)) == rows(denoised(store))
    assert rows(denoised(store)) != rows(denoised(store, epoch=1))
    assert rows(denoised(store)) != rows(denoised(store, seed=2))


def test_of_many_sentences_some_are_drawn_anew_each_epoch(store: Store) -> None:
    few = [rows(denoised(store, at_most=5, epoch=epoch)) for epoch in range(2)]
    assert [len(found) for found in few] == [5, 5]
    assert {len(tgt) for _, tgt in few[0]} != {len(tgt) for _, tgt in few[1]}
    numbers = np.arange(10)
    assert draw(numbers, 10, 1) is numbers
    assert draw(numbers, 3, 1, "a").tolist() == sorted(set(draw(numbers, 3, 1, "a").tolist()))
