"""Maps of embeddings against NumPy's singular value decomposition, and of real states."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from heed.errors import DataError
from heed.explain.embeddings import (
    map_of_pieces,
    map_of_words,
    principal_components,
    ranked_analogy,
    trajectories,
)
from heed.model.build import build_model
from heed.model.trace import recording
from heed.text.vocab import Vocab, train_vocab
from heed.vectors.pieces import PieceTable
from heed.vectors.table import WordVectors


@pytest.fixture(scope="module")
def vocab() -> Vocab:
    return train_vocab(["the king saw the queen", "纽约是一座城市"] * 9, size=330, kind="bpe")


@pytest.mark.parametrize("shape", [(300, 12), (8, 40), (12, 12), (2, 5)])
def test_components_are_those_of_the_singular_value_decomposition(shape: tuple[int, int]) -> None:
    """Up to the sign, of which the largest entry is positive here."""
    random = np.random.default_rng(1)
    vectors = (random.normal(size=shape) * np.linspace(1, 4, shape[1]) + 3).astype(np.float32)
    found = principal_components(vectors)
    centered = vectors.astype(np.float64) - vectors.astype(np.float64).mean(axis=0)
    _, strengths, directions = np.linalg.svd(centered, full_matrices=False)
    shares = strengths**2 / (strengths**2).sum()
    for i in range(2 if shape[0] > 2 else 1):  # two points have one direction
        sign = np.sign(found.components[i] @ directions[i])
        np.testing.assert_allclose(found.components[i] * sign, directions[i], atol=2e-5)
        assert found.components[i][np.abs(found.components[i]).argmax()] > 0
        assert found.shares[i] == pytest.approx(shares[i], rel=1e-5)
    points = found(vectors)
    np.testing.assert_allclose(points.mean(axis=0), 0, atol=1e-4)
    np.testing.assert_allclose(np.abs(points), np.abs(centered @ directions[:2].T), atol=1e-3)


def test_a_map_shows_both_tables_in_one_plane(vocab: Vocab) -> None:
    random = np.random.default_rng(1)
    tables = [
        PieceTable(
            side=side,
            vocab=vocab,
            matrix=random.normal(size=(vocab.size, 8)).astype(np.float32),
            name="test",
        )
        for side in ("source", "target")
    ]
    found = map_of_pieces(tables)
    n = len(tables[0].vectors.words)
    assert found.groups == ["source"] * n + ["target"] * n
    assert found.labels == [*tables[0].vectors.words] * 2
    assert not {"<pad>", "<s>", "<0x41>"} & set(found.labels)
    both = np.concatenate([table.vectors.matrix for table in tables])
    np.testing.assert_allclose(found.points, found.projection(both), atol=1e-5)


def test_a_map_of_words_has_the_first_ones() -> None:
    matrix = np.random.default_rng(1).normal(size=(9, 4)).astype(np.float32)
    found = map_of_words(WordVectors(tuple("abcdefghi"), matrix), most=5)
    assert found.labels == list("abcde")
    np.testing.assert_allclose(found.points, principal_components(matrix[:5])(matrix[:5]))


@pytest.mark.parametrize("family", ["transformer", "conv", "rnn", "decoder"])
@pytest.mark.parametrize("side", ["src", "tgt"])
def test_states_of_each_layer_are_in_one_plane(
    side: str, family: str, config_of: Callable[..., Any]
) -> None:
    torch.manual_seed(1)
    model = build_model(config_of(family=family)).eval()
    src, tgt = torch.tensor([[4, 5, 6, 3]]), torch.tensor([[2, 7, 8]])
    with recording(model) as caught:
        model.teacher_forced(src, tgt)
    tensors = {name: tensor[0].numpy() for name, tensor in caught.items()}
    tokens = list("abcd") if side == "src" else list("xyz")
    found = trajectories(tensors, tokens, side=side)
    n_layers = len(found.names) - 1
    assert found.points.shape == (n_layers + 1, len(tokens), 2)
    for i, name in enumerate(found.names):
        rows = tensors[name]
        if family == "decoder":  # one stack: the source in front of the target
            assert len(rows) == 7
            rows = rows[:4] if side == "src" else rows[4:]
        np.testing.assert_allclose(found.points[i], found.projection(rows), atol=1e-5)
    with pytest.raises(DataError, match="for 9 tokens, but has embed|for 9 tokens, but has dec"):
        trajectories(tensors, ["a"] * 9, side=side)
    with pytest.raises(DataError, match="but has none."):
        trajectories({}, ["a", "b"], side=side)


def test_a_model_without_encoder_layers_has_no_states_of_its_source(
    config_of: Callable[..., Any],
) -> None:
    torch.manual_seed(1)
    model = build_model(config_of(n_encoder_layers=0)).eval()
    with recording(model) as caught:
        model.teacher_forced(torch.tensor([[4, 5, 3]]), torch.tensor([[2, 7, 8]]))
    tensors = {name: tensor[0].numpy() for name, tensor in caught.items()}
    assert trajectories(tensors, list("xyz"), side="tgt").names[-1].startswith("decoder.1")
    with pytest.raises(DataError, match="states of each layer of the encoder"):
        trajectories(tensors, list("abc"), side="src")


def test_vectors_of_one_number_lie_on_the_first_axis() -> None:
    """`heed vectors train --size 1` writes such vectors."""
    words = WordVectors(("a", "b", "c"), np.array([[1], [2], [6]], np.float32))
    np.testing.assert_allclose(map_of_words(words).points, [[-2, 0], [-1, 0], [3, 0]])
    states = {name: np.array([[1], [3]], np.float32) for name in ("embed_src.sum", "encoder.0.out")}
    assert trajectories(states, ["a", "b"]).points.shape == (2, 2, 2)


def test_one_vector_has_no_map() -> None:
    with pytest.raises(DataError, match=r"must have two vectors or more, but the array is \(1, 4"):
        principal_components(np.ones((1, 4), np.float32))


def test_an_analogy_with_its_query_words_tells_where_they_would_stand() -> None:
    """Claim 27: king − man + woman; the nearest vector is often that of king itself."""
    words = ("king", "man", "woman", "queen", "apple")
    matrix = np.array([[3, 1, 0], [0, 1, 0], [0, 0, 1], [3, 0, 1.5], [-1, 0, 0]], np.float32)
    found = ranked_analogy(WordVectors(words, matrix), "king", "man", "woman", 2)
    assert [one.word for one in found if not one.is_query] == ["queen", "apple"]
    assert {one.word for one in found if one.is_query} == {"king", "man", "woman"}
    directions = matrix / np.linalg.norm(matrix, axis=1, keepdims=True)
    target = directions[0] - directions[1] + directions[2]
    for word, cosine, _ in found:
        expected = directions[words.index(word)] @ target / np.linalg.norm(target)
        assert cosine == pytest.approx(float(expected), abs=1e-6)
    assert [one.cosine for one in found] == sorted((one.cosine for one in found), reverse=True)
