"""How far two positions lie apart: a step for each token in between, or one read of attention.

Paths are counted in autograd's own graph; gradients are float64's.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from heed.model.attention import MultiHeadAttention
from heed.model.convolutional.convolution import GatedConvolution
from heed.model.recurrent.cells import CELLS, advance
from heed.model.recurrent.network import initialize
from heed.model.recurrent.plan import GATES
from heed.model.trace import recording

WIDTH = 8
each_cell = pytest.mark.parametrize("cell", CELLS)


def cell_named(name: str) -> nn.Module:
    torch.manual_seed(0)
    cell = CELLS[name](WIDTH, WIDTH, batch_first=True).double()
    initialize(cell, n_gates=len(GATES[name]))
    return cell


def attention() -> MultiHeadAttention:
    torch.manual_seed(0)
    return MultiHeadAttention(WIDTH, 2).double()


def last_state(cell: nn.Module, tokens: list[Tensor]) -> Tensor:
    """The state after tokens that come one by one."""
    state = torch.zeros(2 if isinstance(cell, nn.LSTM) else 1, 1, WIDTH).double()
    for token in tokens:
        after, state = advance(cell, token, state)
    return after


def shortest(end: Tensor, start: Tensor) -> int:
    """Operations on the shortest way through the graph from a result back to a leaf."""
    todo, seen = deque([(end.grad_fn, 0)]), set()
    while todo:
        node, n_steps = todo.popleft()
        if getattr(node, "variable", None) is start:
            return n_steps
        for follower, _ in node.next_functions:
            if follower is not None and follower not in seen:
                seen.add(follower)
                todo.append((follower, n_steps + 1))
    raise AssertionError("there is no way")


def longest(node: Any) -> int:
    """Operations on the longest way through the graph behind a result."""
    return max((1 + longest(each) for each, _ in node.next_functions if each), default=0)


@each_cell
def test_a_recurrent_path_grows_with_the_distance(cell: str) -> None:
    """Claim 122: even the shortest way from the last token to the first is O(n)."""
    module = cell_named(cell)
    n_steps = []
    for length in (5, 10, 20):
        tokens = [torch.randn(1, 1, WIDTH).double().requires_grad_() for _ in range(length)]
        n_steps.append(shortest(last_state(module, tokens), tokens[0]))
    assert n_steps[2] - n_steps[1] == 2 * (n_steps[1] - n_steps[0]) >= 10


def test_a_path_through_attention_does_not_grow() -> None:
    """Claim 122: even the longest way is O(1), and it leads to every token."""
    module, lengths = attention(), set()
    for length in (5, 10, 20):
        x = torch.randn(1, length, WIDTH).double().requires_grad_()
        end = module(x, is_causal=True)[0, -1].sum()
        lengths.add(longest(end.grad_fn))
        (gradient,) = torch.autograd.grad(end, x)
        assert (gradient[0].norm(dim=-1) > 0).all()
    assert len(lengths) == 1


def test_a_convolution_needs_a_layer_for_each_width_of_its_kernel() -> None:
    """Claims 122, 126: with kernels of 5 a layer reaches two positions to each side."""
    torch.manual_seed(0)
    layers = [GatedConvolution(WIDTH, 5).double() for _ in range(6)]
    for distance, n_layers in ((2, 1), (4, 2), (5, 3), (12, 6)):
        reached = []
        x = torch.randn(1, 20, WIDTH).double().requires_grad_()
        after = x
        for layer in layers:
            after = layer(after)
            (gradient,) = torch.autograd.grad(after[0, 15].sum(), x, retain_graph=True)
            reached.append(bool(gradient[0, 15 - distance].abs().sum() > 0))
        assert reached.index(True) + 1 == n_layers


def gradient_norms(layer: Callable[[Tensor], Tensor], x: Tensor) -> Tensor:
    """How much each token moves what stands at the last position, `(length,)`."""
    x = x.detach().requires_grad_()
    (gradient,) = torch.autograd.grad(layer(x)[0, -1].sum(), x)
    return gradient[0].norm(dim=-1)


@each_cell
def test_gradients_through_time_vanish_and_those_through_attention_do_not(cell: str) -> None:
    """Claim 120: forty tokens back."""
    recurrent, attending = cell_named(cell), attention()
    x = torch.randn(1, 41, WIDTH).double()
    norms = gradient_norms(lambda x: advance(recurrent, x)[0], x)
    assert norms[0] < 1e-2 * norms[-1]
    assert norms[0] < 0.1 * norms[20]
    norms = gradient_norms(lambda x: attending(x, is_causal=True), x)
    assert norms[0] > 0.1 * norms[1:-1].mean()


def test_with_large_weights_gradients_through_time_explode() -> None:
    """Claim 120: at a state of 0 a tanh passes everything on, and W^n grows."""
    recurrent = cell_named("tanh")
    with torch.no_grad():
        for parameter in recurrent.parameters():
            parameter.mul_(4.0)
    norms = gradient_norms(lambda x: advance(recurrent, x)[0], torch.zeros(1, 41, WIDTH).double())
    assert norms[0] > 1e6 * norms[-1]


@torch.no_grad()
def test_a_transformer_reads_every_position_where_a_recurrent_model_has_one_state(
    tiny: Callable[..., Any],
) -> None:
    """Claims 119, 130: what a step of decoding reads, for sources of two lengths."""
    state, attending = tiny(family="rnn", attention="none"), tiny()
    for length in (3, 9):
        src, tgt_in = torch.full((1, length), 5), torch.tensor([[2, 6]])
        with recording(state) as seen:
            state.teacher_forced(src, tgt_in)
        assert seen["last"].shape == (1, 8)
        assert not any("cross_attention" in name for name in seen)
        with recording(attending) as seen:
            attending.teacher_forced(src, tgt_in)
        weights = seen["decoder.0.cross_attention.weights"]
        assert weights.shape == (1, 2, 2, length)
        assert (weights > 0).all()


@torch.no_grad()
def test_a_cache_makes_a_step_cheaper_and_leaves_as_many_of_them(tiny: Callable[..., Any]) -> None:
    """Claim 129: multiplications of the decoder alone, for twelve tokens one after the other."""
    model, src = tiny(), torch.tensor([[5, 6, 7]])
    tgt_in = torch.full((1, 12), 5)
    state = model.start(src)
    with FlopCounterMode(display=False) as cached:
        for position in range(12):
            model.step(state, tgt_in[:, position])
    memory = model.encode(src)
    with FlopCounterMode(display=False) as uncached:
        for position in range(12):
            states = model.decode(tgt_in[:, : position + 1], memory)
            model.logits(states[:, -1:])
    assert uncached.get_total_flops() > 4 * cached.get_total_flops()
