"""One model in torch, NumPy and every instruction set, with any threads and batch: check N7."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tests.engine.conftest import BEAM_SIZE, KERNELS, LENGTHS, engine, needs_compiler, sources, walk

from heed.decode.options import DecodeOptions
from heed.decode.search import decode
from heed.engine import library, runtime
from heed.engine.network import Network, engine_config
from heed.engine.runtime import Engine, State
from heed.errors import ConfigError
from heed.model.config import ModelConfig
from heed.model.decodable import TorchDecodable
from heed.model.families import family_of
from heed.model.interface import Changes, Floats, Ids, largest
from heed.model.network import TorchNetwork

ARCHITECTURES: list[dict[str, Any]] = [
    {"norm": norm, "activation": activation, "positions": positions}
    for norm in ("post", "pre")
    for activation in ("relu", "gelu", "swiglu")
    for positions in ("sinusoidal", "sinusoidal_halves", "learned", "rotary", "none")
] + [
    {"bias": False},
    {"cross_from": "same", "norm": "pre"},
    {"n_encoder_layers": 3, "n_decoder_layers": 1},
    {"n_encoder_layers": 0, "norm": "pre"},
    {"n_encoder_layers": 0, "n_decoder_layers": 1},
    {"d_k": 6, "d_v": 10},
    {"tied": "three-way", "src_vocab_size": 70},
    {"tied": "output", "scale_embedding": False},
]
DECODERS: list[dict[str, Any]] = [
    {"family": "decoder", "prefix": prefix, "norm": norm, "positions": positions}
    for prefix in ("bidirectional", "causal")
    for norm, positions in (
        ("pre", "sinusoidal"),
        ("post", "sinusoidal_halves"),
        ("pre", "learned"),
        ("pre", "rotary"),
        ("post", "none"),
    )
] + [
    {"family": "decoder", "activation": "gelu", "bias": False, "tied": "none"},
    {"family": "decoder", "activation": "swiglu", "n_layers": 1, "d_k": 6, "d_v": 10},
]
RECURRENT: list[dict[str, Any]] = [
    {"decoder_self": "ssru"},
    {"decoder_self": "ssru", "norm": "pre", "positions": "rotary", "bias": False},
    {"decoder_self": "ssru", "d_model": 48, "n_heads": 4},
    {"decoder_self": "average"},
    {"decoder_self": "average", "norm": "pre", "activation": "swiglu", "bias": False},
    {"decoder_self": "average", "activation": "gelu", "positions": "learned"},
    {"decoder_self": "average", "average_feed_forward": False, "norm": "pre"},
]
ARCHITECTURES += DECODERS + RECURRENT


def words(architecture: dict[str, Any]) -> str:
    return "-".join(str(value) for value in architecture.values())


@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=words)
def test_float32_gives_what_torch_gives(
    architecture: dict[str, Any],
    torch_model: Callable[..., TorchNetwork],
    network: Callable[..., Network],
) -> None:
    wanted = walk(TorchDecodable(torch_model(**architecture), torch.device("cpu")))
    for kernels in ("", "numpy"):
        found = walk(engine(network(**architecture), kernels))
        for one, other in zip(wanted, found, strict=True):
            np.testing.assert_allclose(other, one, atol=2e-5)


@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=words)
def test_a_network_gives_back_the_weights_that_it_was_made_of(
    architecture: dict[str, Any],
    torch_model: Callable[..., TorchNetwork],
    network: Callable[..., Network],
) -> None:
    wanted = torch_model(**architecture).state_dict()
    found = network(**architecture).weights()
    assert found.keys() == wanted.keys()
    for name, weight in wanted.items():
        np.testing.assert_array_equal(found[name], weight.numpy())


@pytest.mark.parametrize(
    ("settings", "words_of_it"),
    [
        ({"positions": "absolute"}, "4 heads of softmax attention, absolute positions"),
        ({"positions": "seed1"}, "4 heads of softmax attention, seed1 positions"),
        ({"positions": "shaw"}, "4 heads of softmax attention, shaw positions"),
        ({"positions": "alibi"}, "4 heads of softmax attention, alibi positions"),
        ({"decoder_attention": "merged"}, "4 heads of softmax attention, merged in the decoder"),
        ({"feed_forward": False}, "4 heads of softmax attention, no feed-forward networks"),
        ({"share_layers": "all"}, "the layers of a stack share their weights"),
        ({"normalize_positions": True}, "4 heads of softmax attention, normalized positions"),
    ],
)
def test_what_the_engine_does_not_compute_is_refused_in_words(
    settings: dict[str, Any], words_of_it: str
) -> None:
    config = ModelConfig(src_vocab_size=9, tgt_vocab_size=9, **settings)
    assert not family_of(config).runs_on_engine(config)
    with pytest.raises(
        ConfigError, match=rf"this model is: .*{words_of_it}\. It runs with torch: leave"
    ):
        engine_config(config)


@needs_compiler
@pytest.mark.parametrize("architecture", ARCHITECTURES, ids=words)
def test_int8_gives_the_same_bits_in_numpy_as_compiled(
    architecture: dict[str, Any], network: Callable[..., Network]
) -> None:
    int8 = network(is_quantized=True, **architecture)
    compiled, plain = walk(engine(int8)), walk(engine(int8, "numpy"))
    for one, other in zip(compiled, plain, strict=True):
        np.testing.assert_array_equal(one, other)


@needs_compiler
@pytest.mark.parametrize("kernels", KERNELS[:-1])
def test_int8_sums_hold_when_every_number_is_the_largest(
    kernels: str, torch_model: Callable[..., TorchNetwork], network: Callable[..., Network]
) -> None:
    weights = {name: tensor.numpy() for name, tensor in torch_model().state_dict().items()}
    for name, weight in weights.items():
        if ".norm." in name:
            weight[:] = name.endswith("bias")  # so all that is multiplied is 1
        elif weight.ndim == 2:
            weight[::2], weight[1::2] = 1.0, -1.0
    int8 = Network.of(network().config, weights, is_quantized=True)
    for one, other in zip(walk(engine(int8, kernels)), walk(engine(int8, "numpy")), strict=True):
        np.testing.assert_array_equal(one, other)


@needs_compiler
@pytest.mark.parametrize("kernels", KERNELS[:-1])
@pytest.mark.parametrize("is_quantized", [False, True])
@pytest.mark.parametrize("decoder_self", ["attention", "average", "ssru"])
def test_every_instruction_set_and_number_of_threads_gives_the_same_bits(
    kernels: str, is_quantized: bool, decoder_self: str, network: Callable[..., Network]
) -> None:
    changes = {"activation": "gelu", "positions": "rotary", "decoder_self": decoder_self}
    weights = network(is_quantized=is_quantized, **changes)
    wanted = walk(engine(weights, "portable"))
    for threads in (1, 2, 3, 8):
        for one, other in zip(wanted, walk(engine(weights, kernels, threads)), strict=True):
            np.testing.assert_array_equal(one, other)


@needs_compiler
@pytest.mark.parametrize("kernels", KERNELS[:-1])
@pytest.mark.parametrize("threads", [1, 2])
def test_any_number_of_rows_gives_the_same_bits(
    kernels: str, threads: int, network: Callable[..., Network]
) -> None:
    # Widths of whole tiles, and rows that fill blocks of them or end within one.
    int8 = network(is_quantized=True, d_model=64, n_heads=4, d_ff=192, tgt_vocab_size=123)
    plain, model = engine(int8, "portable"), engine(int8, kernels, threads)
    for n_rows in (1, 6, 7, 16, 17, 33, 64, 65):
        src = 4 + np.arange(n_rows)[:, None] % 40
        one, other = (
            each.step(each.start(src), src[:, 0]).all_log_probs() for each in (plain, model)
        )
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("kernels", ["", "numpy"])
@pytest.mark.parametrize("decoder_self", ["attention", "average", "ssru"])
def test_a_source_gets_the_same_bits_alone_as_in_company(
    kernels: str, decoder_self: str, network: Callable[..., Network]
) -> None:
    model = engine(network(is_quantized=True, decoder_self=decoder_self), kernels)
    together = model.step(model.start(sources()), np.full(4, 2)).all_log_probs()
    for row, source in zip(together, sources(), strict=True):
        # Alone it has no padding either.
        alone = source[source != 0][None]
        np.testing.assert_array_equal(
            model.step(model.start(alone), np.array([2])).all_log_probs()[0], row
        )


@pytest.mark.parametrize("kernels", ["", "numpy"])
def test_steps_find_the_largest_whatever_was_asked_of_the_last(
    kernels: str, network: Callable[..., Network], monkeypatch: pytest.MonkeyPatch
) -> None:
    n_slow = []

    def slowly(scores: Floats, count: int) -> tuple[Floats, Ids]:
        n_slow.append(1)
        return find(scores, count)

    find = library.largest
    monkeypatch.setattr(library, "largest", slowly)
    monkeypatch.setattr(runtime, "_FEW", 15)
    model = engine(network(), kernels)
    state = model.start(sources(), beam_size=BEAM_SIZE)
    tokens = np.full(len(LENGTHS) * BEAM_SIZE, 2)
    likeliest = largest(model.step(state, tokens).all_log_probs(), 3)[1]
    nothing, few, many = (
        np.array(ids, np.int64) for ids in (list[int](), likeliest[0], np.arange(69))
    )
    asked = [(1, nothing), (1, few), (1, few), (4, few), (4, few), (2, many), (2, many)]
    asked += [(99, nothing), (99, nothing), (99, few), (99, few)]
    asked += [(1, np.array(ids)) for ids in ([3], [3], [0, 5])]
    n_slowly = 0
    for count, never in [*asked, (2, None), (2, None)]:
        following = model.step(state, tokens)
        scores = following.all_log_probs()
        best = largest(scores, count + runtime._SPARE)[1]
        if never is None:  # many, but all the largest of each row may be chosen
            never = np.setdiff1d(np.arange(scores.shape[1]), best)
            assert len(never) > runtime._FEW
        n_slowly += len(never) > runtime._FEW and (~np.isin(best, never)).sum(axis=1).min() < count
        scores[:, never] = -np.inf
        changes = Changes(
            forbidden=never, rows=nothing, ids=nothing, scores=np.empty(0, np.float32)
        )
        values, ids = following.top_k(count, changes)
        wanted = largest(scores, count)
        np.testing.assert_array_equal(values, wanted[0])
        is_left = np.isfinite(values)
        np.testing.assert_array_equal(ids[is_left], wanted[1][is_left])
        tokens = ids[:, 0]
    # Only where much of the largest is forbidden, whole rows are looked through.
    assert n_slowly
    if model.is_native:
        assert len(n_slow) == n_slowly


@pytest.mark.parametrize("kernels", KERNELS)
def test_an_id_that_is_certain_is_found_while_training_counts_subnormal_numbers_as_zero(
    kernels: str, network: Callable[..., Network]
) -> None:
    weights = network(norm="pre")
    weights.norms["decoder"][1][: weights.config.d_model] = 1
    weights.matrices["output"].panels[0, :, 7] = 12
    model = engine(weights, kernels)
    tokens = np.full(len(LENGTHS), 2)
    torch.set_flush_denormal(True)
    try:
        state = model.start(sources())
        # The second step finds the largest as it computes the row.
        found = [model.step(state, tokens).top_k(1) for _ in range(2)]
    finally:
        torch.set_flush_denormal(False)
    for values, ids in found:
        np.testing.assert_array_equal(ids, 7)
        np.testing.assert_array_equal(values, 0)


@pytest.mark.parametrize("kernels", ["", "numpy"])
def test_equal_sources_are_read_once_and_each_goes_its_own_way(
    kernels: str, network: Callable[..., Network], monkeypatch: pytest.MonkeyPatch
) -> None:
    model = engine(network(is_quantized=True), kernels)
    n_read = []

    def start(ids: Ids, lengths: NDArray[np.int32], beam_size: int) -> State:
        n_read.append(len(lengths))
        return begin(ids, lengths, beam_size)

    begin = model._model.start
    monkeypatch.setattr(model._model, "start", start)
    tokens = np.array([9, 8, 7, 6, 5])
    repeated = sources()[[2, 0, 2, 1, 0]]
    together = model.start(repeated, beam_size=1)
    model.step(together, np.full(5, 2))
    after = model.step(together, tokens).all_log_probs()
    assert n_read == [3]
    for row, source, token in zip(after, repeated, tokens, strict=True):
        alone = model.start(source[None])
        model.step(alone, np.array([2]))
        np.testing.assert_array_equal(model.step(alone, np.array([token])).all_log_probs()[0], row)


@pytest.mark.parametrize("kernels", ["", "numpy"])
@pytest.mark.parametrize(
    "options",
    [
        {"beam_size": 1},
        {"beam_size": 4, "n_best": 3},
        {"beam_size": 3, "no_repeat_ngram_size": 2, "min_length": 3, "suppress": (9,)},
        {"sample": True, "top_k": 5, "seed": 4, "n_best": 2},
        {"sample": True, "top_p": 0.7, "temperature": 1.3},
    ],
    ids=str,
)
def test_searches_find_the_same_as_with_torch(
    kernels: str,
    options: dict[str, Any],
    torch_model: Callable[..., TorchNetwork],
    network: Callable[..., Network],
) -> None:
    ids: dict[str, Any] = {"bos_id": 2, "eos_id": 3, "pad_id": 0, "forbidden": [0, 1, 2, 3]}
    chosen = DecodeOptions(max_length=12, **options)
    found = []
    for model in (
        TorchDecodable(torch_model(), torch.device("cpu")),
        engine(network(), kernels),
    ):
        ranked = decode(model, sources(), chosen, prefixes=[[7], [], [5, 6], []], **ids)
        found.append(ranked)
    for one, other in zip(*found, strict=True):
        assert [hypothesis.ids for hypothesis in one] == [hypothesis.ids for hypothesis in other]
        np.testing.assert_allclose(
            [hypothesis.score for hypothesis in one],
            [hypothesis.score for hypothesis in other],
            atol=1e-4,
        )


@pytest.mark.parametrize("kernels", ["", "numpy"])
def test_cross_attention_and_forced_scores_are_those_of_torch(
    kernels: str, torch_model: Callable[..., TorchNetwork], network: Callable[..., Network]
) -> None:
    tgt_in = np.random.default_rng(1).integers(4, 70, (4, 6))
    tgt_in[:, 0] = 2
    theirs = TorchDecodable(torch_model(norm="pre"), torch.device("cpu"))
    ours = engine(network(norm="pre"), kernels)
    np.testing.assert_allclose(
        ours.teacher_forced(sources(), tgt_in).all_log_probs(),
        theirs.teacher_forced(sources(), tgt_in).all_log_probs(),
        atol=2e-5,
    )
    weights = ours.cross_attention(sources(), tgt_in)
    for one, other in zip(weights, theirs.cross_attention(sources(), tgt_in), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


def test_int8_stays_near_float32(network: Callable[..., Network]) -> None:
    steps = [walk(Engine(each)) for each in (network(), network(is_quantized=True))]
    for exact, rounded in zip(*steps, strict=True):
        assert np.abs(exact - rounded).mean() < 0.05
    exact, rounded = map(np.concatenate, steps)
    assert (exact.argmax(axis=1) == rounded.argmax(axis=1)).mean() > 0.8


@needs_compiler
def test_rows_of_zeros_and_of_equal_numbers_are_no_trouble(
    network: Callable[..., Network],
) -> None:
    weights = network(is_quantized=True)
    for matrix in weights.matrices.values():
        matrix.panels[:] = 0
    for log_probs in walk(Engine(weights)):
        np.testing.assert_allclose(log_probs, -np.log(70), atol=1e-5)


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("is_quantized", [False, True])
@pytest.mark.parametrize(
    ("changes", "role", "number"),
    [
        ({"activation": "relu"}, "expand", 7),
        ({"activation": "gelu"}, "expand", 7),
        ({"activation": "swiglu"}, "expand", 7),
        ({"activation": "swiglu"}, "expand", 73 + 72),
        ({"decoder_self": "ssru"}, "cell", 7),
        ({"decoder_self": "ssru"}, "cell", 42 + 41),
        ({"decoder_self": "average"}, "gate", 7),
        ({"decoder_self": "average"}, "gate", 42 + 41),
        ({"decoder_self": "average"}, "average_expand", 7),
        ({}, "query", 7),
        ({}, "output", 7),
    ],
)
def test_no_activation_makes_a_number_of_nan(
    changes: dict[str, Any],
    role: str,
    number: int,
    is_quantized: bool,
    kernels: str,
    network: Callable[..., Network],
) -> None:
    """Weights that are NaN give log-probs that are NaN, not a translation."""
    weights = network(is_quantized=is_quantized, **changes)
    matrix = weights.matrices[role if role == "output" else f"decoder.1.{role}"]
    if matrix.scales is None:
        matrix.panels[number // 16, 0, number % 16] = np.nan
    else:
        matrix.scales[number] = np.nan
    with np.errstate(invalid="ignore"):
        assert all(np.isnan(log_probs).all() for log_probs in walk(engine(weights, kernels)))
