"""Every value the paper names can be seen under one name: forced, greedy, by beam; or by nobody."""

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from tests.model.conftest import choices
from torch import Tensor

from heed.decode.options import DecodeOptions
from heed.decode.search import decode
from heed.errors import UsageError
from heed.model.build import build_model
from heed.model.config import ModelConfig
from heed.model.decodable import TorchDecodable
from heed.model.interface import Floats
from heed.model.masks import causal_mask
from heed.model.recurrent.network import Recurrent
from heed.model.trace import editing, listening, recording
from heed.model.transformer import Transformer

SRC, TGT_IN = torch.tensor([[5, 6, 7], [5, 6, 0]]), torch.tensor([[2, 8, 9, 5], [2, 7, 5, 8]])
ATTENTION = ("query", "key", "value", "products", "scores", "weights", "context", "joined", "out")


def test_teacher_forcing_shows_every_stage_of_attention(tiny: Callable[..., Transformer]) -> None:
    """Claim 48: the six steps of attention; claim 67: one module, three uses."""
    model = tiny(n_encoder_layers=1, n_decoder_layers=2)
    with recording(model) as seen:
        model.teacher_forced(SRC, TGT_IN)
    for module in (
        "encoder.0.self_attention",
        "decoder.0.self_attention",
        "decoder.1.cross_attention",
    ):
        found = {name: seen[f"{module}.{name}"] for name in ATTENTION}
        scores = found["query"] @ found["key"].transpose(-2, -1) / found["query"].size(-1) ** 0.5
        torch.testing.assert_close(found["scores"], scores)
        masked = seen[f"{module}.masked"]
        assert (masked[~masked.isinf()] == found["scores"][~masked.isinf()]).all()
        torch.testing.assert_close(found["weights"], masked.softmax(dim=-1))
        torch.testing.assert_close(found["context"], found["weights"] @ found["value"])
    assert seen["memory"].shape == (2, 3, model.output.in_features)
    assert seen["logits"].shape == (2, 4, model.output.out_features)
    torch.testing.assert_close(seen["logits"], seen["states"] @ model.output.weight.T)


def test_a_layer_begins_with_what_the_one_before_it_ends_with(
    tiny: Callable[..., Transformer],
) -> None:
    """Claim 29: only the first encoder layer gets embeddings."""
    model = tiny(n_encoder_layers=3)
    with recording(model) as seen:
        model.teacher_forced(SRC, TGT_IN)
    assert torch.equal(seen["encoder.0.in"], seen["embed_src.sum"])
    for layer in (1, 2):
        assert torch.equal(seen[f"encoder.{layer}.in"], seen[f"encoder.{layer - 1}.out"])


@pytest.mark.parametrize("norm", choices("norm"))
@pytest.mark.parametrize("activation", choices("activation"))
def test_every_matrix_of_the_plan_shows_what_it_makes(
    config_of: Callable[..., ModelConfig], norm: str, activation: str
) -> None:
    model = build_model(config_of(norm=norm, activation=activation)).eval()
    with recording(model) as seen:
        model.teacher_forced(SRC, TGT_IN)
    shown = {
        "project_in": ("query", "key", "value"),
        "project_out": ("out",),
        "expand": ("expanded",),
        "contract": ("out",),
    }
    for weight in model.plan:
        if weight.role == "matrix":
            module, _, matrix = weight.name.removesuffix(".weight").rpartition(".")
            assert {f"{module}.{name}" for name in shown[matrix]} <= seen.keys()
        elif weight.role == "table":
            assert weight.name.removesuffix(".weight") in seen
        elif weight.role == "norm" and "around" in weight.name:
            assert weight.name.split(".norm.")[0] + ".out" in seen


@pytest.mark.parametrize("beam_size", [1, 3])
def test_a_search_shows_the_names_of_teacher_forcing(
    tiny: Callable[..., Transformer], beam_size: int
) -> None:
    model = tiny()
    decodable = TorchDecodable(model, torch.device("cpu"))
    with recording(model) as forced:
        decodable.teacher_forced(SRC.numpy(), TGT_IN.numpy())
    options = DecodeOptions(beam_size=beam_size, max_length=4)
    with recording(model) as searched:
        decode(decodable, SRC.numpy(), options, bos_id=2, eos_id=3, pad_id=0)
    # A step asks for one position, so that nothing later has to be masked there.
    only_forced = {name for name in forced if name.endswith("self_attention.masked")}
    assert forced.keys() - searched.keys() <= only_forced
    assert searched.keys() <= forced.keys()


def test_each_step_of_a_search_shows_one_more_row(tiny: Callable[..., Transformer]) -> None:
    """Claims 95, 96: the table of keys and values grows by one at each step."""
    model = tiny()
    state = model.start(SRC[:1])
    for step, token in enumerate((2, 8, 9), start=1):
        with recording(model, "self_attention.weights") as seen:
            model.step(state, torch.tensor([token]))
        assert seen["decoder.0.self_attention.weights"].shape == (1, 2, 1, step)


def test_padding_and_the_future_get_no_weight(tiny: Callable[..., Transformer]) -> None:
    """Claim 80."""
    model = tiny()
    with recording(model, "attention.weights") as seen:
        shown = model.teacher_forced(SRC, TGT_IN)
    for weights in seen.values():
        assert not weights.requires_grad
        torch.testing.assert_close(weights.sum(dim=-1), torch.ones(weights.shape[:-1]))
    assert (seen["decoder.0.cross_attention.weights"][1, ..., 2] == 0).all()
    assert (seen["encoder.0.self_attention.weights"][1, ..., 2] == 0).all()
    assert (seen["decoder.1.self_attention.weights"][..., ~causal_mask(4, 4)] == 0).all()
    # Attention that shows its weights is the plain one: equal but for float32 rounding.
    torch.testing.assert_close(shown, model.teacher_forced(SRC, TGT_IN), atol=1e-5, rtol=1e-5)


def test_nothing_is_heard_after_the_block_nor_from_another_thread_or_model(
    tiny: Callable[..., Transformer],
) -> None:
    model, other = tiny(), tiny()
    before = model.teacher_forced(SRC, TGT_IN)
    heard: list[str] = []

    def hear(name: str, tensor: Tensor) -> None:
        heard.append(name)

    with pytest.raises(RuntimeError, match="inside"), listening(model, hear):
        other.teacher_forced(SRC, TGT_IN)
        thread = threading.Thread(target=model.teacher_forced, args=(SRC, TGT_IN))
        thread.start()
        thread.join()
        assert not heard
        raise RuntimeError("inside")
    assert torch.equal(model.teacher_forced(SRC, TGT_IN), before)
    assert not heard


def test_a_listener_changes_no_translation(tiny: Callable[..., Transformer]) -> None:
    model = tiny()
    decodable = TorchDecodable(model, torch.device("cpu"))
    options = DecodeOptions(beam_size=2, max_length=6)

    def texts() -> list[list[int]]:
        found = decode(decodable, SRC.numpy(), options, bos_id=2, eos_id=3, pad_id=0)
        return [best[0].ids for best in found]

    unheard = texts()
    with recording(model):
        assert texts() == unheard


MODELS: dict[str, dict[str, Any]] = {
    "post-norm": {"norm": "post"},
    "pre-norm": {"norm": "pre", "activation": "swiglu"},
    "rotary": {"positions": "rotary"},
    "shaw": {"positions": "shaw"},
    "alibi": {"positions": "alibi"},
    "masked after the softmax": {"mask": "after"},
    "linear": {"attention": "linear"},
    "favor": {"attention": "favor", "n_features": 8},
    "cosine": {"attention": "cosine"},
    "gaussian": {"attention": "gaussian"},
    "window": {"window": 1},
    "merged": {"decoder_attention": "merged"},
    "average": {"decoder_self": "average"},
    "ssru": {"decoder_self": "ssru"},
    "memory of each layer": {"cross_from": "same", "norm": "pre"},
    "conv": {"family": "conv"},
    "decoder": {"family": "decoder"},
    "decoder, favor": {"family": "decoder", "attention": "favor", "n_features": 8},
    "gru, dot": {"family": "rnn", "cell": "gru", "attention": "dot"},
    "lstm, additive": {"family": "rnn", "cell": "lstm", "attention": "additive"},
    "tanh, none": {"family": "rnn", "cell": "tanh", "attention": "none"},
}
each_model = pytest.mark.parametrize("changes", MODELS.values(), ids=MODELS.keys())


def shaken(tensor: Tensor) -> Tensor:
    """The tensor times noise above 0; a forbidden score stays forbidden."""
    noise = torch.randn(tensor.shape, generator=torch.Generator().manual_seed(1))
    return tensor * noise.exp()


@each_model
@torch.no_grad()
def test_what_is_put_in_the_place_of_a_tensor_is_used(
    tiny: Callable[..., Transformer], changes: dict[str, Any]
) -> None:
    """In one pass and in a search: every name, one after another."""
    decodable = TorchDecodable(tiny(**changes), torch.device("cpu"))
    model = decodable.network

    def forced() -> Floats:
        return decodable.teacher_forced(SRC.numpy(), TGT_IN.numpy()).all_log_probs()

    def stepped() -> Floats:
        state = decodable.start(SRC.numpy())
        steps = [decodable.step(state, tokens.numpy()) for tokens in TGT_IN.T.contiguous()]
        return np.stack([step.all_log_probs() for step in steps])

    for compute in (forced, stepped):
        with recording(model) as seen:
            before = compute()
        # Without attention nothing but the encoder's last state is read.
        is_summed_up = changes.get("attention") == "none"
        for name in seen.keys() - ({"encoder.1.out", "memory"} if is_summed_up else set()):
            with editing(model, {name: shaken}):
                assert not np.allclose(compute(), before, atol=1e-4), name


@torch.no_grad()
def test_an_edit_may_return_numpy_and_must_return_a_tensor(
    tiny: Callable[..., Transformer],
) -> None:
    model = tiny().eval()
    usual = model(SRC, TGT_IN)
    with editing(model, {"memory": lambda tensor: tensor.double().numpy()}):
        assert torch.allclose(model(SRC, TGT_IN), usual, atol=1e-6)
    with (
        pytest.raises(UsageError, match="The edit of memory must return a tensor"),
        editing(model, {"memory": lambda tensor: None}),
    ):
        model(SRC, TGT_IN)
    not_edits: Any = None
    with pytest.raises(UsageError, match="edits must map tensor names"), editing(model, not_edits):
        pass


@each_model
@torch.no_grad()
def test_a_tensor_is_changed_once(
    tiny: Callable[..., Transformer], changes: dict[str, Any]
) -> None:
    """The first tensor of a name is not the second one's input: an edit would count twice."""
    model = tiny(**changes)
    heard: list[str] = []
    with listening(model, lambda name, tensor: heard.append(name)):
        model.teacher_forced(SRC, TGT_IN)
    # Source and target of one stack are embedded by the same module, one behind the other. A
    # recurrent layer shows all positions again at each of them.
    is_rnn = changes.get("family") == "rnn"
    once = [
        name for name in heard if not name.startswith("embed.") and not (is_rnn and "." in name)
    ]
    assert len(once) == len(set(once))


@pytest.mark.parametrize("kind", ["none", "dot", "additive"])
def test_a_recurrent_model_shows_its_values_in_training_and_in_search(
    tiny: Callable[..., Recurrent], kind: str
) -> None:
    model = tiny(family="rnn", attention=kind)
    with torch.no_grad(), recording(model) as forced:
        model.teacher_forced(SRC, TGT_IN)
    assert torch.equal(forced["encoder.0.in"], forced["embedded_src"])
    assert torch.equal(forced["encoder.1.in"], forced["encoder.0.out"])
    assert torch.equal(forced["memory"], forced["encoder.1.out"])
    with torch.no_grad(), recording(model) as searched:
        state = model.start(SRC)
        for position in range(4):
            model.step(state, TGT_IN[:, position])
            for name in ("states", "logits", *(["cross_attention.weights"] * (kind != "none"))):
                now = forced[name].narrow(-2, position, 1).squeeze(-2)
                found = searched[name].squeeze(-2) if searched[name].dim() > 2 else searched[name]
                assert torch.allclose(found, now, atol=1e-6)
    assert searched.keys() == forced.keys()
