"""Our recurrent encoder–decoder beside torch.nn, beside the papers' equations, and its gradients.

Tolerances: float64 rounding, 1e-12; of gradients eps 1e-6, atol 1e-7, rtol 1e-5.
"""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.autograd import gradcheck
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from heed.model.masks import padding_mask
from heed.model.recurrent.cells import CELLS, reverse
from heed.model.recurrent.network import Recurrent

Tiny = Callable[..., Recurrent]

SRC = torch.tensor([[5, 6, 7, 8], [9, 5, 6, 0], [7, 0, 0, 0]])
LENGTHS = torch.tensor([4, 3, 1])
TGT_IN = torch.tensor([[2, 5, 9, 9, 6], [2, 8, 4, 7, 7], [2, 6, 6, 9, 4]])

each_cell = pytest.mark.parametrize("cell", CELLS)
each_attention = pytest.mark.parametrize("attention", ["none", "dot", "additive"])


def test_only_the_real_part_is_reversed() -> None:
    found = reverse(SRC[:, :, None], LENGTHS)[:, :, 0]
    assert found.tolist() == [[8, 7, 6, 5], [6, 5, 9, 0], [7, 0, 0, 0]]


@each_cell
@torch.no_grad()
def test_the_encoder_is_torchs_with_packed_sequences(tiny: Tiny, cell: str) -> None:
    """Claim 119: `nn.LSTM(num_layers=2, bidirectional=True)` on the same weights."""
    model = tiny(family="rnn", cell=cell, residual=False).double()
    kind = {"tanh": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}[cell]
    twin: Any = kind(8, 4, num_layers=2, bidirectional=True, batch_first=True).double()
    for number, layer in enumerate(model.encoder):
        for direction, suffix in (("forwards", ""), ("backwards", "_reverse")):
            for name, weight in layer.get_submodule(direction).named_parameters():
                ours = name.replace("_l0", f"_l{number}{suffix}")
                twin.get_parameter(ours).copy_(weight)
    x = model.scale * model.embed_src(SRC)
    packed, _ = twin(pack_padded_sequence(x, LENGTHS, batch_first=True))
    expected, _ = pad_packed_sequence(packed, batch_first=True)
    memory = model.encode(SRC, padding_mask(SRC, 0))
    is_real = SRC != 0
    assert (memory.states - expected)[is_real].abs().max() <= 1e-12
    ends = expected[torch.arange(3), LENGTHS - 1, :4], expected[:, 0, 4:]
    assert (memory.last - torch.cat(ends, dim=-1)).abs().max() <= 1e-12


def cell_by_hand(cell: str, module: nn.Module, x: Tensor, parts: list[Tensor]) -> list[Tensor]:
    """One token through one cell, from the equations of its paper; the first part is h."""
    h = parts[0]
    of_x = module.get_parameter("weight_ih_l0") @ x + module.get_parameter("bias_ih_l0")
    of_h = module.get_parameter("weight_hh_l0") @ h + module.get_parameter("bias_hh_l0")
    if cell == "tanh":
        return [torch.tanh(of_x + of_h)]
    if cell == "lstm":
        i, f, g, o = (of_x + of_h).chunk(4)
        c = f.sigmoid() * parts[1] + i.sigmoid() * g.tanh()
        return [o.sigmoid() * c.tanh(), c]
    (r_x, z_x, n_x), (r_h, z_h, n_h) = of_x.chunk(3), of_h.chunk(3)
    z = (z_x + z_h).sigmoid()
    return [(1 - z) * torch.tanh(n_x + (r_x + r_h).sigmoid() * n_h) + z * h]


def attend_by_hand(model: Any, query: Tensor, states: Tensor) -> Tensor:
    """The context of one query over the real states of one source, score by score."""
    scores = []
    for state in states:
        if model.attention == "dot":
            scores.append(query @ state)
            continue
        layer = model.cross_attention
        compared = layer.project_query.weight @ query
        compared = compared + layer.project_memory.weight @ state + layer.project_memory.bias
        scores.append(layer.score @ torch.tanh(compared))
    powers = [math.exp(score) for score in scores]
    return sum(power / sum(powers) * state for power, state in zip(powers, states, strict=True))


@torch.no_grad()
def test_a_residual_layer_adds_its_input_to_its_output(tiny: Tiny) -> None:
    plain = tiny(family="rnn", residual=False).double()
    residual = tiny(family="rnn").double()
    x = plain.scale * plain.embed_src(SRC)
    first, _ = plain.encoder[0](x, torch.tensor([4, 4, 4]))
    added = residual.encode(SRC).states - plain.encode(SRC).states
    assert (added - first).abs().max() <= 1e-12
    assert torch.equal(residual.encode(SRC).last, plain.encode(SRC).last)


@pytest.mark.parametrize("residual", [False, True])
@each_attention
@each_cell
@torch.no_grad()
def test_the_decoder_computes_its_papers_equations(
    tiny: Tiny, cell: str, attention: str, residual: bool
) -> None:
    """Claims 119, 121: one sentence and one token at a time, with vectors only."""
    model: Any = tiny(family="rnn", cell=cell, attention=attention, residual=residual).double()
    memory = model.encode(SRC, padding_mask(SRC, 0))
    found = model(SRC, TGT_IN, padding_mask(SRC, 0))
    for row in range(3):
        c = memory.last[row]
        states = memory.states[row, : LENGTHS[row]]
        starts = torch.tanh(model.bridge.weight @ c + model.bridge.bias).chunk(2)
        layers = [[h, torch.zeros_like(h)] if cell == "lstm" else [h] for h in starts]
        for place, token in enumerate(TGT_IN[row]):
            x = math.sqrt(8) * model.embed_tgt.weight[token]
            if attention == "none":
                x = torch.cat([x, c])
            if attention == "additive":
                context = attend_by_hand(model, layers[-1][0], states)
                x = torch.cat([x, context])
            for number, module in enumerate(model.decoder):
                layers[number] = cell_by_hand(cell, module, x, layers[number])
                x = layers[number][0]
            if attention == "dot":
                context = attend_by_hand(model, x, states)
            if attention != "none":
                read = torch.cat([x, context])
                x = model.readout.weight @ read + model.readout.bias
                x = context + x if residual else torch.tanh(x)
            assert (found[row, place] - x).abs().max() <= 1e-12


@torch.no_grad()
def test_without_attention_the_source_is_one_vector(tiny: Tiny) -> None:
    """Claims 119, 120, 130: two sources with one last state have one translation."""
    model = tiny(family="rnn", attention="none")
    memory = model.encode(SRC, padding_mask(SRC, 0))
    logits = model.teacher_forced(SRC, TGT_IN)
    other = model.encode(SRC[:, :2])
    model.encode = lambda src, src_mask=None: type(memory)(  # type: ignore[method-assign]
        memory.last, other.states, None, None
    )
    assert torch.equal(model.teacher_forced(SRC, TGT_IN), logits)


@each_attention
@each_cell
def test_gradients(tiny: Tiny, cell: str, attention: str) -> None:
    """Few sentences and words: each number of the output and of each weight takes a pass."""
    sizes = {"d_model": 2, "n_encoder_layers": 1, "src_vocab_size": 7, "tgt_vocab_size": 7}
    model = tiny(family="rnn", cell=cell, attention=attention, tied="none", **sizes).double()
    src, tgt_in = torch.tensor([[4, 5, 6], [6, 4, 0]]), torch.tensor([[2, 5, 5], [2, 4, 6]])
    mask = padding_mask(src, 0)

    def logits(*_: Tensor) -> Tensor:
        return model.logits(model(src, tgt_in, mask).double())

    model.logits = lambda states: states @ model.output.weight.T  # type: ignore[method-assign]
    assert gradcheck(logits, tuple(model.parameters()), eps=1e-6, atol=1e-7, rtol=1e-5)
