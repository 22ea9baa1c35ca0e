"""A bag of n-grams: a text is the weighted sum of their vectors, Σ w_i v_i / √(Σ w_i²).

N-grams consist of pieces; each whole word is one more n-gram, however many pieces it has. Each
counts once, however often it occurs. The rarer it is, the larger its weight w_i
(`inverse_frequencies`).
Sources: Wang and Manning 2012, "Baselines and Bigrams", section 2.1 (occurrence instead of
frequency); Joulin et al. 2017, "Bag of Tricks for Efficient Text Classification", section 2.2
(vectors of hashed n-grams).
"""

import math
from collections.abc import Iterable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from heed.model.fast.dropout import Dropout
from heed.model.network import TorchNetwork
from heed.model.plan import Weight
from heed.model.trace import see

_FACTOR, _SUM = -0x61C8864680B583EB, 0x7F4A7C15
"""Of the hash: 2⁶⁴ and 2³² divided by the golden ratio, the first as a signed number."""

POWER = 1.5
"""Of the weights; by the loss in cross-validation better than 1 and 2 (`docs/log`)."""

N_NO_LABEL, NO_LABEL = 4, -10.0
"""Outputs below the labels, those of special pieces, and the bias that excludes them at first."""


def inverse_frequencies(n_texts_with: Tensor, n_texts: int) -> Tensor:
    """w = (idf / log N)^POWER with idf = log(N / n); 0 for an n-gram in no text.

    Args:
        n_texts_with: n, the number of texts with an n-gram, `(n_rows,)`.
        n_texts: N.

    Returns:
        Between 0, for an n-gram of all texts, and 1, for one of a single text, `(n_rows,)`.

    Source: Sparck Jones 1972, "A Statistical Interpretation of Term Specificity"; the power is
        ours (`docs/log`).
    """
    rarest = math.log(max(2, n_texts))
    idf = rarest - n_texts_with.clamp(min=1).double().log()
    return ((idf / rarest).clamp(min=0) ** POWER).where(n_texts_with > 0, 0.0)


class BagOfNGrams(TorchNetwork):
    """A vector for a text without the order of its n-grams.

    Args:
        plan: its weights.
        n_rows: rows of the table.
        width: of the vector of a text: a row's, and one more for a 1 that gives each label a bias.
        n_outputs: labels, and the ids below them.
        n_gram: pieces of the longest n-gram.
        pad_id: id of `<pad>`.
        bos_id: id of `<bos>`, which stands in front of each word.
        eos_id: id of `<eos>`.
        dropout: rate on the vector of a text.

    Attributes:
        row_weights: the weight w of each row of the table; 1 until a run counts the n-grams,
            stored with the model and never trained, `(n_rows,)`.
    """

    def __init__(
        self,
        *,
        plan: list[Weight],
        n_rows: int,
        width: int,
        n_outputs: int,
        n_gram: int,
        pad_id: int,
        bos_id: int,
        eos_id: int,
        dropout: float,
    ) -> None:
        super().__init__(plan=plan, pad_id=pad_id)
        self.bos_id, self.eos_id = bos_id, eos_id
        self.n_gram = n_gram
        self.row_weights = nn.Parameter(torch.empty(n_rows), requires_grad=False)
        nn.init.ones_(self.row_weights)
        self.n_grams = nn.Embedding(n_rows, width - 1, _weight=torch.empty(n_rows, width - 1))
        # A row that training never reads must not change a label.
        nn.init.zeros_(self.n_grams.weight)
        self.output = nn.Linear(width, n_outputs, bias=False)
        nn.init.normal_(self.output.weight, std=width**-0.5)
        with torch.no_grad():
            self.output.weight[:, -1] = 0.0
            self.output.weight[:N_NO_LABEL, -1] = NO_LABEL
        self.dropout = Dropout(dropout)

    def forward(self, src: Tensor, tgt_in: Tensor, src_mask: Tensor | None = None) -> Tensor:
        """Read texts.

        Args:
            src: their ids, `<bos>` in front of each word, padded at the end, `(batch, src_len)`.
            tgt_in: not used: a label does not depend on earlier ones.
            src_mask: True at real tokens, `(batch, 1, 1, src_len)`; None = nothing is padded.

        Returns:
            A state for each text, `(batch, 1, d_model)`.
        """
        rows, counts = self.rows(src, src_mask)
        starts = counts.cumsum(0) - counts
        weights = self.row_weights[rows]
        total = F.embedding_bag(
            rows, self.n_grams.weight, starts, mode="sum", per_sample_weights=weights
        )
        places = torch.arange(len(rows), device=rows.device)
        squares = F.embedding_bag(places, weights.square()[:, None], starts, mode="sum")
        state = total / squares.clamp(min=1e-9).sqrt()
        state = F.pad(self.dropout(state), (0, 1), value=1.0)
        return see(self, "states", state[:, None])

    def counted(self, texts: Iterable[tuple[Tensor, Tensor | None]]) -> dict[str, Tensor]:
        """Weights of the rows, counted from the texts; see `TorchNetwork.counted`."""
        n_texts, n_rows = 0, len(self.row_weights)
        counts = torch.zeros(n_rows, dtype=torch.long)
        for src, src_mask in texts:
            counts += self.rows(src, src_mask)[0].cpu().bincount(minlength=n_rows)
            n_texts += len(src)
        return {"row_weights": inverse_frequencies(counts, n_texts).float()}

    def rows(self, src: Tensor, src_mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """The rows of the table that each text needs, one text after another.

        Args:
            src: as in `forward`, `(batch, src_len)`.
            src_mask: the same, `(batch, 1, 1, src_len)`.

        Returns:
            Rows, ascending in each text, and the number of rows of each text.
        """
        is_real = torch.ones_like(src, dtype=torch.bool) if src_mask is None else src_mask[:, 0, 0]
        n_rows, is_mark = len(self.row_weights), src == self.bos_id
        is_inside = is_real & ~is_mark & (src != self.eos_id)
        # Pieces first, in their order, then the marks.
        order = is_mark.sort(dim=1, stable=True).indices
        pieces, are_real = src.gather(1, order), (is_real & ~is_mark).gather(1, order)
        found = [
            _n_gram_rows(pieces, are_real, self.n_gram, n_rows),
            _word_rows(src, is_mark, is_inside, n_rows),
        ]
        return _distinct(torch.cat(found, dim=1), n_rows)


def _n_gram_rows(ids: Tensor, is_real: Tensor, longest: int, n_rows: int) -> Tensor:
    """The row of the table for each n-gram of each text.

    Args:
        ids: `(batch, length)`.
        is_real: False at the padding after a text, `(batch, length)`.
        longest: pieces of the longest n-gram.
        n_rows: rows of the table.

    Returns:
        `(batch, n_places)`; `n_rows` where there is none.
    """
    if not ids.size(1):
        return ids
    found = []
    hashes = torch.zeros_like(ids)
    for length in range(1, min(longest, ids.size(1)) + 1):
        last = ids[:, length - 1 :]
        before = hashes[:, : last.size(1)]
        hashes = _mixed(before, last)
        found.append(((hashes >> 24) % n_rows).where(is_real[:, length - 1 :], n_rows))
    return torch.cat(found, dim=1)


def _word_rows(ids: Tensor, is_mark: Tensor, is_inside: Tensor, n_rows: int) -> Tensor:
    """The row of the table for each whole word of each text.

    Args:
        ids: `(batch, length)`.
        is_mark: True in front of a word, `(batch, length)`.
        is_inside: True at the pieces of words, `(batch, length)`.
        n_rows: rows of the table.

    Returns:
        A place for each mark and one for the pieces before the first mark, `(batch, n_places)`.
        The row of the latter, and of a word without pieces, is `n_rows`.
    """
    if not ids.size(1):
        return ids
    words = is_mark.cumsum(dim=1)
    places = torch.arange(ids.size(1), device=ids.device).expand_as(ids)
    begins = places.where(is_mark, 0).cummax(dim=1).values
    # A sum over the pieces of a word, each mixed with its place in the word.
    mixed = _mixed(_mixed(torch.zeros_like(ids), ids), places - begins).where(is_inside, 0)
    shape = len(ids), int(words.max()) + 1
    hashes = ids.new_zeros(shape).scatter_add(1, words, mixed)
    is_word = ids.new_zeros(shape).scatter_add(1, words, is_inside.long()) > 0
    is_word[:, 0] = False
    return ((_mixed(hashes, ids.new_tensor(_SUM)) >> 24) % n_rows).where(is_word, n_rows)


def _mixed(before: Tensor, number: Tensor) -> Tensor:
    """A hash with one more number mixed in; 64 bits overflow silently, as a hash needs."""
    return (before ^ (number + _SUM + (before << 6) + (before >> 2))) * _FACTOR


def _distinct(rows: Tensor, none: int) -> tuple[Tensor, Tensor]:
    """The different rows of each text, one text after another, and their numbers.

    Args:
        rows: `(batch, n_places)`.
        none: the value for no row, larger than all rows.

    Returns:
        Rows, ascending in each text, `(n_distinct,)`, and the number in each text, `(batch,)`.
    """
    ordered = rows.sort(dim=1).values
    is_first = ordered < none
    is_first[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
    return ordered[is_first], is_first.sum(dim=1)
