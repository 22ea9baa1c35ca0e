"""Disturbed pairs: both sides stay a pair, slots stand once on each, an epoch can be made again."""

import itertools
import random as python_random
from collections import Counter
from copy import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.train.epochs.corpus import prepared

from heed.data.prepared import Prepared
from heed.text.protected import Rules
from heed.text.shared import shared_spans
from heed.text.slots import decode_with
from heed.text.vocab import Vocab
from heed.train.epochs import disturb, slots
from heed.train.epochs.anchors import Anchors
from heed.train.epochs.disturb import SHARES, Disturber
from heed.train.epochs.marked import SlotText, character, find_characters, in_order
from heed.train.epochs.replaced import ReplacedPairs, Replacement
from heed.train.epochs.resample import ResampledPairs
from heed.train.epochs.slots import Renumbered, with_slots
from heed.train.step.trainer import EpochPairs

GERMAN = {
    "house": "Haus",
    "mountain": "Berg",
    "bridge": "Brücke",
    "garden": "Garten",
    "window": "Fenster",
    "street": "Straße",
    "summer": "Sommer",
    "teacher": "Lehrer",
}


def sentences(n_pairs: int = 300) -> list[tuple[str, str]]:
    random, found = python_random.Random(3), []
    for number in range(n_pairs):
        one, other = random.sample(sorted(GERMAN), 2)
        src, tgt = f"The {one} and the {other}", f"{GERMAN[other]} und {GERMAN[one]}"
        if number % 5 == 0:
            src, tgt = f"{src}: {number} of %s", f"%s von {number}: {tgt}"
        if number % 7 == 0:
            src, tgt = f"<b>{src}</b>", f"<b>{tgt}</b>"
        found.append((f"{src}.", f"{tgt}."))
    return found


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Prepared:
    return prepared(tmp_path_factory.mktemp("corpus"), sentences(), ("en", "de"))


@pytest.fixture(scope="module")
def slotted(data: Prepared) -> ReplacedPairs:
    return with_slots(data.train, data.src_vocab, data.tgt_vocab)


def disturber(data: Prepared, **wishes: Any) -> Disturber:
    vocabs = data.src_vocab, data.tgt_vocab
    settings = {"share": 1.0, "seed": 1, "max_length": 256, **wishes}
    return Disturber(Anchors(data.train, *vocabs), *vocabs, **settings)


def rows(pairs: EpochPairs) -> list[tuple[list[int], list[int]]]:
    return [(pairs.src(i).tolist(), pairs.tgt(i).tolist()) for i in range(len(pairs.src_lengths))]


def slots_of(ids: list[int], vocab: Vocab) -> list[int]:
    assert vocab.slots is not None
    return [id for id in ids if id in vocab.slots.ids]


def require_a_pair(src: list[int], tgt: list[int], vocab: Vocab) -> None:
    """Each slot stands once in the source and once in the target; pairs of tags are nested."""
    assert vocab.slots is not None
    counts = Counter(slots_of(src, vocab))
    assert counts == Counter(slots_of(tgt, vocab))
    assert set(counts.values()) <= {1}
    for ids in (src, tgt):
        stack: list[int] = []
        for id in slots_of(ids, vocab):
            if id in vocab.slots.opens:
                stack.append(id)
            elif id in vocab.slots.closes:
                assert vocab.slots.partner(id) == stack.pop()
        assert not stack


def test_no_piece_is_learned_from_what_becomes_a_slot(data: Prepared) -> None:
    assert data.src_vocab.slots is not None
    pieces = data.src_vocab.pieces(range(data.src_vocab.size))
    assert not [piece for piece in pieces if "%" in piece]
    assert data.src_vocab.size <= 420


def test_words_of_the_sources_are_remembered_where_there_are_slots(data: Prepared) -> None:
    assert data.src_vocab.known_words is not None
    assert "garden" in data.src_vocab.known_words
    assert "Garten" not in data.src_vocab.known_words


def test_slots_are_found_once_for_all_who_read_the_pairs(
    data: Prepared, slotted: ReplacedPairs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slots, "_slotted", lambda *given: pytest.fail("searched again"))
    assert with_slots(data.train, data.src_vocab, data.tgt_vocab) is slotted
    other = copy(data.train)
    monkeypatch.setattr(slots, "_slotted", lambda *given: iter(()))
    found = with_slots(other, data.src_vocab, data.tgt_vocab)
    assert isinstance(found, ReplacedPairs)
    assert not len(found.numbers)


def test_spans_of_both_sides_are_slots_and_the_rest_is_as_it_was(
    data: Prepared, slotted: ReplacedPairs
) -> None:
    vocab = data.src_vocab
    numbers = set(slotted.numbers.tolist())
    assert len(numbers) > 80
    for number, (src, tgt) in enumerate(rows(slotted)):
        text = vocab.decode(data.train.src(number).tolist())
        if number in numbers:
            require_a_pair(src, tgt, vocab)
            assert slots_of(src, vocab)
            words = decode_with(vocab, src, dict.fromkeys(slots_of(src, vocab), "¶"))[0]
            other = vocab.decode(data.train.tgt(number).tolist())
            for span in reversed(shared_spans(text, other, Rules.default())):
                text = f"{text[: span.src[0]]}¶{text[span.src[1] :]}"
            assert words == text
        else:
            assert src == data.train.src(number).tolist()
            assert "%s" not in text


def test_numbers_of_slots_are_drawn_anew_each_epoch_for_both_sides(
    data: Prepared, slotted: ReplacedPairs
) -> None:
    vocab = data.src_vocab
    assert vocab.slots is not None
    seen: set[int] = set()
    for epoch in range(6):
        pairs = Renumbered(slotted, vocab, vocab, seed=1, epoch=epoch)
        again = Renumbered(slotted, vocab, vocab, seed=1, epoch=epoch)
        assert rows(pairs) == rows(again)
        for (src, tgt), (plain, _) in zip(rows(pairs), rows(slotted), strict=True):
            require_a_pair(src, tgt, vocab)
            assert [id for id in src if not vocab.is_control(id)] == [
                id for id in plain if not vocab.is_control(id)
            ]
            seen.update(slots_of(src, vocab))
        n_same = sum(a == b for a, b in zip(rows(pairs), rows(slotted), strict=True))
        assert n_same < len(pairs.src_lengths)
    assert seen >= {*vocab.slots.numbers, *vocab.slots.things}


@pytest.mark.parametrize("kind", SHARES)
def test_each_disturbance_leaves_a_pair(
    data: Prepared, slotted: ReplacedPairs, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disturb, "SHARES", {kind: SHARES[kind]})
    pairs = disturber(data)(0, slotted)
    n_changed = 0
    for number, (src, tgt) in enumerate(rows(pairs)):
        require_a_pair(src, tgt, data.src_vocab)
        assert pairs.src_lengths[number] == len(src) + 1
        assert pairs.tgt_lengths[number] == len(tgt) + 1
        n_changed += src != slotted.src(number).tolist()
    # These sentences have no quotes to be replaced.
    assert n_changed > len(data.train) // 3 or kind == "quotes"


def test_a_source_is_spoiled_and_its_translation_is_not(
    data: Prepared, slotted: ReplacedPairs, monkeypatch: pytest.MonkeyPatch
) -> None:
    for kind in ("typo", "lower", "title", "capitals"):
        monkeypatch.setattr(disturb, "SHARES", {kind: SHARES[kind]})
        pairs = disturber(data)(0, slotted)
        assert [tgt for _, tgt in rows(pairs)] == [tgt for _, tgt in rows(slotted)]


def test_a_name_stands_on_both_sides_letter_by_letter(
    data: Prepared, slotted: ReplacedPairs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(disturb, "SHARES", {"name": SHARES["name"]})
    pairs, vocab = disturber(data)(0, slotted), data.src_vocab
    known = {*GERMAN, *GERMAN.values(), "and", "und", "the", "The", "of", "von"}
    n_names = 0
    for number in pairs.numbers:
        src, tgt = (
            {word.strip(".,:()[]\"'“”„«»") for word in vocab.decode(ids).split()} - known
            for ids in (pairs.src(number).tolist(), pairs.tgt(number).tolist())
        )
        n_names += bool(src & tgt)
    assert n_names > 0.8 * len(pairs.numbers)


def test_an_epoch_can_be_made_again_and_another_is_other(
    data: Prepared, slotted: ReplacedPairs
) -> None:
    make = disturber(data)
    assert rows(make(0, slotted)) == rows(disturber(data)(0, slotted))
    assert rows(make(0, slotted)) != rows(make(1, slotted))
    assert rows(make(0, slotted)) != rows(disturber(data, seed=2)(0, slotted))


def test_a_share_of_the_pairs_is_disturbed_and_none_gets_too_long(
    data: Prepared, slotted: ReplacedPairs
) -> None:
    some = disturber(data, share=0.3)
    counts = [len(some(epoch, slotted).numbers) for epoch in range(5)]
    assert 0.2 * len(data.train) < np.mean(counts) < 0.31 * len(data.train)
    longest = int(max(slotted.src_lengths.max(), slotted.tgt_lengths.max()))
    short = disturber(data, max_length=longest)(0, slotted)
    assert max(short.src_lengths.max(), short.tgt_lengths.max()) <= longest


def test_sure_words_translate_one_another(data: Prepared) -> None:
    vocab = data.src_vocab
    anchors = Anchors(data.train, vocab, vocab)
    src, tgt = "The garden and the bridge", "Brücke und Garten"
    found = anchors.find(vocab.encode(src), vocab.encode(tgt), src, tgt)
    words = {src[slice(*one)]: tgt[slice(*other)] for one, other in found}
    assert {"garden": "Garten", "bridge": "Brücke"}.items() <= words.items()


def test_slots_stay_where_they_are_when_texts_are_cut_otherwise(
    data: Prepared, slotted: ReplacedPairs
) -> None:
    vocab = data.src_vocab
    settings = {"alpha": 0.1, "seed": 1, "epoch": 0, "max_length": 256}
    sampled = ResampledPairs(slotted, vocab, vocab, **settings)
    text = SlotText(vocab)
    assert rows(sampled) != rows(slotted)
    for some, plain in zip(rows(sampled), rows(slotted), strict=True):
        assert [text.decode(ids) for ids in some] == [text.decode(ids) for ids in plain]


def test_no_side_gets_too_long_when_texts_are_cut_otherwise(
    data: Prepared, slotted: ReplacedPairs
) -> None:
    vocab = data.src_vocab
    longest = int(max(slotted.src_lengths.max(), slotted.tgt_lengths.max()))
    sampled = ResampledPairs(slotted, vocab, vocab, alpha=0.01, seed=1, epoch=0, max_length=longest)
    assert rows(sampled) != rows(slotted)
    assert max(sampled.src_lengths.max(), sampled.tgt_lengths.max()) == longest


def test_the_language_tag_of_a_source_stays_in_front(tmp_path: Path) -> None:
    data = prepared(tmp_path / "both", sentences(), ("en", "de"), both_directions=True)
    vocabs = data.src_vocab, data.tgt_vocab
    pairs = disturber(data)(0, with_slots(data.train, *vocabs))
    tags = [data.src_vocab.language_id(language) for language in ("de", "en")]
    for number in range(len(data.train)):
        ids = pairs.src(number).tolist()
        assert ids[0] == data.train.src(number)[0]
        assert not {*tags} & {*ids[1:]}


def test_a_later_replacement_counts(data: Prepared) -> None:
    pairs = ReplacedPairs(data.train, [Replacement(2, [7, 8], [9]), Replacement(2, [8], [9, 9])])
    assert (pairs.src(2).tolist(), pairs.tgt(2).tolist()) == ([8], [9, 9])
    assert (pairs.src_lengths[2], pairs.tgt_lengths[2]) == (2, 3)
    assert pairs.src(1) is not None
    assert pairs.src(1).tolist() == data.train.src(1).tolist()


SIGNS = [character(kind, number) for kind in ("number", "thing") for number in range(8)]
PAIRS = [(character("open", number), character("close", number)) for number in range(6)]


@given(
    singles=st.lists(st.sampled_from(SIGNS), unique=True),
    pairs=st.lists(st.sampled_from(PAIRS), unique=True),
    seed=st.integers(0, 99),
)
def test_numbering_in_order_keeps_what_belongs_together(
    singles: list[str], pairs: list[tuple[str, str]], seed: int
) -> None:
    signs = [*singles, *itertools.chain.from_iterable(pairs)]
    src = "a ".join(signs)
    tgt = "b ".join(python_random.Random(seed).sample(signs, len(signs)))
    new_src, new_tgt = in_order(src, tgt)
    table = dict(zip(find_characters(src), find_characters(new_src), strict=True))
    assert len({*table.values()}) == len(table)
    assert new_tgt == "".join(table.get(c, c) for c in tgt)
    for kind in ("number", "thing", "open"):
        block = [
            c for c in find_characters(new_src) if ord(c) // 16 == ord(character(kind, 0)) // 16
        ]
        assert block == [character(kind, number) for number in range(len(block))]


def test_private_characters_of_a_text_are_left_alone(data: Prepared) -> None:
    text = SlotText(data.src_vocab)
    sign = character("thing", 0)
    assert text.decode(data.src_vocab.encode(f"a {sign}")) is None
    ids = text.encode(f"the {sign} house")
    assert text.decode(ids) == f"the {sign} house"
    assert slots_of(ids, data.src_vocab) == [data.src_vocab.slots.things[0]]
