"""Words of a source and its target that surely translate one another, found by counts.

They are few, but enough to insert text at the same place on both sides of a pair. Not here: an
alignment of all words (`data/word_alignment.py`).
"""

import re
import unicodedata
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heed.data.links import translations
from heed.data.store import Store
from heed.text.known import SOLID
from heed.text.scripts import script_of
from heed.text.vocab import Vocab

MAX_LINKS = 4_000_000
"""Pairs of a source and a target piece to count: two seconds; 20,000 short sentences."""

LEAST = 0.25
"""Least probability, in both directions, of pieces that translate one another."""

_BYTE = re.compile("<0x[0-9A-F]{2}>")

Place = tuple[int, int]
"""Start and end of a word in a text, in characters."""


class Anchor(NamedTuple):
    """A word and its translation.

    Attributes:
        src: its place in the source.
        tgt: the place of its translation in the target.
    """

    src: Place
    tgt: Place


class Anchors:
    """Finds words that translate one another.

    Args:
        pairs: to count pieces in.
        src_vocab: pieces of the sources.
        tgt_vocab: pieces of the targets.
    """

    def __init__(self, pairs: Store, src_vocab: Vocab, tgt_vocab: Vocab) -> None:
        n_src, n_tgt = src_vocab.size, tgt_vocab.size
        src, tgt, forth, _ = translations(pairs, n_src, n_tgt, at_most=MAX_LINKS)
        totals = np.zeros(n_tgt)
        np.add.at(totals, tgt, forth)
        # p(source | target) if all sources are equally frequent, which needs no second pass.
        back = forth / totals[tgt]
        is_word = (src < n_src) & _has_letters(tgt_vocab)[tgt]
        is_word &= _has_letters(src_vocab)[np.minimum(src, n_src - 1)]
        is_sure = is_word & (forth > LEAST) & (back > LEAST)
        src, tgt, forth = src[is_sure], tgt[is_sure], forth[is_sure]
        order = np.argsort(forth, kind="stable")  # the most probable of a piece comes last
        self._best = dict(zip(src[order].tolist(), tgt[order].tolist(), strict=True))
        self._src_widths, self._tgt_widths = _widths(src_vocab), _widths(tgt_vocab)
        self._src_begins = src_vocab.begins_word.tolist()
        self._tgt_begins = tgt_vocab.begins_word.tolist()

    def find(self, src_ids: list[int], tgt_ids: list[int], src: str, tgt: str) -> list[Anchor]:
        """The sure pairs of words of a pair of sentences, in the order of the source.

        Args:
            src_ids: ids of the source, without tags; a slot is one character of its text.
            tgt_ids: of the target.
            src: the text of `src_ids`.
            tgt: the text of `tgt_ids`.
        """
        places = {id: place for place, id in enumerate(tgt_ids)}
        sure = [
            (place, places[self._best[id]])
            for place, id in enumerate(src_ids)
            if self._best.get(id) in places
        ]
        if not sure:
            return []
        src_ends = _ends(src_ids, self._src_widths, has_blank=self._src_begins[src_ids[0]])
        tgt_ends = _ends(tgt_ids, self._tgt_widths, has_blank=self._tgt_begins[tgt_ids[0]])
        if src_ends is None or tgt_ends is None:
            return []
        found: list[Anchor] = []
        taken: set[Place] = set()
        for one, other in sure:
            anchor = Anchor(_word(src, *src_ends[one]), _word(tgt, *tgt_ends[other]))
            if anchor.src not in taken and anchor.tgt not in taken and all(map(_is_long, anchor)):
                taken.update(anchor)
                found.append(anchor)
        return found


def _is_long(place: Place) -> bool:
    return place[0] < place[1]


def _has_letters(vocab: Vocab) -> NDArray[np.bool_]:
    """Whether each piece holds a letter, `(vocab_size,)`."""
    pieces = vocab.pieces(range(vocab.size))
    found = np.array([any(map(str.isalpha, piece)) and piece[0] != "<" for piece in pieces])
    found[list(vocab.control_ids)] = False
    return found


def _widths(vocab: Vocab) -> list[int]:
    """Characters of each piece; 0 for a byte; 1 for a slot, which is one character."""
    pieces = vocab.pieces(range(vocab.size))
    widths = [0 if _BYTE.fullmatch(piece) else len(piece) for piece in pieces]
    for id in vocab.slots.ids if vocab.slots else ():
        widths[id] = 1
    return widths


def _ends(ids: list[int], widths: list[int], *, has_blank: bool) -> list[Place] | None:
    """Start and end of each piece in the text; None if some characters are spelled in bytes."""
    ends: list[Place] = []
    place = -int(has_blank)  # the text omits the first blank
    for id in ids:
        width = widths[id]
        if not width:
            return None
        ends.append((max(0, place), place + width))
        place += width
    return ends


def _word(text: str, start: int, end: int) -> Place:
    """The word that contains a piece, without blanks and marks."""
    while start < end and not _is_letter(text[start]):
        start += 1
    while end > start and not _is_letter(text[end - 1]):
        end -= 1
    if start < end and script_of(text[start]) not in SOLID:
        while start and _is_letter(text[start - 1]) and script_of(text[start - 1]) not in SOLID:
            start -= 1
        while end < len(text) and _is_letter(text[end]) and script_of(text[end]) not in SOLID:
            end += 1
    return start, end


def _is_letter(character: str) -> bool:
    return character.isalpha() or unicodedata.category(character)[0] == "M"
