"""The gated depthwise convolution beside torch's own, and the equivalences of its parts."""

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from heed.errors import ConfigError
from heed.model.convolutional.config import ConvConfig
from heed.model.convolutional.convolution import GatedConvolution, convolve


@pytest.mark.parametrize(("size", "n_before"), [(1, 0), (3, 1), (3, 2), (7, 3), (7, 6)])
def test_it_is_torchs_depthwise_convolution(size: int, n_before: int) -> None:
    torch.manual_seed(0)
    x, kernel = torch.randn(2, 5, 4).double(), torch.randn(4, size).double()
    padded = F.pad(x.mT, (n_before, size - 1 - n_before))
    expected = F.conv1d(padded, kernel[:, None], groups=4).mT
    assert (convolve(x, kernel, n_before) - expected).abs().max() <= 1e-12


def test_a_convolution_of_one_position_is_a_linear_layer() -> None:
    """Claim 101: the same weights in `nn.Linear` and in a 1×1 `nn.Conv1d`."""
    torch.manual_seed(0)
    linear, x = nn.Linear(4, 6).double(), torch.randn(2, 5, 4).double()
    conv = nn.Conv1d(4, 6, kernel_size=1).double()
    with torch.no_grad():
        conv.weight.copy_(linear.weight[:, :, None])
        conv.bias.copy_(linear.bias) if conv.bias is not None else None
    assert (conv(x.mT).mT - linear(x)).abs().max() <= 1e-12


def test_the_sublayer_is_two_linear_maps_with_a_gate_and_a_convolution_between() -> None:
    torch.manual_seed(0)
    module, x = GatedConvolution(4, 3).double(), torch.randn(2, 5, 4).double()
    value, gate = module.project_in(x).chunk(2, dim=-1)
    mixed = F.conv1d((value * gate.sigmoid()).mT, module.kernel[:, None], padding=1, groups=4).mT
    assert (module(x) - module.project_out(mixed)).abs().max() <= 1e-12


def test_a_position_sees_its_neighbors_only() -> None:
    """Claim 126: with kernels of 3, one layer moves information by one position."""
    torch.manual_seed(0)
    module, x = GatedConvolution(4, 3).double(), torch.randn(1, 7, 4).double()
    other = x.clone()
    other[:, 3] += 1.0
    changed = (module(x) - module(other)).abs().sum(dim=-1)[0] > 1e-9
    assert changed.tolist() == [False, False, True, True, True, False, False]
    causal = (module(x, is_causal=True) - module(other, is_causal=True)).abs().sum(dim=-1)[0] > 1e-9
    assert causal.tolist() == [False, False, False, True, True, True, False]


@pytest.mark.parametrize("kind", ["rotary", "shaw", "alibi"])
def test_positions_inside_self_attention_are_refused(kind: str) -> None:
    with pytest.raises(ConfigError, match=f"{kind} positions work inside self-attention"):
        ConvConfig(src_vocab_size=9, tgt_vocab_size=9, positions=kind)
