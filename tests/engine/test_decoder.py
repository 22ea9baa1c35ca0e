"""Decoder-only models on the engine, and several tokens at once for every model."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from tests.engine.conftest import (
    BEAM_SIZE,
    KERNELS,
    LENGTHS,
    NO_SOURCES,
    engine,
    needs_compiler,
    sources,
    walk,
)

from heed.decode.options import DecodeOptions
from heed.decode.search import decode
from heed.engine import library, native
from heed.engine.network import Network, engine_config
from heed.engine.runtime import Engine
from heed.errors import ConfigError, DataError, HeedError
from heed.model.config import ModelConfig
from heed.model.decodable import TorchDecodable
from heed.model.interface import Decodable, Floats, Ids
from heed.model.network import TorchNetwork
from heed.model.one_stack.config import DecoderConfig, EncoderConfig

KINDS: dict[str, dict[str, Any]] = {
    "transformer": {"positions": "rotary"},
    "ssru": {"decoder_self": "ssru", "norm": "pre"},
    "average": {"decoder_self": "average"},
    "decoder": {"family": "decoder"},
    "causal": {"family": "decoder", "prefix": "causal", "norm": "post", "positions": "rotary"},
}


def random_ids(*shape: int) -> Ids:
    return np.random.default_rng(sum(shape)).integers(4, 70, shape)


def in_steps(model: Engine, src: Ids, tokens: Ids) -> Floats:
    """Log-probs after each of `tokens` `(n_sources, n_tokens)`, one step after another."""
    state = model.start(src)
    steps = [model.step(state, column).all_log_probs() for column in tokens.T]
    return np.stack(steps, axis=1)


@pytest.mark.parametrize("kernels", ["", "numpy"])
@pytest.mark.parametrize("kind", ["decoder", "causal"])
def test_a_text_without_a_source_gets_what_torch_gives(
    kind: str,
    kernels: str,
    torch_model: Callable[..., TorchNetwork],
    network: Callable[..., Network],
) -> None:
    """Claim 124: a language model on the engine."""
    wanted = walk(TorchDecodable(torch_model(**KINDS[kind]), torch.device("cpu")), src=NO_SOURCES)
    found = walk(engine(network(**KINDS[kind]), kernels), src=NO_SOURCES)
    for one, other in zip(wanted, found, strict=True):
        np.testing.assert_allclose(other, one, atol=2e-5)


@needs_compiler
@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("src", [sources(), NO_SOURCES], ids=["sources", "no sources"])
def test_every_road_gives_the_same_bits(
    kernels: str, threads: int, src: Ids, network: Callable[..., Network]
) -> None:
    int8 = network(is_quantized=True, **KINDS["causal"])
    for one, other in zip(
        walk(engine(int8, "portable"), src=src),
        walk(engine(int8, kernels, threads), src=src),
        strict=True,
    ):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("kernels", ["", "numpy"])
@pytest.mark.parametrize("is_quantized", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_tokens_at_once_give_the_bits_of_steps(
    kind: str, is_quantized: bool, kernels: str, network: Callable[..., Network]
) -> None:
    for threads in (1, 2, 5) if kernels == "" else (1,):
        model = engine(network(is_quantized=is_quantized, **KINDS[kind]), kernels, threads)
        tokens = random_ids(len(LENGTHS), 9)
        wanted = in_steps(model, sources(), tokens)
        found = model.teacher_forced(sources(), tokens).all_log_probs()
        np.testing.assert_array_equal(found.reshape(wanted.shape), wanted)
        chosen = random_ids(wanted.size // wanted.shape[-1], 1)
        of_chosen = model.teacher_forced(sources(), tokens).log_probs_of(chosen)
        np.testing.assert_array_equal(of_chosen, np.take_along_axis(found, chosen, axis=1))
        state = model.start(sources())
        model.extend(state, tokens[:, :3])
        model.extend(state, tokens[:, 3:8])
        last = model.step(state, tokens[:, 8]).all_log_probs()
        np.testing.assert_array_equal(last, wanted[:, 8])


@needs_compiler
@pytest.mark.parametrize("kind", KINDS)
def test_more_tokens_than_are_computed_together(kind: str, network: Callable[..., Network]) -> None:
    model = engine(network(is_quantized=True, **KINDS[kind]), "", 2)
    tokens = random_ids(2, 600)
    wanted = in_steps(model, sources()[:2], tokens)
    found = model.teacher_forced(sources()[:2], tokens).all_log_probs()
    np.testing.assert_array_equal(found.reshape(wanted.shape), wanted)
    of_chosen = model.teacher_forced(sources()[:2], tokens).log_probs_of(tokens.reshape(-1, 1))
    np.testing.assert_array_equal(of_chosen.ravel(), found[range(tokens.size), tokens.ravel()])


@pytest.mark.parametrize("kind", KINDS)
def test_a_beam_may_change_places_before_tokens_at_once(
    kind: str, network: Callable[..., Network]
) -> None:
    tokens, rows = random_ids(len(LENGTHS) * BEAM_SIZE, 4), np.array([1, 1, 2, 3, 5, 4, 7, 6])

    def run(extend: Callable[[Decodable, Any, Ids], None]) -> Floats:
        model = engine(network(**KINDS[kind]))
        state = model.start(sources(), beam_size=BEAM_SIZE)
        model.step(state, tokens[:, 0])
        model.select(state, rows)
        extend(model, state, tokens[:, 1:3])
        return model.step(state, tokens[:, 3]).all_log_probs()

    def step(model: Decodable, state: Any, tokens: Ids) -> None:
        for column in tokens.T:
            model.step(state, column)

    at_once = run(lambda model, state, tokens: model.extend(state, tokens))
    np.testing.assert_array_equal(at_once, run(step))


@pytest.mark.parametrize("src", [sources(), NO_SOURCES], ids=["sources", "no sources"])
@pytest.mark.parametrize(
    "settings",
    [
        *KINDS.values(),
        {"family": "decoder", "window": 2},
        {"family": "decoder", "positions": "alibi"},
        {"family": "decoder", "positions": "shaw", "prefix": "causal"},
    ],
    ids=str,
)
def test_torch_takes_tokens_at_once_too(
    settings: dict[str, Any], src: Ids, torch_model: Callable[..., TorchNetwork]
) -> None:
    if "family" not in settings and not src.size:
        pytest.skip("a model with an encoder has a source")
    tokens, model = random_ids(4, 6), TorchDecodable(torch_model(**settings), torch.device("cpu"))
    state, other = model.start(src), model.start(src)
    model.extend(state, tokens[:, :2])
    model.extend(state, tokens[:, 2:5])
    for column in tokens[:, :5].T:
        model.step(other, column)
    one, two = (model.step(each, tokens[:, 5]).all_log_probs() for each in (state, other))
    np.testing.assert_allclose(one, two, atol=1e-5)


@pytest.mark.parametrize("kernels", ["", "numpy"])
@pytest.mark.parametrize("kind", ["decoder", "causal"])
def test_a_source_gets_the_same_bits_alone_as_in_company(
    kind: str, kernels: str, network: Callable[..., Network]
) -> None:
    model = engine(network(is_quantized=True, **KINDS[kind]), kernels)
    tokens = random_ids(len(LENGTHS), 3)
    together = in_steps(model, sources(), tokens)
    for row, source, own in zip(together, sources(), tokens, strict=True):
        alone = source[source != 0][None]
        np.testing.assert_array_equal(in_steps(model, alone, own[None])[0], row)


@pytest.mark.parametrize("kernels", ["", "numpy"])
def test_an_empty_source_may_stand_beside_others(
    kernels: str, network: Callable[..., Network]
) -> None:
    model = engine(network(is_quantized=True, **KINDS["decoder"]), kernels)
    src, tokens = sources(), random_ids(len(LENGTHS), 3)
    src[1] = 0
    together = in_steps(model, src, tokens)
    alone = in_steps(model, np.zeros((1, 0), np.int64), tokens[1:2])
    np.testing.assert_array_equal(together[1], alone[0])


def test_the_prefix_says_what_a_source_token_reads(network: Callable[..., Network]) -> None:
    """Read in both directions and without positions, a source is a set of tokens."""
    tokens = random_ids(1, 1)
    for prefix in ("causal", "bidirectional"):
        model = Engine(network(family="decoder", prefix=prefix, positions="none", n_layers=2))
        one, other = (
            in_steps(model, np.array([source]), tokens) for source in ([5, 6, 7], [7, 6, 5])
        )
        assert np.allclose(one, other, atol=1e-5) == (prefix == "bidirectional")


@pytest.mark.parametrize("kernels", ["", "numpy"])
def test_attention_to_the_source_is_that_of_torch(
    kernels: str, torch_model: Callable[..., TorchNetwork], network: Callable[..., Network]
) -> None:
    tgt_in = random_ids(len(LENGTHS), 5)
    theirs = TorchDecodable(torch_model(**KINDS["decoder"]), torch.device("cpu"))
    found = engine(network(**KINDS["decoder"]), kernels).cross_attention(sources(), tgt_in)
    wanted = theirs.cross_attention(sources(), tgt_in)
    assert len(found) == len(wanted) == 3
    for one, other in zip(found, wanted, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)


@pytest.mark.parametrize("kernels", ["", "numpy"])
@pytest.mark.parametrize("kind", KINDS)
def test_attention_of_one_layer_is_that_of_all_to_the_bit(
    kind: str,
    kernels: str,
    torch_model: Callable[..., TorchNetwork],
    network: Callable[..., Network],
) -> None:
    tgt_in = random_ids(len(LENGTHS), 40 if kernels == "numpy" else 300)
    model = engine(network(is_quantized=True, **KINDS[kind]), kernels, 1)
    theirs = TorchDecodable(torch_model(**KINDS[kind]), torch.device("cpu"))
    for each in (model, theirs):
        wanted = each.cross_attention(sources(), tgt_in)
        for layer in (*range(len(wanted)), -1):
            (found,) = each.cross_attention(sources(), tgt_in, layer=layer)
            np.testing.assert_array_equal(found, wanted[layer])
        with pytest.raises(ConfigError, match=f"between -{len(wanted)} and .*, but is 9"):
            each.cross_attention(sources(), tgt_in, layer=9)


@needs_compiler
def test_a_state_goes_on_after_it_was_asked_for_attention(
    network: Callable[..., Network],
) -> None:
    for kind in KINDS:
        model = engine(network(**KINDS[kind]), "")
        state = model.start(sources())
        tokens = random_ids(len(LENGTHS), 3)
        weights = np.empty((len(LENGTHS), model.config.n_heads, 3, max(LENGTHS)), np.float32)
        state.attention(tokens, 0, weights)
        found = model.step(state, tokens[:, 0]).all_log_probs()
        np.testing.assert_array_equal(found, in_steps(model, sources(), tokens)[:, 0])
        with pytest.raises(HeedError, match="there are tokens already"):
            state.attention(tokens, 0, weights)


LANGUAGE_MODELS: dict[str, dict[str, Any]] = {
    "bidirectional": {"family": "decoder"},
    "rotary": {"family": "decoder", "prefix": "causal", "norm": "post", "positions": "rotary"},
    "learned": {"family": "decoder", "positions": "learned"},
    "no positions": {"family": "decoder", "positions": "none"},
}
PROMPTS = np.array([[5, 9, 7, 8, 4, 6], [6, 0, 0, 0, 0, 0], [0] * 6, [9, 9, 4, 7, 0, 0]])


@pytest.mark.parametrize("kernels", KERNELS)
@pytest.mark.parametrize("is_quantized", [False, True])
@pytest.mark.parametrize("kind", LANGUAGE_MODELS)
def test_prompts_of_any_length_are_read_at_once_to_the_same_bits(
    kind: str, is_quantized: bool, kernels: str, network: Callable[..., Network]
) -> None:
    """Beside the same tokens one after another, alone; also after rows have left and moved."""
    # NumPy's products of float32 depend on how many rows there are.
    atol = 1e-5 if kernels == "numpy" and not is_quantized else 0.0
    model = engine(network(is_quantized=is_quantized, **LANGUAGE_MODELS[kind]), kernels)
    tokens, stay = random_ids(len(PROMPTS), 4), np.array([3, 0])
    state = model.start_from(PROMPTS)
    found = [model.step(state, column).all_log_probs() for column in tokens[:, :2].T]
    model.select(state, stay, stay)
    found.append(model.step(state, tokens[stay, 2]).all_log_probs())
    model.extend(state, tokens[stay, 3:])
    found.append(model.step(state, tokens[stay, 0]).all_log_probs())
    places = [*((row, row, (0, 1)) for row in range(4)), (3, 0, (2, 3)), (0, 1, (2, 3))]
    for row, place, numbers in places:
        prompt = PROMPTS[row][PROMPTS[row] != 0]
        whole = np.concatenate([prompt, tokens[row], tokens[row, :1]])
        wanted = in_steps(model, np.zeros((1, 0), np.int64), whole[None])[0, len(prompt) :]
        for number in numbers:
            expected = wanted[-1 if number == 3 else number]
            np.testing.assert_allclose(found[number][place], expected, rtol=0, atol=atol)


@pytest.mark.parametrize("kernels", ["", "numpy"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"sample": True, "seed": 3, "temperature": 0.8},
        {"no_repeat_ngram_size": 2, "repetition_penalty": 1.3},
        {"sample": True, "n_best": 2, "top_k": 5},
    ],
)
def test_each_prompt_goes_on_as_it_does_alone(
    options: dict[str, Any], kernels: str, network: Callable[..., Network]
) -> None:
    """As it does, too, where a model reads prompts up to the shortest and is forced to the rest."""
    model = engine(network(is_quantized=True, **LANGUAGE_MODELS["rotary"]), kernels)
    prompts = [prompt[prompt != 0].tolist() for prompt in PROMPTS]
    controls = {"bos_id": 2, "eos_id": 3, "pad_id": 0, "forbidden": [0, 1, 2]}

    class Forced:
        """The same model without `start_from`."""

        start, step, extend, select = model.start, model.step, model.extend, model.select
        length_limit = model.length_limit

    def texts(model: Any, rows: list[int], n_new: int) -> list[list[tuple[list[int], float]]]:
        chosen = DecodeOptions(
            beam_size=1, max_length=20, max_length_factor=0, max_length_offset=n_new, **options
        )
        found = decode(
            model,
            np.zeros((len(rows), 0), np.int64),
            chosen,
            prefixes=[prompts[row] for row in rows],
            score_prefixes=False,
            keys=rows,
            **controls,
        )
        return [[(answer.ids, answer.score) for answer in answers] for answers in found]

    together = texts(model, [0, 1, 2, 3], 5)
    for row, (answers, prompt) in enumerate(zip(together, prompts, strict=True)):
        assert answers == texts(model, [row], 5)[0]
        for ids, _ in answers:
            assert ids[: len(prompt)] == prompt
            assert len(ids) <= len(prompt) + 5
    forced = texts(Forced, [0, 1, 2, 3], 5)
    assert [[ids for ids, _ in row] for row in together] == [
        [ids for ids, _ in row] for row in forced
    ]


# ---------------------------------------------------------------------------- what is refused


def test_prompts_are_for_decoder_only_models_that_know_their_tokens(
    network: Callable[..., Network],
) -> None:
    with pytest.raises(HeedError, match="a source id is not in the vocabulary"):
        engine(network(**KINDS["decoder"]), "").start_from(np.array([[5, 99]]))
    with pytest.raises(DataError, match="3 positions, but this model learned only 2"):
        learned = engine(network(family="decoder", positions="learned", max_positions=2), "")
        learned.start_from(np.array([[5, 6, 7]]))


@needs_compiler
def test_a_model_with_an_encoder_reads_no_prompts(network: Callable[..., Network]) -> None:
    with pytest.raises(HeedError, match="prompts are read by a decoder-only model"):
        engine(network(**KINDS["transformer"]), "").start_from(np.array([[5, 6]]))


@needs_compiler
def test_tokens_at_once_that_do_not_fit_are_refused(network: Callable[..., Network]) -> None:
    model = native.NativeModel(network(**KINDS["decoder"]))
    state = model.start(np.array([4, 5, 6]), np.array([3, 0], np.int32), 1)
    for tokens, words in (
        ([[70, 4], [4, 4]], "target id is not in the vocabulary"),
        ([[4, 4], [4, -1]], "target id is not in the vocabulary"),
        ([[4, 4]], "one token for each row"),
        ([[], []], "too few or too many tokens at once"),
    ):
        with pytest.raises(HeedError, match=words):
            state.extend(np.array(tokens, np.int64))
    good = np.array([[4, 4], [5, 5]])
    with pytest.raises(HeedError, match="target id is not in the vocabulary"):
        state.extend(
            good, next_ids=np.array([[4, 70], [5, 5]]), log_probs=np.empty((2, 2), np.float32)
        )
    with pytest.raises(HeedError, match="no room for the log-probs of the next ids"):
        state.extend(good, next_ids=good)
    state.extend(good)
    with pytest.raises(HeedError, match="the number of rows differs from that of the last step"):
        state.log_probs()
    state.step(np.array([4, 4]))
    assert np.isfinite(state.log_probs()).all()


def test_a_learned_table_has_an_end_for_tokens_at_once(network: Callable[..., Network]) -> None:
    model = engine(network(family="decoder", positions="learned", max_positions=4))
    state = model.start(np.zeros((1, 0), np.int64))
    model.extend(state, random_ids(1, 3))
    with pytest.raises(DataError, match="5 positions, but this model learned only 4"):
        model.extend(state, random_ids(1, 2))


@needs_compiler
@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"n_encoder_layers": 1}, "a decoder-only model has no encoder layers"),
        ({"n_decoder_layers": 2}, "n_matrices must be 11 to 11, but is 15"),
        ({"is_pre_norm": 0}, "n_norms must be 12 to 12, but is 14"),
        ({"is_one_stack": 0}, "n_matrices must be 24 to 24, but is 15"),
        ({"src_vocab_size": 71}, "matrix 0 must be 71 x 42 by the config, but is 70 x 42"),
    ],
)
def test_weights_that_do_not_fit_the_config_are_refused(
    change: dict[str, int],
    words: str,
    network: Callable[..., Network],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shape = library.config_record(network(**KINDS["decoder"]))
    for name, value in change.items():
        setattr(shape, name, value)
    monkeypatch.setattr(library, "config_record", lambda _: shape)
    with pytest.raises(ConfigError, match=words):
        native.NativeModel(network(**KINDS["decoder"]))


@pytest.mark.parametrize(
    "config",
    [
        DecoderConfig(src_vocab_size=9, tgt_vocab_size=9, attention="cosine"),
        DecoderConfig(src_vocab_size=9, tgt_vocab_size=9, norm="none"),
        DecoderConfig(src_vocab_size=9, tgt_vocab_size=9, residual=False),
        DecoderConfig(src_vocab_size=9, tgt_vocab_size=9, output_projection=False),
        EncoderConfig(src_vocab_size=9, tgt_vocab_size=9),
        ModelConfig(src_vocab_size=9, tgt_vocab_size=9, attention="gaussian"),
    ],
    ids=lambda config: config.summary(),
)
def test_models_that_the_engine_does_not_compute_are_named(config: Any) -> None:
    with pytest.raises(ConfigError, match="with softmax attention .* but this model is: .*Transf"):
        engine_config(config)
