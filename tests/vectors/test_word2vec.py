"""Skip-gram and CBOW: the equation, the draws, and that all ways to compute it agree."""

from collections.abc import Sequence

import numpy as np
import pytest
from numpy.typing import NDArray

from heed.errors import HeedError
from heed.vectors import native, plain, word2vec
from heed.vectors.config import VectorsConfig
from heed.vectors.corpus import Corpus, read_corpus
from heed.vectors.table import WordVectors, nearest
from heed.vectors.word2vec import (
    alias_table,
    kept_draws,
    learn_word2vec,
    make_learner,
)

needs_compiler = pytest.mark.skipif(
    not native.is_compiled(), reason="the engine was not compiled here (no C++ compiler?)"
)
COUNTS = np.array([40, 20, 10, 5, 5], np.int64)
LINES = (np.array([0, 1, 2, 0, 3, 4, 1, 0, 0, 2, 1, 3], np.int32), np.array([5, 5, 12]))


def learner(**settings: object) -> plain.Learner:
    """Vectors that have left their beginning, where all outputs are 0."""
    made = make_learner(COUNTS, VectorsConfig(sample=0.1, **settings))
    random = np.random.default_rng(2)
    made.inputs[:, : made.size] = random.normal(0, 0.3, (len(COUNTS), made.size))
    made.outputs[:, : made.size] = random.normal(0, 0.3, (len(COUNTS), made.size))
    return made


def objective(x: NDArray[np.float64], rows: NDArray[np.float64]) -> float:
    """Mikolov et al. 2013b, equation 4: log σ(u·x) of the first row, log σ(−u·x) of the others."""
    signs = np.where(np.arange(len(rows)) == 0, 1.0, -1.0)
    return float(np.log(1 / (1 + np.exp(-signs * (rows @ x)))).sum())


@pytest.mark.parametrize("n_targets", [1, 2, 6, 16, 17, 40])
def test_a_step_is_the_gradient_of_the_paper(n_targets: int) -> None:
    """Claim 25. Central differences in float64; the step is in float32."""
    random = np.random.default_rng(1)
    outputs = random.normal(0, 0.5, (n_targets, 16)).astype(np.float32)
    x, before = random.normal(0, 0.5, 16).astype(np.float32), outputs.astype(np.float64)
    change = plain._predict(outputs, x, list(range(n_targets)), np.float32(0.125))
    x64, small = x.astype(np.float64), 1e-6
    for i, unit in enumerate(np.eye(16) * small):
        slope = (objective(x64 + unit, before) - objective(x64 - unit, before)) / (2 * small)
        assert change[i] == pytest.approx(0.125 * slope, abs=2e-6)
        for row in range(n_targets):
            bump = np.zeros_like(before)
            bump[row] = unit
            slope = (objective(x64, before + bump) - objective(x64, before - bump)) / (2 * small)
            moved = float(outputs[row, i]) - before[row, i]
            assert moved == pytest.approx(0.125 * slope, abs=2e-6)


def reference(
    made: plain.Learner, ids: Sequence[int], ends: Sequence[int], rate: float, state: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The whole loop in float64, written from the papers and word2vec.c."""

    def draw() -> int:
        nonlocal state
        state = (state * 0x5DEECE66D + 0xB) % 2**48
        return state // 2**16

    v, u = made.inputs.astype(np.float64), made.outputs.astype(np.float64)
    start = 0
    for end in ends:
        line = [i for i in ids[start:end] if draw() <= made.keep[i]]
        start = end
        for place, word in enumerate(line):
            reach = made.window - draw() * made.window // 2**32
            around = [j for j in range(len(line)) if j != place and abs(j - place) <= reach]
            groups = [around] if made.is_cbow and around else [[j] for j in around]
            for group in groups:
                targets = [(word, 1.0)]
                for _ in range(made.negative):
                    other = draw() * len(v) // 2**32
                    other = other if draw() <= made.chances[other] else int(made.others[other])
                    targets += [(other, 0.0)] * (other != word)
                x = np.mean([v[line[j]] for j in group], axis=0)
                scores = [u[t] @ x for t, _ in targets]
                moved = np.zeros_like(x)
                for (t, label), score in zip(targets, scores, strict=True):
                    gain = rate * (label - 1 / (1 + np.exp(-score)))
                    moved += gain * u[t]
                    u[t] += gain * x
                for j in group:
                    v[line[j]] += moved
    return v, u


@pytest.mark.parametrize("kind", ["skipgram", "cbow"])
@pytest.mark.parametrize("window", [1, 3])
def test_the_loop_does_what_the_papers_say(kind: str, window: int) -> None:
    """Claim 25."""
    made = learner(kind=kind, window=window, size=20, negative=3)
    v, u = reference(made, LINES[0].tolist(), LINES[1].tolist(), 0.05, 77)
    plain.learn_lines(made, *LINES, 0.05, 77)
    np.testing.assert_allclose(made.inputs, v, atol=1e-6)
    np.testing.assert_allclose(made.outputs, u, atol=1e-6)
    assert not made.inputs[:, 20:].any()  # padding


@needs_compiler
@pytest.mark.parametrize("kernels", ["avx512", "avx2", "neon", "portable"])
@pytest.mark.parametrize("kind", ["skipgram", "cbow"])
@pytest.mark.parametrize(("size", "negative"), [(1, 1), (64, 5), (100, 5), (128, 20), (200, 16)])
def test_the_engine_and_numpy_give_the_same_bits(
    kernels: str, kind: str, size: int, negative: int
) -> None:
    one, other = (learner(kind=kind, size=size, negative=negative, window=3) for _ in range(2))
    try:
        after = native.learn_lines(other, *LINES, 0.05, 77, kernels=kernels)
    except HeedError as error:
        pytest.skip(str(error))
    assert after == plain.learn_lines(one, *LINES, 0.05, 77)
    assert np.array_equal(one.inputs, other.inputs)
    assert np.array_equal(one.outputs, other.outputs)


@needs_compiler
def test_what_the_engine_cannot_do_is_refused() -> None:
    made = learner(size=4)
    with pytest.raises(HeedError, match="this processor lacks that instruction set"):
        native.learn_lines(made, *LINES, 0.05, 1, kernels="abacus")
    with pytest.raises(HeedError, match="an id is not that of a word"):
        native.learn_lines(made, np.array([0, 5], np.int32), np.array([2]), 0.05, 1)
    with pytest.raises(HeedError, match="a line ends before it begins"):
        native.learn_lines(made, LINES[0], np.array([5, 3]), 0.05, 1)


def test_scores_beyond_all_bounds_stay_finite() -> None:
    made = learner(size=4)
    made.inputs[:] *= 1e6
    made.outputs[:] *= 1e6
    plain.learn_lines(made, *LINES, 0.05, 77)
    assert np.isfinite(made.inputs).all()


@pytest.mark.parametrize("weights", [[1], [1, 1], [40, 20, 10, 5, 5], [1e9, 1, 1], [3, 1, 0.1]])
def test_alias_tables_give_each_word_its_share(weights: list[float]) -> None:
    chances, others = alias_table(np.array(weights, float))
    share = (chances.astype(float) + 1) / 2**32
    found = share + np.bincount(others, 1 - share, len(weights))
    np.testing.assert_allclose(found / len(weights), np.array(weights) / sum(weights), atol=1e-9)


def test_frequent_words_are_thinned_out_by_word2vecs_rule() -> None:
    counts = np.array([900, 90, 10])
    kept = (kept_draws(counts, 0.01) + 1.0) / 2**32
    shares = counts / 1000
    np.testing.assert_allclose(
        kept, np.minimum(1, (np.sqrt(shares / 0.01) + 1) * 0.01 / shares), atol=1e-9
    )
    assert kept[2] == 1
    assert (kept_draws(counts, 0) == 2**32 - 1).all()


def topics() -> list[list[str]]:
    random = np.random.default_rng(3)
    animals, tools = ["cat", "dog", "cow", "hen"], ["saw", "axe", "file", "drill"]
    return [random.choice(words, 6).tolist() for words in (animals, tools) * 150]


def learned(corpus: Corpus, **settings: object) -> NDArray[np.float32]:
    usual = {"size": 16, "window": 3, "epochs": 3, "min_count": 1, "sample": 0}
    return learn_word2vec(corpus, VectorsConfig(**{**usual, **settings}))


@pytest.mark.parametrize("kind", ["skipgram", "cbow"])
@pytest.mark.parametrize("threads", [1, 2])
def test_words_with_similar_neighbors_get_similar_vectors(kind: str, threads: int) -> None:
    """Claim 27."""
    corpus = read_corpus(topics(), 1)
    vectors = WordVectors(corpus.words, learned(corpus, kind=kind, threads=threads, epochs=8))
    assert {one.word for one in nearest(vectors, "cat", 3)} == {"dog", "cow", "hen"}
    assert {one.word for one in nearest(vectors, "saw", 3)} == {"axe", "file", "drill"}


@pytest.mark.parametrize("kind", ["skipgram", "cbow"])
def test_the_seed_decides_everything(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    corpus = read_corpus(topics()[:30], 1)
    found = learned(corpus, kind=kind)
    assert np.array_equal(found, learned(corpus, kind=kind))
    assert not np.array_equal(found, learned(corpus, kind=kind, seed=2))
    monkeypatch.setattr(native, "is_compiled", lambda: False)
    assert np.array_equal(found, learned(corpus, kind=kind))


def test_every_word_is_read_once_an_epoch_in_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(word2vec, "MAX_LINE_WORDS", 20)
    corpus = read_corpus([["a", "b"] * n for n in (3, 0, 11, 1, 40)], 1)
    jobs = list(word2vec._jobs(corpus.ends))
    assert [job[:2] for job in jobs] == [(0, 2), (2, 3), (3, 4), (4, 5)]
    assert [job[2:] for job in jobs] == [(0, 6), (6, 28), (28, 30), (30, 110)]
