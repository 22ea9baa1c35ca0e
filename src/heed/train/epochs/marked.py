"""A pair of sentences as text in which each slot is one character, so that it can be edited."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property

from heed.text.slots import Mark, decode_with, encode_with
from heed.text.vocab import Vocab
from heed.train.epochs.anchors import Anchor

_FIRST = 0xF880
"""Private characters that represent slots; a text that contains one of them is not changed."""
_KINDS = ("number", "thing", "open", "close")
_WIDTH = 16
_PLACES = re.compile(f"[{chr(_FIRST)}-{chr(_FIRST + len(_KINDS) * _WIDTH - 1)}]")


def character(kind: str, number: int) -> str:
    """The character that stands for a slot."""
    return chr(_FIRST + _KINDS.index(kind) * _WIDTH + number)


def find_characters(text: str) -> list[str]:
    """The slots of a text."""
    return _PLACES.findall(text)


class SlotText:
    """Ids to text in which each slot is one character, and back.

    Args:
        vocab: may have slots.
    """

    def __init__(self, vocab: Vocab) -> None:
        self._vocab, slots = vocab, vocab.slots
        by_kind = (slots.numbers, slots.things, slots.opens, slots.closes) if slots else ()
        self.characters = {
            id: character(kind, number)
            for kind, ids in zip(_KINDS, by_kind, strict=False)
            for number, id in enumerate(ids)
        }
        self._ids = {sign: id for id, sign in self.characters.items()}

    def decode(self, ids: list[int]) -> str | None:
        """The text of ids; None if it already contains characters that represent slots."""
        if self.characters.keys().isdisjoint(ids):
            text = self._vocab.decode(ids)
            return None if _PLACES.search(text) else text
        text, marks = decode_with(self._vocab, ids, self.characters)
        return text if len(marks) == len(find_characters(text)) else None

    def marks(self, text: str) -> list[Mark]:
        """The slots of a text as marks."""
        found = (match for match in _PLACES.finditer(text) if match[0] in self._ids)
        return [(match.start(), match.end(), self._ids[match[0]]) for match in found]

    def encode(self, text: str, encode: Callable[[str], list[int]] | None = None) -> list[int]:
        """The ids of a text; `encode`, or else the vocabulary, segments the text between slots."""
        marks, encode = self.marks(text), encode or self._vocab.encode
        return encode_with(self._vocab, text, marks, encode=encode) if marks else encode(text)

    def free(self, kind: str, texts: str) -> str:
        """The first slot of a kind that is not in `texts`; "" if there is none."""
        of_kind = (
            sign for sign in self._ids if (ord(sign) - _FIRST) // _WIDTH == _KINDS.index(kind)
        )
        return next((sign for sign in of_kind if sign not in texts), "")


@dataclass(frozen=True, kw_only=True)
class MarkedPair:
    """A pair that can be edited.

    Attributes:
        src: the source; each slot is one character.
        tgt: the target.
        find: the words of both that translate one another.
        slots: of the source's vocabulary.
        given: slots that are already assigned, even if they are in neither text yet.
    """

    src: str
    tgt: str
    find: Callable[[], list[Anchor]]
    slots: SlotText
    given: list[str] = field(default_factory=list)

    @cached_property
    def anchors(self) -> list[Anchor]:
        """Words of both sides that surely translate one another."""
        return self.find()

    def new_slot(self, kind: str) -> str:
        """A slot that is not used yet; "" if none is left."""
        found = self.slots.free(kind, self.src + "".join(self.given))
        self.given.append(found)
        return found

    def changed(self, src: str, tgt: str) -> "MarkedPair":
        """A pair with other texts and without anchors."""
        return replace(self, src=src, tgt=tgt, find=lambda: [], given=[])


def in_order(src: str, tgt: str) -> tuple[str, str]:
    """The texts with slots numbered in the order of the source."""
    counts = dict.fromkeys(_KINDS, 0)
    numbers: dict[str, str] = {}
    for sign in find_characters(src):
        if sign in numbers:
            continue
        kind = _KINDS[(ord(sign) - _FIRST) // _WIDTH]
        if kind == "close":
            continue
        numbers[sign] = character(kind, counts[kind])
        if kind == "open":
            closing = character("close", (ord(sign) - _FIRST) % _WIDTH)
            numbers[closing] = character("close", counts[kind])
        counts[kind] += 1
    table = str.maketrans(numbers)
    return src.translate(table), tgt.translate(table)
