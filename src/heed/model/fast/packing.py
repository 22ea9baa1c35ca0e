"""Sequences laid end to end in one row, without any padding between them.

Not attention itself: `attend_packed` in `attention.py` is its only reader. Every other part of the
model works position by position and sees one long row.
"""

import functools
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Packing:
    """Where each sequence of a packed row lies.

    Attributes:
        starts: where each sequence starts, and where the last one ends, int32,
            `(n_sequences + 1,)`.
        rows: number of the sequence that each position belongs to, `(n_packed,)`.
        places: where in its own sequence each position stands, `(n_packed,)`.
        longest: positions of the longest sequence.
        has_kernel: whether there is an attention kernel for packed rows where the tensors are.
    """

    starts: Tensor
    rows: Tensor
    places: Tensor
    longest: int
    has_kernel: bool

    @classmethod
    def of(cls, lengths: Tensor) -> "Packing":
        """Sequences of these lengths `(n_sequences,)`, in this order."""
        ends = lengths.cumsum(0)
        rows = torch.repeat_interleave(lengths)
        return cls(
            starts=torch.cat([ends.new_zeros(1), ends]).int(),
            rows=rows,
            places=torch.arange(len(rows), device=lengths.device) - (ends - lengths)[rows],
            longest=int(lengths.max()),
            has_kernel=has_kernel(lengths.device),
        )

    def to(self, device: torch.device) -> "Packing":
        """The same with its tensors on `device`."""
        return Packing(
            starts=self.starts.to(device, non_blocking=True),
            rows=self.rows.to(device, non_blocking=True),
            places=self.places.to(device, non_blocking=True),
            longest=self.longest,
            has_kernel=has_kernel(device),
        )

    def apart(self, x: Tensor) -> Tensor:
        """Give each sequence a row of its own, filled up with zeros.

        Args:
            x: all heads of all sequences, `(1, n_heads, n_packed, d_k)`.

        Returns:
            `(n_sequences, n_heads, longest, d_k)`.
        """
        _, n_heads, _, width = x.shape
        room = x.new_zeros(len(self.starts) - 1, self.longest, n_heads, width)
        return room.index_put((self.rows, self.places), x[0].transpose(0, 1)).transpose(1, 2)

    def together(self, x: Tensor) -> Tensor:
        """The way back: `(n_sequences, n_heads, longest, d_v)` → `(1, n_heads, n_packed, d_v)`."""
        return x.transpose(1, 2)[self.rows, self.places].transpose(0, 1)[None]

    def padding_mask(self) -> Tensor:
        """True where `apart` leaves no zeros, `(n_sequences, 1, 1, longest)`."""
        places = torch.arange(self.longest, device=self.starts.device)
        return (places < self.starts.diff()[:, None])[:, None, None]


class Spans(NamedTuple):
    """Who may read whom in packed rows: each sequence its own counterpart, and nothing else.

    Attributes:
        asking: the sequences that ask.
        read: as many sequences, the i-th of which is read by the i-th that asks.
    """

    asking: Packing
    read: Packing

    def to(self, device: torch.device) -> "Spans":
        """The same with all tensors on `device`."""
        return Spans(self.asking.to(device), self.read.to(device))


Mask = Tensor | Spans
"""True where reading is allowed, or where packed sequences lie."""


@functools.cache
def has_kernel(device: torch.device) -> bool:
    """Whether `varlen_attn` runs there: a GPU of compute capability 8.0, and torch 2.12."""
    if device.type != "cuda" or torch.__version__ < "2.12":
        return False
    return torch.cuda.get_device_capability(device) >= (8, 0)
