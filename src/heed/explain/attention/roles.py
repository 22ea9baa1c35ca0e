"""Roles of heads: attention to the position before or after, itself, `<eos>`, punctuation ...

Source: Clark et al. 2019, "What Does BERT Look At?", section 3; Voita et al. 2019, "Analyzing
    Multi-Head Self-Attention", section 5.
"""

from collections.abc import Sequence

import numpy as np
import torch
from numpy.typing import NDArray

from heed.errors import UsageError
from heed.explain.attention.maps import maps, tokens
from heed.explain.heads import head_distances
from heed.model.interface import Floats
from heed.text.piece_words import is_punctuation, is_special
from heed.text.vocab import N_SPECIAL, Vocab
from heed.translate.trace import Trace

Shares = dict[str, float]
"""The share of its attention that a head spends on each role; roles may overlap."""


def roles(
    weights: Floats, columns: Sequence[str], *, is_self: bool, rarest: Sequence[int] = ()
) -> Shares:
    """Shares of one head: the mean over rows.

    Args:
        weights: rows that sum to 1, `(q_len, k_len)`.
        columns: pieces of the keys.
        is_self: whether rows and columns are the same positions.
        rarest: indices of the rarest pieces.

    Returns:
        For each role: `previous`, `next` and `same` position of self-attention, `special` pieces
        such as `<eos>`, `punctuation`, `rare` pieces.
    """
    places = {
        "special": [place for place, piece in enumerate(columns) if is_special(piece)],
        "punctuation": [place for place, piece in enumerate(columns) if is_punctuation(piece)],
        "rare": list(rarest),
    }
    shares = {role: float(weights[:, read].sum(axis=1).mean()) for role, read in places.items()}
    if not is_self:
        return shares
    # The first row has no position before it, so its share there is 0.
    diagonals = {"previous": -1, "next": 1, "same": 0}
    near = {role: np.trace(weights, offset) / len(weights) for role, offset in diagonals.items()}
    return {role: float(share) for role, share in near.items()} | shares


def roles_of(trace: Trace, use: str, vocab: Vocab | None = None) -> list[list[Shares]]:
    """`roles` of every layer and head of one use.

    Args:
        trace: trace of a model with attention.
        use: `encoder`, `decoder` or `cross`.
        vocab: vocabulary of the keys. The rarest piece of the sentence, the last in the order of
            the vocabulary, is `rare`; None = no piece is.

    Raises:
        UsageError: the model has no attention of this use, or it is `joint`.
    """
    if use == "joint":
        raise UsageError("Roles are of one side; use must be encoder, decoder or cross.")
    trace = trace.without_padding()
    _, columns = tokens(trace, use)
    rarest = [] if vocab is None else _rarest(columns, vocab)
    return [
        [roles(head, columns, is_self=use != "cross", rarest=rarest) for head in layer]
        for layer in maps(trace, use)
    ]


def distances_of(trace: Trace, use: str) -> list[NDArray[np.float64]]:
    """The differences between the heads of each layer, `(n_heads, n_heads)`: see `head_distances`.

    Args:
        trace: trace of a model with attention.
        use: `encoder`, `decoder` or `cross`.
    """
    layers = maps(trace.without_padding(), use)
    return [head_distances(torch.from_numpy(layer)[None]).numpy() for layer in layers]


def main_role(shares: Shares, least: float = 0.5) -> str | None:
    """The role with the largest share of a head's attention, if it is at least `least`."""
    role = max(shares, key=shares.__getitem__)
    return role if shares[role] >= least else None


def _rarest(columns: Sequence[str], vocab: Vocab) -> list[int]:
    """Vocabularies are sorted from frequent to rare pieces, except single characters."""
    numbers = {piece: id for id, piece in enumerate(vocab.pieces(range(vocab.size)))}
    ranks = [numbers.get(piece, 0) for piece in columns]
    last = max(ranks, default=0)
    return [place for place, rank in enumerate(ranks) if rank == last and rank >= N_SPECIAL]
