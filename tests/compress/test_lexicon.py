"""Translations of pieces from pairs of ids: found by how they meet, kept in lists."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from heed.compress import lexicon
from heed.compress.lexicon import Lexicon
from heed.data.store import Store
from heed.text.vocab import Vocab, train_vocab

GERMAN = {
    "dog": "Hund",
    "cat": "Katze",
    "red": "rot",
    "big": "gross",
    "house": "Haus",
    "Ada": "Ada",
}


def sentences() -> list[tuple[str, str]]:
    """Words beside one another; the German in the opposite order, with an article for nothing."""
    random = np.random.default_rng(1)
    drawn = [random.choice([*GERMAN], 3, replace=False) for _ in range(60)]
    return [
        (" ".join(words), " ".join(["der", *(GERMAN[w] for w in words[::-1])])) for words in drawn
    ]


@pytest.fixture(scope="module")
def vocab() -> Vocab:
    return train_vocab([text for pair in sentences() for text in pair], size=400, kind="word")


@pytest.fixture(scope="module")
def store(vocab: Vocab, tmp_path_factory: pytest.TempPathFactory) -> Store:
    path = tmp_path_factory.mktemp("store") / "train.bin"
    with Store.create(path, vocab.hash, vocab.hash) as writer:
        for src, tgt in sentences():
            writer.add(vocab.encode(src), vocab.encode(tgt))
        writer.add(vocab.encode("Ω"), vocab.encode("Ω"))
    return Store.open(path, vocab.hash, vocab.hash)


@pytest.fixture
def piece(vocab: Vocab) -> Callable[[str], int]:
    def find(word: str) -> int:
        (found,) = vocab.encode(word)
        return found

    return find


def test_a_word_is_most_probably_translated_by_what_meets_it_always(
    store: Store, vocab: Vocab, piece: Callable[[str], int]
) -> None:
    learned = Lexicon.learn(store, vocab, vocab)
    for word, german in GERMAN.items():
        translations = learned.tgt[learned.src == piece(word)].tolist()
        # First the piece itself, as of a name; then its translation.
        wanted = [piece(word), *([piece(german)] if german != word else [])]
        assert translations[: len(wanted)] == wanted


def test_what_is_frequent_and_what_ends_a_sentence_may_always_follow(
    store: Store, vocab: Vocab, piece: Callable[[str], int]
) -> None:
    learned = Lexicon.learn(store, vocab, vocab)
    assert learned.frequent[0] == piece("der")
    short = learned.shortlist(1, 2)
    spelled = [id for id in vocab.encode("Ω") if vocab.pieces([id])[0].startswith("<0x")]
    assert short.common_ids.tolist() == sorted([piece("der"), vocab.eos_id, *spelled])
    own, _ = short.ids_of(np.array([[piece("dog")]]), np.array([[True]]))
    assert own.tolist() == sorted([piece("dog"), piece("Hund")])


def test_shortlists_grow_to_all_that_occurs(
    store: Store, vocab: Vocab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lexicon, "FIRST_ALWAYS", 2)
    learned = Lexicon.learn(store, vocab, vocab)
    sizes = [len(short.common_ids) for short in learned.shortlists()]
    assert sizes == sorted(sizes)
    assert len(sizes) == 4
    (*_, largest) = learned.shortlists()
    assert {*learned.frequent} <= {*largest.common_ids}


def test_reading_stops_at_so_many_links(
    store: Store, vocab: Vocab, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = Lexicon.learn(store, vocab, vocab)
    monkeypatch.setattr(lexicon, "MAX_LINKS", 50)
    few = Lexicon.learn(store, vocab, vocab)
    assert len(few.src) < len(every.src)
    # What is frequent is counted over all pairs.
    assert few.frequent.tolist() == every.frequent.tolist()


def test_the_two_sides_may_have_pieces_of_their_own(tmp_path: Path) -> None:
    src_vocab, tgt_vocab = (
        train_vocab([pair[side] for pair in sentences()], size=400, kind="word") for side in (0, 1)
    )
    with Store.create(tmp_path / "train.bin", src_vocab.hash, tgt_vocab.hash) as writer:
        for src, tgt in sentences():
            writer.add(src_vocab.encode(src), tgt_vocab.encode(tgt))
    store = Store.open(tmp_path / "train.bin", src_vocab.hash, tgt_vocab.hash)
    learned = Lexicon.learn(store, src_vocab, tgt_vocab)
    for word, german in GERMAN.items():
        best = learned.tgt[learned.src == src_vocab.encode(word)[0]][0]
        assert [best] == tgt_vocab.encode(german)
    assert len(learned.shortlist(1).offsets) == src_vocab.size + 1
