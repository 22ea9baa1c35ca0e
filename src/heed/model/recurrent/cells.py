"""Recurrent cells: torch's fused ones, and their equations with a name for every gate.

`advance` reads a sequence with a cell. It runs the fused kernel, unless there is a listener: then
it computes the same position by position.
"""

from collections.abc import Callable, Mapping

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heed.model.trace import is_heard, see

Cell = Callable[..., nn.RNNBase]
CELLS: dict[str, Cell] = {"tanh": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}
See = Callable[[str, Tensor], Tensor]


class Unrolled:
    """Names tensors whose positions are computed one after another.

    At every position `see` gets the whole tensor, in which later positions are zero. So the last
    tensor that a listener gets is complete, and later positions are computed from edited ones.

    Args:
        module: the module that computes the tensors.
        length: number of positions in all.
        turn: maps positions from the order of their computation to that of the text, and back.
    """

    def __init__(
        self, module: nn.Module, length: int, turn: Callable[[Tensor], Tensor] = lambda whole: whole
    ) -> None:
        self.module = module
        self._length = length
        self._turn = turn
        self._before: dict[str, Tensor] = {}

    def see(self, name: str, new: Tensor) -> Tensor:
        """Pass on the next positions of a tensor.

        Args:
            name: the tensor's name.
            new: `(…, n_new, width)`.

        Returns:
            These positions, or those that an edit puts in their place, `(…, n_new, width)`.
        """
        if not is_heard(self.module):
            return new
        before = self._before.get(name, new[..., :0, :])
        self._before[name] = torch.cat([before, new], dim=-2)
        n_before, n_new = before.size(-2), new.size(-2)
        whole = F.pad(self._before[name], (0, 0, 0, self._length - n_before - n_new))
        seen = self._turn(see(self.module, name, self._turn(whole)))
        # A view would keep the whole tensor in memory for the gradients.
        return seen.narrow(-2, n_before, n_new).clone()


def advance(
    cell: nn.Module, x: Tensor, state: Tensor | None = None, unrolled: Unrolled | None = None
) -> tuple[Tensor, Tensor]:
    """Read a sequence with one layer.

    Args:
        cell: of one layer and direction.
        x: `(rows, length, n_inputs)`.
        state: before the first token: the hidden state, and of an LSTM its memory cell too, each
            `(rows, width)`, stacked; None = zeros.
        unrolled: names the gates; None = `x` is the whole sequence.

    Returns:
        The hidden state after each token, `(rows, length, width)`, and the state after the last.
    """
    if is_heard(cell):
        return advance_plainly(cell, x, state, (unrolled or Unrolled(cell, x.size(1))).see)
    parts = state if state is None or len(state) == 1 else tuple(torch.split(state, 1))
    states, after = cell(x, parts)
    return states, torch.cat(after) if isinstance(after, tuple) else after


def advance_plainly(
    cell: nn.Module, x: Tensor, state: Tensor | None, see: See
) -> tuple[Tensor, Tensor]:
    """`advance`, one position after another, from the equations of the cell.

    Args:
        cell: as of `advance`.
        x: `(rows, length, n_inputs)`.
        state: as of `advance`.
        see: gets the name and value of each gate, `(rows, 1, width)`, and returns the value.

    Returns:
        As `advance`.
    """
    equation = EQUATIONS[type(cell)]
    recurrent = cell.get_parameter("weight_hh_l0")
    of_x = F.linear(x, cell.get_parameter("weight_ih_l0"), cell.get_parameter("bias_ih_l0"))
    if state is None:
        state = x.new_zeros(1 + isinstance(cell, nn.LSTM), len(x), recurrent.size(1))
    parts = [part[:, None] for part in state]
    states = [x.new_zeros(len(x), 0, recurrent.size(1))]
    for position in range(x.size(1)):
        of_h = F.linear(parts[0], recurrent, cell.get_parameter("bias_hh_l0"))
        parts = equation(of_x[:, position : position + 1], of_h, parts, see)
        states.append(parts[0])
    return torch.cat(states, dim=1), torch.stack([part[:, 0] for part in parts])


def tanh_cell(of_x: Tensor, of_h: Tensor, state: list[Tensor], see: See) -> list[Tensor]:
    """h' = tanh(W x + b + U h + c).

    Args:
        of_x: W x + b, `(rows, 1, width)`.
        of_h: U h + c, `(rows, 1, width)`.
        state: h.
        see: gets the name and value of each gate and returns the value.

    Source: Elman 1990, "Finding Structure in Time".
    """
    return [see("state", torch.tanh(of_x + of_h))]


def gru_cell(of_x: Tensor, of_h: Tensor, state: list[Tensor], see: See) -> list[Tensor]:
    """r and z = σ(…), n = tanh(W x + b + r ⊙ (U h + c)), h' = (1 - z) ⊙ n + z ⊙ h.

    Args:
        of_x: W x + b of r, z and n, `(rows, 1, 3 * width)`.
        of_h: U h + c of the same, `(rows, 1, 3 * width)`.
        state: h.
        see: gets the name and value of each gate and returns the value.

    Source: Cho et al. 2014, with r after the product with U as in cuDNN and torch.
    """
    (reset_x, update_x, new_x), (reset_h, update_h, new_h) = of_x.chunk(3, -1), of_h.chunk(3, -1)
    reset = see("reset_gate", torch.sigmoid(reset_x + reset_h))
    update = see("update_gate", torch.sigmoid(update_x + update_h))
    candidate = see("candidate", torch.tanh(new_x + reset * new_h))
    return [see("state", (1 - update) * candidate + update * state[0])]


def lstm_cell(of_x: Tensor, of_h: Tensor, state: list[Tensor], see: See) -> list[Tensor]:
    """i, f and o = σ(…), g = tanh(…), c' = f ⊙ c + i ⊙ g, h' = o ⊙ tanh(c').

    Args:
        of_x: W x + b of i, f, g and o, `(rows, 1, 4 * width)`.
        of_h: U h + c of the same, `(rows, 1, 4 * width)`.
        state: h and c.
        see: gets the name and value of each gate and returns the value.

    Source: Hochreiter and Schmidhuber 1997; Gers et al. 2000 (the forget gate).
    """
    of_input, of_forget, of_candidate, of_output = (of_x + of_h).chunk(4, -1)
    into = see("input_gate", torch.sigmoid(of_input))
    forget = see("forget_gate", torch.sigmoid(of_forget))
    candidate = see("candidate", torch.tanh(of_candidate))
    memory_cell = see("memory_cell", forget * state[1] + into * candidate)
    output = see("output_gate", torch.sigmoid(of_output))
    return [see("state", output * torch.tanh(memory_cell)), memory_cell]


Equation = Callable[[Tensor, Tensor, list[Tensor], See], list[Tensor]]
EQUATIONS: Mapping[type[nn.Module], Equation] = {
    nn.RNN: tanh_cell,
    nn.GRU: gru_cell,
    nn.LSTM: lstm_cell,
}
"""By torch's cell, one position of it, from the state before to the state after."""


def reverse(x: Tensor, lengths: Tensor) -> Tensor:
    """`x` with the first `lengths` `(rows,)` positions of each row in reverse order."""
    positions = torch.arange(x.size(1), device=x.device)
    turned = lengths[:, None] - 1 - positions
    places = torch.where(turned >= 0, turned, positions)
    return x.gather(1, places[:, :, None].expand_as(x))
