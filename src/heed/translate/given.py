"""Given pairs, not translated by the model: as ids, with probabilities, as translations."""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

from heed.decode.batching import batches, padded
from heed.decode.score import score_pairs
from heed.model.interface import Decodable
from heed.text.capitals import in_capitals, is_in_capitals
from heed.text.normalize import normalize
from heed.text.protected import Rules, find_spans
from heed.text.shared import marks_of, shared_spans
from heed.text.slots import encode_with
from heed.translate.given_spans import different_spans, given_marks
from heed.translate.lines import LineReader
from heed.translate.protect import tokens_in_capitals
from heed.translate.result import Doubt, PairScore, Translation, difference
from heed.translate.whole import (
    in_likely_case,
    read_pair,
    read_whole,
    shown_pieces,
    written_pieces,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class GivenPair:
    """A source and a given translation, as a model reads them.

    Attributes:
        src_ids: of the source, `<eos>` last.
        tgt_ids: of the translation, `<eos>` last.
        source_tokens: the pieces of the source without special ones.
        tokens: the pieces of the translation, `<eos>` last.
    """

    src_ids: list[int]
    tgt_ids: list[int]
    source_tokens: list[str]
    tokens: list[str]


def read_as_translated(reader: LineReader, src: str, tgt: str, tag: list[int]) -> GivenPair:
    """A pair as a search reads its source and writes its target, so that scores are the same.

    If both are in capitals, the case of the words of the translation is guessed.

    Args:
        reader: turns lines into ids.
        src: a source line.
        tgt: its translation.
        tag: in front of the source.
    """
    if found := _read_capitals(reader, src, tgt, tag):
        return found
    chunk, vocab = read_pair(reader, src, tgt, tag), reader.tgt_vocab
    tgt_ids = [*chunk.prefix, vocab.eos_id]
    return GivenPair(
        src_ids=chunk.src_ids,
        tgt_ids=tgt_ids,
        source_tokens=shown_pieces(reader.src_vocab, chunk),
        tokens=written_pieces(vocab, tgt_ids, chunk.source),
    )


def _read_capitals(reader: LineReader, src: str, tgt: str, tag: list[int]) -> GivenPair | None:
    """A pair whose source is in capitals as a search reads it, in small letters; else None.

    A translation in capitals is read in small letters, too.

    Args:
        reader: turns lines into ids.
        src: a source line.
        tgt: its translation.
        tag: in front of the source.
    """
    src, tgt, vocab = normalize(src), normalize(tgt), reader.tgt_vocab
    kept = [(span.start, span.end) for span in find_spans(src, reader.rules)]
    if not tgt or not is_in_capitals(src, kept):
        return None
    chunk = read_whole(reader, src, tag)
    if chunk.source is None or not chunk.source.in_capitals:
        return None
    marks, source = given_marks(tgt, chunk.source)
    places = [(start, end) for start, end, _ in marks]
    is_large = in_capitals(tgt, places)[0] == tgt
    written = in_likely_case(tgt, places, vocab) if is_large else tgt
    ids, end = encode_with(vocab, written, marks), [vocab.eos_id]
    pieces = written_pieces(vocab, ids, source)
    if is_large:
        pieces = tokens_in_capitals({span.text for span in source.spans}, pieces)
    return GivenPair(
        src_ids=chunk.src_ids,
        tgt_ids=[*ids, *end],
        source_tokens=shown_pieces(reader.src_vocab, chunk),
        tokens=[*pieces, *vocab.pieces(end)],
    )


def read_letters(reader: LineReader, src: str, tgt: str, tag: list[int]) -> GivenPair:
    """A pair with its spans spelled out, without slots.

    Args:
        reader: turns lines into ids.
        src: a source line.
        tgt: its translation.
        tag: in front of the source.
    """
    vocab = reader.tgt_vocab
    src_ids, tgt_ids = reader.src_ids(src, tag), [*reader.tgt_ids(tgt), vocab.eos_id]
    return GivenPair(
        src_ids=src_ids,
        tgt_ids=tgt_ids,
        source_tokens=reader.src_tokens(src_ids),
        tokens=vocab.pieces(tgt_ids),
    )


def read_with_slots(reader: LineReader, src: str, tgt: str, tag: list[int]) -> GivenPair:
    """A pair with slots for the spans that both sides have, as in training.

    A model with slots has hardly seen such spans spelled out. The source is read in usual case and
    without typing errors, as for translation; in a translation in capitals, the case of the words
    is guessed.

    Args:
        reader: turns lines into ids.
        src: a source line.
        tgt: its translation.
        tag: in front of the source.
    """
    if found := _read_capitals(reader, src, tgt, tag):
        return found
    tgt, vocab = normalize(tgt), reader.tgt_vocab
    places = [(span.start, span.end) for span in find_spans(tgt, reader.rules)]
    if is_in_capitals(tgt, places):
        small = in_likely_case(tgt, places, vocab)
        if len(vocab.encode(small)) < len(vocab.encode(tgt)):
            found = _read_shared(reader, src, small, tag)
            *tokens, end = found.tokens
            tokens = tokens_in_capitals({tgt[start:stop] for start, stop in places}, tokens)
            return replace(found, tokens=[*tokens, end])
    return _read_shared(reader, src, tgt, tag)


def _read_shared(reader: LineReader, src: str, tgt: str, tag: list[int]) -> GivenPair:
    """A pair with slots for the spans that both sides have; arguments as in `read_with_slots`."""
    vocabs = reader.src_vocab, reader.tgt_vocab
    texts = reader.cutter(tag, reader.rules).as_read(normalize(src)), normalize(tgt)
    slots = [vocab.slots for vocab in vocabs if vocab.slots is not None]
    shared = shared_spans(*texts, reader.rules) if len(slots) == len(vocabs) else []
    if not shared:
        return read_letters(reader, *texts, tag)
    ids, tokens = [], []
    for side, vocab, text in zip((0, 1), vocabs, texts, strict=True):
        marks = marks_of(shared, slots[side])[side]
        spans = {slot: text[start:end] for start, end, slot in marks}
        ids.append(encode_with(vocab, text, marks))
        pieces = zip(ids[side], vocab.pieces(ids[side]), strict=True)
        tokens.append([spans.get(id, piece) for id, piece in pieces])
    ends = vocabs[0].eos_id, vocabs[1].eos_id
    return GivenPair(
        src_ids=[*tag, *ids[0], ends[0]],
        tgt_ids=[*ids[1], ends[1]],
        source_tokens=tokens[0],
        tokens=[*tokens[1], *vocabs[1].pieces(ends[1:])],
    )


def score_given(
    model: Decodable,
    reader: LineReader,
    pairs: Sequence[GivenPair],
    tag: list[int],
    limits: tuple[int, int | None],
) -> list[PairScore]:
    """Score pairs, except those with a side that is too long to be read as a whole.

    Args:
        model: anything that can be decoded, in evaluation mode.
        reader: turned the lines into ids.
        pairs: in ids.
        tag: in front of each source.
        limits: tokens and rows of a batch, as in `batches`.

    Returns:
        One score a pair, in order; its status is `too_long` if nothing was computed.
    """
    src_vocab, vocab = reader.src_vocab, reader.tgt_vocab
    whole = [i for i, pair in enumerate(pairs) if _is_whole(reader, pair, tag)]
    scores = [PairScore(tokens=[], token_scores=[], status="too_long")] * len(pairs)
    lengths = [max(len(pairs[i].src_ids), len(pairs[i].tgt_ids)) for i in whole]
    for places in batches(lengths, *limits):
        batch = [pairs[whole[place]] for place in places]
        log_probs = score_pairs(
            model,
            padded([pair.src_ids for pair in batch], src_vocab.pad_id),
            padded([[vocab.bos_id, *pair.tgt_ids[:-1]] for pair in batch], vocab.pad_id),
            padded([pair.tgt_ids for pair in batch], vocab.pad_id),
            pad_id=vocab.pad_id,
        ).tolist()
        for place, pair, row in zip(places, batch, log_probs, strict=True):
            scores[whole[place]] = PairScore(
                tokens=pair.tokens, token_scores=row[: len(pair.tgt_ids)]
            )
    return scores


def _is_whole(reader: LineReader, pair: GivenPair, tag: list[int]) -> bool:
    """Whether neither side is too long to be read at once."""
    longest = reader.max_whole_tokens + 1  # and <eos>
    return max(len(pair.src_ids) - len(tag), len(pair.tgt_ids)) <= longest


def given_scores(
    model: Decodable,
    reader: LineReader,
    texts: tuple[Sequence[str], Sequence[str]],
    tag: list[int],
    limits: tuple[int, int | None],
) -> list[PairScore]:
    """The log-probabilities of given translations, read as a search writes them.

    Args:
        model: anything that can be decoded, in evaluation mode.
        reader: turns lines into ids.
        texts: sources, and their translations.
        tag: in front of each source.
        limits: tokens and rows of a batch, as in `batches`.
    """
    pairs = [read_as_translated(reader, *pair, tag) for pair in zip(*texts, strict=True)]
    return score_given(model, reader, pairs, tag, limits)


class _Reads(Protocol):
    reader: LineReader


_Translator = TypeVar("_Translator", bound=_Reads)


def alone(translator: _Translator) -> _Translator:
    """The same translator without its memories: they may hold the faults to be found."""
    other = copy(translator)
    other.reader = without_memories(translator.reader)
    return other


def without_memories(reader: LineReader) -> LineReader:
    """The same reader, whose lines no remembered pair guides."""
    other = copy(reader)
    other.memories = ()
    return other


def given_translations(
    model: Decodable,
    reader: LineReader,
    texts: tuple[Sequence[str], Sequence[str]],
    tag: list[int],
    limits: tuple[int, int | None],
) -> list[Translation]:
    """Given translations with the same fields as those of a search, and doubts about their spans.

    A pair that is too long to be read as a whole has no pieces.

    Args:
        model: anything that can be decoded, in evaluation mode.
        reader: turns lines into ids.
        texts: sources, and their translations.
        tag: in front of each source.
        limits: tokens and rows of a batch, as in `batches`.
    """
    pairs = [read_with_slots(reader, *pair, tag) for pair in zip(*texts, strict=True)]
    scores = score_given(model, reader, pairs, tag, limits)
    return [
        Translation(
            text=normalize(text),
            score=score.score,
            log_prob=score.log_prob,
            tokens=score.tokens[:-1],
            token_scores=score.token_scores,
            # With the pieces of one side only, the other would seem to be missing.
            source_tokens=pair.source_tokens if score.tokens else [],
            status="ok" if normalize(source) else "empty",
            doubts=_about_spans(normalize(source), normalize(text), reader.rules),
        )
        for source, text, pair, score in zip(*texts, pairs, scores, strict=True)
    ]


def read_translations(
    reader: LineReader, texts: tuple[Sequence[str], Sequence[str]], tag: list[int]
) -> list[Translation]:
    """The pieces of given translations, as `given_translations` finds them, and nothing else.

    Args:
        reader: turns lines into ids.
        texts: sources, and their translations.
        tag: in front of each source.
    """
    read = [read_with_slots(reader, *pair, tag) for pair in zip(*texts, strict=True)]
    return [
        Translation(text=normalize(text), tokens=pair.tokens[:-1], source_tokens=pair.source_tokens)
        if _is_whole(reader, pair, tag)
        else Translation(text=normalize(text))
        for text, pair in zip(texts[1], read, strict=True)
    ]


def _about_spans(source: str, text: str, rules: Rules) -> tuple[Doubt, ...]:
    missing, extra = different_spans(source, text, rules)
    if not missing and not extra:
        return ()
    return (difference("spans", "Protected spans", missing, extra),)
