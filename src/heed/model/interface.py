"""What a search needs of a model, and nothing more: NumPy arrays in, NumPy arrays out.

Not a base class: anything with these methods can be decoded — Transformer, RNN, int8 engine.
Read on in `decodable.py` (one such model) and in `heed/decode/` (the searches).
"""

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Ids = NDArray[np.int64]
Floats = NDArray[np.float32]

State = Any
"""A model's own memory between two steps; a search passes it on and never looks inside."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Changes:
    """What a search alters in a model's log-probs before the largest of them are chosen.

    Attributes:
        forbidden: ids that no row may choose, `(n_forbidden,)`.
        rows: of single entries that get a lower score, `(n_entries,)`.
        ids: of the same entries, `(n_entries,)`.
        scores: their scores, of which the lowest counts where several name one entry; minus
            infinity is not to be chosen, `(n_entries,)`.
    """

    forbidden: Ids
    rows: Ids
    ids: Ids
    scores: Floats


class Next(Protocol):
    """What may follow each row: natural log-probs over the whole vocabulary.

    Attributes:
        n_rows: how many rows there are.
        vocab_size: how many tokens may follow each.
    """

    n_rows: int
    vocab_size: int

    def of(self, ids: Ids) -> Floats:
        """Tell the model's own log-probs of given ids.

        Args:
            ids: some for each row, `(rows, n_ids)`.

        Returns:
            Theirs, `(rows, n_ids)`.
        """
        ...

    def top(self, count: int, changes: Changes | None = None) -> tuple[Floats, Ids]:
        """Find the largest scores of each row, largest first, the lower id first among equals.

        Where the score is minus infinity, the id may be any.

        Args:
            count: how many; fewer come back if the vocabulary is smaller.
            changes: what to alter first, for this answer only.

        Returns:
            The scores and their ids, both `(rows, count)`, for the caller to change; valid until
            the next step.
        """
        ...

    def all(self) -> Floats:
        """Copy the model's own log-probs of everything, `(rows, vocab_size)`."""
        ...


class Decodable(Protocol):
    """A model that can be asked for the next token again and again.

    A search works on *rows*: `rows = n_sources * beam_size`, and row `r` continues source
    `r // beam_size`. Greedy search has one row a source.
    """

    def start(self, src: Ids, *, beam_size: int = 1, forced: Ids | None = None) -> State:
        """Read the sources once and return the state before the first target token.

        Args:
            src: source ids, padded with the model's `pad_id`, `(n_sources, src_len)`.
            beam_size: rows that will continue each source.
            forced: ids that each answer will be made to hold, -1 for none, `(n_sources, n)`: a
                model that leaves out what is improbable keeps these.
        """
        ...

    def step(self, state: State, tokens: Ids) -> Next:
        """Advance every row by one token and return what may follow, valid until the next call.

        Args:
            state: from `start`; changed in place.
            tokens: the last token of each row, `<bos>` at first, `(rows,)`.
        """
        ...

    def select(self, state: State, rows: Ids, sources: Ids | None = None) -> None:
        """Keep, repeat or reorder rows, in place.

        Args:
            state: from `start`; changed in place.
            rows: which old row each new row continues, `(new_rows,)`.
            sources: which old sources stay, `(new_n_sources,)`; None keeps all, in order.
        """
        ...

    def forced(self, src: Ids, tgt_in: Ids) -> Next:
        """Score a given target in one pass (teacher forcing).

        Args:
            src: source ids, padded, `(batch, src_len)`.
            tgt_in: target ids that start with `<bos>`, padded, `(batch, tgt_len)`.

        Returns:
            What may follow each token of each target: row `b * tgt_len + t` predicts token `t + 1`
            of target `b`.
        """
        ...

    def cross_attention(self, src: Ids, tgt_in: Ids) -> list[Floats]:
        """Tell where every decoder layer looks in the source while it reads a given target.

        Args:
            src: source ids, padded, `(batch, src_len)`.
            tgt_in: target ids that start with `<bos>`, padded, `(batch, tgt_len)`.

        Returns:
            The weights, first layer first, each `(batch, n_heads, tgt_len, src_len)`.
        """
        ...


@runtime_checkable
class SideBySide(Decodable, Protocol):
    """What a model may offer besides: searches at the same time, each on a thread of its own.

    Attributes:
        n_at_once: for how many there are threads.
    """

    n_at_once: int

    def alone(self) -> Decodable:
        """The same network, each of whose searches keeps to the thread that it runs in."""
        ...


def largest(scores: Floats, count: int) -> tuple[Floats, Ids]:
    """Find the `count` largest entries of each row, largest first, the lower id first among equals.

    The plain definition of what `Next.top` answers; models have faster ways.

    Args:
        scores: log-probs, `(rows, vocab_size)`.
        count: how many; fewer come back if the rows are shorter.

    Returns:
        The values and their ids, both `(rows, count)`.
    """
    ids = np.argsort(-scores, axis=1, kind="stable")[:, :count]
    return np.take_along_axis(scores, ids, axis=1), ids
