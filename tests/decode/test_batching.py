"""Batches: every item once, as large as allowed, and side by side where a model can do that."""

import threading
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from heed.decode import batching as schedule
from heed.decode.batching import BESIDE_TOKENS, batches, each_batch

PATIENCE_S = 60


class Model:
    """Only its name is asked for here."""

    length_limit: int | None = None

    def __init__(self, n_workers: int, name: str = "whole") -> None:
        self.n_workers, self.name = n_workers, name

    def single_threaded(self) -> "Model":
        return Model(1, "alone")

    def no_search(self, *_: Any, **__: Any) -> Any:
        raise AssertionError

    start = step = extend = select = teacher_forced = cross_attention = no_search


class OneAtATime:
    """A model that offers nothing besides."""

    name = "whole"


def names(model: Any, lengths: list[int], max_tokens: int = 4096, **limits: Any) -> list[str]:
    """What searched for each item."""
    found: dict[int, str] = {}

    def search(searching: Any, batch: list[int]) -> list[str]:
        return [searching.name] * len(batch)

    for batch, answers in each_batch(model, lengths, search, max_tokens=max_tokens, **limits):
        assert not found.keys() & set(batch)
        found.update(zip(batch, answers, strict=True))
    return [found[i] for i in range(len(lengths))]


def test_batches_hold_like_lengths_and_every_item_once() -> None:
    lengths = [5, 1, 9, 3, 3, 8, 2]
    found = list(batches(lengths, 10))
    assert sorted(i for batch in found for i in batch) == list(range(7))
    for batch in found:
        assert len(batch) == 1 or max(lengths[i] for i in batch) * len(batch) <= 10
    assert all(len(batch) <= 2 for batch in batches(lengths, 100, 2))
    assert list(batches([], 10)) == []
    assert list(batches([50], 10)) == [[0]]


@given(st.lists(st.integers(1, 3000), max_size=40), st.integers(1, 5), st.integers(1, 9))
def test_every_item_is_searched_for_once(lengths: list[int], n_workers: int, rows: int) -> None:
    found = names(Model(n_workers), lengths, max_rows=rows)
    n_batches = len([*batches(lengths, BESIDE_TOKENS, rows)])
    n_beside = n_batches - n_batches % n_workers if n_workers > 1 else 0
    assert found.count("alone") <= n_beside * rows
    assert ("alone" in found) == (n_beside > 0)
    assert names(OneAtATime(), lengths, max_rows=rows) == ["whole"] * len(lengths)


def test_a_short_text_and_what_is_left_of_a_long_one_have_all_threads() -> None:
    third = BESIDE_TOKENS // 3
    assert names(Model(2), [third] * 3) == ["whole"] * 3
    assert names(Model(2), [third] * 8) == ["alone"] * 6 + ["whole"] * 2
    assert names(Model(1), [third] * 8) == ["whole"] * 8


def test_what_is_left_shares_a_batch_as_large_as_allowed() -> None:
    sizes: list[int] = []

    def search(_: Any, batch: list[int]) -> None:
        sizes.append(len(batch))

    third = BESIDE_TOKENS // 3
    for _ in each_batch(Model(4), [third] * 9, search, max_tokens=4096):
        pass
    assert sizes == [9]


def test_as_many_as_there_are_threads_search_at_once() -> None:
    everyone = threading.Barrier(3)

    def search(_: Any, batch: list[int]) -> int:
        everyone.wait(PATIENCE_S)
        return threading.get_ident()

    found = [*each_batch(Model(3), [BESIDE_TOKENS] * 6, search, max_tokens=4096)]
    assert [batch for batch, _ in found] == [[i] for i in range(6)]
    assert threading.get_ident() not in {thread for _, thread in found}


def test_an_error_ends_the_others_and_is_raised() -> None:
    n_threads, begun = threading.active_count(), []

    def search(_: Any, batch: list[int]) -> None:
        begun.append(batch[0])
        if not batch[0]:
            raise MemoryError
        time.sleep(0.01)

    with pytest.raises(MemoryError):
        list(each_batch(Model(2), [BESIDE_TOKENS] * 400, search, max_tokens=4096))
    assert len(begun) < 400
    assert threading.active_count() == n_threads


def test_whoever_stops_listening_stops_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(schedule, "BESIDE_TOKENS", 1)
    first, begun = threading.Event(), []

    def search(_: Any, batch: list[int]) -> None:
        begun.append(batch[0])
        if batch[0]:
            first.wait(PATIENCE_S)

    found = each_batch(Model(2), [1] * 400, search, max_tokens=4096)
    assert next(found)[0] == [0]
    threading.Timer(0.1, first.set).start()
    found.close()  # type: ignore[attr-defined]
    assert len(begun) < 400
