"""Draws beside the model's probabilities: check N6."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from heed.decode.options import DecodeOptions
from heed.decode.sampling import candidates, draw, draw_table
from heed.decode.search import decode

TINY: dict[str, Any] = {"bos_id": 0, "eos_id": 1, "pad_id": 99}


@pytest.fixture
def allowed(fakes: Any) -> Callable[..., Any]:
    """`allowed(probabilities, **options)`: the ids that may be drawn from one distribution."""

    def ask(probabilities: list[float], **options: Any) -> set[int]:
        choice = fakes.choice(np.log(probabilities))
        found = candidates(choice, DecodeOptions(sample=True, **options))
        ids = range(len(probabilities)) if found.ids is None else found.ids[0].tolist()
        chances = found.probabilities[0].tolist()
        return {token for token, chance in zip(ids, chances, strict=True) if chance}

    return ask


def test_top_k_keeps_the_k_likeliest(allowed: Callable[..., Any]) -> None:
    """Claim 116."""
    assert allowed([0.1, 0.4, 0.2, 0.3], top_k=2) == {1, 3}


def test_top_p_keeps_the_smallest_set_above_p(allowed: Callable[..., Any]) -> None:
    """Claim 117."""
    chances = [0.125, 0.5, 0.25, 0.125]  # exact in binary
    assert allowed(chances, top_p=0.4) == {1}
    assert allowed(chances, top_p=0.5) == {1, 2}  # 0.5 is not above 0.5
    assert allowed(chances, top_p=0.8) == {0, 1, 2}  # of equals the lower id
    assert allowed(chances, top_p=1.0) == {0, 1, 2, 3}


def test_top_p_looks_at_what_top_k_left(allowed: Callable[..., Any]) -> None:
    assert allowed([0.125, 0.5, 0.25, 0.125], top_k=2, top_p=0.6) == {1}


def test_min_p_keeps_what_is_likely_beside_the_likeliest(allowed: Callable[..., Any]) -> None:
    assert allowed([0.125, 0.5, 0.25, 0.125], min_p=0.5) == {1, 2}
    assert allowed([0.125, 0.5, 0.25, 0.125], min_p=1.0) == {1}


def test_temperature_sharpens_and_flattens(fakes: Any) -> None:
    choice = fakes.choice(np.log([0.2, 0.8]))
    for temperature, expected in ((0.5, 0.64 / 0.68), (1.0, 0.8), (2.0, 2 / 3)):
        options = DecodeOptions(sample=True, temperature=temperature)
        chances = candidates(choice, options).probabilities[0]
        assert chances[1] / chances.sum() == pytest.approx(expected, abs=1e-6)


def test_a_wide_nucleus_is_found_in_full(fakes: Any) -> None:
    logits = np.random.default_rng(0).standard_normal((3, 5000))
    logits[0] = [0.0, *[-30.0] * 4999]
    chances = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    found = candidates(fakes.choice(np.log(chances)), DecodeOptions(sample=True, top_p=0.9))
    for row in range(3):
        falling = np.sort(chances[row])[::-1]
        n_expected = int((falling.cumsum() <= 0.9).sum()) + 1
        assert int((found.probabilities[row] > 0).sum()) == n_expected


def test_frequencies_follow_the_model(fakes: Any) -> None:
    """A χ² test: 20,000 draws from eight tokens, exceeded by chance once in 1000 seeds."""
    chances = np.array([0.3, 0.2, 0.15, 0.1, 0.1, 0.08, 0.05, 0.02])
    n_draws = 20_000
    choice = fakes.choice(np.log(np.tile(chances, (n_draws, 1))))
    found = candidates(choice, DecodeOptions(sample=True))
    draws = draw_table([(key, 0) for key in range(n_draws)], seed=1, length=1)
    counts = np.bincount(draw(found, draws[:, 0])[0], minlength=8)
    expected = n_draws * chances
    assert float(((counts - expected) ** 2 / expected).sum()) < 24.32  # 7 degrees of freedom


def test_the_largest_number_draws_the_last_possible_token(fakes: Any) -> None:
    choice = fakes.choice([np.log(0.7), np.log(0.3), -np.inf])
    found = candidates(choice, DecodeOptions(sample=True))
    assert draw(found, np.array([1.0 - 2**-53]))[0].tolist() == [1]
    assert draw(found, np.array([0.0]))[0].tolist() == [0]


def test_a_drawn_token_comes_with_its_score_whatever_the_filters(fakes: Any) -> None:
    choice = fakes.choice(np.log([0.125, 0.5, 0.25, 0.125]))
    for filters in ({}, {"top_k": 3}, {"top_p": 0.7}, {"temperature": 0.5, "min_p": 0.1}):
        found = candidates(choice, DecodeOptions(sample=True, **filters))
        ids, scores = draw(found, np.array([0.9]))
        assert scores[0] == choice.all()[0, ids[0]]


@pytest.mark.parametrize("filters", [{"top_k": 1}, {"top_p": 0.0}, {"min_p": 1.0}])
def test_the_narrowest_filters_are_greedy(fakes: Any, filters: dict[str, Any]) -> None:
    model = fakes.hash_model(3, vocab_size=20, n_kinds=10)
    src = np.arange(10)[:, None]
    sampled = decode(model, src, DecodeOptions(sample=True, max_length=10, **filters), **TINY)
    assert sampled == decode(model, src, DecodeOptions(beam_size=1, max_length=10), **TINY)


def test_seed_and_key_decide_the_sample(fakes: Any) -> None:
    model = fakes.hash_model(3, vocab_size=20)
    src = np.zeros((4, 1), dtype=np.int64)
    one = decode(model, src, DecodeOptions(sample=True, seed=1), keys=[7, 8, 7, -1], **TINY)
    two = decode(model, src, DecodeOptions(sample=True, seed=2), keys=[7, 8, 7, -1], **TINY)
    assert one[0] == one[2]
    assert one[0] != one[1]
    assert all(a != b for a, b in zip(one, two, strict=True))


def test_n_best_gives_independent_samples_best_first(fakes: Any) -> None:
    model = fakes.hash_model(3, vocab_size=20, n_kinds=2)
    src = np.array([[0], [1]])
    found = decode(model, src, DecodeOptions(sample=True, n_best=5), keys=[4, 9], **TINY)
    for answers in found:
        assert len(answers) == 5
        assert len({tuple(answer.ids) for answer in answers}) > 1
        assert answers == sorted(answers, key=lambda each: (each.status != "eos", -each.score))
    [alone] = decode(model, src[1:], DecodeOptions(sample=True, n_best=5), keys=[9], **TINY)
    assert alone == found[1]


def test_a_sample_that_was_cut_ranks_below_every_complete_one(fakes: Any) -> None:
    model = fakes.hash_model(3, vocab_size=8, n_kinds=9)
    src = np.arange(9)[:, None]
    options = DecodeOptions(sample=True, n_best=6, max_length=4)
    n_better = 0
    for answers in decode(model, src, options, **TINY):
        is_cut = [answer.status == "max_length" for answer in answers]
        assert is_cut == sorted(is_cut)
        complete = [answer.score for answer in answers if answer.status == "eos"]
        cut = [answer.score for answer in answers if answer.status == "max_length"]
        assert complete == sorted(complete, reverse=True) and cut == sorted(cut, reverse=True)
        n_better += bool(complete and cut) and cut[0] > complete[-1]
    assert n_better > 0  # else the scores alone would give this order


def test_the_observer_learns_how_many_tokens_could_be_drawn(fakes: Any) -> None:
    """Claim 117."""
    model = fakes.hash_model(3, vocab_size=20)
    steps: list[Any] = []
    options = DecodeOptions(sample=True, top_p=0.8, max_length=6)
    decode(model, np.array([[0]]), options, observer=steps.append, **TINY)
    sizes = [int(step.n_allowed[0]) for step in steps]
    assert all(1 <= size <= 20 for size in sizes)
    assert len(set(sizes)) > 1
