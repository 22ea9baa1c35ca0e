"""A summary of a translator, scores of given pairs, the next token, attention to the source."""

import math
import operator
import reprlib
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from heed.bundle.alignment import AlignmentHeads
from heed.decode.batching import batches, padded
from heed.decode.score import next_token, score_pairs
from heed.decode.slots import SlotRules
from heed.errors import ConfigError, UsageError
from heed.model.interface import Decodable, Floats, Inspectable
from heed.text.languages import spelled_direction
from heed.text.vocab import Vocab
from heed.translate.arguments import require_whole
from heed.translate.each_language import never_written
from heed.translate.lines import LineReader
from heed.translate.parts import Chunk
from heed.translate.result import Alignment
from heed.translate.whole import is_shown, shown_pieces, written_pieces

Weights = list[list[float]]

_FORCED_TOKENS = 4096
"""Positions of given pairs that are computed at once: bounds memory, does not change results."""


def summary(reader: LineReader) -> str:
    """A translator in one line: its languages, and how many pieces and remembered pairs it has.

    Args:
        reader: of the translator.
    """
    languages = reader.source_lang, reader.target_lang, reader.target_langs
    sizes = f"{reader.src_vocab.size:,} source and {reader.tgt_vocab.size:,} target pieces"
    n_pairs = sum(map(len, reader.memories))
    pairs = f", {n_pairs:,} remembered pair{'s' if n_pairs > 1 else ''}" if n_pairs else ""
    return f"<Translator {spelled_direction(*languages, reader.directions)}: {sizes}{pairs}>"


def next_ids(
    model: Decodable, reader: LineReader, chunk: Chunk, count: int
) -> list[tuple[int, float]]:
    """The most probable next ids and their probabilities.

    Args:
        model: anything that can be decoded, in evaluation mode.
        reader: has the vocabularies.
        chunk: a line with the translation so far.
        count: how many, from 1.

    Raises:
        UsageError: `count` (`k` in the public interface) is not such a number.
    """
    require_whole(count, "k", 1)
    vocab = reader.tgt_vocab
    (choices,) = next_token(
        model,
        padded([chunk.src_ids], reader.src_vocab.pad_id),
        [chunk.prefix],
        count=count,
        bos_id=vocab.bos_id,
        pad_id=vocab.pad_id,
        forbidden=[*{*never_written(vocab, chunk)} - {*_next_slots(chunk)}],
    )
    return [(choice.id, choice.probability) for choice in choices]


def _next_slots(chunk: Chunk) -> list[int]:
    """The slots that may come next in the translation of a line."""
    source = chunk.source
    rules = SlotRules.of([[] if source is None else source.required(chunk.prefix)])
    if rules is None:
        return []
    so_far = np.array([chunk.prefix], dtype=np.int64)
    may_come, _ = rules.next(so_far, np.zeros(1, dtype=np.int64))
    found: list[int] = rules.ids[may_come[0]].tolist()
    return found


def cross_attention(
    model: Decodable,
    vocabs: tuple[Vocab, Vocab],
    sources: list[list[int]],
    targets: list[list[int]],
    chosen: AlignmentHeads | None = None,
) -> list[Weights]:
    """Weights of one decoder layer, mean over some heads, without special source pieces.

    Args:
        model: anything that can be decoded, in evaluation mode.
        vocabs: of the source and of the target.
        sources: source ids, `<eos>` included.
        targets: target ids, without `<bos>` and `<eos>`.
        chosen: the layer and heads; None = all heads of the last layer.

    Returns:
        One matrix a pair, `(n_target_tokens, n_source_tokens)`.

    Raises:
        ConfigError: the model has no such layer or head, or no attention to the source.
    """
    chosen = chosen or AlignmentHeads()
    first = int(chosen.is_shifted)
    found: list[Weights] = [[]] * len(sources)
    lengths = [max(map(len, pair)) for pair in zip(sources, targets, strict=True)]
    for batch in batches(lengths, _FORCED_TOKENS):
        pairs = [(sources[i], targets[i]) for i in batch]
        for i, weights in zip(batch, _attention(model, vocabs, pairs, chosen), strict=True):
            shown = [n for n, token in enumerate(sources[i]) if is_shown(vocabs[0], token)]
            # Row t is the step that read target token t - 1 and wrote token t.
            found[i] = weights[first : first + len(targets[i]), shown].tolist()
    return found


def _attention(
    model: Decodable,
    vocabs: tuple[Vocab, Vocab],
    pairs: list[tuple[list[int], list[int]]],
    chosen: AlignmentHeads,
) -> Floats:
    """The mean over the chosen heads for pairs of one batch, `(batch, tgt_len + 1, src_len)`."""
    src_vocab, tgt_vocab = vocabs
    layers = []
    if isinstance(model, Inspectable):
        layers = model.cross_attention(
            padded([src for src, _ in pairs], src_vocab.pad_id),
            padded([[tgt_vocab.bos_id, *tgt] for _, tgt in pairs], tgt_vocab.pad_id),
            layer=chosen.layer,
        )
    if not layers:
        raise ConfigError(
            "this model has no attention to the source, so there is no alignment to show."
        )
    return _mean_of(layers[0], chosen.heads)


def mean_log_probs(
    model: Decodable, vocabs: tuple[Vocab, Vocab], pairs: Sequence[tuple[list[int], list[int]]]
) -> list[float]:
    """The mean log-prob of the tokens of given targets, `<eos>` included.

    Args:
        model: anything that can be decoded, in evaluation mode.
        vocabs: of the source and of the target.
        pairs: source ids, `<eos>` included, and target ids without.
    """
    src_vocab, vocab = vocabs
    targets = [[vocab.bos_id, *tgt, vocab.eos_id] for _, tgt in pairs]
    found = [0.0] * len(pairs)
    lengths = [max(len(src), len(tgt)) for (src, _), tgt in zip(pairs, targets, strict=True)]
    for batch in batches(lengths, _FORCED_TOKENS):
        log_probs = score_pairs(
            model,
            padded([pairs[i][0] for i in batch], src_vocab.pad_id),
            padded([targets[i][:-1] for i in batch], vocab.pad_id),
            padded([targets[i][1:] for i in batch], vocab.pad_id),
            pad_id=vocab.pad_id,
        )
        for i, row in zip(batch, log_probs, strict=True):
            # Exact, so that the padding of a longer row changes nothing.
            found[i] = math.fsum(row.tolist()) / (len(targets[i]) - 1)
    return found


def aligned(
    model: Decodable,
    reader: LineReader,
    pair: Chunk,
    chosen: AlignmentHeads | None,
) -> Alignment:
    """The source tokens that each target token attends to.

    Args:
        model: anything that can be decoded, in evaluation mode.
        reader: turns lines into ids.
        pair: a line with its translation.
        chosen: the layer and heads; None = all heads of the last layer.
    """
    vocabs = reader.src_vocab, reader.tgt_vocab
    (weights,) = cross_attention(model, vocabs, [pair.src_ids], [pair.prefix], chosen)
    return Alignment(
        source_tokens=shown_pieces(reader.src_vocab, pair),
        target_tokens=written_pieces(reader.tgt_vocab, pair.prefix, pair.source),
        weights=weights,
    )


def heads_of(
    layer: int | None, heads: Sequence[int], stored: AlignmentHeads | None
) -> AlignmentHeads | None:
    """The heads to read; None = all of the last layer.

    Args:
        layer: from 0, or from the end; None = that of `stored`, else the last.
        heads: of that layer; none = all, or those of `stored` if there is no layer either.
        stored: the heads of the model that align best, if they are known.

    Raises:
        UsageError: the layer or the heads are not whole numbers.
    """
    try:
        numbers = tuple(operator.index(head) for head in heads)
    except TypeError:
        raise UsageError(
            f"heads must be a list of whole numbers, but is {reprlib.repr(heads)}."
        ) from None
    if layer is not None:
        require_whole(layer, "layer")
        return AlignmentHeads(layer=layer, heads=numbers)
    return replace(stored or AlignmentHeads(), heads=numbers) if numbers else stored


def _mean_of(weights: Floats, heads: tuple[int, ...]) -> Floats:
    """The mean over the chosen heads, `(batch, tgt_len, src_len)`; of all if there are none."""
    for head in heads:
        if head not in range(weights.shape[1]):
            raise ConfigError(f"head must lie between 0 and {weights.shape[1] - 1}, but is {head}.")
    mean: Floats = (weights[:, list(heads)] if heads else weights).mean(axis=1)
    return mean
