"""Add pieces to a vocabulary that a model already uses, without changing any of its ids.

A SentencePiece model is a protocol buffer that lists its pieces one by one, so more can be
appended; https://protobuf.dev/programming-guides/encoding/. `train/start/finetune.py` makes their
embeddings.
"""

import itertools
import math
import re
import struct
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import sentencepiece

from heed.text.spans import BLANK_SIGN
from heed.text.vocab import BETWEEN_HAN, Kind, Vocab

MIN_COUNT = 10
"""Fewest occurrences of a word that gets a piece: the embedding of a rarer one is hardly
learned."""

MIN_PIECES = 4
"""Fewest pieces of a word that gets its own piece: for others a new piece would undo learning."""

MAX_NEW_WORDS = 0.25
"""Most pieces for new words, as a share of the old vocabulary."""

_KINDS: dict[int, Kind] = {1: "unigram", 2: "bpe", 3: "word", 4: "char"}
_NORMAL, _CONTROL = 1, 3
_PRIVATE = frozenset(f"{BLANK_SIGN}\u2585\ufdd0\ufdd1")
"""Characters that SentencePiece or `Vocab` reserve: a new piece contains none."""


class _Piece(NamedTuple):
    text: str
    score: float
    type: int = _NORMAL


def extend_vocab(
    vocab: Vocab,
    sentences: Iterable[str],
    *,
    character_coverage: float = 0.9999,
    controls: Sequence[str] = (),
) -> Vocab:
    """Add pieces for frequent parts of `sentences` that `vocab` spells with many pieces.

    These are characters spelled in bytes, and words broken into many pieces. Equal
    arguments give equal bytes; with nothing to add, `vocab` itself is returned.

    Args:
        vocab: old ids stay as they are, new ones follow.
        sentences: read once; the memory taken grows with the number of different words.
        character_coverage: share of the characters of `sentences` that must get a piece.
        controls: control pieces to add, such as `<2de>`; existing ones stay as they are.
    """
    words, characters = Counter[str](), Counter[str]()
    for sentence in sentences:
        words.update(sentence.split())
        characters.update(sentence)
    vocab = with_controls(vocab, controls)
    kind = kind_of(vocab)
    if kind != "word":
        vocab = _with_pieces(vocab, _new_characters(vocab, kind, characters, character_coverage))
    return vocab if kind == "char" else _with_pieces(vocab, _new_words(vocab, kind, words))


def with_controls(vocab: Vocab, controls: Sequence[str]) -> Vocab:
    """Add the missing control pieces."""
    missing = [piece for piece in controls if control_id(vocab, piece) is None]
    return _with_pieces(vocab, [_Piece(piece, 0.0, _CONTROL) for piece in missing])


def control_id(vocab: Vocab, piece: str) -> int | None:
    """The id of a control piece by its name; None if there is none."""
    named = zip(vocab.pieces(vocab.control_ids), vocab.control_ids, strict=True)
    return next((id for name, id in named if name == piece), None)


def new_spellings(old: Vocab, new: Vocab) -> list[list[int]]:
    """The old ids that spell each new id of `new`; none for a control id."""
    spellings: list[list[int]] = []
    for id in range(old.size, new.size):
        if new.is_control(id):
            spellings.append([])
            continue
        ids = old.encode(new.decode([id]))
        # Encoding adds a blank in front; a piece from inside a word has none.
        is_inner = not new.pieces([id])[0].startswith(BLANK_SIGN)
        has_blank = old.pieces(ids[:1])[0] in (BLANK_SIGN, "<0x20>")
        spellings.append(ids[1:] if is_inner and has_blank else ids)
    return spellings


def kind_of(vocab: Vocab) -> Kind:
    """The kind of a vocabulary."""
    trainer_spec = next(value for field, value in _fields(vocab.to_bytes()) if field == 2)
    assert isinstance(trainer_spec, bytes)
    number = next((value for field, value in _fields(trainer_spec) if field == 3), 1)
    assert isinstance(number, int)
    return _KINDS[number]


def _new_characters(
    vocab: Vocab, kind: Kind, counts: Counter[str], coverage: float
) -> Iterator[_Piece]:
    """The characters without a piece, among those that cover this share of a text."""
    processor, total, covered = _open(vocab), counts.total(), 0
    scores = _scores(vocab, kind, total)
    for character, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        if covered >= coverage * total:
            return
        covered += count
        is_new = processor.piece_to_id(character) == processor.unk_id()
        if is_new and character not in _PRIVATE and unicodedata.category(character)[0] not in "CZ":
            yield _Piece(character, scores(count))


def _new_words(vocab: Vocab, kind: Kind, counts: Counter[str]) -> Iterator[_Piece]:
    """Pieces for frequent words that take many pieces, most frequent first."""
    processor, most = _open(vocab), round(MAX_NEW_WORDS * vocab.size)
    scores = _scores(vocab, kind, counts.total())
    if kind != "word":  # in that kind a word is all text between two blanks
        # As with `TokenizerConfig.split_han`: Chinese text between two blanks is mostly a phrase.
        counts = _without(BETWEEN_HAN, _without_punctuation(counts))
    added: set[str] = set()
    for word, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        if count < MIN_COUNT:
            return
        spelling, piece = processor.encode_as_pieces(word), BLANK_SIGN + word
        if len(spelling) < MIN_PIECES or not _PRIVATE.isdisjoint(word):
            continue
        steps = [piece]
        # Merges reach a long piece only through shorter ones, and none through bytes.
        if kind == "bpe":
            steps = list(itertools.accumulate(spelling))[1:] if "".join(spelling) == piece else []
        is_new = {step: processor.piece_to_id(step) == processor.unk_id() for step in steps}
        steps = [step for step in steps if is_new[step] and step not in added]
        if len(added) + len(steps) > most:
            return
        added.update(steps)
        yield from (_Piece(step, scores(count)) for step in steps)


def _without_punctuation(counts: Counter[str]) -> Counter[str]:
    """Words of letters, without the punctuation after them."""
    bare = Counter[str]()
    for word, count in counts.items():
        end = len(word)
        while end and unicodedata.category(word[end - 1])[0] == "P":
            end -= 1
        if end and all(unicodedata.category(character)[0] in "LM" for character in word[:end]):
            bare[word[:end]] += count
    return bare


def _without(pattern: str, counts: Counter[str]) -> Counter[str]:
    """The words in which a pattern does not occur."""
    return Counter({word: count for word, count in counts.items() if not re.search(pattern, word)})


def _scores(vocab: Vocab, kind: Kind, total: int) -> Callable[[int], float]:
    """Score of a new piece by its count, high enough to be used: segmentation maximizes the sum.

    In byte-pair encoding a score is a rank: new merges come after all others.
    """
    processor = _open(vocab)
    lowest = min(processor.get_score(id) for id in range(vocab.size))
    ranks = itertools.count(1)
    if kind == "bpe":
        return lambda count: lowest - next(ranks)
    return lambda count: math.log(count / total)


def _open(vocab: Vocab) -> sentencepiece.SentencePieceProcessor:
    processor = sentencepiece.SentencePieceProcessor()
    processor.load_from_serialized_proto(vocab.to_bytes())
    return processor


def _with_pieces(vocab: Vocab, pieces: Iterable[_Piece]) -> Vocab:
    """`vocab` with pieces appended; itself if there are none."""
    added = b"".join(_entry(1, _encoded(piece)) for piece in pieces)
    return Vocab(vocab.to_bytes() + added) if added else vocab


def _encoded(piece: _Piece) -> bytes:
    """A `SentencePiece` message: the text is field 1, the score 2, the type 3."""
    score = bytes([2 << 3 | 5]) + struct.pack("<f", piece.score)
    return _entry(1, piece.text.encode()) + score + bytes([3 << 3, piece.type])


def _entry(field: int, data: bytes) -> bytes:
    """A field of bytes: number and kind, length, content."""
    return bytes([field << 3 | 2]) + _varint(len(data)) + data


def _varint(number: int) -> bytes:
    """Seven bits a byte, the lowest first; the eighth says that more follow."""
    data = bytearray()
    while number > 127:
        data.append(number & 127 | 128)
        number >>= 7
    return bytes(data) + bytes([number])


def _fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message that SentencePiece has already accepted."""
    position = 0

    def varint() -> int:
        nonlocal position
        number = shift = 0
        while True:
            byte = data[position]
            position += 1
            number |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return number

    while position < len(data):
        key = varint()
        field, wire = key >> 3, key & 7
        if wire == 0:
            yield field, varint()
            continue
        size = varint() if wire == 2 else {1: 8, 5: 4}[wire]
        position += size
        yield field, data[position - size : position]
