"""The shapes and steps that the documents teach, in a trace of a model of base size, untrained."""

import numpy as np
import pytest
import torch
from tests.translate.test_trace import LINES

from heed.errors import UsageError
from heed.model.build import build_model
from heed.model.config import ModelConfig
from heed.model.decodable import TorchDecodable
from heed.text.vocab import Vocab, train_vocab
from heed.translate.trace import Trace
from heed.translate.tracer import Tracer

SEVEN, HUNDRED = list(range(10, 17)), list(range(10, 110))
ATTENTION = ("products", "scores", "masked", "weights", "context", "joined")
LAYERS = ("encoder.0", "encoder.1", "decoder.0", "decoder.1")


def traced(src_ids: list[int], tgt_ids: list[int]) -> Trace:
    """A trace of ids, as if the vocabulary had 10,000 pieces."""
    torch.manual_seed(4)
    config = ModelConfig(
        src_vocab_size=10_000,
        tgt_vocab_size=10_000,
        d_model=512,
        n_heads=8,
        d_ff=2048,
        n_encoder_layers=2,
        n_decoder_layers=2,
        activation="gelu",
    )
    vocab: Vocab = train_vocab(LINES * 9, size=320)
    model = TorchDecodable(build_model(config).eval(), torch.device("cpu"))
    return Tracer(model, vocab, vocab).forced("", src_ids, "", tgt_ids)


@pytest.fixture(scope="module")
def seven() -> Trace:
    """Seven positions on both sides."""
    return traced(SEVEN, SEVEN[1:])


def test_seven_words_of_width_512_in_eight_heads(seven: Trace) -> None:
    """Claims 28, 59, 100, 103: X is [1, 7, 512]; Z_0 … Z_7 of width 64; 7 × 10,000 scores."""
    assert seven["embed_src.sum"].shape == (7, 512)
    for layer in LAYERS:
        assert seven[f"{layer}.in"].shape == seven[f"{layer}.out"].shape == (7, 512)
        assert seven[f"{layer}.self_attention.context"].shape == (8, 7, 64)
        assert seven[f"{layer}.self_attention.joined"].shape == (7, 512)
        assert seven[f"{layer}.feed_forward.activated"].shape == (7, 2048)
    heads = seven["encoder.1.self_attention.context"]
    joined = np.concatenate(list(heads), axis=1)
    np.testing.assert_array_equal(seven["encoder.1.self_attention.joined"], joined)
    assert seven["memory"].shape == seven["states"].shape == (7, 512)
    assert seven["logits"].shape == (7, 10_000)
    np.testing.assert_allclose(np.exp(seven["log_probs"]).sum(axis=1), 1.0, atol=1e-4)


def test_a_hundred_positions_are_split_into_heads_and_joined() -> None:
    """Claim 60: (100, 512) → (8, 100, 64) → scores (8, 100, 100) → (8, 100, 64) → (100, 512)."""
    trace = traced(HUNDRED, SEVEN)
    module = "encoder.0.self_attention"
    shapes = [
        *((f"{module}.{name}", (8, 100, 64)) for name in ("query", "key", "value")),
        *((f"{module}.{name}", (8, 100, 100)) for name in ("products", "scores", "weights")),
        (f"{module}.context", (8, 100, 64)),
        (f"{module}.joined", (100, 512)),
        (f"{module}.out", (100, 512)),
    ]
    assert [(name, trace[name].shape) for name in trace if name.startswith(module)] == shapes
    assert trace["decoder.0.cross_attention.weights"].shape == (8, 8, 100)


def test_attention_is_six_steps(seven: Trace) -> None:
    """Claim 48: q, k, v → q·k → ÷ √d_k → softmax → × v → sum."""
    module = "encoder.0.self_attention"
    steps = ["query", "key", "value", "products", "scores", "weights", "context"]
    assert [name for name in seven if name.startswith(module)][:7] == [
        f"{module}.{step}" for step in steps
    ]
    nodes = {step: seven.node(f"{module}.{step}") for step in steps}
    assert nodes["products"].inputs == (f"{module}.query", f"{module}.key")
    assert nodes["scores"].inputs == (f"{module}.products",)
    assert nodes["weights"].inputs == (f"{module}.scores",)
    assert nodes["context"].inputs == (f"{module}.weights", f"{module}.value")
    # The last two steps for one query of one head, one value at a time.
    weights, values = seven[f"{module}.weights"][3, 2], seven[f"{module}.value"][3]
    total = sum(weight * value for weight, value in zip(weights, values, strict=True))
    np.testing.assert_allclose(seven[f"{module}.context"][3, 2], total, atol=1e-5)


def test_a_layer_is_nine_steps(seven: Trace) -> None:
    """Claims 95, 96: the input; q, k, v; the table; attention; W; skip; LayerNorm; MLP; again."""
    layer = "decoder.1"
    own = [name for name in seven if name.startswith(layer) and "cross" not in name]
    nine = [
        ["in"],
        ["self_attention.query", "self_attention.key", "self_attention.value"],
        [],  # the table holds what the second step made
        [f"self_attention.{name}" for name in ATTENTION],
        ["self_attention.out"],
        ["around_self.sum"],
        ["around_self.out"],
        [f"feed_forward.{name}" for name in ("expanded", "activated", "out")],
        ["around_feed_forward.sum", "around_feed_forward.out", "out"],
    ]
    assert len(nine) == 9
    assert own == [f"{layer}.{name}" for step in nine for name in step]
    # Token t is read with the table as it is after its own key and value were stored.
    module = f"{layer}.self_attention"
    for step in range(7):
        keys, values = seven.kv_table(1, step)
        assert keys.shape == values.shape == (8, step + 1, 64)
        query = seven[f"{module}.query"][:, step]
        scores = np.einsum("hd,hkd->hk", query, keys) / 8
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        context = np.einsum("hk,hkd->hd", weights, values)
        np.testing.assert_allclose(seven[f"{module}.context"][:, step], context, atol=1e-5)


def test_there_is_no_table_of_another_layer_or_step(seven: Trace) -> None:
    with pytest.raises(UsageError, match="no table of keys and values of decoder layer 2"):
        seven.kv_table(2, 0)
    with pytest.raises(UsageError, match="step must be below 7, but is 7"):
        seven.kv_table(0, 7)
