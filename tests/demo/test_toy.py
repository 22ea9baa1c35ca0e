"""Toy pairs are right, repeatable, and as varied as asked."""

import pytest

from heed.demo.toy import TASKS, pairs
from heed.errors import ConfigError


@pytest.mark.parametrize("task", TASKS)
def test_the_target_is_what_the_task_makes_of_the_source(task: str) -> None:
    for pair in pairs(task, 50, seed=1):
        assert pair.tgt.split() == TASKS[task](pair.src.split())


def test_reverse_is_not_copy_and_sort_sorts() -> None:
    pair = next(pairs("reverse", 1, seed=3))
    assert pair.tgt == " ".join(reversed(pair.src.split()))
    assert next(pairs("sort", 1, seed=3)).tgt == " ".join(sorted(pair.src.split()))


def test_a_seed_decides_the_sentences() -> None:
    assert list(pairs("copy", 9, seed=1)) == list(pairs("copy", 9, seed=1))
    assert list(pairs("copy", 9, seed=1)) != list(pairs("copy", 9, seed=2))


def test_lengths_and_words_stay_within_their_bounds() -> None:
    words = [pair.src.split() for pair in pairs("copy", 300, seed=1, n_words=3, max_length=4)]
    assert {len(sentence) for sentence in words} == {1, 2, 3, 4}
    assert {word for sentence in words for word in sentence} == {"w00", "w01", "w02"}


def test_an_unknown_task_lists_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="task must be one of copy, reverse, sort, but is 'add'"):
        next(pairs("add", 1, seed=1))
