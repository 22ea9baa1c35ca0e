"""Embeddings to begin with: what the counts say, by another way, and what becomes of a run."""

from collections.abc import Callable, Sequence
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray

from heed.bundle.find import step_folders
from heed.data import portions
from heed.data.store import Store
from heed.model.build import build_model
from heed.model.config import ModelConfig
from heed.train.run import checkpoint
from heed.train.start import cooccurrence
from heed.train.start.cooccurrence import cooccurrence_rows, cooccurrence_weights

N_WORDS, FIRST = 12, 4
Pair = tuple[Sequence[int], Sequence[int]]
MakeStore = Callable[[Sequence[Pair]], Store]


@pytest.fixture
def make_store(tmp_path: Path) -> MakeStore:
    def make(pairs: Sequence[Pair]) -> Store:
        with Store.create(tmp_path / "train.bin", "00" * 32, "00" * 32) as writer:
            for src, tgt in pairs:
                writer.add(src, tgt)
        return Store.open(tmp_path / "train.bin", "00" * 32, "00" * 32)

    return make


def drawn(n_pairs: int = 300, shift: int = N_WORDS) -> list[Pair]:
    """Four different words a source; the target has their translations, word + `shift`, turned
    around."""
    random = np.random.default_rng(1)
    sources = [random.choice(N_WORDS, 4, replace=False) + FIRST for _ in range(n_pairs)]
    return [(src.tolist(), (src[::-1] + shift).tolist()) for src in sources]


def similarities(pairs: Sequence[Pair], n: int, width: int) -> NDArray[np.float64]:
    """Cosines of the rows of U √S, from dense matrices and LAPACK's own decomposition."""
    shared, follows = np.zeros((n, n)), np.zeros((n, n))
    for src, tgt in pairs:
        for one, other in combinations(sorted({*src, *tgt}), 2):
            shared[one, other] += 1
        for before, after in (*pairwise(src), *pairwise(tgt)):
            follows[before, after] += 1
    shared = (shared + shared.T) * (shared + shared.T > 1)
    contexts = []
    for counts in (shared, follows, follows.T):
        with np.errstate(divide="ignore", invalid="ignore"):
            expected = counts.sum(1, keepdims=True) * counts.sum(0) / counts.sum()
            contexts.append(np.nan_to_num(np.maximum(np.log(counts / expected), 0)))
    every = np.hstack(contexts)
    u, s, _ = np.linalg.svd(every)
    rows = u[:, :width] * np.sqrt(s[:width])
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-30)
    rows *= every.any(axis=1, keepdims=True)
    return np.asarray(rows @ rows.T)


@pytest.mark.parametrize("width", [3, 6, 64])
def test_it_is_the_decomposition_of_what_pieces_tell_of_one_another(
    make_store: MakeStore, width: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cooccurrence, "OVERSAMPLES", 40)  # all there are: then it is exact
    pairs = drawn()
    n = FIRST + 2 * N_WORDS
    rows = cooccurrence_rows(make_store(pairs), n, 0, width, seed=1)
    assert rows.shape == (n, width)
    np.testing.assert_allclose(rows @ rows.T, similarities(pairs, n, width), atol=1e-4)


def test_a_word_begins_nearest_to_its_translation(make_store: MakeStore) -> None:
    # In two pieces: so a word and either of them share what they occur with.
    pairs = [(src, [2 * word + end for word in src for end in (0, 1)]) for src, _ in drawn()]
    n_src, n_tgt = FIRST + N_WORDS, 2 * (FIRST + N_WORDS)
    rows = cooccurrence_rows(make_store(pairs), n_src, n_tgt, 24, seed=1)
    nearest = (rows[FIRST:n_src] @ rows[n_src:].T).argmax(dim=1)
    assert (nearest // 2).tolist() == list(range(FIRST, n_src))


def test_rows_have_length_one_and_those_of_pieces_that_never_occur_zero(
    make_store: MakeStore,
) -> None:
    lengths = cooccurrence_rows(make_store(drawn()), 40, 0, 8, seed=1).norm(dim=1)
    occurs = torch.zeros(40)
    occurs[FIRST : FIRST + 2 * N_WORDS] = 1
    torch.testing.assert_close(lengths, occurs)


@pytest.mark.parametrize("pairs", [[([5], [6])], [([], [])], [([5, 5], [5])]])
def test_a_corpus_that_tells_nothing_leaves_zeros(
    make_store: MakeStore, pairs: Sequence[Pair]
) -> None:
    assert not cooccurrence_rows(make_store(pairs), 10, 0, 4, seed=1).any()


def test_a_pair_longer_than_can_be_counted_is_left_out(
    make_store: MakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    every = cooccurrence_rows(make_store(drawn()), 40, 0, 8, seed=1)
    monkeypatch.setattr(cooccurrence, "MAX_COOCCURRENCES", 300 * 28)  # 28 a pair
    long = ([5, 6] * 50, [17, 18] * 50)
    for seed in range(5):  # it comes early or late
        rows = cooccurrence_rows(make_store([*drawn(), long, long]), 40, 0, 8, seed=seed)
        torch.testing.assert_close(rows @ rows.mT, every @ every.mT, atol=1e-3, rtol=0)
    assert not cooccurrence_rows(make_store([long]), 40, 0, 8, seed=1).any()


def test_of_a_large_corpus_random_pairs_are_read(
    make_store: MakeStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(portions, "PAIRS_AT_ONCE", 7)
    store = make_store(drawn())
    every = cooccurrence_rows(store, 40, 0, 8, seed=1)
    monkeypatch.setattr(cooccurrence, "MAX_COOCCURRENCES", 100 * 28)  # 28 a pair
    read: list[int] = []
    monkeypatch.setattr(store, "src", lambda i, src=store.src: (read.append(i), src(i))[1])
    some = cooccurrence_rows(store, 40, 0, 8, seed=1)
    assert len(read) == len({*read}) == 100
    assert sorted(read) != list(range(100))
    assert not torch.equal(some, every)
    assert torch.equal(some, cooccurrence_rows(store, 40, 0, 8, seed=1))


@pytest.mark.parametrize(
    ("tied", "known"),
    [
        ("three-way", {"embed_src.tokens.weight"}),
        ("output", {"embed_src.tokens.weight", "embed_tgt.tokens.weight"}),
        ("none", {"embed_src.tokens.weight", "embed_tgt.tokens.weight", "output.weight"}),
    ],
)
def test_embeddings_get_the_directions_and_keep_their_lengths(
    make_store: MakeStore, tied: Any, known: set[str]
) -> None:
    config = ModelConfig(src_vocab_size=40, tgt_vocab_size=40, d_model=16, n_heads=2, tied=tied)
    fresh = {name: p.detach() for name, p in build_model(config).named_parameters()}
    weights = cooccurrence_weights(fresh, config, make_store(drawn()), seed=1)
    assert weights.keys() == fresh.keys()
    changed = {name for name, weight in weights.items() if weight is not fresh[name]}
    assert changed == known
    for name in known:
        assert torch.equal(weights[name][-1], fresh[name][-1])  # never occurs
        lengths = weights[name][FIRST : FIRST + N_WORDS].norm(dim=1)
        usual = fresh[name].norm(dim=1).mean()
        is_of_source = tied == "three-way" or name.startswith("embed_src")
        if is_of_source:
            torch.testing.assert_close(lengths, usual.expand(N_WORDS))


def test_a_run_begins_with_them_unless_told_otherwise(
    tmp_path: Path, small_run: Callable[..., Any]
) -> None:
    for kind in ("cooccurrence", "random"):
        small_run(tmp_path / kind, stop_at=1, first_embeddings=kind)
    start = "checkpoints/step-000000"
    table = checkpoint.load(tmp_path / "cooccurrence" / start).model["embed_src.tokens.weight"]
    lengths = table.norm(dim=1).sort().values
    assert (lengths.diff() < 1e-6).sum() > 5  # pieces that occur, unlike random rows
    assert not (tmp_path / "random" / start).exists()


def test_a_run_killed_before_its_first_checkpoint_goes_on_from_the_same_embeddings(
    tmp_path: Path, small_run: Callable[..., Any]
) -> None:
    class Killed(BaseException):
        pass

    def kill(event: dict[str, Any]) -> None:
        if event["kind"] == "step" and event["step"] == 3:
            raise Killed

    with pytest.raises(Killed):
        small_run(tmp_path / "killed", on=kill)
    assert [step for step, _ in step_folders(tmp_path / "killed")] == [0]
    _, events = small_run(tmp_path / "killed")
    notes = [event["text"] for event in events if event["kind"] == "note"]
    assert not any("going on" in note for note in notes)
    small_run(tmp_path / "whole")
    weights = [(tmp_path / name / "model.safetensors").read_bytes() for name in ("killed", "whole")]
    assert weights[0] == weights[1]
