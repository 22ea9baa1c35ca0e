"""`training.first_embeddings` and `training.freeze_embeddings`: where a run begins, what stays."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from heed.bundle.bundle import load_bundle
from heed.data.store import Store
from heed.errors import ConfigError, DataError
from heed.model.build import build_model
from heed.model.config import ModelConfig
from heed.model.families import plan
from heed.text.vocab import Vocab, train_vocab
from heed.train.run import checkpoint
from heed.train.start import word2vec
from heed.train.start.from_file import file_weights
from heed.train.start.word2vec import word2vec_weights
from heed.vectors.formats import write_vectors
from heed.vectors.pieces import words_of
from heed.vectors.table import WordVectors

Pair = tuple[Sequence[int], Sequence[int]]
FIRST, N = 4, 40
START = "checkpoints/step-000000"


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Two topics on each side; ids 4 to 7 and 8 to 11."""
    random = np.random.default_rng(1)
    topics = [np.arange(4) + FIRST, np.arange(4) + FIRST + 4] * 150
    with Store.create(tmp_path / "train.bin", "00" * 32, "00" * 32) as writer:
        for topic in topics:
            writer.add(random.choice(topic, 6).tolist(), (random.choice(topic, 6) + 12).tolist())
    return Store.open(tmp_path / "train.bin", "00" * 32, "00" * 32)


def fresh(**changes: Any) -> tuple[ModelConfig, dict[str, torch.Tensor]]:
    sizes = {"src_vocab_size": N, "tgt_vocab_size": N, "d_model": 16, "n_heads": 2}
    config = ModelConfig(**{**sizes, **changes})
    return config, {name: p.detach() for name, p in build_model(config).named_parameters()}


@pytest.mark.parametrize("tied", ["three-way", "output", "none"])
def test_word2vec_is_learned_from_the_runs_own_pieces(store: Store, tied: Any) -> None:
    """Claim 25."""
    config, weights = fresh(tied=tied)
    events: list[dict[str, Any]] = []
    found = word2vec_weights(weights, config, store, events.append, seed=1)
    assert found.keys() == weights.keys()
    changed = {name for name, weight in found.items() if weight is not weights[name]}
    assert changed == {w.name for w in plan(config) if w.role in ("table", "output")} & set(found)
    src = found["embed_src.tokens.weight"]
    tgt = src if tied == "three-way" else found["embed_tgt.tokens.weight"]
    for table, first in ((src, FIRST), (tgt, FIRST + 12)):
        rows = torch.nn.functional.normalize(table[first : first + 8], dim=1)
        cosines = rows @ rows.T
        assert cosines[:4, :4].min() > cosines[:4, 4:].max() + 0.2
    name = "embed_src.tokens.weight"
    assert torch.equal(src[-1], weights[name][-1])  # never occurs
    lengths = src[FIRST : FIRST + 8].norm(dim=1)
    torch.testing.assert_close(lengths, weights[name].norm(dim=1).mean().expand(8))
    again = word2vec_weights(weights, config, store, events.append, seed=1)
    assert torch.equal(again[name], src)


def test_of_a_large_corpus_some_pairs_are_read(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(word2vec, "MAX_PIECES", 140)  # 14 a pair
    _, corpus = word2vec._corpus(store, 0, 1)
    assert corpus.n_read == 10 * 12
    assert len(corpus.ends) == 21


def test_a_corpus_of_one_piece_leaves_the_random_ones(tmp_path: Path) -> None:
    with Store.create(tmp_path / "one.bin", "00" * 32, "00" * 32) as writer:
        writer.add([], [5, 5, 5])
    store = Store.open(tmp_path / "one.bin", "00" * 32, "00" * 32)
    config, weights = fresh()
    found = word2vec_weights(weights, config, store, lambda event: None, seed=1)
    assert all(torch.equal(found[name], weights[name]) for name in weights)


@pytest.fixture(scope="module")
def vocabs() -> tuple[Vocab, Vocab]:
    english = train_vocab(["The king saw a queen"] * 20, size=320, kind="word")
    return english, train_vocab(["der König sah eine Königin"] * 20, size=320, kind="word")


def vectors(path: Path, words: Sequence[str], size: int = 16) -> Path:
    matrix = np.random.default_rng(1).normal(size=(len(words), size)).astype(np.float32)
    write_vectors(path, WordVectors(words, matrix))
    return path


def test_words_of_a_file_become_rows(tmp_path: Path, vocabs: tuple[Vocab, Vocab]) -> None:
    """Claim 25. `The` is `the` in the file; `saw` is not there; "König" is on the target side."""
    path = vectors(tmp_path / "v.vec", ["king", "the", "dog", "König", "a"])
    sizes = {"src_vocab_size": vocabs[0].size, "tgt_vocab_size": vocabs[1].size}
    config, weights = fresh(**sizes, tied="output")
    events: list[dict[str, Any]] = []
    found = file_weights(weights, config, vocabs, path, events.append)
    src, old = found["embed_src.tokens.weight"], weights["embed_src.tokens.weight"]
    ids = words_of(vocabs[0])
    matrix = np.random.default_rng(1).normal(size=(5, 16)).astype(np.float32)
    for word, row in (("king", 0), ("The", 1), ("a", 4)):
        wanted = torch.nn.functional.normalize(torch.from_numpy(matrix[row]), dim=0)
        torch.testing.assert_close(src[ids[word]], wanted * old.norm(dim=1).mean())
    assert torch.equal(src[ids["saw"]], old[ids["saw"]])
    assert [event["text"] for event in events] == [
        f"3 of {vocabs[0].size} source pieces are initialized with a vector of {path}",
        f"1 of {vocabs[1].size} target pieces are initialized with a vector of {path}",
    ]


def test_vectors_that_do_not_fit_are_refused(tmp_path: Path, vocabs: tuple[Vocab, Vocab]) -> None:
    sizes = {"src_vocab_size": vocabs[0].size, "tgt_vocab_size": vocabs[1].size}
    config, weights = fresh(**sizes, tied="none")
    wide = vectors(tmp_path / "wide.vec", ["king"], size=50)
    with pytest.raises(ConfigError, match=r"model.d_model must be 50, .* but is 16. Set model.d_m"):
        file_weights(weights, config, vocabs, wide, lambda event: None)
    foreign = vectors(tmp_path / "foreign.vec", ["roi", "reine"])
    with pytest.raises(ConfigError, match=r"no piece of the vocabulary is a word of .*foreign.vec"):
        file_weights(weights, config, vocabs, foreign, lambda event: None)


def test_a_run_begins_with_word2vec_or_a_file(
    tmp_path: Path, small_run: Callable[..., Any], small: dict[str, Any]
) -> None:
    names = ["ein", "zwei", "rot", "hund", "x"]
    path = vectors(tmp_path / "v.vec", names, small["model"]["d_model"])
    tables = []
    for number, way in enumerate(("word2vec", str(path))):
        _, events = small_run(tmp_path / str(number), stop_at=1, first_embeddings=way)
        table = checkpoint.load(tmp_path / str(number) / START).model["embed_src.tokens.weight"]
        lengths = table.norm(dim=1).sort().values
        assert (lengths.diff() < 1e-6).any()
        tables.append(table)
    assert any("initialized with a vector of" in str(event.get("text")) for event in events)
    assert not torch.equal(*tables)


@pytest.mark.parametrize("way", ["word2vek", "none.vec"])
def test_a_way_that_there_is_not_is_refused_at_once(
    way: str, tmp_path: Path, small_run: Callable[..., Any]
) -> None:
    words = f"must be cooccurrence, word2vec, random or a file of word vectors, but {way} does not"
    with pytest.raises(ConfigError, match=words):
        small_run(tmp_path / "run", first_embeddings=way)
    assert not (tmp_path / "run" / "data").exists()


def test_a_broken_file_is_refused_by_its_line(
    tmp_path: Path, small_run: Callable[..., Any]
) -> None:
    (tmp_path / "v.vec").write_text("a 1 2\nb 1\n")
    with pytest.raises(DataError, match="line 2 must be a word and 2 numbers"):
        small_run(tmp_path / "run", first_embeddings=str(tmp_path / "v.vec"))


@pytest.mark.parametrize(("family", "tied"), [("transformer", "three-way"), ("conv", "none")])
def test_frozen_embeddings_keep_their_first_values(
    family: str, tied: str, tmp_path: Path, small_run: Callable[..., Any]
) -> None:
    """Claim 25: learned apart, then used."""
    _, events = small_run(
        tmp_path / "run",
        freeze_embeddings=True,
        first_embeddings="word2vec",
        settings={"model": {"family": family, "tied": tied}},
    )
    notes = [event["text"] for event in events if event["kind"] == "note"]
    (note,) = [text for text in notes if "training.freeze_embeddings" in text]
    assert ("the output layer, which is the same table" in note) == (tied == "three-way")
    before = checkpoint.load(tmp_path / "run" / START).model
    after = load_bundle(tmp_path / "run").weights
    stay = {name for name, weight in before.items() if np.array_equal(weight.numpy(), after[name])}
    tables = {name for name in before if name.startswith("embed")}
    assert tables <= stay
    assert "output.weight" not in stay
    assert len(before) - len(stay) > 4


def test_a_frozen_run_goes_on_to_the_same_weights(
    tmp_path: Path, small_run: Callable[..., Any]
) -> None:
    frozen = {"freeze_embeddings": True}
    small_run(tmp_path / "paused", stop_at=3, **frozen)
    small_run(tmp_path / "paused", **frozen)
    small_run(tmp_path / "whole", **frozen)
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("paused", "whole")]
    assert weights[0] == weights[1]


def test_freezing_and_sharding_do_not_go_together(
    tmp_path: Path, small_run: Callable[..., Any]
) -> None:
    words = "training.freeze_embeddings and training.shard cannot be combined"
    with pytest.raises(ConfigError, match=words):
        small_run(tmp_path / "run", freeze_embeddings=True, shard=True)
    with pytest.raises(ConfigError, match="training.first_embeddings must be cooccurrence, word"):
        small_run(tmp_path / "run", first_embeddings="")
