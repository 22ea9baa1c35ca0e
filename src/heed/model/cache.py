"""Keys and values of the target tokens so far, kept so that each is computed once.

`attention.py` fills it; `transformer.py` owns one for each layer. The encoder's keys and values
never grow and are in the decoder's state.
"""

import torch
from torch import Tensor


class KVCache:
    """The keys and values of one decoder layer's self-attention, one token longer each step."""

    def __init__(self, first_capacity: int = 32) -> None:
        self.length = 0
        self._capacity = first_capacity
        self._keys: Tensor | None = None
        self._values: Tensor | None = None

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Add new positions and return all so far.

        Args:
            keys: `(rows, n_heads, n_new, d_k)`.
            values: `(rows, n_heads, n_new, d_v)`.

        Returns:
            Keys `(rows, n_heads, length, d_k)` and values `(rows, n_heads, length, d_v)`.
        """
        end = self.length + keys.size(2)
        if self._keys is None or self._values is None or end > self._keys.size(2):
            self._capacity = max(self._capacity, 2 * end if self.length else end)
            self._keys = self._grown(self._keys, keys)
            self._values = self._grown(self._values, values)
        self._keys[:, :, self.length : end] = keys
        self._values[:, :, self.length : end] = values
        self.length = end
        return self._keys[:, :, :end], self._values[:, :, :end]

    def select(self, rows: Tensor) -> None:
        """Keep, repeat or reorder rows `(new_rows,)`."""
        if self._keys is not None and self._values is not None:
            self._keys = self._picked(self._keys, rows)
            self._values = self._picked(self._values, rows)

    def _grown(self, buffer: Tensor | None, like: Tensor) -> Tensor:
        rows, n_heads, _, width = like.shape
        grown = like.new_empty(rows, n_heads, self._capacity, width)
        if buffer is not None:
            grown[:, :, : self.length] = buffer[:, :, : self.length]
        return grown

    def _picked(self, buffer: Tensor, rows: Tensor) -> Tensor:
        # Only the filled part is copied; the spare room behind it holds nothing.
        picked = buffer.new_empty(rows.numel(), *buffer.shape[1:])
        picked[:, :, : self.length] = torch.index_select(buffer[:, :, : self.length], 0, rows)
        return picked
