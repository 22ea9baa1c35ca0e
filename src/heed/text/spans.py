"""Places in a text, in characters: those of the pieces that were made from it, and overlaps."""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from operator import itemgetter

BLANK_SIGN = "▁"
_BYTE = re.compile("<0x([0-9A-F]{2})>")
_TAG = re.compile("<2[^<>]+>")
_MAX_SKIPPED = 40
"""Characters between two pieces at most: more than normalizing removes from ordinary text."""


def spans_of(pieces: Sequence[str], text: str) -> list[tuple[int, int]]:
    """First character, and one past the last, of each piece.

    Normalization may have changed the text before it became pieces, so compatibility characters
    and blanks may differ. Blanks belong to no piece. Bytes of one character all have its place. A
    piece without text, such as a language tag, has an empty place.

    Args:
        pieces: as `Vocab.pieces` spells them.
        text: the text that they spell.
    """
    plain, starts, ends = _compatible(text)
    spans: list[tuple[int, int]] = []
    position = 0
    for words, count in _spelled(pieces):
        start = _find(plain, words, position)
        if not words or start < 0:
            place = starts[min(position, len(plain))]
            spans += [(place, place)] * count
            continue
        position = start + len(words)
        spans += [(starts[start], ends[position - 1])] * count
    return spans


def overlaps(places: Sequence[tuple[int, int]], start: int, end: int) -> bool:
    """Whether a stretch overlaps one of the places, which are in order and apart."""
    following = bisect_right(places, start, key=itemgetter(1))
    return following < len(places) and places[following][0] < end


def _spelled(pieces: Sequence[str]) -> list[tuple[str, int]]:
    """The text that pieces spell, without blanks around it, and the number of these pieces."""
    found: list[tuple[str, int]] = []
    data = bytearray()
    count = 0
    for piece in pieces:
        if byte := _BYTE.fullmatch(piece):
            data.append(int(byte[1], 16))
            count += 1
            if (character := _decoded(data)) is not None or len(data) == 4:
                found.append((_plain(character or ""), count))
                data.clear()
                count = 0
            continue
        if count:
            found.append(("", count))
            data.clear()
            count = 0
        words = "" if _TAG.fullmatch(piece) else piece.replace(BLANK_SIGN, " ")
        found.append((_plain(words).strip(), 1))
    return [*found, ("", count)] if count else found


def _decoded(data: bytearray) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text)


def _compatible(text: str) -> tuple[str, list[int], list[int]]:
    """The text in compatibility form; start and end of the origin of each of its characters.

    The starts have one more entry, the end of the text.
    """
    plain: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    for start, end in _clusters(text):
        for character in _plain(text[start:end]):
            plain.append(character)
            starts.append(start)
            ends.append(end)
    return "".join(plain), [*starts, len(text)], ends


def _clusters(text: str) -> list[tuple[int, int]]:
    """Each character with the marks that are combined with it."""
    starts = [
        index
        for index, character in enumerate(text)
        if index == 0 or not unicodedata.combining(character)
    ]
    return list(zip(starts, [*starts, len(text)][1:], strict=True))


def _find(plain: str, words: str, position: int) -> int:
    return plain.find(words, position, position + _MAX_SKIPPED + len(words))
