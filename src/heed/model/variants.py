"""Other ways for a head to compare queries and keys, and the table of all of them.

Each changes one step of `MultiHeadAttention` in `attention.py`; the features of linear attention
are in `linear_attention.py`.
"""

import math
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heed.model.attention import Cache, MultiHeadAttention
from heed.model.linear_attention import (
    Features,
    RunningSums,
    Sums,
    attend_causally,
    elu_features,
    favor_features,
    read,
    readable,
    summed,
    weights_of,
)
from heed.model.masks import both, prefix_mask
from heed.model.positions import Rotation
from heed.model.trace import is_heard, see


class UnscaledAttention(MultiHeadAttention):
    """softmax(q·k) v: without 1/√d_k the scores of wide heads saturate the softmax.

    Source: Vaswani et al. 2017, section 3.2.1, on why they scale.
    """

    def attend_heads(self, query: Tensor, key: Tensor, value: Tensor, **masks: Any) -> Tensor:
        """As `MultiHeadAttention.attend_heads`."""
        return super().attend_heads(math.sqrt(self.d_k) * query, key, value, **masks)


class CosineAttention(MultiHeadAttention):
    """softmax(√d_k cos(q, k)) v: only the directions of queries and keys matter.

    Source: Graves et al. 2014, "Neural Turing Machines", equations 5 and 6; there a key strength is
    learned in the place of √d_k.
    """

    def attend_heads(self, query: Tensor, key: Tensor, value: Tensor, **masks: Any) -> Tensor:
        """As `MultiHeadAttention.attend_heads`."""
        # `attend` divides by √d_k.
        query = self.d_k * F.normalize(query, dim=-1)
        return super().attend_heads(query, F.normalize(key, dim=-1), value, **masks)


class GaussianAttention(MultiHeadAttention):
    """softmax(-|q - k|² / (2 √d_k)) v: the nearer a key, the larger its weight.

    |q - k|² = |q|² - 2 q·k + |k|², and |q|² is the same for all keys, so the softmax is that of
    (q·k - |k|²/2) / √d_k.

    Source: Tsai et al. 2019, "Transformer Dissection", section 3.2 (the RBF kernel).
    """

    def attend_heads(self, query: Tensor, key: Tensor, value: Tensor, **masks: Any) -> Tensor:
        """As `MultiHeadAttention.attend_heads`."""
        # One more feature carries -|k|²/2; `attend` divides by the root of the new width.
        query = math.sqrt((self.d_k + 1) / self.d_k) * F.pad(query, (0, 1), value=1.0)
        key = torch.cat([key, -key.square().sum(dim=-1, keepdim=True) / 2], dim=-1)
        return super().attend_heads(query, key, value, **masks)


class LinearAttention(MultiHeadAttention):
    """φ(q)·φ(k) v / Σ φ(q)·φ(k) with φ(x) = elu(x) + 1: no softmax, and linear time.

    A mask is for keys only, `(batch, 1, 1, k_len)`; the features of masked keys are zero.

    Source: Katharopoulos et al. 2020, "Transformers are RNNs".
    """

    def features(self, x: Tensor) -> Features:
        """φ of `x` `(batch, n_heads, length, d_k)`, queries or keys."""
        return elu_features(x)

    def attend_heads(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        *,
        mask: Tensor | None = None,
        is_causal: bool = False,
        distances: Tensor | None = None,
    ) -> Tensor:
        """As `MultiHeadAttention.attend_heads`, without distances: there are no scores."""
        with _without_autocast(query):
            phi_q, phi_k = self.features(query).values, readable(self.features(key), mask)
            if is_causal or is_heard(self):
                context = self._read_all(phi_q, phi_k, value, mask, 0 if is_causal else None)
            else:
                context = read(phi_q, summed(phi_k, value))
        return self._projected(context.to(query.dtype))

    def new_cache(self, n_prefix: int = 0) -> Cache:
        """Empty sums of a sequence, for `extend`."""
        return RunningSums()

    def extend(
        self,
        x: Tensor,
        cache: Cache,
        rotation: Rotation | None = None,
        mask: Tensor | None = None,
        distances: Tensor | None = None,
        is_causal: bool = False,
    ) -> Tensor:
        """As `MultiHeadAttention.extend`; the mask of earlier positions is in the sums."""
        assert isinstance(cache, RunningSums)
        query, key, value = self._heads(self.project_in(x))
        if rotation is not None:
            query, key = self._rotated(query, key, rotation)
        cache.length += x.size(1)
        new_mask = None if mask is None else mask[..., mask.size(-1) - x.size(1) :]
        with _without_autocast(query):
            phi_q, phi_k = self.features(query).values, readable(self.features(key), new_mask)
            if is_causal or x.size(1) <= 1:
                context, cache.sums = attend_causally(phi_q, phi_k, value, sums=cache.sums)
            else:
                assert cache.sums is None  # only the first positions read each other both ways
                cache.sums = summed(phi_k, value)
                context = read(phi_q, cache.sums)
        return self._projected(see(self, "context", context.to(query.dtype)))

    def prepare_memory(self, memory: Tensor, mask: Tensor | None = None) -> tuple[Tensor, ...]:
        """As `MultiHeadAttention.prepare_memory`; sums over `memory` `(batch, k_len, d_model)`."""
        key, value = self.project_memory(memory)
        with _without_autocast(key):
            sums = summed(readable(self.features(key), mask), value)
        return tuple(part for part in sums if part is not None)

    def attend_memory(
        self, x: Tensor, heads: tuple[Tensor, ...], mask: Tensor | None = None
    ) -> Tensor:
        """As `MultiHeadAttention.attend_memory`: `x` `(batch, q_len, d_model)` reads the sums."""
        query = self.project_query(x)
        with _without_autocast(query):
            context = read(self.features(query).values, Sums(*heads))
        return self._projected(see(self, "context", context.to(query.dtype)))

    def _attend_prefix(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        mask: Tensor | None,
        distances: Tensor | None,
        n_prefix: int,
    ) -> Tensor:
        with _without_autocast(query):
            phi_q, phi_k = self.features(query).values, readable(self.features(key), mask)
            context = self._read_all(phi_q, phi_k, value, mask, n_prefix)
        return self._projected(context.to(query.dtype))

    def _read_all(
        self,
        query: Tensor,
        key: Features,
        value: Tensor,
        mask: Tensor | None,
        n_prefix: int | None,
    ) -> Tensor:
        """Read causally after a prefix, or in both directions; by the weights for a listener."""
        if not is_heard(self):
            assert n_prefix is not None
            return attend_causally(query, key, value, n_prefix)[0]
        if n_prefix is not None:
            mask = both(mask, prefix_mask(query.size(2), n_prefix, query.device))
        weights = see(self, "weights", weights_of(query, key, mask))
        return see(self, "context", weights @ value.to(weights.dtype))


class FavorAttention(LinearAttention):
    """Softmax attention, approximated in linear time: φ has positive random features (FAVOR+).

    Args:
        d_model: width of the input and the output.
        n_heads: number of heads.
        n_features: the error of the approximation falls with the square root of this number.
        **options: as in `MultiHeadAttention`.

    Attributes:
        directions: w_1 … w_m, drawn with the first weights, stored with them and never trained,
            `(n_features, d_k)`.

    Source: Choromanski et al. 2021, "Rethinking Attention with Performers".
    """

    def __init__(self, d_model: int, n_heads: int, *, n_features: int, **options: Any) -> None:
        super().__init__(d_model, n_heads, **options)
        empty = torch.empty(n_features, self.d_k)
        self.directions = nn.Parameter(empty, requires_grad=False)

    def features(self, x: Tensor) -> Features:
        """φ of `x` `(batch, n_heads, length, d_k)`, queries or keys."""
        return favor_features(x, self.directions)


ATTENTIONS: dict[str, type[MultiHeadAttention]] = {
    "softmax": MultiHeadAttention,
    "unscaled": UnscaledAttention,
    "cosine": CosineAttention,
    "gaussian": GaussianAttention,
    "linear": LinearAttention,
    "favor": FavorAttention,
}
"""By `ModelConfig.attention`, the module of the three attention sublayers."""


def _without_autocast(tensor: Tensor) -> torch.autocast:
    """Products of sums are computed in the sums' own precision."""
    return torch.autocast(tensor.device.type, enabled=False)
