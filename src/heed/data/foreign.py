"""Pieces that a model of several target languages writes in other ones only.

Without these, such a model sometimes goes on in another language in the middle of a sentence.
"""

import numpy as np

from heed.data.links import Pairs
from heed.data.portions import PAIRS_AT_ONCE
from heed.text.spans import BLANK_SIGN
from heed.text.vocab import Vocab


def foreign_pieces(
    pairs: Pairs, n_pairs: int, src_vocab: Vocab, tgt_vocab: Vocab
) -> dict[int, tuple[int, ...]]:
    """The pieces that occur in targets of other languages only, by the tag of each language.

    A character alone is never foreign, so that a name can be spelled.

    Args:
        pairs: whose sources begin with a tag.
        n_pairs: how many to read, from the first.
        src_vocab: has the tags.
        tgt_vocab: pieces of the targets.
    """
    tags = np.sort([src_vocab.language_id(language) for language in src_vocab.languages])
    is_written = np.zeros((len(tags), tgt_vocab.size), bool)
    for start in range(0, n_pairs, PAIRS_AT_ONCE):
        numbers = range(start, min(n_pairs, start + PAIRS_AT_ONCE))
        targets = [pairs.tgt(number) for number in numbers]
        rows = np.searchsorted(tags, [pairs.src(number)[0] for number in numbers])
        is_written[rows.repeat([len(ids) for ids in targets]), np.concatenate(targets)] = True
    pieces = tgt_vocab.pieces(range(tgt_vocab.size))
    is_longer = np.array([len(piece.replace(BLANK_SIGN, "")) > 1 for piece in pieces])
    is_longer[[*tgt_vocab.control_ids]] = False
    is_foreign = ~is_written & is_written.any(axis=0) & is_longer
    return {
        tag: tuple(np.flatnonzero(row).tolist())
        for tag, row in zip(tags.tolist(), is_foreign, strict=True)
    }
