"""Word alignment: links between the words of a translation and those of its source.

A model's attention is between pieces and is vague: an article reads the noun that decides its
gender, many words read the full stop. Here pieces become words, and the weights are normalized over
rows and columns, so that each source word belongs to some target word.
"""

import math
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise

import numpy as np
from numpy.typing import NDArray

from heed.text.normalize import BLANKS
from heed.text.protected import Rules, find_spans
from heed.text.protection.pattern import MARKS
from heed.text.scripts import SOLID
from heed.text.spans import BLANK_SIGN
from heed.translate.result import Translation

Span = tuple[int, int]
Matrix = NDArray[np.float64]

# A character of a script without blanks is a word of its own. An underscore belongs to a word only
# within it: `_house_` is a word in emphasis.
_LETTER = rf"(?:(?![{SOLID}_])[\w{MARKS}])"
_WORD = re.compile(rf"[{SOLID}]|{_LETTER}+(?:(?:['’.,\-\u05be]|_+){_LETTER}+)*|[^\w\s]|_")
_LETTER_OR_DIGIT = re.compile(r"[^\W_]")
_BYTE = re.compile(r"<0x([0-9A-F]{2})>")
# How far to search for a piece that is not at its expected place in the text.
_WINDOW = 16
_ROUNDS = 8
_SHARPNESS = 1.5
_EVERYWHERE = 0.02
_SAME_WORD = 0.5
_SIGN_AND_WORD = 0.05
_DIAGONAL = 1.0
# A word belongs to a stretch of the source if more than this share of its links leads there.
_BELONGS = 0.5


@dataclass(frozen=True, slots=True)
class Links:
    """The words of a text and of its translation, and the weights of their links.

    Attributes:
        src: start and end of each source word.
        tgt: start and end of each target word.
        weights: for each target word, shares of the source words, `(n_tgt_words, n_src_words)`;
            a row sums to 1.
        read: how much each target word read each source word by the alignment alone, in the same
            shape; zeros without an alignment.
    """

    src: list[Span]
    tgt: list[Span]
    weights: Matrix
    read: Matrix


def link_words(source: str, translation: Translation, cuts: Collection[int] = ()) -> Links:
    """The words of a source and of its translation, linked.

    Args:
        source: the source text.
        translation: with its alignment; without, words are linked by their positions.
        cuts: places in the source where a word is divided, as for a tag within it; an equal word of
            the translation is divided too.
    """
    src, tgt = whole_words(source), whole_words(translation.text)
    if cuts:
        src, tgt = _divided(source, src, translation.text, tgt, cuts)
    return link_spans(source, src, translation, tgt)


def link_spans(source: str, src: list[Span], translation: Translation, tgt: list[Span]) -> Links:
    """The given words of a source and of its translation, linked.

    Args:
        source: the source text.
        src: start and end of its words.
        translation: with its alignment; without, words are linked by their positions.
        tgt: start and end of the words of the translation.
    """
    if not src or not tgt:
        nothing = np.zeros((len(tgt), len(src)))
        return Links(src, tgt, nothing, nothing)
    read = _read(source, src, translation, tgt)
    weights = _competed(read, _words(source, src), _words(translation.text, tgt))
    return Links(src, tgt, weights, read)


def words_around(text: str, places: Sequence[Span]) -> list[Span]:
    """Start and end of the words of a text; each of `places`, in order, is one word."""
    words: list[Span] = []
    begin = 0
    for start, end in [*places, (len(text), len(text))]:
        words += [(begin + a, begin + b) for a, b in word_spans(text[begin:start])]
        if start < end:
            words.append((start, end))
        begin = end
    return words


def whole_words(text: str) -> list[Span]:
    """Start and end of the words that `link_words` links; a field or an address is one word."""
    spans = find_spans(text, Rules.default())
    return words_around(text, [(span.start, span.end) for span in spans if not span.inner])


def word_spans(text: str) -> list[Span]:
    """Start and end of the words of a text; a punctuation mark counts as a word."""
    return [match.span() for match in _WORD.finditer(text)]


def words_in(text: str) -> list[str]:
    """The words of a text; a punctuation mark counts as a word."""
    return _WORD.findall(text)


def best_stretch(shares: Matrix, free: NDArray[np.bool_]) -> Span:
    """The range of free words of a translation that belongs to a stretch of the source.

    Args:
        shares: how much of each word belongs to the stretch, `(n_words,)`.
        free: which words may be taken, `(n_words,)`; one at least.
    """
    return largest_sum(np.where(free, shares - _BELONGS, -np.inf))


def largest_sum(values: Matrix, above: float = -math.inf) -> Span:
    """Start and end of the stretch of numbers with the largest sum.

    Args:
        values: the numbers, `(n,)`.
        above: the sum must be more than this; if no stretch has it, the result is (0, 0).

    Source: Kadane's algorithm for the contiguous part of the largest sum.
    """
    best, first, last = above, 0, 0
    start, total = 0, 0.0
    for place, value in enumerate(values.tolist()):
        if total <= 0:
            start, total = place, 0.0
        total += value
        if total > best:
            best, first, last = total, start, place + 1
    return first, last


def piece_spans(pieces: Sequence[str], text: str) -> list[Span]:
    """Start and end of the pieces of a text, without the blanks around them.

    If a piece is spelled differently from the text, its place is guessed.
    """
    spans: list[Span] = []
    place, end = 0, len(text)
    for is_byte, group in groupby(pieces, key=is_byte_piece):
        run = list(group)
        # Single bytes of a character cannot be decoded.
        surfaces = [_decoded(run)] if is_byte else [piece.strip(BLANK_SIGN) for piece in run]
        for surface in surfaces:
            while surface and place < end and text[place] in BLANKS:
                place += 1
            length = len(surface)
            found = text.find(surface, place, place + length + _WINDOW)
            start = place if found < 0 else found
            place = min(end, start + length)
            spans += [(start, place)] * (len(run) if is_byte else 1)
    return spans


def is_byte_piece(piece: str) -> bool:
    """Whether a piece is a byte of a character that has no piece."""
    return piece.startswith("<0x") and bool(_BYTE.fullmatch(piece))


def _decoded(pieces: list[str]) -> str:
    data = bytes(int(match[1], 16) for match in map(_BYTE.fullmatch, pieces) if match)
    return data.decode("utf-8", errors="replace")


def _divided(
    source: str, src: list[Span], target: str, tgt: list[Span], cuts: Collection[int]
) -> tuple[list[Span], list[Span]]:
    """The words of both sides, divided where a cut is inside a source word."""
    inside: dict[str, set[int]] = {}
    places = np.array(sorted(cuts))
    divided = []
    for start, end in src:
        first, last = np.searchsorted(places, [start, end], side="left")
        within = {int(place) - start for place in places[first:last] if place > start}
        if within:
            inside.setdefault(source[start:end].casefold(), set()).update(within)
        divided += _parts((start, end), within)
    return divided, [
        part for span in tgt for part in _parts(span, inside.get(target[slice(*span)].casefold()))
    ]


def _parts(span: Span, within: Collection[int] | None) -> list[Span]:
    start, end = span
    places = [start, *(start + place for place in sorted(within or ())), end]
    return [(a, b) for a, b in pairwise(places) if a < b]


def _read(source: str, src: list[Span], translation: Translation, tgt: list[Span]) -> Matrix:
    """How much each target word read each source word; zeros without an alignment."""
    rows = translation.alignment
    n_columns = len(translation.source_tokens)
    if not rows or len(rows) != len(translation.tokens) or len(rows[0]) != n_columns:
        return np.zeros((len(tgt), len(src)))
    of_src = _shares(piece_spans(translation.source_tokens, source), src)
    of_tgt = _shares(piece_spans(translation.tokens, translation.text), tgt)
    of_tgt /= np.maximum(of_tgt.sum(axis=0), 1e-9)
    read: Matrix = of_tgt.T @ np.array(rows) @ of_src
    return read


def _shares(pieces: list[Span], words: list[Span]) -> Matrix:
    """For each piece, the share of its characters in each word, `(n_pieces, n_words)`."""
    first, last = np.array(pieces).reshape(-1, 2).T[:, :, None]
    start, end = np.array(words).T
    shared = np.maximum(np.minimum(last, end) - np.maximum(first, start), 0)
    shares: Matrix = shared / np.maximum(last - first, 1)
    return shares


def _words(text: str, spans: list[Span]) -> list[str]:
    return [text[start:end].casefold() for start, end in spans]


def _competed(read: Matrix, src: list[str], tgt: list[str]) -> Matrix:
    """Weights of word pairs, scaled to equal sums of rows and columns, then to rows of sum 1.

    Source: Sinkhorn and Knopp 1967, "Concerning nonnegative matrices and doubly stochastic
    matrices": dividing rows and columns in turn by their sums.
    """
    n_tgt, n_src = len(tgt), len(src)
    share = (np.arange(n_tgt) / n_tgt)[:, None] - np.arange(n_src) / n_src
    numbers: dict[str, int] = {}
    tgt_words, src_words = (
        np.array([numbers.setdefault(word, len(numbers)) for word in words]) for words in (tgt, src)
    )
    tgt_signs, src_signs = (
        np.array([_LETTER_OR_DIGIT.search(word) is None for word in words]) for words in (tgt, src)
    )
    weights = read + _EVERYWHERE
    weights[tgt_words[:, None] == src_words] += _SAME_WORD
    weights = weights**_SHARPNESS * np.exp(-_DIAGONAL * np.abs(share))
    weights[tgt_signs[:, None] != src_signs] *= _SIGN_AND_WORD
    rows = np.ones(n_tgt)
    for _ in range(_ROUNDS):
        columns = (n_tgt / n_src) / (rows @ weights)
        rows = 1 / (weights @ columns)
    weights *= rows[:, None]
    weights *= columns
    return weights
