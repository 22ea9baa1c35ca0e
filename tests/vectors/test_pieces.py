"""The embeddings of a model as word vectors."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.random_bundle import bundle

from heed.bundle.bundle import load_bundle, save_bundle
from heed.engine.packed import save_rounded
from heed.errors import ConfigError, FormatError
from heed.text.vocab import N_SPECIAL, Vocab, train_vocab
from heed.vectors.pieces import as_piece, model_vectors, piece_tables, words_of
from heed.vectors.table import nearest

TEXT = ["the king saw the queen", "the queen saw the king", "纽约是一座城市"] * 9


@pytest.fixture(scope="module")
def vocab() -> Vocab:
    return train_vocab(TEXT, size=400, kind="bpe")


def test_a_word_is_a_piece_an_id_and_a_vector(vocab: Vocab) -> None:
    """Claim 14."""
    ids = words_of(vocab)
    assert ids["king"] == vocab.encode("king")[0]
    assert vocab.pieces([ids["king"]]) == ["▁king"]
    assert list(ids.values()) == sorted(ids.values())
    assert not {"<mask>", "<s>", "<0x41>", "▁", ""} & ids.keys()
    assert vocab.pieces([ids["城"]]) == ["城"]  # inside a word: Chinese has no blanks


@pytest.mark.parametrize("family", ["transformer", "rnn", "conv", "decoder", "encoder"])
def test_any_model_has_neighbors(
    family: str, vocab: Vocab, config_of: Callable[..., Any], tmp_path: Path
) -> None:
    """Claims 14 and 27."""
    saved = bundle(vocab, config_of, family=family)
    save_bundle(tmp_path / "model", saved)
    for side in ("source", "target"):
        found = model_vectors(tmp_path / "model", side)
        table = next(name for name in saved.weights if name.startswith("embed"))
        row = saved.weights[table][words_of(vocab)["king"]]
        assert np.array_equal(found.matrix[found.rows["king"]], row)
        assert len(nearest(found, "king", 3)) == 3


def test_each_side_has_its_own(vocab: Vocab, config_of: Callable[..., Any], tmp_path: Path) -> None:
    saved = bundle(vocab, config_of, tied="none")
    save_bundle(tmp_path / "model", saved)
    for side, name in (("source", "embed_src"), ("target", "embed_tgt")):
        found = model_vectors(tmp_path / "model", side)
        row = load_bundle(tmp_path / "model").weights[f"{name}.tokens.weight"]
        assert np.array_equal(found.matrix, row[list(words_of(vocab).values())])


def test_a_bag_of_n_grams_has_none(
    vocab: Vocab, config_of: Callable[..., Any], tmp_path: Path
) -> None:
    changes = {"family": "bag", "tgt_vocab_size": N_SPECIAL + 2}
    made = bundle(vocab, config_of, **changes)
    with pytest.raises(ConfigError, match="has no table of embeddings, because it is a bag"):
        piece_tables(replace(made, task="classify", labels=["good", "bad"]))


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FormatError, match=r"has no config\.json"):
        model_vectors(tmp_path)


@pytest.mark.parametrize(
    ("changes", "sides"),
    [
        ({"tied": "three-way"}, ["shared"]),
        ({"tied": "none"}, ["source", "target"]),
        ({"family": "decoder"}, ["shared"]),
    ],
)
def test_a_model_has_one_table_of_pieces_or_two(
    changes: dict[str, Any], sides: list[str], vocab: Vocab, config_of: Callable[..., Any]
) -> None:
    saved = bundle(vocab, config_of, **changes)
    tables = piece_tables(saved)
    assert [table.side for table in tables] == sides
    names = [name for name in saved.weights if name.endswith("tokens.weight")]
    for table, name in zip(tables, names, strict=False):
        assert np.array_equal(table.matrix, saved.weights[name])
        row = table.vectors.matrix[table.vectors.rows["▁king"]]
        assert np.array_equal(row, saved.weights[name][vocab.encode("king")[0]])
    vectors = tables[0].vectors
    assert as_piece(vectors, "king") == "▁king"
    assert as_piece(vectors, "城") == "城"


def test_a_folder_with_rounded_weights_only_has_their_vectors(
    vocab: Vocab, config_of: Callable[..., Any], tmp_path: Path
) -> None:
    save_bundle(tmp_path / "model", bundle(vocab, config_of, d_model=16, n_heads=2))
    exact = model_vectors(tmp_path / "model")
    save_rounded(load_bundle(tmp_path / "model"), tmp_path / "int8")
    found = model_vectors(tmp_path / "int8")
    assert found.words == exact.words
    # int8 keeps directions: 64 steps or more to each side of 0.
    assert ((found.directions * exact.directions).sum(axis=1) > 0.999).all()
    assert not np.array_equal(found.matrix, exact.matrix)
