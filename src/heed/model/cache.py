"""The target tokens so far, kept so that each is computed once: keys and values, or one vector.

`attention.py` and `recurrence.py` fill them; `transformer.py` owns one for each layer. The
encoder's keys and values never grow and are in the decoder's state.
"""

import torch
from torch import Tensor

FIRST_CAPACITY = 32
"""Positions that are allocated at first."""


class KVCache:
    """The keys and values of one decoder layer's self-attention, one token longer each step.

    Args:
        window: how many of the positions before the newest one are kept; None = all.
        n_prefix: first positions, which are always kept.

    Attributes:
        length: positions so far, including those that are no longer kept.
    """

    def __init__(self, *, window: int | None = None, n_prefix: int = 0) -> None:
        self.length = 0
        self.window = window
        self.n_prefix = n_prefix
        self._n_filled = 0
        self._capacity = FIRST_CAPACITY
        self._keys: Tensor | None = None
        self._values: Tensor | None = None

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Add new positions and return all that are kept.

        Args:
            keys: `(rows, n_heads, n_new, d_k)`.
            values: `(rows, n_heads, n_new, d_v)`.

        Returns:
            Keys `(rows, n_heads, length, d_k)` and values `(rows, n_heads, length, d_v)`; with a
            window, `length` counts those that are kept.
        """
        self._forget()
        first, end = self._n_filled, self._n_filled + keys.size(2)
        if self._keys is None or self._values is None or end > self._keys.size(2):
            self._capacity = max(self._capacity, 2 * end if first else end)
            self._keys = self._grown(self._keys, keys)
            self._values = self._grown(self._values, values)
        self._keys[:, :, first:end] = keys
        self._values[:, :, first:end] = values
        self.length += keys.size(2)
        self._n_filled = end
        return self._kept(self._keys, keys.size(2)), self._kept(self._values, keys.size(2))

    def select(self, rows: Tensor) -> None:
        """Keep, repeat or reorder rows `(new_rows,)`."""
        if self._keys is not None and self._values is not None:
            self._keys = self._picked(self._keys, rows)
            self._values = self._picked(self._values, rows)

    def _forget(self) -> None:
        """Move the kept positions to the front once as many others were dropped: one move each."""
        if self.window is None or self._keys is None or self._values is None:
            return
        start = self._n_filled - self.window
        if start - self.n_prefix >= max(self.window, 32):
            for buffer in (self._keys, self._values):
                kept = buffer[:, :, start : self._n_filled]
                buffer[:, :, self.n_prefix : self.n_prefix + self.window] = kept
            self._n_filled = self.n_prefix + self.window

    def _kept(self, buffer: Tensor, n_new: int) -> Tensor:
        """The prefix, the window and the new positions."""
        end = self._n_filled
        start = 0 if self.window is None else end - n_new - self.window
        if start <= self.n_prefix:
            return buffer[:, :, :end]
        if not self.n_prefix:
            return buffer[:, :, start:end]
        return torch.cat([buffer[:, :, : self.n_prefix], buffer[:, :, start:end]], dim=2)

    def _grown(self, buffer: Tensor | None, like: Tensor) -> Tensor:
        rows, n_heads, _, width = like.shape
        grown = like.new_empty(rows, n_heads, self._capacity, width)
        if buffer is not None:
            grown[:, :, : self._n_filled] = buffer[:, :, : self._n_filled]
        return grown

    def _picked(self, buffer: Tensor, rows: Tensor) -> Tensor:
        # Only the filled part is copied, not the spare room after it.
        picked = buffer.new_empty(rows.numel(), *buffer.shape[1:])
        filled = buffer[:, :, : self._n_filled]
        picked[:, :, : self._n_filled] = torch.index_select(filled, 0, rows)
        return picked


class RunningState:
    """A vector for each row that stands for all tokens so far; its size never grows.

    Attributes:
        length: number of tokens so far.
        value: `(rows, 1, d_model)`, or None before the first token.
    """

    def __init__(self) -> None:
        self.length = 0
        self.value: Tensor | None = None

    def update(self, value: Tensor) -> Tensor:
        """Set the value after one more token, `(rows, 1, d_model)`, and return it."""
        self.length += 1
        self.value = value
        return value

    def select(self, rows: Tensor) -> None:
        """Keep, repeat or reorder rows `(new_rows,)`."""
        if self.value is not None:
            self.value = torch.index_select(self.value, 0, rows)
