"""Which pieces a model of several target languages has seen in other ones only."""

from pathlib import Path

import pytest

from heed.data import foreign
from heed.data.foreign import foreign_pieces
from heed.data.store import Store
from heed.text.vocab import Vocab, train_vocab

TARGETS = [("de", "der Hund"), ("fr", "le chien"), ("de", "der Hut a"), ("fr", "le chat")]


@pytest.fixture(scope="module")
def vocab() -> Vocab:
    texts = [text for _, text in TARGETS]
    return train_vocab([*texts, "the dog"] * 9, size=330, kind="word", languages=("de", "fr"))


@pytest.fixture
def pairs(vocab: Vocab, tmp_path: Path) -> Store:
    given = [
        ([vocab.language_id(language), *vocab.encode("the dog")], vocab.encode(text))
        for language, text in TARGETS
    ]
    path = tmp_path / "train.bin"
    with Store.create(path, vocab.hash, vocab.hash) as writer:
        for src, tgt in given:
            writer.add(src, tgt)
    return Store.open(path, vocab.hash, vocab.hash)


@pytest.mark.parametrize("at_once", [1, 3, 4096])
def test_the_pieces_of_other_languages_are_foreign(
    vocab: Vocab, pairs: Store, monkeypatch: pytest.MonkeyPatch, at_once: int
) -> None:
    monkeypatch.setattr(foreign, "PAIRS_AT_ONCE", at_once)
    found = foreign_pieces(pairs, len(pairs), vocab, vocab)
    spelled = {tag: vocab.pieces(ids) for tag, ids in found.items()}
    # `the` and `dog` are of no target, and `a` is one character.
    assert {tag: {piece.strip("▁") for piece in pieces} for tag, pieces in spelled.items()} == {
        vocab.language_id("de"): {"le", "chien", "chat"},
        vocab.language_id("fr"): {"der", "Hund", "Hut"},
    }


def test_only_the_first_pairs_count(vocab: Vocab, pairs: Store) -> None:
    found = foreign_pieces(pairs, 2, vocab, vocab)
    (hut,) = vocab.encode("Hut")
    assert all(hut not in ids for ids in found.values())
