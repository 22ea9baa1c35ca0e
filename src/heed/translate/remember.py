"""Give a translator pairs: translations to follow where a source is like one of theirs."""

import reprlib
import sys
from collections.abc import Iterable
from copy import copy
from itertools import count

from heed.errors import UsageError
from heed.text.capitals import in_small_letters
from heed.text.memory import TranslationMemory
from heed.text.normalize import normalize
from heed.text.protected import find_spans
from heed.text.slots import encode_with
from heed.translate.arguments import require_text
from heed.translate.given_spans import given_marks
from heed.translate.lines import LineReader
from heed.translate.source import Source, make_source
from heed.translate.translator import Translator

Ids = list[int]


def remember(
    translator: Translator, pairs: Iterable[tuple[str, str]], *, target_lang: str | None = None
) -> int:
    """Let a translator follow these translations where a source is like one of theirs.

    Nothing is learned: the model stays as it is, and the pairs count from the next call on, beside
    those stored with the model. Of pairs with the same source the last counts.

    Args:
        translator: the translator.
        pairs: sources and their translations, such as those of a translation memory. Blank and
            overlong ones are left out.
        target_lang: one of the model's target languages.

    Returns:
        How many sources were added.

    Raises:
        ConfigError: the model does not translate into the language.
        UsageError: they are not pairs of strings.
    """
    reader = copy(translator.reader)
    reader.memories = ()
    tag, most = reader.tag(target_lang), reader.max_whole_tokens
    given: object = pairs
    if not isinstance(given, Iterable):
        raise UsageError(f"pairs must be pairs of strings, but are {reprlib.repr(given)}.")
    found: list[tuple[Ids, Ids]] = []
    of_capitals: list[tuple[Ids, Ids]] = []
    for pair in given:
        src_ids, tgt_ids, in_capitals = _read(reader, *_texts(pair), tag)
        if 0 < len(src_ids) - len(tag) <= most and 0 < len(tgt_ids) <= most:
            (of_capitals if in_capitals else found).append((src_ids, tgt_ids))
    # A source in usual case goes before the same one in capitals.
    memory = TranslationMemory.of(
        [*of_capitals, *found], (reader.src_vocab.size, reader.tgt_vocab.size)
    )
    if len(memory):
        others = translator.reader.memories
        # As strong as those that were tried for the model.
        bonus = max((other.bonus for other in others), default=memory.bonus)
        translator.reader.memories = (*others, memory.with_bonus(bonus))
    return len(memory)


def _texts(pair: object) -> tuple[str, str]:
    """The two texts of a pair."""
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise UsageError(f"pairs must be pairs of strings, but one is {reprlib.repr(pair)}.")
    src, tgt = pair
    require_text(src=src, tgt=tgt)
    return src, tgt


def _read(reader: LineReader, src: str, tgt: str, tag: Ids) -> tuple[Ids, Ids, bool]:
    """The ids of a source, as it is read for translation, and of its translation.

    Args:
        reader: turns lines into ids.
        src: in the source language.
        tgt: its translation.
        tag: in front of the source.

    Returns:
        Both without `<eos>`, and whether the source was in capitals. Then it is read in small
        letters, and so is the translation; the search writes that in capitals again.
    """
    cutter = reader.cutter(tag, reader.rules, max_source_tokens=sys.maxsize)
    parts = cutter.parts(src, "", count())
    if not parts:
        return tag, [], False
    (chunk,) = parts
    in_capitals = chunk.source is not None and chunk.source.in_capitals
    return chunk.src_ids[:-1], _tgt_ids(reader, chunk.source, normalize(tgt)), in_capitals


def _tgt_ids(reader: LineReader, source: Source | None, tgt: str) -> Ids:
    """The ids of a translation as a model writes it for this source."""
    if source is None or not tgt:
        return reader.tgt_ids(tgt)
    spans = find_spans(tgt, reader.rules)
    if source.in_capitals:
        tgt = in_small_letters(tgt, [(span.start, span.end) for span in spans]) or tgt
    if reader.src_vocab.slots is None or reader.tgt_vocab.slots is None:
        # Such a model reads no tags: those of another translation would stand in this one too.
        return reader.tgt_ids(make_source(tgt, spans, reader.rules, None).read)
    marks, _ = given_marks(tgt, source)
    return encode_with(reader.tgt_vocab, tgt, marks)
