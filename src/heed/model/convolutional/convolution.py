"""A gated depthwise convolution in the place of self-attention.

y = W_2 (conv(a ⊙ σ(b))), where [a; b] = W_1 x. W_1 and W_2 are convolutions of one position
("1×1"), as a linear layer is; `conv` mixes positions, each feature by itself
("depthwise").

Sources: Dauphin et al. 2017, equation 1 (the gate); Kaiser et al. 2018, "Depthwise Separable
Convolutions for Neural Machine Translation"; Wu et al. 2019, "Pay Less Attention with Lightweight
and Dynamic Convolutions", figure 2 (the layer around it).
"""

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heed.model.attention import Cache
from heed.model.cache import KVCache
from heed.model.fast.products import Linear
from heed.model.positions import Rotation
from heed.model.trace import see


def convolve(x: Tensor, kernel: Tensor, n_before: int) -> Tensor:
    """y_t = Σ_j kernel_j ⊙ x_{t - n_before + j}; beyond both ends x is zero.

    Args:
        x: `(batch, length, d_model)`.
        kernel: weights of each feature, `(d_model, kernel_size)`.
        n_before: positions before t that y_t reads.

    Returns:
        `(batch, length, d_model)`.
    """
    length, size = x.size(1), kernel.size(1)
    padded = F.pad(x, (0, 0, n_before, size - 1 - n_before))
    total = padded[:, :length] * kernel[:, 0]
    for j in range(1, size):
        total = torch.addcmul(total, padded[:, j : j + length], kernel[:, j])
    return total


class GatedConvolution(nn.Module):
    """The sublayer, with the methods of `MultiHeadAttention` that layers call for self-attention.

    Args:
        d_model: width of the input and the output.
        kernel_size: positions that an output reads; odd.
        bias: whether the linear maps add a bias.
    """

    def __init__(self, d_model: int, kernel_size: int, *, bias: bool = True) -> None:
        super().__init__()
        self.kernel_size = kernel_size
        self.kernel = nn.Parameter(torch.empty(d_model, kernel_size))
        nn.init.normal_(self.kernel, std=1 / math.sqrt(kernel_size))
        self.project_in = Linear(d_model, 2 * d_model, bias=bias)
        self.project_out = Linear(d_model, d_model, bias=bias)

    def forward(
        self,
        x: Tensor,
        *,
        mask: Tensor | None = None,
        is_causal: bool = False,
        rotation: Rotation | None = None,
        distances: Tensor | None = None,
        n_prefix: int = 0,
    ) -> Tensor:
        """Let each position of `x` `(batch, length, d_model)` read its neighbors.

        The output has the same shape. Positions where `mask` `(batch, 1, 1, length)` is False count
        as zero; if `is_causal`, position t reads none after t. The other arguments are not used.
        """
        gated = self._gated(x)
        if mask is not None:
            gated = gated * mask[:, 0, 0, :, None]
        n_before = self.kernel_size - 1 if is_causal else self.kernel_size // 2
        mixed = see(self, "mixed", convolve(gated, self.kernel, n_before))
        return see(self, "out", self.project_out(mixed))

    def new_cache(self, n_prefix: int = 0) -> KVCache:
        """An empty cache for `extend`, which keeps as many positions as the kernel covers."""
        return KVCache(window=self.kernel_size - 1)

    def extend(
        self,
        x: Tensor,
        cache: Cache,
        rotation: Rotation | None = None,
        mask: Tensor | None = None,
        distances: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """Compute the newest position from `x` `(rows, 1, d_model)` and those before it.

        The output has the same shape. `cache` holds the gated inputs so far, as keys of one head,
        and grows by one; the other arguments are not used.
        """
        assert isinstance(cache, KVCache)
        gated = self._gated(x)[:, None]
        seen, _ = cache.append(gated, gated[..., :0])
        kernel = self.kernel[:, self.kernel_size - seen.size(2) :]
        mixed = see(self, "mixed", (seen[:, 0] * kernel.T).sum(dim=1, keepdim=True))
        return see(self, "out", self.project_out(mixed))

    def _gated(self, x: Tensor) -> Tensor:
        value, gate = see(self, "projected", self.project_in(x)).chunk(2, dim=-1)
        return see(self, "gated", value * torch.sigmoid(gate))
