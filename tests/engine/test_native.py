"""engine/*.cpp by its thin Python classes: what is refused, what is found first."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from heed.engine import native
from heed.engine.network import Network
from heed.errors import ConfigError, DataError, HeedError
from heed.model.interface import Floats, largest

pytestmark = pytest.mark.skipif(
    not native.is_compiled(), reason="the engine was not compiled here (no C++ compiler?)"
)
TEN = np.arange(4, 14)


def test_the_best_instruction_set_is_one_of_those_there_are() -> None:
    assert native.kernels() in ("avx512", "avx2", "portable")
    assert native.kernels("portable") == "portable"
    assert native.kernels("abacus") is None


def test_an_unknown_instruction_set_is_refused(network: Callable[..., Network]) -> None:
    with pytest.raises(ConfigError, match="this processor has no abacus"):
        native.NativeModel(network(), kernels="abacus")


@pytest.mark.parametrize("threads", [0, -1, 5000])
def test_an_absurd_number_of_threads_is_refused(
    threads: int, network: Callable[..., Network]
) -> None:
    with pytest.raises(ConfigError, match="threads must be 1 to 1024"):
        native.NativeModel(network(), threads=threads)


@pytest.mark.parametrize(
    ("ids", "lengths", "beam_size", "words"),
    [
        ([51], [1], 1, "source id is not in the vocabulary"),
        ([-1], [1], 1, "source id is not in the vocabulary"),
        ([4, 4], [2, 0], 1, "a source has no tokens"),
        ([4], [1], 0, "too few or too many rows"),
        ([4], [1], 1 << 21, "too few or too many rows"),
    ],
)
def test_sources_that_cannot_be_read_are_refused(
    ids: list[int],
    lengths: list[int],
    beam_size: int,
    words: str,
    network: Callable[..., Network],
) -> None:
    model = native.NativeModel(network())
    with pytest.raises(HeedError, match=words):
        model.start(np.array(ids), np.array(lengths, np.int32), beam_size)


def test_steps_that_do_not_fit_are_refused(network: Callable[..., Network]) -> None:
    state = native.NativeModel(network()).start(TEN, np.array([10], np.int32), 2)
    for tokens, words in (
        ([70, 4], "target id is not in the vocabulary"),
        ([-1, 4], "target id is not in the vocabulary"),
        ([4], "one token for each row"),
        ([4, 4, 4], "one token for each row"),
    ):
        with pytest.raises(HeedError, match=words):
            state.step(np.array(tokens))
    for rows, sources, words in (
        ([0, 2], None, "no such row"),
        ([-1, 0], None, "no such row"),
        ([0, 1], [1], "no such source"),
        ([0], None, "do not go together"),
        ([0, 1, 0], [0], "do not go together"),
        ([0] * (2**20 + 2), [0] * (2**19 + 1), "too few or too many rows"),
    ):
        with pytest.raises(HeedError, match=words):
            state.select(np.array(rows), None if sources is None else np.array(sources))
    assert np.isfinite(state.step(np.array([4, 4]))).all()


def test_a_learned_table_has_an_end(network: Callable[..., Network]) -> None:
    model = native.NativeModel(network(positions="learned", max_positions=4))
    with pytest.raises(DataError, match="10 positions, but this model learned only 4"):
        model.start(TEN, np.array([10], np.int32), 1)
    state = model.start(TEN[:2], np.array([2], np.int32), 1)
    for _ in range(4):
        state.step(np.array([4]))
    with pytest.raises(DataError, match="5 positions, but this model learned only 4"):
        state.step(np.array([4]))


def test_tables_grow_with_the_target(network: Callable[..., Network]) -> None:
    for positions in ("sinusoidal", "rotary"):
        state = native.NativeModel(network(positions=positions)).start(
            TEN, np.array([10], np.int32), 1
        )
        for _ in range(300):
            log_probs = state.step(np.array([4]))
        assert np.isfinite(log_probs).all()


numbers = st.sampled_from([-np.inf, -3.0, -2.5, -1.0, -0.0, 0.0, 1.5])


@given(
    scores=arrays.arrays(
        np.float32, st.tuples(st.integers(1, 4), st.integers(1, 70)), elements=numbers
    ),
    count=st.integers(1, 80),
)
def test_the_largest_come_in_order_and_equals_by_id(scores: Floats, count: int) -> None:
    values, ids = native.largest(scores, count)
    wanted, wanted_ids = largest(scores, count)
    np.testing.assert_array_equal(values, wanted)
    is_found = np.isfinite(values)
    np.testing.assert_array_equal(ids[is_found], wanted_ids[is_found])


def test_a_model_may_be_used_from_several_threads_at_once(
    network: Callable[..., Network],
) -> None:
    from concurrent.futures import ThreadPoolExecutor

    model = native.NativeModel(network(is_quantized=True), threads=2)

    def run(seed: int) -> Floats:
        ids = np.random.default_rng(seed).integers(4, 51, 30)
        state = model.start(ids, np.full(6, 5, np.int32), 1)
        for _ in range(20):
            log_probs = state.step(np.full(6, 4))
        return log_probs.copy()

    alone = [run(seed) for seed in range(8)]
    with ThreadPoolExecutor(4) as pool:
        for one, other in zip(alone, pool.map(run, range(8)), strict=True):
            np.testing.assert_array_equal(one, other)
