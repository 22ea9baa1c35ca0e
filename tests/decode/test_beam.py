"""Beam search beside greedy search, brute force and rescoring: check N6."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from heed.decode.beam import beam_search
from heed.decode.length_penalty import LENGTH_FORMULAS
from heed.decode.options import DecodeOptions
from heed.decode.score import score_pairs
from heed.decode.search import decode
from heed.decode.state import DROPPED, ENDED, Hypothesis
from heed.errors import HeedError
from heed.model.interface import ArrayNextTokens

# A vocabulary of five words, all of which may be predicted.
TINY: dict[str, Any] = {"bos_id": 0, "eos_id": 1, "pad_id": 99}
WORDS: dict[str, Any] = {"bos_id": 2, "eos_id": 3, "pad_id": 0}


def ids_and_scores(hypotheses: list[Hypothesis]) -> list[Any]:
    return [(answer.ids, pytest.approx(answer.score, abs=1e-12)) for answer in hypotheses]


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    vocab_size=st.integers(2, 9),
    limit=st.integers(1, 7),
    ngram=st.integers(0, 3),
    repetition_penalty=st.sampled_from([1.0, 1.3]),
    length_formula=st.sampled_from(sorted(LENGTH_FORMULAS)),
    is_coarse=st.booleans(),
)
def test_a_beam_of_one_is_greedy(
    fakes: Any,
    seed: int,
    vocab_size: int,
    limit: int,
    ngram: int,
    repetition_penalty: float,
    length_formula: str,
    is_coarse: bool,
) -> None:
    """Claim 115."""
    model = fakes.hash_model(seed, vocab_size=vocab_size, n_kinds=3)
    if is_coarse:  # many equals: ties must be broken alike
        np.round(model.table, out=model.table)
    src = np.array([[0], [1], [2]])
    options = DecodeOptions(
        beam_size=1,
        max_length=limit,
        no_repeat_ngram_size=ngram,
        repetition_penalty=repetition_penalty,
        length_formula=length_formula,
    )
    greedy = decode(model, src, options, **TINY)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(
            "heed.decode.search.greedy_search",
            lambda model, src, task: [found for (found,) in beam_search(model, src, task)],
        )
        assert decode(model, src, options, **TINY) == greedy


@pytest.mark.parametrize("early_stopping", ["bound", "never"])
@pytest.mark.parametrize("length_formula", LENGTH_FORMULAS)
@pytest.mark.parametrize("length_penalty", [0.0, 0.6, 1.0, 3.0])
def test_a_wide_beam_finds_what_trying_everything_finds(
    fakes: Any, length_formula: str, length_penalty: float, early_stopping: str
) -> None:
    limit, n_best = 4, 7
    model = fakes.hash_model(7, vocab_size=5)
    penalty = LENGTH_FORMULAS[length_formula]
    everything = [
        (ids, log_prob / penalty(len(ids) + 1, length_penalty))
        for ids, log_prob in fakes.all_complete(model, kind=0, bos_id=0, eos_id=1, limit=limit)
    ]
    everything.sort(key=lambda answer: -answer[1])
    options = DecodeOptions(
        beam_size=4**limit,
        n_best=n_best,
        max_length=limit,
        length_formula=length_formula,
        length_penalty=length_penalty,
        early_stopping=early_stopping,
    )
    [found] = decode(model, np.array([[0]]), options, **TINY)
    assert [answer.ids for answer in found] == [ids for ids, _ in everything[:n_best]]
    # Sums of five float64 numbers in another order.
    for answer, (_, score) in zip(found, everything, strict=False):
        assert answer.score == pytest.approx(score, abs=1e-12)
        assert answer.status == "eos"


def test_a_wide_beam_finds_the_best_of_all_answers_of_five_words(fakes: Any) -> None:
    model = fakes.hash_model(11, vocab_size=5)
    ids, log_prob = max(
        fakes.all_complete(model, kind=0, bos_id=0, eos_id=1, limit=5),
        key=lambda answer: answer[1] / (len(answer[0]) + 1),
    )
    options = DecodeOptions(
        beam_size=1024,
        max_length=5,
        length_formula="power",
        length_penalty=1.0,
        early_stopping="never",
    )
    [[best]] = decode(model, np.array([[0]]), options, **TINY)
    assert best.ids == ids
    assert best.log_prob == pytest.approx(log_prob, abs=1e-12)


@pytest.mark.parametrize("beam_size", [2, 3, 5])
@pytest.mark.parametrize("seed", range(4))
def test_a_narrow_beam_finds_what_a_plain_one_in_lists_finds(
    fakes: Any, beam_size: int, seed: int
) -> None:
    """Claim 114."""
    model = fakes.hash_model(seed, vocab_size=5, n_kinds=4)
    options = DecodeOptions(
        beam_size=beam_size,
        n_best=beam_size,
        max_length=6,
        length_formula="gnmt",
        length_penalty=0.6,
    )
    found = decode(model, np.arange(4)[:, None], options, **TINY)
    for kind, answers in enumerate(found):
        expected = fakes.plain_beam(
            model,
            kind=kind,
            beam_size=beam_size,
            bos_id=0,
            eos_id=1,
            limit=6,
            penalty=lambda length: ((5 + length) / 6) ** 0.6,
        )
        assert ids_and_scores(answers) == expected[:beam_size]


def test_equals_are_ordered_by_slot_then_id(fakes: Any) -> None:
    model = fakes.HashModel(np.zeros((1, 1, 4)))  # every token has probability 1/4
    options = DecodeOptions(beam_size=3, n_best=3, max_length=2, length_formula="none")
    steps: list[Any] = []
    [found] = decode(model, np.array([[0]]), options, observer=steps.append, **TINY)
    assert [answer.ids for answer in found] == [[], [0], [0, 0]]
    assert steps[0].ids.tolist()[0][:4] == [0, 1, 2, 3]
    assert steps[1].parents.tolist()[0][:5] == [0, 0, 0, 0, 1]


def test_hypotheses_come_best_first_and_differ(fakes: Any) -> None:
    model = fakes.hash_model(3, vocab_size=12, n_kinds=5)
    options = DecodeOptions(beam_size=6, n_best=6, max_length=9)
    for found in decode(model, np.arange(5)[:, None], options, **WORDS):
        scores = [answer.score for answer in found if answer.status == "eos"]
        assert scores == sorted(scores, reverse=True)
        assert len({tuple(answer.ids) for answer in found}) == len(found) == 6


def test_complete_hypotheses_rank_before_cut_ones(fakes: Any) -> None:
    logits = np.full((1, 1, 4), -9.0)
    logits[..., 1] = -1.0
    logits[..., 2] = 9.0  # goes on and on
    options = DecodeOptions(beam_size=2, n_best=2, max_length=1)
    [found] = decode(fakes.HashModel(logits), np.array([[0]]), options, **TINY)
    assert [answer.status for answer in found] == ["eos", "max_length"]
    assert found[1].score > found[0].score


def test_log_probs_add_up_and_the_score_is_their_sum_over_the_penalty(fakes: Any) -> None:
    model = fakes.hash_model(5, vocab_size=12, n_kinds=3)
    options = DecodeOptions(
        beam_size=4, n_best=4, max_length=8, length_formula="power", length_penalty=0.8
    )
    for found in decode(model, np.arange(3)[:, None], options, **WORDS):
        for answer in found:
            n_tokens = len(answer.ids) + (answer.status == "eos")
            assert len(answer.token_log_probs) == n_tokens
            assert answer.log_prob == math.fsum(answer.token_log_probs)
            assert answer.score == pytest.approx(answer.log_prob / n_tokens**0.8, abs=1e-12)


@pytest.mark.parametrize("repetition_penalty", [1.0, 1.5])
def test_rescoring_gives_the_log_probs_of_the_search(fakes: Any, repetition_penalty: float) -> None:
    model = fakes.gru_model(0, vocab_size=30)
    src = np.random.default_rng(1).integers(4, 30, (6, 5))
    options = DecodeOptions(
        beam_size=4, max_length=12, repetition_penalty=repetition_penalty, no_repeat_ngram_size=2
    )
    for row, [best] in enumerate(decode(model, src, options, forbidden=[0, 2], **WORDS)):
        tokens = [*best.ids, 3] if best.status == "eos" else best.ids
        tgt = np.array([[2, *tokens]])
        log_probs = score_pairs(model, src[row : row + 1], tgt[:, :-1], tgt[:, 1:], pad_id=0)
        # One row instead of many: other kernels, float32 rounding.
        assert log_probs[0].tolist() == pytest.approx(best.token_log_probs, abs=1e-5, rel=1e-5)


def test_first_stops_as_soon_as_the_beam_is_full(fakes: Any) -> None:
    model = fakes.hash_model(2, vocab_size=8)
    model.table[..., 1] += 2.0
    options = DecodeOptions(beam_size=3, max_length=50)
    steps: list[Any] = []
    decode(model, np.array([[0]]), options, observer=steps.append, **TINY)
    n_ended = [int((step.slots == ENDED).sum()) for step in steps]
    assert sum(n_ended[:-1]) < 3 <= sum(n_ended)


@pytest.mark.parametrize("length_formula", LENGTH_FORMULAS)
@pytest.mark.parametrize("n_best", [1, 3])
def test_bound_is_as_good_as_never_and_stops_sooner(
    fakes: Any, length_formula: str, n_best: int
) -> None:
    model = fakes.hash_model(4, vocab_size=8, n_kinds=20)
    model.table[..., 1] += 2.0
    found, n_steps = {}, {}
    for rule in ("bound", "never"):
        options = DecodeOptions(
            beam_size=4,
            n_best=n_best,
            max_length=30,
            length_formula=length_formula,
            early_stopping=rule,
        )
        steps: list[Any] = []
        found[rule] = decode(model, np.arange(20)[:, None], options, observer=steps.append, **TINY)
        n_steps[rule] = len(steps)
    assert found["bound"] == found["never"]
    assert n_steps["bound"] < n_steps["never"]


def test_an_ending_that_is_certain_ends_the_search(fakes: Any) -> None:
    logits = np.full((1, 1, 4), -math.inf)
    logits[..., 1] = 0.0
    options = DecodeOptions(beam_size=3, n_best=3, early_stopping="never")
    [[only]] = decode(fakes.HashModel(logits), np.array([[0]]), options, **TINY)
    assert (only.ids, only.log_prob, only.status) == ([], 0.0, "eos")


def test_one_hypothesis_that_is_no_number_is_not_passed_over(fakes: Any) -> None:
    model = fakes.hash_model(0, vocab_size=12)
    step = model.step

    def damaged(state: Any, tokens: np.ndarray[Any, Any]) -> ArrayNextTokens:
        following = step(state, tokens)
        if model.rows_computed == 8:  # the second step of a beam of four
            log_probs = following.all_log_probs()
            log_probs[3] = math.nan
            return ArrayNextTokens(log_probs)
        return following

    model.step = damaged
    with pytest.raises(HeedError, match="best log-prob of sentence 1 of this batch must be finite"):
        decode(model, np.array([[0]]), DecodeOptions(beam_size=4, max_length=9), **TINY)


def test_the_observer_sees_who_is_kept_ended_and_dropped(fakes: Any) -> None:
    """Claim 114."""
    model = fakes.hash_model(9, vocab_size=10, n_kinds=2)
    model.table[..., 1] += 1.0
    steps: list[Any] = []
    options = DecodeOptions(beam_size=2, max_length=6)
    found = decode(model, np.array([[0], [1]]), options, observer=steps.append, **TINY)
    beams: dict[int, Any] = {0: {0: []}, 1: {0: []}}
    ended: dict[int, list[Any]] = {0: [], 1: []}
    for number, step in enumerate(steps):
        assert step.number == number
        for line, source in enumerate(step.sources.tolist()):
            assert step.totals[line].tolist() == sorted(step.totals[line].tolist(), reverse=True)
            after = {}
            for parent, token, slot in zip(
                step.parents[line].tolist(),
                step.ids[line].tolist(),
                step.slots[line].tolist(),
                strict=True,
            ):
                if slot == ENDED:
                    ended[source].append(beams[source][parent])
                elif slot != DROPPED:
                    after[slot] = [*beams[source][parent], token]
            beams[source] = after
    for source, [best] in enumerate(found):
        assert best.ids in ended[source] or best.status == "max_length"


def test_finished_sources_leave_the_batch(fakes: Any) -> None:
    table = np.zeros((2, 1, 6))
    table[0, 0, 1] = 20.0  # ends at once
    table[1, 0, 4] = 20.0  # goes on to the limit
    model = fakes.HashModel(table)
    src = np.array([[0]] * 9 + [[1]])
    options = DecodeOptions(
        beam_size=2, max_length=20, length_formula="none", early_stopping="bound"
    )
    decode(model, src, options, **TINY)
    assert model.rows_computed == 10 * 2 + 19 * 2
