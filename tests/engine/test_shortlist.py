"""Shortlists: what is left out has no chance, and nothing else changes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from tests.engine.conftest import KERNELS, ODD, engine, needs_compiler, sources, walk

from heed.decode.options import DecodeOptions
from heed.decode.search import decode
from heed.engine import native
from heed.engine.matrices import float_matrix, int8_matrix, take, with_mean
from heed.engine.network import Network
from heed.engine.runtime import Engine
from heed.engine.shortlist import Shortlist
from heed.errors import FormatError, HeedError
from heed.model.config import ModelConfig
from heed.model.interface import ArrayNextTokens, Changes, Ids, largest

KINDS: list[dict[str, Any]] = [
    {},
    {"bias": False, "norm": "pre"},
    {"tied": "three-way", "src_vocab_size": 70},
    {"family": "decoder"},
]
ALL = np.arange(70)


def shortlist(src_vocab_size: int = 51) -> Shortlist:
    """Twenty ids for all, 3 (`<eos>`) among them, and up to five for each source id."""
    random = np.random.default_rng(2)
    always = np.union1d(random.choice(70, 19, replace=False), [3]).astype(np.int32)
    others = np.setdiff1d(ALL, always)
    lists = [
        np.sort(random.choice(others, random.integers(0, 6), replace=False))
        for _ in range(src_vocab_size)
    ]
    return Shortlist(
        common_ids=always,
        offsets=np.cumsum([0, *map(len, lists)]).astype(np.int32),
        source_ids=np.concatenate(lists).astype(np.int32),
        rest_logit=0.3,
    )


def allowed(short: Shortlist, source: Ids) -> list[int]:
    own, _ = short.ids_of(source[None], source[None] != 0)
    return sorted([*short.common_ids.tolist(), *own.tolist()])


@pytest.mark.parametrize("kernels", ["", "numpy"])
@pytest.mark.parametrize("is_quantized", [False, True])
@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_what_is_left_out_has_no_chance_and_the_others_stand_as_before(
    kernels: str, is_quantized: bool, kind: dict[str, Any], network: Callable[..., Network]
) -> None:
    weights = network(is_quantized=is_quantized, **kind)
    short = shortlist(weights.config.src_vocab_size)
    whole = walk(Engine(weights, kernels=kernels))[0]
    found = walk(Engine(weights, kernels=kernels, shortlist=short))[0]
    for row, (one, other) in enumerate(zip(whole, found, strict=True)):
        inside = allowed(short, sources()[row // 2])
        assert np.flatnonzero(other > -np.inf).tolist() == inside
        # The softmax is over fewer: that is one number for all of a row.
        assert np.ptp(other[inside] - one[inside]) < 1e-5
        assert np.exp(other).sum() < 1.0


@needs_compiler
@pytest.mark.parametrize("is_quantized", [False, True])
@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("kind", [KINDS[0], KINDS[-1]], ids=str)
def test_every_road_gives_the_same_bits(
    kind: dict[str, Any], is_quantized: bool, kernels: str, network: Callable[..., Network]
) -> None:
    if kernels == "numpy" and not is_quantized:
        pytest.skip("in float32 NumPy adds in another order")
    weights = network(is_quantized=is_quantized, **kind)
    short = shortlist(weights.config.src_vocab_size)
    wanted = walk(engine(weights, "portable", shortlist=short))
    for threads in (1, 2, 8):
        found = walk(engine(weights, kernels, threads, short))
        for one, other in zip(wanted, found, strict=True):
            np.testing.assert_array_equal(one, other)


@needs_compiler
@pytest.mark.parametrize("kernels", [name for name in KERNELS if name != "numpy"])
@pytest.mark.parametrize("are_equal", [False, True])
def test_steps_find_the_largest_of_what_all_and_what_each_source_may_use(
    are_equal: bool, kernels: str, network: Callable[..., Network]
) -> None:
    weights, tokens = network(is_quantized=True, bias=False), np.full(4, 2)
    if are_equal:
        weights.matrices["output"].panels[...] = 0
    model = engine(weights, kernels, shortlist=shortlist())
    state = model.start(sources())
    never = np.array([3, 40])
    for count in (1, 5, 15, 16, 17, 30, 99):
        for forbidden in (never[:0], never):
            state.step(tokens)
            state.best(count, forbidden)  # from now on it is looked for
            state.step(tokens)
            values, ids = state.best(count, forbidden)
            whole = state.log_probs().copy()
            whole[:, forbidden] = -np.inf
            wanted, wanted_ids = largest(whole, count)
            np.testing.assert_array_equal(values, wanted)
            is_left = np.isfinite(values)
            np.testing.assert_array_equal(ids[is_left], wanted_ids[is_left])
            # That is all of the list where more was asked for.
            assert (is_left.sum(axis=1) >= min(count, 18)).all()


@pytest.mark.parametrize("kernels", ["", "numpy"])
@pytest.mark.parametrize("has_shortlist", [False, True])
@pytest.mark.parametrize("are_equal", [False, True])
def test_changed_entries_are_found_as_in_whole_rows(
    kernels: str, has_shortlist: bool, are_equal: bool, network: Callable[..., Network]
) -> None:
    weights, random = network(is_quantized=True, bias=False), np.random.default_rng(4)
    if are_equal:
        weights.matrices["output"].panels[...] = 0
    model = engine(weights, kernels, shortlist=shortlist() if has_shortlist else None)
    state, tokens = model.start(sources(), beam_size=2), np.full(8, 2)
    for count in (1, 3, 3, 15, 40, 2, 70):
        following = model.step(state, tokens)
        whole = ArrayNextTokens(following.all_log_probs())
        _, likely = whole.top_k(4)
        n_entries = int(random.integers(1, 60))
        rows = random.integers(0, 6, n_entries)  # the last two rows have none
        ids = np.where(
            random.random(n_entries) < 0.6,
            likely[rows, random.integers(0, 4, n_entries)],
            random.integers(0, 70, n_entries),
        )
        lower = whole.log_probs_of(np.tile(ids, (8, 1)))[rows, np.arange(n_entries)]
        by = random.choice([-1.0, 0.0, 0.01, 0.3, np.inf], n_entries)
        changes = Changes(
            forbidden=np.array([0, 1, likely[0, 0]]),
            rows=rows,
            ids=ids,
            scores=(lower - by).astype(np.float32),
        )
        values, found = following.top_k(count, changes)
        wanted, wanted_ids = whole.top_k(count, changes)
        np.testing.assert_array_equal(values, wanted)
        is_left = np.isfinite(values)
        np.testing.assert_array_equal(found[is_left], wanted_ids[is_left])
        some = random.integers(0, 70, (8, 5))
        np.testing.assert_array_equal(following.log_probs_of(some), whole.log_probs_of(some))


@pytest.mark.parametrize("kernels", ["", "numpy"])
def test_a_source_gets_the_same_bits_alone_as_in_company(
    kernels: str, network: Callable[..., Network]
) -> None:
    model = Engine(network(is_quantized=True), kernels=kernels, shortlist=shortlist())
    together = model.step(model.start(sources()), np.full(4, 2)).all_log_probs()
    for row, source in zip(together, sources(), strict=True):
        alone = model.start(source[source != 0][None])
        np.testing.assert_array_equal(model.step(alone, np.array([2])).all_log_probs()[0], row)


def test_a_list_of_everything_changes_nothing(network: Callable[..., Network]) -> None:
    whole = network()
    short = Shortlist(
        common_ids=ALL.astype(np.int32),
        offsets=np.zeros(52, np.int32),
        source_ids=np.empty(0, np.int32),
    )
    for one, other in zip(walk(Engine(whole)), walk(Engine(whole, shortlist=short)), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


@pytest.mark.parametrize("kernels", ["", "numpy"])
@pytest.mark.parametrize(
    "options",
    [
        {"beam_size": 1},
        {"beam_size": 30, "n_best": 3, "min_length": 3},
        {"beam_size": 3, "no_repeat_ngram_size": 1, "repetition_penalty": 1.2},
        {"sample": True, "top_p": 0.9, "n_best": 2},
    ],
    ids=str,
)
def test_searches_stay_inside_but_for_forced_beginnings(
    kernels: str, options: dict[str, Any], network: Callable[..., Network]
) -> None:
    short = shortlist()
    model = Engine(network(is_quantized=True), kernels=kernels, shortlist=short)
    outside = [id for id in range(4, 70) if id not in allowed(short, sources()[1])][:2]
    found = decode(
        model,
        sources(),
        DecodeOptions(max_length=10, **options),
        bos_id=2,
        eos_id=3,
        pad_id=0,
        forbidden=[0, 1, 2],
        prefixes=[[], outside, [], []],
    )
    for number, (source, hypotheses) in enumerate(zip(sources(), found, strict=True)):
        inside = {*allowed(short, source), *(outside if number == 1 else [])}
        for hypothesis in hypotheses:
            assert {*hypothesis.ids} <= inside
            # No log-prob is that of a word without a chance.
            assert min(hypothesis.token_log_probs) > -100
    assert all(hypothesis.ids[:2] == outside for hypothesis in found[1])


@pytest.mark.parametrize("kernels", ["", "numpy"])
def test_given_targets_are_scored_by_the_whole_vocabulary(
    kernels: str, network: Callable[..., Network]
) -> None:
    tgt_in = np.random.default_rng(1).integers(4, 70, (4, 6))
    weights = network(is_quantized=True)
    plain = Engine(weights, kernels=kernels)
    short = plain.with_shortlist(shortlist())
    np.testing.assert_array_equal(
        plain.teacher_forced(sources(), tgt_in).all_log_probs(),
        short.teacher_forced(sources(), tgt_in).all_log_probs(),
    )
    for one, other in zip(
        plain.cross_attention(sources(), tgt_in),
        short.cross_attention(sources(), tgt_in),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)


def test_lists_come_back_from_arrays() -> None:
    one = shortlist()
    other = Shortlist.from_arrays(ModelConfig(**ODD), one.to_arrays(), "there")
    for name, array in one.to_arrays().items():
        np.testing.assert_array_equal(array, other.to_arrays()[name])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"always": None}, "there must hold always, offsets, ids, rest, changed"),
        ({"extra": [1]}, "but holds .*'extra'"),
        ({"ids": np.zeros(3, np.int64)}, "ids must be a row of int32, but is int64"),
        ({"always": np.zeros((2, 2), np.int32)}, r"always must be a row of int32, .* \[2, 2\]"),
        ({"offsets": [0, 1]}, "offsets must have 52 numbers"),
        ({"offsets": [*range(51), 60000]}, "offsets must grow from 0"),
        ({"offsets": [-1] * 51 + [0], "ids": []}, "offsets must grow from 0"),
        ({"always": [3, 70]}, "always must be target ids from 0 to 69"),
        ({"always": [-1, 3]}, "always must be target ids from 0 to 69"),
        ({"offsets": [0] * 51 + [1], "ids": [70]}, "ids must be target ids from 0 to 69"),
        ({"always": [3, 3]}, "always must be ascending, and not empty"),
        ({"always": []}, "always must be ascending, and not empty"),
        ({"offsets": [0] * 51 + [2], "ids": [3, 3]}, "not hold ids of always, but 2 of them"),
        ({"rest": np.array([1e9], np.float32)}, "rest must be a number from"),
        ({"rest": np.array([np.nan], np.float32)}, "rest must be a number from"),
        ({"rest": np.empty(0, np.float32)}, "rest must be a number from"),
        ({"changed": [3, 2]}, "changed must be two numbers"),
    ],
    ids=str,
)
def test_arrays_that_are_no_shortlist_are_refused(changes: dict[str, Any], words: str) -> None:
    arrays = shortlist().to_arrays()
    for name, values in changes.items():
        if values is None:
            del arrays[name]
        else:
            arrays[name] = np.array(values, np.int32) if isinstance(values, list) else values
    with pytest.raises(FormatError, match=words):
        Shortlist.from_arrays(ModelConfig(**ODD), arrays, "there")


@needs_compiler
def test_the_engine_refuses_lists_that_do_not_fit(network: Callable[..., Network]) -> None:
    weights = network()
    model, output = native.NativeModel(weights), weights.matrices["output"]
    state = model.start(np.arange(4, 14), np.array([4, 6], np.int32), 1)
    own, one_each = np.array([5], np.int32), np.array([1, 1], np.int32)
    with pytest.raises(HeedError, match="do not go with the model or the sources"):
        state.restrict(np.array([5, 6], np.int32), one_each)
    for ids, words in (([], "too few"), ([70], "not in the vocabulary"), ([4], "does not go")):
        with pytest.raises(HeedError, match=words):
            model.set_common_ids(output, np.array(ids, np.int32))
    with pytest.raises(HeedError, match="does not go with the output"):
        model.set_common_ids(int8_matrix(np.ones((2, 42), np.float32)), own)
    model.set_common_ids(take(output, np.array([3, 4], np.int32)), own)
    for ids, counts, words in (
        ([5], [1], "do not go"),
        ([5, -1], [1, 1], "an id of a shortlist is not in"),
        ([5, 70], [1, 1], "an id of a shortlist is not in"),
        ([5], [2, -1], "too few or too many ids"),
    ):
        with pytest.raises(HeedError, match=words):
            state.restrict(np.array(ids, np.int32), np.array(counts, np.int32))


@pytest.mark.parametrize("make", [float_matrix, int8_matrix])
def test_columns_are_taken_as_they_are_and_the_mean_of_others_added(make: Any) -> None:
    random = np.random.default_rng(3)
    matrix = make(
        random.normal(size=(40, 9)).astype(np.float32), random.normal(size=40).astype(np.float32)
    )
    ids, others = np.array([33, 2, 17], np.int32), np.arange(20, 30, dtype=np.int32)
    few, more = take(matrix, ids), with_mean(matrix, ids, others)
    for found in (few.floats(), more.floats()[:3]):
        np.testing.assert_array_equal(found, matrix.floats()[ids])
    np.testing.assert_allclose(more.floats()[3], matrix.floats()[others].mean(axis=0), atol=0.01)
    assert matrix.bias is not None
    assert few.bias is not None
    assert more.bias is not None
    assert more.bias[3] == pytest.approx(matrix.bias[others].mean())
    for bias in (few.bias, more.bias):
        assert bias[:3].tolist() == matrix.bias[ids].tolist()
