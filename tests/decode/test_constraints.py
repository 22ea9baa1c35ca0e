import math
from typing import Any

import numpy as np
import pytest

from heed.decode.constraints import Choice, repeated_ngrams
from heed.decode.options import DecodeOptions
from heed.decode.search import decode
from heed.errors import ConfigError

TINY: dict[str, Any] = {"bos_id": 0, "eos_id": 1, "pad_id": 99}
WAYS = {
    "greedy": {"beam_size": 1},
    "beam": {"beam_size": 4, "n_best": 4},
    "sample": {"sample": True, "n_best": 4},
}


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> dict[str, int]:
    return WAYS[request.param]


def scores_of(choice: Choice) -> list[float]:
    """Both roads to the scores, which must agree on the way."""
    scores = choice.all()
    values, ids = choice.top(scores.shape[1])
    is_possible = values > -math.inf
    assert scores[0, ids[is_possible[None, 0]]].tolist() == values[is_possible].tolist()
    return scores[0].tolist()


@pytest.mark.parametrize(
    ("size", "expected"), [(1, [3, 4, 5]), (2, [3, 5]), (3, [3, 5]), (4, []), (7, []), (9, [])]
)
def test_an_ngram_may_not_return(size: int, expected: list[int]) -> None:
    # 3 4 3 4 5 3 4: after 4 came 3 and 5; after "3 4" came 3 and 5; after "5 3 4" nothing yet.
    tokens = np.array([[3, 4, 3, 4, 5, 3, 4], [6, 6, 6, 6, 6, 6, 6]])
    rows, ids = repeated_ngrams(tokens, size=size)
    assert sorted(set(ids[rows == 0].tolist())) == expected
    assert set(ids[rows == 1].tolist()) == ({6} if size <= 7 else set())


def test_forbidding_takes_the_chance_from_ids(fakes: Any) -> None:
    choice = fakes.choice([-1.0] * 5, forbidden=[0, 1], suppress=(3,))
    # <eos>, which is 1, is allowed though it was listed.
    assert scores_of(choice) == [-math.inf, -1.0, -1.0, -math.inf, -1.0]


def test_an_id_beyond_the_vocabulary_is_refused(fakes: Any) -> None:
    with pytest.raises(ConfigError, match=r"suppress must hold ids below .* \(3\), but holds 7\."):
        fakes.choice([-1.0] * 3, suppress=(2, 7))


def test_repetition_costs_a_factor_once_a_token(fakes: Any) -> None:
    choice = fakes.choice([-1.0, -2.0, -4.0], [1, 1, 1], repetition_penalty=1.5)
    assert scores_of(choice) == [-1.0, -3.0, -4.0]
    ids = np.array([[1, 2]])
    assert choice.log_probs(ids, np.array([[-3.0, -4.0]])).tolist() == [[-2.0, -4.0]]


def test_a_repeated_ngram_has_no_chance_at_any_penalty(fakes: Any) -> None:
    choice = fakes.choice(
        [-1.0, -2.0, -4.0], [2, 0, 2, 2], repetition_penalty=1.5, no_repeat_ngram_size=2
    )
    assert scores_of(choice) == [-math.inf, -2.0, -math.inf]


def test_a_prefix_leaves_one_id_where_one_is_prescribed(fakes: Any) -> None:
    prescribed = fakes.choice([-1.0, -2.0, -3.0], prefix=[2], forbidden=[2])
    assert scores_of(prescribed) == [-math.inf, -math.inf, -3.0]
    free = fakes.choice([-1.0, -2.0, -3.0], [2], prefix=[2])
    assert scores_of(free) == [-1.0, -2.0, -3.0]
    impossible = fakes.choice([-1.0, -2.0, -math.inf], prefix=[2])
    assert scores_of(impossible)[2] == -1e4  # followed although the model gives it no chance


def test_a_row_with_nothing_left_may_end(fakes: Any) -> None:
    stuck = fakes.choice([-1.0, -3.0, -1.0], [2, 0], forbidden=[2, 0], min_length=3)
    assert scores_of(stuck) == [-math.inf, -3.0, -math.inf]
    able = fakes.choice([-1.0, -3.0, -1.0], [2, 0], forbidden=[0], min_length=3)
    assert scores_of(able) == [-math.inf, -math.inf, -1.0]


def test_forbidden_and_suppressed_ids_never_appear(fakes: Any, way: dict[str, Any]) -> None:
    model = fakes.hash_model(0, vocab_size=7, n_kinds=9)
    options = DecodeOptions(**way, max_length=9, suppress=(5,))
    found = decode(model, np.arange(9)[:, None], options, forbidden=[0, 1, 2], **TINY)
    answers = [answer for answers in found for answer in answers]
    for answer in answers:
        assert not {0, 2, 5} & set(answer.ids)
    # <eos> is allowed though it was listed.
    assert any(answer.status == "eos" for answer in answers)


def test_no_ngram_appears_twice(fakes: Any, way: dict[str, Any]) -> None:
    model = fakes.hash_model(0, vocab_size=6, n_kinds=9)
    model.table[..., 1] -= 3.0
    options = DecodeOptions(**way, max_length=20, no_repeat_ngram_size=2)
    for found in decode(model, np.arange(9)[:, None], options, **TINY):
        for answer in found:
            bigrams = list(zip(answer.ids, answer.ids[1:], strict=False))
            assert len(set(bigrams)) == len(bigrams)


def test_running_out_of_ngrams_ends_the_hypothesis(fakes: Any, way: dict[str, Any]) -> None:
    model = fakes.HashModel([[[0.0, -math.inf, 1.0]]])  # <eos> has no chance
    options = DecodeOptions(**way, max_length=20, no_repeat_ngram_size=1)
    [found] = decode(model, np.array([[0]]), options, **TINY)
    assert sorted(found[0].ids) == [0, 2]
    assert found[0].status == "eos"


def test_forbidding_everything_gives_an_empty_answer(fakes: Any, way: dict[str, Any]) -> None:
    model = fakes.hash_model(0, vocab_size=3)
    options = DecodeOptions(**way, suppress=(0, 1, 2))
    [found] = decode(model, np.array([[0]]), options, **TINY)
    assert all((answer.ids, answer.status) == ([], "eos") for answer in found)


@pytest.mark.parametrize("min_length", [1, 4, 8])
def test_an_answer_is_not_shorter_than_min_length(
    fakes: Any, way: dict[str, Any], min_length: int
) -> None:
    model = fakes.hash_model(0, vocab_size=6, n_kinds=9)
    model.table[..., 1] += 3.0
    options = DecodeOptions(**way, max_length=12, min_length=min_length)
    found = decode(model, np.arange(9)[:, None], options, **TINY)
    lengths = [len(answer.ids) for answers in found for answer in answers]
    assert min(lengths) == min_length


def test_answers_begin_with_their_prefix(fakes: Any, way: dict[str, Any]) -> None:
    model = fakes.hash_model(0, vocab_size=8, n_kinds=4)
    prefixes = [[5, 6, 7], [], [4], [0, 0]]
    options = DecodeOptions(**way, max_length=9, min_length=2, no_repeat_ngram_size=1)
    found = decode(model, np.arange(4)[:, None], options, prefixes=prefixes, forbidden=[0], **TINY)
    for prefix, answers in zip(prefixes, found, strict=True):
        for answer in answers:
            assert answer.ids[: len(prefix)] == prefix
            state = model.log_probs_after(prefixes.index(prefix), [0, *answer.ids[:1]])
            assert answer.token_log_probs[1] in state


def test_a_prefix_that_is_the_answer_changes_nothing(fakes: Any) -> None:
    model = fakes.hash_model(0, vocab_size=8, n_kinds=4)
    options = DecodeOptions(beam_size=1, max_length=9)
    src = np.arange(4)[:, None]
    free = decode(model, src, options, **TINY)
    halves = [answer.ids[: len(answer.ids) // 2] for [answer] in free]
    assert decode(model, src, options, prefixes=halves, **TINY) == free


def test_a_prefix_may_end_the_answer(fakes: Any, way: dict[str, Any]) -> None:
    model = fakes.hash_model(0, vocab_size=8)
    [found] = decode(model, np.array([[0]]), DecodeOptions(**way), prefixes=[[5, 1]], **TINY)
    assert all((answer.ids, answer.status) == ([5], "eos") for answer in found)


def test_a_repetition_penalty_steers_but_does_not_enter_the_log_probs(
    fakes: Any, way: dict[str, Any]
) -> None:
    model = fakes.hash_model(0, vocab_size=4, n_kinds=6)
    options = DecodeOptions(**way, max_length=12, repetition_penalty=4.0, length_formula="none")
    n_steered = 0
    for kind, found in enumerate(decode(model, np.arange(6)[:, None], options, **TINY)):
        for answer in found:
            tokens = [*answer.ids, 1] if answer.status == "eos" else answer.ids
            for place, (token, log_prob) in enumerate(
                zip(tokens, answer.token_log_probs, strict=True)
            ):
                assert model.log_probs_after(kind, [0, *tokens[:place]])[token] == log_prob
            n_steered += answer.score < answer.log_prob - 1e-6
    assert n_steered > 0
