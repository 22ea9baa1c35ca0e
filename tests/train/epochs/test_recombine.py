"""Recombined pairs: a phrase moves with its translation, slots stay, an epoch can be made again."""

import random as python_random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.train.epochs.corpus import prepared

from heed.data.prepared import Prepared
from heed.text.piece_words import words_of
from heed.train.epochs import recombine
from heed.train.epochs.phrases import MAX_WORDS, phrases
from heed.train.epochs.recombine import Recombiner
from heed.train.epochs.slots import with_slots
from heed.train.step.trainer import EpochPairs

COLORS = {"pink": "rose", "green": "verte", "white": "blanche", "yellow": "jaune"}
THINGS = {"house": "maison", "table": "table", "car": "voiture", "chair": "chaise", "bag": "valise"}
VERBS = {"sees": "voit", "wants": "veut", "sells": "vend", "buys": "prend", "likes": "aime"}
PEOPLE = {"Anna": "Anna", "Peter": "Pierre", "she": "elle", "nobody": "personne"}


def pair(person: str, verb: str, color: str, thing: str) -> tuple[str, str]:
    """A sentence and its French, whose adjective comes after the noun."""
    return (
        f"{person} {verb} a {color} {thing} .",
        f"{PEOPLE[person]} {VERBS[verb]} une {THINGS[thing]} {COLORS[color]} .",
    )


ALL = {
    pair(person, verb, color, thing)
    for person in PEOPLE
    for verb in VERBS
    for color in COLORS
    for thing in THINGS
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    some = python_random.Random(1).sample(sorted(ALL), 120)
    return prepared(tmp_path_factory.mktemp("corpus"), some, ("en", "fr"))


def recombiner(data: Prepared, *, share: float = 1.0, max_length: int = 100) -> Recombiner:
    pairs = with_slots(data.train, data.src_vocab, data.tgt_vocab)
    return Recombiner(
        pairs, data.src_vocab, data.tgt_vocab, share=share, seed=1, max_length=max_length
    )


def texts(data: Prepared, pairs: EpochPairs) -> list[tuple[str, str]]:
    return [
        (data.src_vocab.decode(pairs.src(n).tolist()), data.tgt_vocab.decode(pairs.tgt(n).tolist()))
        for n in range(len(pairs.src_lengths))
    ]


def test_new_pairs_are_translations_of_one_another(data: Prepared) -> None:
    found = texts(data, recombiner(data)(3))
    before = set(texts(data, data.train))
    assert set(found) <= ALL
    assert len(set(found) - before) > 30


def test_an_epoch_can_be_made_again_and_another_one_is_different(data: Prepared) -> None:
    found = recombiner(data)
    epochs = [texts(data, found(epoch)) for epoch in (1, 2)]
    assert epochs[0] == texts(data, recombiner(data)(1))
    assert epochs[0] != epochs[1]


def test_the_share_is_that_of_the_pairs(data: Prepared) -> None:
    n_changed = len(recombiner(data, share=0.3)(1).numbers)
    assert 0.15 < n_changed / len(data.train) < 0.45
    assert not len(recombiner(data, share=0.0)(1).numbers)


def test_a_pair_that_would_be_too_long_is_not_changed(data: Prepared) -> None:
    longest = int(data.train.src_lengths.min())
    found = recombiner(data, max_length=longest)(1)
    assert all(found.src_lengths[found.numbers] <= longest)


def test_slots_stay_where_they_are(tmp_path: Path) -> None:
    some = python_random.Random(2).sample(sorted(ALL), 120)
    marked = [
        (f"{src[:-2]} : %s {number} .", f"{tgt[:-2]} : %s {number} .")
        for number, (src, tgt) in enumerate(some)
    ]
    data = prepared(tmp_path, marked, ("en", "fr"))
    slotted = with_slots(data.train, data.src_vocab, data.tgt_vocab)
    found = recombiner(data)(1)
    assert data.src_vocab.slots is not None
    slots = set(data.src_vocab.slots.ids)
    assert len(found.numbers) > 60
    for number in found.numbers.tolist():
        for before, now in (
            (slotted.src(number), found.src(number)),
            (slotted.tgt(number), found.tgt(number)),
        ):
            kept = [id for id in now.tolist() if id in slots]
            assert kept == [id for id in before.tolist() if id in slots]
            assert len(kept) == 2


def test_words_of_solid_scripts_are_pieces(tmp_path: Path) -> None:
    chinese = dict(zip([*COLORS, *THINGS], "红绿白黄房桌车椅包", strict=True))
    pairs = [
        (f"a {color} {thing} !", f"一{chinese[color]}{chinese[thing]}！")
        for color in COLORS
        for thing in THINGS
    ]
    data = prepared(tmp_path, [pair for n, pair in enumerate(pairs * 4) if n % 7], ("en", "fr"))
    found = texts(data, recombiner(data)(1))
    assert set(found) <= set(pairs)


@given(
    st.permutations(range(7)),
    st.sets(st.integers(0, 6)),
)
def test_phrases_are_all_ranges_whose_words_are_linked_with_one_another(
    order: list[int], unlinked: set[int]
) -> None:
    links = {src: tgt for src, tgt in enumerate(order) if src not in unlinked}
    expected = {
        ((start, end), (low, low + end - start))
        for start in range(7)
        for end in range(start + 1, min(7, start + MAX_WORDS) + 1)
        for low in range(7)
        if {links.get(src) for src in range(start, end)} == set(range(low, low + end - start))
        and end - start < 7
    }
    assert {*phrases(links, 7)} == expected


def test_of_a_large_corpus_the_shortest_pairs_are_aligned(
    data: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    n_cells = 120 * 36 // 2
    monkeypatch.setattr(recombine, "MAX_CELLS", n_cells)
    assert 0 < len(recombiner(data)(1).numbers) < 70
    monkeypatch.setattr(recombine, "MAX_CELLS", 0)
    assert not len(recombiner(data)(1).numbers)


def test_the_words_of_pairs_that_are_not_aligned_are_not_collected(
    data: Prepared, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They take a kilobyte or more a pair."""
    split: list[list[str]] = []
    monkeypatch.setattr(recombine, "MAX_CELLS", 10 * 36)
    monkeypatch.setattr(
        recombine, "words_of", lambda pieces: split.append(pieces) or words_of(pieces)
    )
    recombiner(data)
    assert 2 < len(split) < 2 * 20
