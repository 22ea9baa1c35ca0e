"""Slots: pieces that represent spans of a text that must not change, such as `%s` or a URL.

The model reads the kind of a span, but not its letters.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heed.text.vocab import Vocab

N_NUMBERS = 8
N_THINGS = 8
N_PAIRS = 6

_NUMBERS = tuple(f"<n{i}>" for i in range(1, N_NUMBERS + 1))
_THINGS = tuple(f"<x{i}>" for i in range(1, N_THINGS + 1))
_OPENS = tuple(f"<o{i}>" for i in range(1, N_PAIRS + 1))
_CLOSES = tuple(f"<c{i}>" for i in range(1, N_PAIRS + 1))

SLOT_PIECES = (*_NUMBERS, *_THINGS, *_OPENS, *_CLOSES)
"""The control pieces that a vocabulary needs for slots."""

Mark = tuple[int, int, int]
"""Start and end of a span in a text, in characters, and the id of its slot."""

_STAND_IN = "\ufdd0"
_BEFORE = "x"


@dataclass(frozen=True)
class Slots:
    """The ids of a vocabulary's slots.

    Attributes:
        numbers: for numbers.
        things: for other single spans.
        opens: for the first mark of a pair, such as `<b>`.
        closes: for the second mark of the pair with the same index.
    """

    numbers: tuple[int, ...]
    things: tuple[int, ...]
    opens: tuple[int, ...]
    closes: tuple[int, ...]

    @cached_property
    def ids(self) -> frozenset[int]:
        """All ids that represent spans."""
        return frozenset((*self.numbers, *self.things, *self.opens, *self.closes))

    def partner(self, id: int) -> int | None:
        """The closing id of an opening id and the reverse; None for other ids."""
        if id in self.opens:
            return self.closes[self.opens.index(id)]
        if id in self.closes:
            return self.opens[self.closes.index(id)]
        return None


def find_slots(ids_of_controls: Mapping[str, int]) -> Slots | None:
    """The slots among a vocabulary's control pieces; None unless all of them are there."""
    if not all(piece in ids_of_controls for piece in SLOT_PIECES):
        return None
    numbers, things, opens, closes = (
        tuple(ids_of_controls[piece] for piece in pieces)
        for pieces in (_NUMBERS, _THINGS, _OPENS, _CLOSES)
    )
    return Slots(numbers, things, opens, closes)


def encode_with(
    vocab: "Vocab",
    text: str,
    marks: Sequence[Mark],
    *,
    encode: Callable[[str], list[int]] | None = None,
) -> list[int]:
    """The ids of a text in which each marked span is one slot.

    The blanks on both sides of a span are kept: `decode_with` gives the text back.

    Args:
        vocab: has slots.
        text: any text.
        marks: spans without overlap, in order.
        encode: cuts a stretch of text between spans; None = `vocab.encode`.
    """
    encode = encode or vocab.encode
    ids: list[int] = []
    place = 0
    for start, end, slot in marks:
        ids += _stretch(vocab, text[place:start], encode, is_first=not ids)
        ids.append(slot)
        place = end
    return ids + _stretch(vocab, text[place:], encode, is_first=not ids)


def decode_with(
    vocab: "Vocab", ids: Iterable[int], texts: Mapping[int, str]
) -> tuple[str, list[Mark]]:
    """The text of `ids` with spans in place of their slots, and the places of the spans.

    Args:
        vocab: has slots.
        ids: other control ids decode to nothing.
        texts: the span of each slot.
    """
    parts: list[str] = []
    marks: list[Mark] = []
    run: list[int] = []
    length = 0
    n_slots = 0
    for id in [*map(int, ids), None]:
        if id is not None and id not in texts:
            run.append(id)
            continue
        if run:
            parts.append(_spelled(vocab, run, is_first=not n_slots))
            length += len(parts[-1])
            run = []
        if id is not None:
            parts.append(texts[id])
            marks.append((length, length + len(texts[id]), id))
            length += len(texts[id])
            n_slots += 1
    return "".join(parts), marks


def _stretch(
    vocab: "Vocab", text: str, encode: Callable[[str], list[int]], *, is_first: bool
) -> list[int]:
    """The ids of the text before the first slot, or after a slot."""
    if is_first or not text:
        return encode(text) if text else []
    if text == " ":
        return [vocab.blank_id]
    if text[0] == " ":
        # Encoding adds a blank at the beginning, which decoding removes.
        return encode(text[1:])
    # Here there must be no blank, and the pieces must be those inside a word. A character that is
    # always spelled in bytes is put in front, and then removed with the blank before it.
    n_bytes = len(_STAND_IN.encode())
    last = vocab.encode(_STAND_IN)[-1]
    ids = encode(_STAND_IN + text)
    return ids[ids.index(last, n_bytes - 1) + 1 :]


def _spelled(vocab: "Vocab", ids: list[int], *, is_first: bool) -> str:
    if is_first:
        return vocab.decode(ids)
    # Decoding removes a blank at the beginning, so a character is put before it.
    return vocab.decode([*vocab.byte_ids(_BEFORE), *ids])[len(_BEFORE) :]
