"""A whole line, alone or with a given translation, to be scored, aligned or traced.

It is read as for translation, with slots for its protected spans if the model has slots.
`parts.py` cuts lines into parts.
"""

import re
import sys
from collections.abc import Sequence
from dataclasses import replace
from itertools import count

from heed.text.capitals import in_small_letters
from heed.text.letter_case import upper
from heed.text.normalize import normalize
from heed.text.protected import Rules
from heed.text.protection.pattern import WORD
from heed.text.slots import encode_with
from heed.text.spans import overlaps
from heed.text.vocab import Vocab
from heed.translate.given_spans import given_marks
from heed.translate.lines import LineReader
from heed.translate.parts import Chunk
from heed.translate.source import Source

_WORD = re.compile(WORD)


def read_whole(reader: LineReader, text: str, tag: list[int], prefix: str = "") -> Chunk:
    """A whole line, however long.

    Args:
        reader: turns lines into ids.
        text: in the source language.
        tag: in front of the source.
        prefix: required beginning of the translation.
    """
    has_slots = reader.src_vocab.slots is not None and reader.tgt_vocab.slots is not None
    # A model without slots does not read all spans, but may be given a translation with them.
    rules = reader.rules if has_slots else Rules.none()
    cutter = reader.cutter(tag, rules, max_source_tokens=sys.maxsize)
    found = cutter.parts(text, prefix, count())
    if not found:  # A blank line is translated without the model.
        return Chunk([*tag, reader.src_vocab.eos_id], reader.tgt_ids(prefix), 0)
    return found[0]


def read_pair(reader: LineReader, text: str, tgt: str, tag: list[int]) -> Chunk:
    """A whole line, however long, with a given translation in place of a prefix.

    Args:
        reader: turns lines into ids.
        text: in the source language.
        tgt: its translation.
        tag: in front of the source.
    """
    chunk, tgt = read_whole(reader, text, tag, tgt), normalize(tgt)
    if chunk.source is None or not tgt:
        return chunk
    marks, source = given_marks(tgt, chunk.source)
    return replace(chunk, prefix=encode_with(reader.tgt_vocab, tgt, marks), source=source)


def required(reader: LineReader, chunk: Chunk, tag: list[int], what: str) -> Chunk:
    """The same line, if it is short enough to be read as a whole.

    Args:
        reader: the reader that turned it into ids.
        chunk: the line with its translation, or the prefix of one.
        tag: in front of the source.
        what: the name of the translation or prefix.

    Raises:
        DataError: a side has more than `max_whole_tokens`.
    """
    reader.require_whole("source", len(chunk.src_ids) - len(tag) - 1)
    reader.require_whole(what, len(chunk.prefix))
    return chunk


def shown_pieces(vocab: Vocab, chunk: Chunk) -> list[str]:
    """The pieces of a source without special ones; a span in place of its slot."""
    return read_pieces(vocab, [id for id in chunk.src_ids if is_shown(vocab, id)], chunk.source)


def is_shown(vocab: Vocab, id: int) -> bool:
    """Whether an id of a source represents text, not a tag or `<eos>`."""
    return not vocab.is_control(id) or (vocab.slots is not None and id in vocab.slots.ids)


def read_pieces(vocab: Vocab, ids: Sequence[int], source: Source | None) -> list[str]:
    """The pieces of a source; a span in place of its slot.

    Args:
        vocab: of the source side.
        ids: of the source.
        source: the line, if it has protected spans.
    """
    spans = () if source is None else source.spans
    texts = {span.slots[0]: span.written for span in spans if span.slots is not None}
    return [texts.get(id, piece) for id, piece in zip(ids, vocab.pieces(ids), strict=True)]


def written_pieces(vocab: Vocab, ids: Sequence[int], source: Source | None) -> list[str]:
    """The pieces of a translation; a span in place of its slot.

    Args:
        vocab: of the target side.
        ids: of the translation.
        source: the source, if it has protected spans.
    """
    spans = () if source is None else source.spans
    texts = {span.slots[1]: span.text for span in spans if span.slots is not None}
    return [texts.get(id, piece) for id, piece in zip(ids, vocab.pieces(ids), strict=True)]


def in_likely_case(text: str, kept: Sequence[tuple[int, int]], vocab: Vocab) -> str:
    """A text in capitals with each word in the case for which the vocabulary needs fewer pieces.

    Args:
        text: the text.
        kept: places that stay as they are, in order.
        vocab: of the text.
    """
    small = in_small_letters(text, kept)
    if small is None:
        return text

    def usual(match: re.Match[str]) -> str:
        word = match[0]
        large = upper(word[0]) + word[1:]
        if overlaps(kept, *match.span()) or len(large) != len(word):
            return word
        return min(word, large, key=lambda each: len(vocab.encode(each)))

    return _WORD.sub(usual, small)
