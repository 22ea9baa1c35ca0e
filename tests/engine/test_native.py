"""engine/*.cpp by its thin Python classes: what is refused, what is found first."""

import gc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from tests.engine.conftest import KERNELS

from heed.engine import library, native
from heed.engine.matrices import Matrix
from heed.engine.network import Network
from heed.engine.tables import PositionTables
from heed.errors import ConfigError, DataError, HeedError
from heed.model.interface import Floats, largest

pytestmark = pytest.mark.skipif(
    not library.is_compiled(), reason="the engine was not compiled here (no C++ compiler?)"
)
TEN = np.arange(4, 14)


def test_the_best_instruction_set_is_one_of_those_there_are() -> None:
    assert library.kernels() in KERNELS[:-1]
    assert library.kernels("portable") == "portable"
    assert library.kernels("abacus") is None


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
        ([0, 2], None, "a row is out of range"),
        ([-1, 0], None, "a row is out of range"),
        ([0, 1], [1], "a source is out of range"),
        ([0], None, "do not go together"),
        ([0, 1, 0], [0], "do not go together"),
        ([0] * (2**20 + 2), [0] * (2**19 + 1), "too few or too many rows"),
    ):
        with pytest.raises(HeedError, match=words):
            state.select(np.array(rows), None if sources is None else np.array(sources))
    state.step(np.array([4, 4]))
    assert np.isfinite(state.log_probs()).all()


def test_a_batch_may_grow(network: Callable[..., Network]) -> None:
    """More rows than ever before need a longer answer."""
    model = native.NativeModel(network())
    lengths = np.array([10], np.int32)
    one, four = model.start(TEN, lengths, 2), model.start(np.tile(TEN, 4), np.repeat(lengths, 4), 2)
    one.step(np.array([4, 5]))
    assert len(one.log_probs()) == 2
    one.select(np.tile([0, 1], 4), np.zeros(4, np.int64))
    four.step(np.tile([4, 5], 4))
    one.step(np.full(8, 6))
    four.step(np.full(8, 6))
    np.testing.assert_array_equal(one.log_probs(), four.log_probs())


@pytest.mark.parametrize("decoder_self", ["attention", "average", "ssru"])
def test_rows_that_begin_equally_get_the_bits_of_rows_by_themselves(
    network: Callable[..., Network], decoder_self: str
) -> None:
    """The first step computes one row of a source whose rows are equal; later ones go apart."""
    model = native.NativeModel(network(decoder_self=decoder_self))
    ids, lengths, none = np.tile(TEN, 2), np.array([7, 13], np.int32), np.empty(0, np.int64)
    beam, alone = model.start(ids, lengths, 3), model.start(ids, lengths, 1)
    alone.select(np.repeat([0, 1], 3), np.repeat([0, 1], 3))
    for tokens in ([2, 2, 2, 4, 4, 4], [5, 6, 7, 8, 8, 8], [9, 10, 11, 12, 13, 14]):
        found = []
        for state in (beam, alone):
            state.step(np.array(tokens))
            found.append((*state.best(4, none), state.log_probs().copy()))
        for one, other in zip(*found, strict=True):
            np.testing.assert_array_equal(one, other)
        order = np.array([1, 2, 0, 5, 5, 3])
        beam.select(order)
        alone.select(order, order)


def test_only_rows_of_the_last_step_have_log_probs(network: Callable[..., Network]) -> None:
    state = native.NativeModel(network()).start(TEN, np.array([10], np.int32), 2)
    with pytest.raises(HeedError, match="the number of rows differs from that of the last step"):
        state.log_probs()
    state.step(np.array([4, 4]))
    assert state.log_probs() is state.log_probs()
    state.select(np.array([0, 0]))
    with pytest.raises(HeedError, match="the number of rows differs from that of the last step"):
        state.log_probs()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"d_model": 0}, "d_model must be 1 to 65536, but is 0"),
        ({"d_ff": 1 << 17}, "d_ff must be 1 to 65536, but is 131072"),
        ({"d_v": -1}, r"n_heads \* d_v must be 1 to 65536, but is -3"),
        ({"n_heads": 1 << 30}, "n_heads must be 1 to 65536"),
        ({"n_encoder_layers": 1001}, "n_encoder_layers must be 0 to 1000"),
        ({"n_decoder_layers": 3}, "n_matrices must be 32 to 32, but is 25"),
        ({"is_pre_norm": 1}, "n_norms must be 24 to 24, but is 20"),
        ({"tgt_vocab_size": 71}, "matrix 1 must be 71 x 42 by the config, but is 70 x 42"),
        ({"activation": 9}, "activation must be 0 to 3, but is 9"),
        ({"activation": 3}, "matrix 5 must be 146 x 42 by the config, but is 73 x 42"),
        ({"d_k": 13, "is_rotary": 1}, "d_k must be even for rotary positions"),
        ({"target_reading": 4}, "target_reading must be 0 to 3, but is 4"),
        ({"target_reading": 1}, "n_matrices must be 23 to 23, but is 25"),
        ({"target_reading": 3, "is_one_stack": 1}, "decoder-only model has no recurrent layers"),
        ({"target_reading": 1, "d_model": 40_000}, r"2 \* d_model must be 1 to 65536, but is 8"),
        ({"n_decoder_layers": 1, "is_same_layer": 1}, "an encoder layer for each decoder layer"),
    ],
)
def test_weights_that_do_not_fit_the_config_are_refused(
    change: dict[str, int],
    words: str,
    network: Callable[..., Network],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shape = library.config_record(network())
    for name, value in change.items():
        setattr(shape, name, value)
    monkeypatch.setattr(library, "config_record", lambda _: shape)
    with pytest.raises(ConfigError, match=words):
        native.NativeModel(network())


@pytest.mark.parametrize("part", ["floats", "scales", "ints"])
def test_a_matrix_without_numbers_is_refused(
    part: str, network: Callable[..., Network], monkeypatch: pytest.MonkeyPatch
) -> None:
    def without(matrix: Matrix) -> library.MatrixRecord:
        made = whole(matrix)
        setattr(made, part, None)
        return made

    whole = library.matrix_record
    monkeypatch.setattr(library, "matrix_record", without)
    with pytest.raises(ConfigError, match="matrix 0 must have either floats, or ints and scales"):
        native.NativeModel(network(is_quantized=part != "floats"))


def test_positions_that_are_missing_are_refused(
    network: Callable[..., Network], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = native.NativeModel(network(positions="rotary"))
    places = {"src": library.PositionsRecord(99), "tgt": library.PositionsRecord(99)}
    monkeypatch.setattr(model, "positions", lambda side, n: places[side])
    with pytest.raises(HeedError, match="the positions are not of the model's kind"):
        model.start(TEN, np.array([10], np.int32), 1)
    monkeypatch.undo()
    places = {"src": model.positions("src", 10), "tgt": model.positions("tgt", 1)}
    places["src"].n, places["tgt"].n = 9, 0
    with pytest.raises(HeedError, match="a source is longer than its positions"):
        model.start(TEN, np.array([10], np.int32), 1)
    state = model.start(TEN[:9], np.array([9], np.int32), 1)
    with pytest.raises(HeedError, match="the target is longer than its positions"):
        state.step(np.array([4]))


def test_a_norm_without_numbers_is_refused(
    network: Callable[..., Network], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, checked = network(), library.checked_address
    vectors = {id(vector) for norm in whole.norms.values() for vector in norm}
    monkeypatch.setattr(
        library,
        "checked_address",
        lambda array, *rest: id(array) not in vectors and checked(array, *rest),
    )
    with pytest.raises(ConfigError, match="a norm must have gain and bias"):
        native.NativeModel(whole)


def test_arrays_that_are_not_what_they_should_be_never_reach_the_library(
    network: Callable[..., Network],
) -> None:
    for change in (np.float64, np.float32):
        whole: Any = network()
        gain, bias = whole.norms["encoder.0.self"]
        whole.norms["encoder.0.self"] = (
            gain,
            bias.astype(change)[: None if change is np.float64 else -1],
        )
        with pytest.raises(AssertionError):
            native.NativeModel(whole)


def test_tables_handed_out_stay_as_they_are(network: Callable[..., Network]) -> None:
    """Another thread may still compute with them."""
    for positions in ("sinusoidal", "rotary"):
        tables = PositionTables(network(positions=positions), "src")
        few = tables.first(5)
        many = tables.first(few.n + 1)
        assert many.n > few.n
        for name in ("added", "cosines", "sines"):
            short, long = getattr(few, name), getattr(many, name)
            if short is not None:
                np.testing.assert_array_equal(short, long[: few.n])
                assert not np.shares_memory(short, long)


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
            state.step(np.array([4]))
        assert np.isfinite(state.log_probs()).all()


numbers = st.sampled_from([-np.inf, -3.0, -2.5, -1.0, -0.0, 0.0, 1.5])


@given(
    scores=arrays.arrays(
        np.float32, st.tuples(st.integers(1, 4), st.integers(1, 70)), elements=numbers
    ),
    count=st.integers(1, 80),
)
def test_the_largest_come_in_order_and_equals_by_id(scores: Floats, count: int) -> None:
    values, ids = library.largest(scores, count)
    wanted, wanted_ids = largest(scores, count)
    np.testing.assert_array_equal(values, wanted)
    is_found = np.isfinite(values)
    np.testing.assert_array_equal(ids[is_found], wanted_ids[is_found])


@pytest.mark.parametrize("count", [512, 513, 700])
def test_the_largest_are_the_same_whether_inserted_or_sorted(count: int) -> None:
    scores = np.random.default_rng(1).standard_normal((3, 700)).round(2).astype(np.float32)
    for found, wanted in zip(library.largest(scores, count), largest(scores, count), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_the_largest_of_nothing_are_not_looked_for() -> None:
    with pytest.raises(HeedError, match="more scores are asked for than a row has"):
        library.largest(np.zeros((1, 3), np.float32), 0)


def test_a_model_may_be_used_from_several_threads_at_once(
    network: Callable[..., Network],
) -> None:
    from concurrent.futures import ThreadPoolExecutor

    model = native.NativeModel(network(is_quantized=True), threads=2)

    def run(seed: int) -> Floats:
        ids = np.random.default_rng(seed).integers(4, 51, 30)
        state = model.start(ids, np.full(6, 5, np.int32), 1)
        for _ in range(20):
            state.step(np.full(6, 4))
        return state.log_probs()

    alone = [run(seed) for seed in range(8)]
    with ThreadPoolExecutor(4) as pool:
        for one, other in zip(alone, pool.map(run, range(8)), strict=True):
            np.testing.assert_array_equal(one, other)


def test_the_memory_of_ended_batches_goes_back(network: Callable[..., Network]) -> None:
    """Not what a batch still uses; and that of a rare large batch also by itself."""
    model = native.NativeModel(network())
    library.give_back_memory()
    n_sources, length = 300, 50
    many = np.resize(TEN, n_sources * length), np.full(n_sources, length, np.int32)
    few = TEN[:2], np.array([2], np.int32)

    state = model.start(*many, 1)
    assert library.give_back_memory() < 1 << 24
    state.step(np.full(n_sources, 5))
    del state
    largest_bytes = library.give_back_memory()
    assert largest_bytes > 1 << 23
    assert library.give_back_memory() == 0

    model.start(*many, 1)
    for _ in range(1200):
        model.start(*few, 1)
    assert 0 < library.give_back_memory() < largest_bytes / 2


def test_a_batch_may_be_deleted_after_its_model(network: Callable[..., Network]) -> None:
    """The garbage collector deletes them so, the older one first, if a traceback holds both."""
    model = native.NativeModel(network())
    state = model.start(TEN, np.array([10], np.int32), 1)
    state.step(np.array([5]))
    cycle: list[Any] = [model, state]
    cycle.append(cycle)
    del model, state, cycle
    gc.collect()
