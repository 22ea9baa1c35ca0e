"""The recurrent sublayers of the decoder beside loops written from the papers."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import nn

from heed.model.build import build_model
from heed.model.cache import RunningState
from heed.model.config import ModelConfig
from heed.model.layers import FeedForward
from heed.model.recurrence import SSRU, AverageAttention, gated_sum, running_mean
from heed.model.trace import recording
from heed.model.transformer import Transformer

Doubles = NDArray[np.float64]
KINDS = ["average, no FFN", "average", "ssru"]


def sublayer(kind: str, d_model: int = 6) -> AverageAttention | SSRU:
    """One of the two in float64, no bias at 0."""
    torch.manual_seed(0)
    network: nn.Module = FeedForward(d_model, 10) if kind == "average" else nn.Identity()
    module = SSRU(d_model) if kind == "ssru" else AverageAttention(d_model, network)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return module.double()


def sigmoid(x: Doubles) -> Doubles:
    return 1 / (1 + np.exp(-x))


def weights(module: nn.Module) -> dict[str, Doubles]:
    return {name: tensor.numpy() for name, tensor in module.state_dict().items()}


def average_by_the_paper(x: Doubles, w: dict[str, Doubles]) -> Doubles:
    """Zhang et al. 2018, equations 1 to 4, one position after another."""
    out = []
    for j in range(1, len(x) + 1):
        g = sum(x[k] for k in range(j)) / j
        if "feed_forward.expand.weight" in w:
            inner = w["feed_forward.expand.weight"] @ g + w["feed_forward.expand.bias"]
            inner = np.where(inner > 0, inner, 0.0)
            g = w["feed_forward.contract.weight"] @ inner + w["feed_forward.contract.bias"]
        gates = sigmoid(w["gate.weight"] @ np.concatenate([x[j - 1], g]) + w["gate.bias"])
        out.append(gates[: x.shape[1]] * x[j - 1] + gates[x.shape[1] :] * g)
    return np.stack(out)


def ssru_by_the_paper(x: Doubles, w: dict[str, Doubles]) -> Doubles:
    """Kim et al. 2019, section 3.1, one position after another."""
    d_model = x.shape[1]
    c, out = np.zeros(d_model), []
    for each in x:
        forget = sigmoid(w["cell.weight"][:d_model] @ each + w["cell.bias"][:d_model])
        c = forget * c + (1 - forget) * (
            w["cell.weight"][d_model:] @ each + w["cell.bias"][d_model:]
        )
        out.append(np.where(c > 0, c, 0.0))
    return np.stack(out)


@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_all_positions_at_once_are_the_papers_loop(kind: str) -> None:
    module, x = sublayer(kind), torch.randn(3, 9, 6).double()
    by_the_paper = ssru_by_the_paper if kind == "ssru" else average_by_the_paper
    for found, sequence in zip(module(x), x, strict=True):
        expected = by_the_paper(sequence.numpy(), weights(module))
        np.testing.assert_allclose(found.numpy(), expected, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-10), (torch.float32, 1e-5)])
@torch.no_grad()
def test_one_position_at_a_time_gives_what_all_at_once_give(
    kind: str, dtype: torch.dtype, tolerance: float
) -> None:
    """Over 2,000 positions, with a state that does not grow."""
    module = sublayer(kind).to(dtype)
    x = torch.randn(2, 2000, 6, dtype=dtype)
    state = module.new_cache()
    steps = [module.extend(x[:, t : t + 1], state) for t in range(x.size(1))]
    assert (torch.cat(steps, dim=1) - module(x)).abs().max() <= tolerance
    assert state.length == 2000
    assert state.value is not None
    assert state.value.shape == (2, 1, 6)


def test_the_gated_sum_and_its_gradient_are_those_of_the_plain_loop() -> None:
    """Autograd through the loop, and small differences."""
    torch.manual_seed(0)
    forget = torch.rand(2, 7, 3, dtype=torch.double, requires_grad=True)
    candidate = torch.randn(2, 7, 3, dtype=torch.double, requires_grad=True)
    c, states = torch.zeros(2, 3, dtype=torch.double), []
    for t in range(7):
        c = forget[:, t] * c + (1 - forget[:, t]) * candidate[:, t]
        states.append(c)
    plain, scanned = torch.stack(states, dim=1), gated_sum(forget, candidate)
    assert (scanned - plain).abs().max() <= 1e-15
    direction = torch.randn_like(plain)
    for one, other in zip(
        torch.autograd.grad(scanned, (forget, candidate), direction),
        torch.autograd.grad(plain, (forget, candidate), direction),
        strict=True,
    ):
        assert (one - other).abs().max() <= 1e-14


def test_a_mean_of_bfloat16_is_summed_in_float32() -> None:
    """A bfloat16 sum of ones stays at 256."""
    ones = torch.ones(1, 1000, 2, dtype=torch.bfloat16)
    assert torch.equal(running_mean(ones), ones)


@pytest.mark.parametrize("kind", KINDS)
@torch.no_grad()
def test_no_position_reads_a_later_one(kind: str) -> None:
    """Claim 82: difference exactly 0."""
    module, x = sublayer(kind), torch.randn(1, 8, 6).double()
    other = x.clone()
    other[:, 5:] += 1.0
    changed = (module(x) != module(other)).any(dim=-1)[0]
    assert changed.tolist() == [False] * 5 + [True] * 3


@pytest.mark.parametrize("changes", [{"decoder_self": "average"}, {"decoder_self": "ssru"}])
def test_a_step_keeps_one_vector_a_row(
    tiny: Callable[..., Transformer], changes: dict[str, str]
) -> None:
    model = tiny(**changes)
    state = model.start(torch.tensor([[5, 6, 7], [5, 0, 0]]), beam_size=2)
    for length in range(1, 4):
        model.step(state, torch.full((4,), 5))
        assert [cache.length for cache in state.caches] == [length] * 2
        for cache in state.caches:
            assert isinstance(cache, RunningState)
            assert cache.value is not None
            assert cache.value.shape == (4, 1, 8)


def test_the_trace_shows_gates_and_states(tiny: Callable[..., Transformer]) -> None:
    src, tgt_in = torch.tensor([[5, 6, 7]]), torch.tensor([[2, 8, 9, 5]])
    model = tiny(decoder_self="ssru")
    with recording(model, "decoder.1.self_attention.forget", "candidate", "state", "out") as seen:
        model.teacher_forced(src, tgt_in)
    name = "decoder.1.self_attention"
    state = gated_sum(seen[f"{name}.forget"], seen[f"{name}.candidate"])
    assert torch.equal(seen[f"{name}.state"], state)
    assert torch.equal(seen[f"{name}.out"], state.relu())
    model = tiny(decoder_self="average")
    with recording(model) as seen:
        model.teacher_forced(src, tgt_in)
    mean = running_mean(seen["decoder.0.in"])  # post-norm reads the layer's input itself
    assert torch.equal(seen["decoder.0.self_attention.mean"], mean)
    assert seen["decoder.0.self_attention.gates"].shape == (1, 4, 16)
    assert seen["decoder.0.self_attention.feed_forward.out"].shape == (1, 4, 8)


def test_matrices_begin_within_glorots_bound() -> None:
    """What ends a sublayer is smaller with pre-norm: 1/√(3 · 3) for three decoder layers."""
    sizes = {"src_vocab_size": 9, "tgt_vocab_size": 9, "d_model": 64}
    torch.manual_seed(0)
    ssru = build_model(ModelConfig(**sizes, norm="pre", decoder_self="ssru"))
    average = build_model(ModelConfig(**sizes, norm="pre", decoder_self="average"))
    forget, candidate = ssru.get_parameter("decoder.0.self_attention.cell.weight").chunk(2)
    gates = average.get_parameter("decoder.0.self_attention.gate.weight").chunk(2)
    for block, bound in ((forget, 6 / 128), (candidate, 6 / 128 / 9), (gates[1], 6 / 192)):
        assert 0.9 * bound**0.5 < block.abs().max() <= bound**0.5
