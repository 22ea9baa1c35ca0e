"""The attention between words, from that between their pieces.

Attention to a word is attention to any of its pieces, so columns are added. A word attends as its
pieces do on average, so rows are averaged. Rows still sum to 1.
"""

from collections.abc import Sequence

import numpy as np

from heed.model.interface import Floats
from heed.text.piece_words import Word, words_of
from heed.translate.result import Alignment


def between_words(weights: Floats, rows: Sequence[Word], columns: Sequence[Word]) -> Floats:
    """Attention between words: the sum over key pieces, the mean over query pieces.

    Args:
        weights: between pieces, `(…, n_row_pieces, n_column_pieces)`.
        rows: words of the query pieces.
        columns: words of the key pieces.

    Returns:
        `(…, n_row_words, n_column_words)`.
    """
    read = np.add.reduceat(weights, [word.first for word in columns], axis=-1)
    summed = np.add.reduceat(read, [word.first for word in rows], axis=-2)
    n_pieces = np.array([[word.end - word.first] for word in rows], np.float32)
    between: Floats = np.divide(summed, n_pieces, dtype=np.float32)
    return between


def aligned_words(found: Alignment) -> Alignment:
    """Convert an alignment of pieces into one of words."""
    rows, columns = words_of(found.target_tokens), words_of(found.source_tokens)
    if not rows or not columns:
        return found
    weights = between_words(np.array(found.weights, np.float32), rows, columns)
    return Alignment(
        source_tokens=[word.text for word in columns],
        target_tokens=[word.text for word in rows],
        weights=weights.tolist(),
    )
