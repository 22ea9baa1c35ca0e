"""Translations are kept by what decides them, within a number of bytes."""

from dataclasses import replace
from typing import Any, cast

import pytest

from heed.decode.options import DecodeOptions
from heed.serve.work.cache import Cache, Keys, size_of
from heed.serve.work.job import Call
from heed.translate.glossary.glossary import Glossary
from heed.translate.lines import Line
from heed.translate.result import Translation

CALL = Call(translator=cast("Any", None), model="", options=DecodeOptions())


def test_the_translation_used_last_stays() -> None:
    one = Translation(text="one", tokens=["▁one"])
    cache = Cache(3 * size_of(one))
    for key in (b"a", b"b", b"c"):
        cache.put(key, one)
    assert cache.get(b"a") == one
    cache.put(b"d", one)
    assert [cache.get(key) is None for key in (b"a", b"b", b"c", b"d")] == [
        False,
        True,
        False,
        False,
    ]
    assert (cache.n_hits, cache.n_misses) == (4, 1)
    assert cache.n_bytes == 3 * size_of(one)


def test_what_is_larger_than_the_cache_is_not_kept() -> None:
    cache = Cache(1000)
    cache.put(b"a", Translation(text="short"))
    cache.put(b"b", Translation(text="x" * 1000))
    assert cache.get(b"a") is not None
    assert cache.get(b"b") is None


def test_a_cache_of_no_bytes_keeps_nothing() -> None:
    cache = Cache(0)
    cache.put(b"a", Translation(text=""))
    assert (cache.get(b"a"), cache.n_bytes) == (None, 0)


def test_a_translation_put_again_takes_its_memory_once() -> None:
    one = Translation(text="one")
    cache = Cache(10_000)
    cache.put(b"a", one)
    cache.put(b"a", one)
    assert cache.n_bytes == size_of(one)


def test_everything_that_decides_a_translation_is_in_its_key() -> None:
    keys = [
        Keys(version, call).of(line)
        for version in ("1", "12")
        for call in (
            CALL,
            replace(CALL, alignment=True),
            replace(CALL, alternatives=1),
            replace(CALL, options=DecodeOptions(beam_size=2)),
        )
        for line in (
            Line("a b"),
            Line("a", prefix="b"),
            Line("a", prefix=" b"),
            Line('a","b'),
            Line("a", target_lang="b"),
            Line("ab"),
            Line("a\ud800"),
        )
    ]
    assert len(set(keys)) == len(keys)
    assert Keys("1", CALL).of(Line("a b")) == keys[0]


def test_pairs_of_a_request_are_in_its_keys() -> None:
    """In their order: of pairs with the same source the last counts."""
    given = [
        [],
        [("a", "b")],
        [("b", "a")],
        [("a", "b"), ("a", "c")],
        [("a", "c"), ("a", "b")],
        [("a", 'b"], ["a", "c')],
    ]
    keys = {
        Keys("1", CALL, pairs).of(line)
        for pairs in given
        for line in (Line("a"), Line("a", target_lang="b"))
    }
    assert len(keys) == 2 * len(given)
    assert Keys("1", CALL).of(Line("a")) == Keys("1", CALL, []).of(Line("a"))


@pytest.mark.parametrize("text", ["A cafe\u0301.", "A cfaé."])
def test_a_glossary_is_in_the_key_whatever_the_spelling_of_its_terms(text: str) -> None:
    """The reader composes letters and corrects typing errors before it looks for terms."""
    glossaries = [None, Glossary.of({"café": "Wirtshaus"}), Glossary.of({"café": "Kaffeehaus"})]
    keys = {Keys("1", CALL).of(Line(text, glossary=each)) for each in glossaries}
    assert len(keys) == len(glossaries)


def test_what_is_drawn_at_random_has_no_key() -> None:
    assert Keys("1", replace(CALL, options=DecodeOptions(sample=True))).of(Line("a")) is None


@pytest.mark.parametrize("alignment", [None, [[0.5] * 10] * 10])
def test_memory_counts_all_parts(alignment: list[list[float]] | None) -> None:
    plain = Translation(text="a", tokens=["a"] * 10, token_scores=[0.0] * 10)
    assert size_of(plain) > 10 * (8 + 50 + 32)
    whole = replace(plain, alignment=alignment, alternatives=(plain, plain))
    rows = 0 if alignment is None else 10 * (56 + 320)
    assert size_of(whole) == 3 * size_of(plain) + rows
