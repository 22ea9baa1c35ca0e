"""Groups pieces into words.

Not here: the attention between words (`explain/attention/words.py`).
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from heed.text.protection.pattern import MARKS, SOLID_MARKS
from heed.text.scripts import SOLID, is_written_solid
from heed.text.spans import BLANK_SIGN

_INNER_SIGNS = "'’-.,"
_COUNTED = re.compile(rf"(?:[^\W{SOLID}][{MARKS}]*+)++|[{SOLID}][{SOLID_MARKS}]*+|[^\w\s]")


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
        Word("".join(pieces[first:end]).replace(BLANK_SIGN, "") or BLANK_SIGN, first, end)
        for first, end in pairwise([*starts, len(pieces)])
    ]


def in_whole_words(pieces: Sequence[str], first: int, end: int) -> tuple[int, int]:
    """The same stretch of pieces, or a longer one that begins and ends with a word.

    Args:
        pieces: of the text.
        first: index of the first piece.
        end: index after the last piece.
    """
    if first == end:
        return first, end
    reached = [word for word in words_of(pieces) if word.first < end and first < word.end]
    return reached[0].first, reached[-1].end


def counted_words(pieces: Sequence[str]) -> list[str]:
    """The words of pieces in lower case, to count them; numbers and other signs are words too.

    Of a script without blanks, each character is a word.
    """
    return _COUNTED.findall("".join(pieces).replace(BLANK_SIGN, " ").casefold())


def is_special(piece: str) -> bool:
    """Whether a piece is not text: `<eos>`, `<bos>`, a language tag."""
    return len(piece) > 2 and piece[0] == "<" and piece[-1] == ">" and not piece.startswith("<0x")


def is_punctuation(piece: str) -> bool:
    """Whether a piece has punctuation and no letter or number."""
    text = piece.replace(BLANK_SIGN, "")
    return bool(text) and all(unicodedata.category(character)[0] in "PS" for character in text)


def _begins(pieces: Sequence[str], place: int, *, only_blanks: bool) -> bool:
    if place == 0:
        return True
    piece, before = pieces[place], pieces[place - 1]
    if is_special(piece) or is_special(before) or piece.startswith(BLANK_SIGN):
        # `▁` alone belongs to the piece after it.
        return True
    if only_blanks or before == BLANK_SIGN:
        return False
    if is_written_solid(piece[0]) or is_written_solid(before[-1]):
        return True
    if is_punctuation(piece):
        following = pieces[place + 1] if place + 1 < len(pieces) else BLANK_SIGN
        is_inside = piece in _INNER_SIGNS and _is_letter(before[-1]) and _is_letter(following[0])
        return not is_inside
    return is_punctuation(before) and _begins(pieces, place - 1, only_blanks=False)


def _is_letter(character: str) -> bool:
    return character.isalnum() or unicodedata.category(character)[0] == "M"
