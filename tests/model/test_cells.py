"""Recurrent cells position by position beside torch's fused ones, and what their edits reach."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from heed.model.recurrent import cells
from heed.model.recurrent.cells import CELLS, Unrolled, advance, advance_plainly, reverse
from heed.model.recurrent.network import EncoderLayer, Recurrent
from heed.model.recurrent.plan import GATES
from heed.model.trace import editing, listening, recording

SHOWN = {
    "tanh": {"state"},
    "gru": {"reset_gate", "update_gate", "candidate", "state"},
    "lstm": {"input_gate", "forget_gate", "candidate", "memory_cell", "output_gate", "state"},
}
each_cell = pytest.mark.parametrize("kind", CELLS)


def made(kind: str) -> tuple[nn.RNNBase, Tensor, Tensor]:
    """A cell of float64 with four inputs and a state of three numbers, two rows, a state."""
    torch.manual_seed(1)
    cell = CELLS[kind](4, 3, batch_first=True).double()
    state = torch.randn(1 + (kind == "lstm"), 2, 3, dtype=torch.float64)
    return cell, torch.randn(2, 5, 4, dtype=torch.float64), state


@each_cell
@pytest.mark.parametrize("has_state", [False, True])
def test_the_equations_are_those_of_the_fused_cell(kind: str, has_state: bool) -> None:
    """In float64, 1e-12; gradients too."""
    cell, x, state = made(kind)
    before = state if has_state else None
    fused = advance(cell, x, before)
    plain = advance_plainly(cell, x, before, lambda name, gate: gate)
    of_plain = torch.autograd.grad(sum(part.square().sum() for part in plain), cell.parameters())
    of_fused = torch.autograd.grad(sum(part.square().sum() for part in fused), cell.parameters())
    for one, other in zip((*plain, *of_plain), (*fused, *of_fused), strict=True):
        assert (one - other).abs().max() <= 1e-12


@each_cell
def test_every_gate_has_a_name_when_somebody_listens(kind: str) -> None:
    cell, x, state = made(kind)
    with recording(cell) as seen:
        states, after = advance(cell, x, state)
    assert seen.keys() == SHOWN[kind] >= set(GATES[kind])
    assert {tensor.shape for tensor in seen.values()} == {(2, 5, 3)}
    assert torch.equal(seen["state"], states)
    if kind == "gru":
        earlier = torch.cat([state[0][:, None], states[:, :-1]], dim=1)
        mixed = seen["update_gate"] * earlier + (1 - seen["update_gate"]) * seen["candidate"]
        torch.testing.assert_close(mixed, states)
    if kind == "lstm":
        torch.testing.assert_close(seen["output_gate"] * seen["memory_cell"].tanh(), states)
        assert torch.equal(seen["memory_cell"][:, -1], after[1])


def test_the_fused_cell_runs_when_nobody_listens(monkeypatch: pytest.MonkeyPatch) -> None:
    cell, x, state = made("gru")
    monkeypatch.setattr(cells, "advance_plainly", None)
    advance(cell, x, state)
    with listening(cell, lambda name, tensor: None), pytest.raises(TypeError):
        advance(cell, x, state)


def test_a_gate_that_was_changed_changes_what_is_computed_behind_it() -> None:
    """With z = 1 at the third position, the state there is the one before it, and goes on so."""
    cell, x, state = made("gru")

    def closed(update: Tensor) -> Tensor:
        changed = update.clone()
        changed[:, 2] = 1.0
        return changed

    states, _ = advance(cell, x, state)
    with editing(cell, {"update_gate": closed}), recording(cell) as seen:
        found, _ = advance(cell, x, state)
    torch.testing.assert_close(found[:, :2], states[:, :2])
    torch.testing.assert_close(found[:, 2], states[:, 1])
    rest, _ = advance(cell, x[:, 3:], states[:, 1][None])
    torch.testing.assert_close(found[:, 3:], rest)
    assert (seen["update_gate"][:, 2] == 1).all()
    assert (seen["update_gate"][:, [0, 1, 3, 4]] < 1).all()


def test_the_gates_of_the_backward_cell_stand_in_the_order_of_the_text() -> None:
    torch.manual_seed(0)
    layer = EncoderLayer(CELLS["tanh"], 4, is_bidirectional=True)
    x, lengths = torch.randn(2, 3, 4), torch.tensor([3, 2])
    with recording(layer) as seen:
        states, _ = layer(x, lengths)
    real = torch.tensor([[True, True, True], [True, True, False]])
    assert torch.equal(seen["forwards.state"][real], states[..., :2][real])
    assert torch.equal(seen["backwards.state"][real], states[..., 2:][real])
    fused, _ = layer(x, lengths)
    torch.testing.assert_close(fused, states)


def test_the_positions_to_come_are_zero_until_they_are_computed() -> None:
    module = nn.Identity()
    shown: list[Tensor] = []
    turn: Callable[[Tensor], Tensor] = partial(reverse, lengths=torch.tensor([3]))
    unrolled = Unrolled(module, 3, turn)
    with listening(module, lambda name, tensor: shown.append(tensor[0, :, 0])):
        for number in (1.0, 2.0, 3.0):
            new = torch.full((1, 1, 1), number)
            assert torch.equal(unrolled.see("gate", new), new)
    assert [tensor.tolist() for tensor in shown] == [[0, 0, 1], [0, 2, 1], [3, 2, 1]]


@each_cell
@pytest.mark.parametrize("attention", ["none", "dot", "additive"])
def test_a_model_that_is_heard_computes_the_same(
    tiny: Callable[..., Any], kind: str, attention: str
) -> None:
    """And what a search shows step by step is what teacher forcing shows at once."""
    model: Recurrent = tiny(family="rnn", cell=kind, attention=attention).double()
    src, tgt_in = torch.tensor([[5, 6, 7], [5, 6, 0]]), torch.tensor([[2, 8, 9], [2, 7, 5]])
    before = model.teacher_forced(src, tgt_in)
    with torch.no_grad(), recording(model) as forced:
        assert (model.teacher_forced(src, tgt_in) - before).abs().max() <= 1e-6  # logits: float32
    assert {f"encoder.1.backwards.{gate}" for gate in SHOWN[kind]} <= forced.keys()
    names = {f"decoder.1.{gate}" for gate in SHOWN[kind]}
    if attention != "none":
        names |= {f"cross_attention.{stage}" for stage in ("energies", "weights", "context")}
    with torch.no_grad(), recording(model) as stepped:
        state = model.start(src)
        for position in range(3):
            model.step(state, tgt_in[:, position])
            for name in names:
                now = forced[name].narrow(-2, position, 1)
                torch.testing.assert_close(stepped[name], now)
