import math
import random
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from heed.decode.options import DecodeOptions
from heed.decode.search import decode
from heed.decode.state import Step
from heed.errors import DataError, HeedError

WORDS: dict[str, Any] = {"bos_id": 2, "eos_id": 3, "pad_id": 0, "forbidden": [0, 1, 2]}
WAYS = {
    "greedy": DecodeOptions(beam_size=1),
    "beam": DecodeOptions(beam_size=4, n_best=3),
    "bound": DecodeOptions(
        beam_size=3, early_stopping="bound", length_formula="power", length_penalty=1.0
    ),
    "sample": DecodeOptions(sample=True, n_best=2, top_p=0.9, temperature=0.8),
    "constrained": DecodeOptions(
        beam_size=3, no_repeat_ngram_size=2, repetition_penalty=1.2, min_length=3
    ),
}


def padded(sentences: list[list[int]]) -> np.ndarray[Any, Any]:
    longest = max(map(len, sentences))
    return np.array([[*ids, *[0] * (longest - len(ids))] for ids in sentences])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("batch_size", [1, 7, 20])
def test_an_answer_does_not_depend_on_its_company(fakes: Any, way: str, batch_size: int) -> None:
    chance = random.Random(5)
    model = fakes.hash_model(1, vocab_size=40, n_kinds=40, sharpness=3.0)
    sentences = [
        [chance.randrange(4, 40) for _ in range(chance.randrange(1, 9))] for _ in range(20)
    ]
    prefixes = [[9, 9] if place % 5 == 0 else [] for place in range(20)]
    options = WAYS[way]
    at_once = decode(model, padded(sentences), options, prefixes=prefixes, keys=range(20), **WORDS)
    order = chance.sample(range(20), k=20)
    for start in range(0, 20, batch_size):
        keys = order[start : start + batch_size]
        found = decode(
            model,
            padded([sentences[key] for key in keys]),
            options,
            prefixes=[prefixes[key] for key in keys],
            keys=keys,
            **WORDS,
        )
        assert found == [at_once[key] for key in keys]


@pytest.mark.parametrize("way", WAYS)
def test_a_model_that_never_ends_is_stopped_at_its_limit(fakes: Any, way: str) -> None:
    """Claim 112: until the end piece, or the limit."""
    model = fakes.hash_model(0, vocab_size=40, n_kinds=40)
    model.table[..., 3] = -math.inf
    src = padded([[5], [6, 6, 6], [7] * 30])
    options = DecodeOptions(
        **{
            **vars(WAYS[way]),
            "max_length_factor": 1.5,
            "max_length_offset": 2.6,
            "max_length": 25,
            "min_length": 0,
        }
    )
    for limit, found in zip((4, 7, 25), decode(model, src, options, **WORDS), strict=True):
        for answer in found:
            assert (len(answer.ids), answer.status) == (limit, "max_length")
            assert math.isfinite(answer.log_prob)


def test_a_limit_counts_what_comes_after_a_prefix(fakes: Any) -> None:
    model = fakes.hash_model(0, vocab_size=40, n_kinds=40)
    model.table[..., 3] = -math.inf
    options = DecodeOptions(beam_size=1, max_length_factor=0.0, max_length_offset=3.0)
    [[answer]] = decode(model, padded([[5]]), options, prefixes=[[8, 8, 8, 8]], **WORDS)
    assert len(answer.ids) == 7


def test_at_least_one_token_is_predicted(fakes: Any) -> None:
    model = fakes.hash_model(0, vocab_size=40, n_kinds=40)
    options = DecodeOptions(beam_size=2, max_length_factor=0.0, max_length_offset=0.0)
    [[answer]] = decode(model, padded([[5]]), options, **WORDS)
    assert len(answer.token_log_probs) == 1


@pytest.mark.parametrize("way", WAYS)
def test_no_sources_give_no_answers(fakes: Any, way: str) -> None:
    model = fakes.hash_model(0, vocab_size=40)
    assert decode(model, np.empty((0, 5), dtype=np.int64), WAYS[way], **WORDS) == []


def test_a_vocabulary_smaller_than_the_beam_is_enough(fakes: Any) -> None:
    model = fakes.hash_model(0, vocab_size=2)
    options = DecodeOptions(beam_size=5, n_best=5, max_length=3, early_stopping="never")
    [found] = decode(model, np.array([[0]]), options, bos_id=0, eos_id=1, pad_id=9)
    assert sorted(answer.ids for answer in found) == [[], [0], [0, 0], [0, 0, 0]]


def test_a_real_network_gives_the_same_alone_and_in_a_batch(fakes: Any) -> None:
    model = fakes.gru_model(0, vocab_size=50)
    chance = random.Random(1)
    sentences = [[chance.randrange(4, 50) for _ in range(chance.randrange(1, 9))] for _ in range(9)]
    options = DecodeOptions(beam_size=4, n_best=2)
    together = decode(model, padded(sentences), options, **WORDS)
    for sentence, found in zip(sentences, together, strict=True):
        [alone] = decode(model, padded([sentence]), options, **WORDS)
        assert [answer.ids for answer in alone] == [answer.ids for answer in found]
        for one, other in zip(alone, found, strict=True):
            # Matrix products of another height round differently.
            assert one.score == pytest.approx(other.score, abs=1e-4)


def test_the_logits_of_the_model_are_left_alone(fakes: Any) -> None:
    model = fakes.hash_model(0, vocab_size=40, n_kinds=40)
    before = model.table.copy()
    for options in WAYS.values():
        decode(model, padded([[5], [6]]), options, **WORDS)
    assert (model.table == before).all()


def test_an_observer_that_raises_stops_the_search(fakes: Any) -> None:
    def gone(step: Step) -> None:
        if step.number == 2:
            raise ConnectionError("client left")

    model = fakes.hash_model(0, vocab_size=40, n_kinds=40)
    model.table[..., 3] = -math.inf
    with pytest.raises(ConnectionError, match="client left"):
        decode(model, padded([[5]]), WAYS["beam"], observer=gone, **WORDS)
    assert model.rows_computed == 3 * 4


@pytest.mark.parametrize("way", WAYS)
def test_logits_that_are_not_numbers_are_refused(fakes: Any, way: str) -> None:
    model = fakes.hash_model(0, vocab_size=40, n_kinds=40)
    model.table[6] = math.nan
    with pytest.raises(
        HeedError,
        match=r"best log-prob of sentence 2 of this batch must be finite, but is (nan|-inf)",
    ):
        decode(model, padded([[5], [6]]), WAYS[way], **WORDS)


@pytest.mark.parametrize("way", ["greedy", "sample"])
@pytest.mark.parametrize("prefixes", [[[8, 8, 8], [9, 5]], [[7], []]], ids=str)
def test_prefixes_that_are_not_scored_change_no_answer(
    fakes: Any, way: str, prefixes: list[list[int]]
) -> None:
    model = fakes.hash_model(4, vocab_size=20, n_kinds=20)
    n_read = min(map(len, prefixes))
    scored, read = (
        decode(
            model,
            padded([[5], [6]]),
            WAYS[way],
            prefixes=prefixes,
            score_prefixes=score_prefixes,
            **WORDS,
        )
        for score_prefixes in (True, False)
    )
    for answers, others in zip(scored, read, strict=True):
        by_ids = {tuple(answer.ids): answer for answer in answers}
        for other in others:
            answer = by_ids[tuple(other.ids)]
            assert other.token_log_probs[:n_read] == [0.0] * n_read
            assert other.token_log_probs[n_read:] == answer.token_log_probs[n_read:]


def test_a_prefix_that_leaves_no_room_is_refused(fakes: Any) -> None:
    model = fakes.hash_model(0, vocab_size=40, n_kinds=40)
    options = DecodeOptions(max_length=3)
    with pytest.raises(
        DataError,
        match=r"prefix of sentence 2 must be shorter than decoding.max_length \(3\), but has 3",
    ):
        decode(model, padded([[5], [6]]), options, prefixes=[[], [4, 4, 4]], **WORDS)


@pytest.mark.parametrize("way", WAYS)
def test_a_model_sets_a_limit_of_its_own(
    fakes: Any, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = fakes.hash_model(0, vocab_size=40, n_kinds=40)
    monkeypatch.setattr(model, "length_limit", 5)
    found = decode(model, padded([[5], [6]]), replace(WAYS[way], suppress=(3,)), **WORDS)
    assert {len(answer.ids) for answers in found for answer in answers} == {4}  # and `<bos>`
    with pytest.raises(
        DataError,
        match=r"shorter than the longest text that the model can write \(4\), but has 4 tokens",
    ):
        decode(model, padded([[5]]), WAYS[way], prefixes=[[4, 4, 4, 4]], **WORDS)


def test_a_search_needs_no_torch() -> None:
    code = "import sys, heed.decode.search, heed.decode.score; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize("way", WAYS)
def test_a_source_that_is_not_wanted_any_more_leaves_within_a_step(fakes: Any, way: str) -> None:
    model = fakes.hash_model(1, vocab_size=40, n_kinds=40, sharpness=3.0)
    model.table[..., 3] = -5.0  # nearly all run to their limits
    sentences = [[kind] * 9 for kind in range(4, 16)]
    options, keys = WAYS[way], range(len(sentences))
    whole = decode(model, padded(sentences), options, keys=keys, **WORDS)
    n_asked = 0
    left: set[int] = set()
    n_rows: list[int] = []
    step = model.step
    n_rows_each = options.n_best if options.sample else options.beam_size

    def counted(state: Any, tokens: Any) -> Any:
        n_rows.append(len(tokens))
        return step(state, tokens)

    def is_wanted(sources: Any) -> Any:
        nonlocal n_asked
        n_asked += 1
        assert not left & set(sources.tolist())
        if n_asked == 4:
            left.update([0, 5, 6])
        return np.array([source not in left for source in sources.tolist()])

    model.step = counted
    found = decode(model, padded(sentences), options, keys=keys, is_wanted=is_wanted, **WORDS)
    assert n_rows[3] == len(sentences) * n_rows_each
    assert n_rows[4] <= (len(sentences) - 3) * n_rows_each
    assert left == {0, 5, 6}
    assert [answers for source, answers in enumerate(found) if source not in left] == [
        answers for source, answers in enumerate(whole) if source not in left
    ]
    assert all(found[source] == [] for source in left)


@pytest.mark.parametrize("way", WAYS)
def test_a_search_ends_when_nobody_wants_it(fakes: Any, way: str) -> None:
    model = fakes.hash_model(1, vocab_size=40, n_kinds=40)
    found = decode(
        model,
        padded([[5], [6]]),
        WAYS[way],
        is_wanted=lambda sources: np.zeros(len(sources), dtype=bool),
        **WORDS,
    )
    assert found == [[], []]


def test_what_had_ended_before_its_source_left_is_not_an_answer(fakes: Any) -> None:
    """A beam holds finished hypotheses long before the search is over."""
    model = fakes.hash_model(1, vocab_size=12, n_kinds=40, sharpness=1.0)
    steps: list[Step] = []
    decode(
        model,
        padded([[5] * 5]),
        DecodeOptions(beam_size=4, early_stopping="never", max_length=9),
        observer=steps.append,
        is_wanted=lambda sources: np.full(len(sources), len(steps) < 7),
        **WORDS,
    )
    assert any((step.slots == -2).any() for step in steps[:7])
    found = decode(
        model,
        padded([[5] * 5]),
        DecodeOptions(beam_size=4, early_stopping="never", max_length=9),
        is_wanted=lambda sources: np.zeros(len(sources), dtype=bool),
        **WORDS,
    )
    assert found == [[]]
