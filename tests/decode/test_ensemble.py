"""Several models together give the mean of their probabilities, and a search sees nothing else."""

import tracemalloc
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heed.decode.ensemble import Ensemble, MeanNextTokens
from heed.decode.options import DecodeOptions
from heed.decode.search import decode
from heed.decode.state import Hypothesis
from heed.errors import HeedError
from heed.model.interface import ArrayNextTokens, Changes

BOS, EOS = 2, 1


@st.composite
def members(draw: st.DrawFn) -> list[np.ndarray]:
    """Log-probs of several models for the same rows, many of them equal and some impossible."""
    n_rows, vocab_size = draw(st.integers(1, 4)), draw(st.integers(3, 60))
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    step, found = draw(st.sampled_from([0.0, 1.0])), []
    for _ in range(draw(st.integers(2, 4))):
        logits = random.standard_normal((n_rows, vocab_size)) * draw(st.sampled_from([1, 5, 40]))
        logits = np.round(logits / step) * step if step else logits
        logits[:, 2:][random.random((n_rows, vocab_size - 2)) < draw(st.floats(0, 0.9))] = -np.inf
        shifted = logits - logits.max(axis=1, keepdims=True)
        log_sums = np.log(np.exp(shifted).sum(axis=1, keepdims=True))
        found.append((shifted - log_sums).astype(np.float32))
    return found


def by_formula(found: list[np.ndarray]) -> np.ndarray:
    """log (1/n Σ p) in float64."""
    with np.errstate(divide="ignore"):
        return np.log(np.mean([np.exp(each.astype(np.float64)) for each in found], axis=0))


@given(members())
def test_log_probs_are_those_of_the_formula(found: list[np.ndarray]) -> None:
    together, expected = MeanNextTokens([*map(ArrayNextTokens, found)]), by_formula(found)
    np.testing.assert_allclose(together.all_log_probs(), expected, atol=1e-4)
    every = np.tile(np.arange(expected.shape[1]), (len(expected), 1))
    np.testing.assert_array_equal(together.log_probs_of(every), together.all_log_probs())


@given(members(), st.integers(1, 70), st.integers(0, 2**32))
@settings(max_examples=400)
def test_the_largest_are_those_of_all_scores(
    found: list[np.ndarray], count: int, seed: int
) -> None:
    """With the changes of a search, too, and the lower id first among equals."""
    together = MeanNextTokens([*map(ArrayNextTokens, found)])
    random = np.random.default_rng(seed)
    n_rows, vocab_size = found[0].shape
    n_entries = int(random.integers(0, 12))
    changes = Changes(
        forbidden=np.unique(random.integers(0, vocab_size, int(random.integers(0, 3)))),
        rows=random.integers(0, n_rows, n_entries),
        ids=random.integers(0, vocab_size, n_entries),
        scores=random.choice([-np.inf, -9.0, -2.0], n_entries).astype(np.float32),
    )
    for asked in (None, changes):
        scores, ids = together.top_k(count, asked)
        expected = ArrayNextTokens(together.all_log_probs()).top_k(count, asked)
        np.testing.assert_array_equal(scores, expected[0])
        is_possible = scores > -np.inf
        np.testing.assert_array_equal(ids[is_possible], expected[1][is_possible])
        assert ids.shape == expected[1].shape and (ids >= 0).all() and (ids < vocab_size).all()


def test_a_token_that_all_rank_third_can_be_the_first() -> None:
    """Each model has two favorites of its own, and one that both find probable."""
    first = np.log([[0.36, 0.33, 0.29, 0.005, 0.005, 0.005, 0.005]]).astype(np.float32)
    second = np.log([[0.005, 0.005, 0.29, 0.36, 0.33, 0.005, 0.005]]).astype(np.float32)
    scores, ids = MeanNextTokens([ArrayNextTokens(first), ArrayNextTokens(second)]).top_k(1)
    assert ids.tolist() == [[2]]
    np.testing.assert_allclose(np.exp(scores), [[0.29]], rtol=1e-5)


@pytest.mark.parametrize("count", [500, 1500])
def test_many_at_once_need_no_table_of_their_pairs(count: int) -> None:
    """Sampling asks for thousands: 4 rows take a few megabytes, not hundreds."""
    random = np.random.default_rng(0)
    found = [np.float32(-random.gamma(9, size=(4, 20_000))) for _ in range(2)]
    together = MeanNextTokens([*map(ArrayNextTokens, found)])
    tracemalloc.start()
    try:
        together.top_k(count)
        assert tracemalloc.get_traced_memory()[1] < 2**24
    finally:
        tracemalloc.stop()


def test_probabilities_below_those_of_float32_are_not_impossible() -> None:
    found = np.array([[-200.0, 0.0]], dtype=np.float32)
    together = MeanNextTokens([ArrayNextTokens(found), ArrayNextTokens(found)])
    np.testing.assert_array_equal(together.all_log_probs(), found)


def search(
    model: Any, kinds: list[int], forbidden: Sequence[int] = (0, BOS), **options: Any
) -> list[list[Hypothesis]]:
    return decode(
        model,
        np.array([[kind] for kind in kinds]),
        DecodeOptions(**{"max_length": 10, **options}),
        bos_id=BOS,
        eos_id=EOS,
        pad_id=0,
        forbidden=forbidden,
    )


OPTIONS = [
    {"beam_size": 1},
    {"beam_size": 4, "n_best": 3},
    {"beam_size": 4, "no_repeat_ngram_size": 2},
    {"beam_size": 1, "n_best": 3, "sample": True, "seed": 3, "top_p": 0.9},
]


@pytest.mark.parametrize("options", OPTIONS)
def test_equal_models_find_what_one_finds(fakes: SimpleNamespace, options: dict[str, Any]) -> None:
    model = fakes.hash_model(3, vocab_size=31, n_kinds=3)
    alone = search(model, [0, 1, 2], **options)
    together = search(Ensemble([model, model]), [0, 1, 2], **options)
    for line, expected in zip(together, alone, strict=True):
        assert [each.ids for each in line] == [each.ids for each in expected]
        for each, one in zip(line, expected, strict=True):
            assert each.log_prob == pytest.approx(one.log_prob, abs=1e-4)


@pytest.mark.parametrize("beam_size", [1, 4])
def test_scores_are_log_probs_of_the_mean(fakes: SimpleNamespace, beam_size: int) -> None:
    """Each model reads the whole hypothesis, also after rows of the beam change places."""
    models = [fakes.hash_model(seed, vocab_size=29, n_kinds=2) for seed in (4, 5)]
    for kind, line in enumerate(search(Ensemble(models), [0, 1], beam_size=beam_size)):
        tokens = [BOS, *line[0].ids, EOS]
        expected = [
            by_formula([np.array(model.log_probs_after(kind, tokens[:place])) for model in models])[
                tokens[place]
            ]
            for place in range(1, len(tokens))
        ]
        np.testing.assert_allclose(
            line[0].token_log_probs, expected[: len(line[0].token_log_probs)], atol=1e-4
        )


def test_nan_of_one_model_is_an_error(fakes: SimpleNamespace) -> None:
    """Also where a hypothesis has ended before it."""
    models = [fakes.hash_model(seed, vocab_size=31) for seed in range(2)]
    models[1].table[0, 16:] = np.nan  # after `<bos>` alone the hash is 15
    models[1].table[0, 15, EOS] = 5.0
    with pytest.raises(HeedError, match="must be finite, but is nan"):
        search(Ensemble(models), [0], beam_size=4, forbidden=[], early_stopping="never")


def test_the_lowest_limit_holds(fakes: SimpleNamespace) -> None:
    models = [fakes.hash_model(seed, vocab_size=9) for seed in range(3)]
    assert Ensemble(models).length_limit is None
    models[1].length_limit, models[2].length_limit = 7, 5
    assert Ensemble(models).length_limit == 5
