"""What a search needs of a model, and nothing more.

Not a base class: anything with these four methods can be decoded — Transformer, RNN, int8 engine.
Read on in `transformer.py` (one such model) and in `heed/decode/` (the searches).
"""

from typing import Any, Protocol

from torch import Tensor

State = Any
"""A model's own memory between two steps; a search passes it on and never looks inside."""


class Decodable(Protocol):
    """A model that can be asked for the next token again and again.

    A search works on *rows*: `rows = n_sources * beam_size`, and row `r` continues source
    `r // beam_size`. Greedy search has one row a source.
    """

    def start(self, src: Tensor, *, beam_size: int = 1) -> State:
        """Read the sources once and return the state before the first target token.

        Args:
            src: source ids, padded with the model's `pad_id`, `(n_sources, src_len)`.
            beam_size: rows that will continue each source.
        """
        ...

    def step(self, state: State, tokens: Tensor) -> Tensor:
        """Advance every row by one token and return what may follow.

        Args:
            state: from `start`; changed in place.
            tokens: the last token of each row, `<bos>` at first, `(rows,)`.

        Returns:
            Logits of the next token in float32, `(rows, tgt_vocab_size)`.
        """
        ...

    def select(self, state: State, rows: Tensor, sources: Tensor | None = None) -> None:
        """Keep, repeat or reorder rows, in place.

        Args:
            state: from `start`; changed in place.
            rows: which old row each new row continues, `(new_rows,)`.
            sources: which old sources stay, `(new_n_sources,)`; None keeps all, in order.
        """
        ...

    def forced(self, src: Tensor, tgt_in: Tensor) -> Tensor:
        """Score a given target in one pass (teacher forcing).

        Args:
            src: source ids, padded, `(batch, src_len)`.
            tgt_in: target ids that start with `<bos>`, padded, `(batch, tgt_len)`.

        Returns:
            Logits in float32, `(batch, tgt_len, tgt_vocab_size)`; position `t` predicts `t + 1`.
        """
        ...
