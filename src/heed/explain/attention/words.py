"""Pieces and words: group pieces into words, and compute the attention between words.

Attention to a word is attention to any of its pieces, so columns are added. A word attends as its
pieces do on average, so rows are averaged. Rows still sum to 1.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from heed.model.interface import Floats
from heed.translate.result import Alignment, is_written_solid

WORD_START = "\u2581"
_INNER_SIGNS = "'’-.,"


@dataclass(frozen=True, slots=True)
class Word:
    """A word and its pieces.

    Attributes:
        text: without the mark of a blank.
        first: index of its first piece.
        end: index after its last piece.
    """

    text: str
    first: int
    end: int


def words_of(pieces: Sequence[str], *, only_blanks: bool = False) -> list[Word]:
    """Group pieces into words; each piece belongs to one word.

    A word begins at `▁`. A piece of punctuation is a word of its own, except between letters as in
    `don't`; so are pieces such as `<eos>`, and every piece of a script without blanks.

    Args:
        pieces: as spelled in the vocabulary.
        only_blanks: split words only at `▁`, for text that is already tokenized.
    """
    starts = [
        place for place in range(len(pieces)) if _begins(pieces, place, only_blanks=only_blanks)
    ]
    return [
        Word("".join(pieces[first:end]).replace(WORD_START, "") or WORD_START, first, end)
        for first, end in pairwise([*starts, len(pieces)])
    ]


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


def is_special(piece: str) -> bool:
    """Whether a piece is not text: `<eos>`, `<bos>`, a language tag."""
    return len(piece) > 2 and piece[0] == "<" and piece[-1] == ">" and not piece.startswith("<0x")


def is_punctuation(piece: str) -> bool:
    """Whether a piece has punctuation and no letter or number."""
    text = piece.replace(WORD_START, "")
    return bool(text) and all(unicodedata.category(character)[0] in "PS" for character in text)


def _begins(pieces: Sequence[str], place: int, *, only_blanks: bool) -> bool:
    if place == 0:
        return True
    piece, before = pieces[place], pieces[place - 1]
    if is_special(piece) or is_special(before) or piece.startswith(WORD_START):
        # `▁` alone belongs to the piece after it.
        return True
    if only_blanks or before == WORD_START:
        return False
    if is_written_solid(piece[0]) or is_written_solid(before[-1]):
        return True
    if is_punctuation(piece):
        following = pieces[place + 1] if place + 1 < len(pieces) else WORD_START
        is_inside = piece in _INNER_SIGNS and _is_letter(before[-1]) and _is_letter(following[0])
        return not is_inside
    return is_punctuation(before) and _begins(pieces, place - 1, only_blanks=False)


def _is_letter(character: str) -> bool:
    return character.isalnum() or unicodedata.category(character)[0] == "M"
