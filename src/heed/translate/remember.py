"""Give a translator pairs: translations to follow where a source is like one of theirs."""

import reprlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from itertools import chain, count

from heed.errors import UsageError
from heed.text.capitals import in_small_letters
from heed.text.memory import TranslationMemory
from heed.text.normalize import normalize
from heed.text.protected import find_spans
from heed.text.protection.icu import Message, find_messages
from heed.text.slots import encode_with
from heed.translate.arguments import require_text
from heed.translate.given import without_memories
from heed.translate.given_spans import given_marks
from heed.translate.lines import LineReader
from heed.translate.source import Source, make_source
from heed.translate.translator import Translator

Ids = list[int]

MOST_JOINED = 10_000
"""Most pairs of a memory that others join; joining two of this size takes 0.4 s."""


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
    return add_pairs(translator.reader, pairs, target_lang=target_lang)


def remember_file(
    translator: Translator, path: str, *, source_lang: str = "", target_lang: str | None = None
) -> int:
    """Let a translator follow the pairs of a file, as `remember` does.

    Args:
        translator: the translator.
        path: of a `.tsv`, `.csv`, `.tmx`, `.xliff` or `.po`, also compressed.
        source_lang: of the sources; "" = that of the translator, and the other one if the
            translator translates between two languages into `target_lang`.
        target_lang: of the translations; None = that of the translator.

    Returns:
        How many sources were added.

    Raises:
        ConfigError: the model does not translate into the language.
        DataError: the file cannot be read as pairs.
        UsageError: it is not a file of both languages.
    """
    from heed.data.lines import suffix_of
    from heed.data.readers import BILINGUAL, ParallelFiles, read_part

    if suffix_of(path) not in BILINGUAL:
        raise UsageError(
            f"{path} must be a file of both languages ({', '.join(BILINGUAL)}, also compressed) to "
            "be a memory."
        )
    source, target = translator.reader.direction(source_lang, target_lang)
    part = ParallelFiles(files=(path,), source_lang=source, target_lang=target)
    pairs = ((pair.src, pair.tgt) for pair in read_part(part) if not pair.fault)
    return remember(translator, pairs, target_lang=target_lang)


def add_pairs(
    reader: LineReader, pairs: Iterable[tuple[str, str]], *, target_lang: str | None = None
) -> int:
    """Add pairs to those that guide the lines of a reader; arguments and result of `remember`."""
    own = without_memories(reader)
    tag, most = own.tag(target_lang), own.max_whole_tokens
    given: object = pairs
    if not isinstance(given, Iterable):
        raise UsageError(f"pairs must be pairs of strings, but are {reprlib.repr(given)}.")
    found: list[tuple[Ids, Ids]] = []
    of_capitals: list[tuple[Ids, Ids]] = []
    for each, src, tgt in chain.from_iterable(_with_inner(own, *_texts(pair)) for pair in given):
        src_ids, tgt_ids, in_capitals = pair_ids(each, src, tgt, tag)
        if 0 < len(src_ids) - len(tag) <= most and 0 < len(tgt_ids) <= most:
            (of_capitals if in_capitals else found).append((src_ids, tgt_ids))
    # A source in usual case goes before the same one in capitals.
    sizes = reader.src_vocab.size, reader.tgt_vocab.size
    memory = TranslationMemory.of([*of_capitals, *found], sizes)
    if len(memory):
        # As strong as those that were tried for the model.
        bonus = max((other.bonus for other in reader.memories), default=memory.bonus)
        others, joined = _join(reader.memories, memory, sizes)
        reader.memories = (*others, joined.with_bonus(bonus))
    return len(memory)


def _join(
    others: Sequence[TranslationMemory], memory: TranslationMemory, sizes: tuple[int, int]
) -> tuple[Sequence[TranslationMemory], TranslationMemory]:
    """Join a memory with the last ones that are not larger: a line is looked up in each.

    So pairs that are given one by one make few memories, and each pair joins others seldom.
    """
    while others and len(others[-1]) <= len(memory) <= MOST_JOINED:
        memory = TranslationMemory.of([*others[-1].pairs(), *memory.pairs()], sizes)
        others = others[:-1]
    return others, memory


def _texts(pair: object) -> tuple[str, str]:
    """The two texts of a pair."""
    if not isinstance(pair, tuple | list) or len(pair) != 2:
        raise UsageError(f"pairs must be pairs of strings, but one is {reprlib.repr(pair)}.")
    src, tgt = pair
    require_text(src=src, tgt=tgt)
    return src, tgt


def _with_inner(reader: LineReader, src: str, tgt: str) -> Iterator[tuple[LineReader, str, str]]:
    """A pair, and those of the texts in its ICU messages, each with the reader for it."""
    yield reader, src, tgt
    if "icu" in reader.rules.names:
        inner = copy(reader)
        inner.rules = reader.rules.within_icu()
        for one, other in zip(find_messages(src), find_messages(tgt), strict=False):
            # Texts are translations of each other only where all around them is the same.
            if _without_texts(src, one) == _without_texts(tgt, other):
                for (start, end), (first, last) in zip(one.texts, other.texts, strict=True):
                    yield from _with_inner(inner, src[start:end], tgt[first:last])


def _without_texts(text: str, message: Message) -> list[str]:
    """The stretches of a message around its texts."""
    places = [message.start, *chain.from_iterable(message.texts), message.end]
    return [text[start:end] for start, end in zip(places[::2], places[1::2], strict=True)]


def pair_ids(reader: LineReader, src: str, tgt: str, tag: Ids) -> tuple[Ids, Ids, bool]:
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
