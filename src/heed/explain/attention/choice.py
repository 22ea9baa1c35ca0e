"""Choose the layer and heads of a model that align best, measured on development data.

Every head and every mean of a layer is tried, both at the step that writes a token and at the step
that reads it (`AlignmentHeads.is_shifted`). The measure is AER: against manual alignments, or else
against the links of a statistical aligner in both directions. `competition.py` chooses the layer
for documents.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from heed.bundle.alignment import AlignmentHeads, save_alignment_heads
from heed.data.prepared import DATA, DEV_FILE, read_held_out
from heed.data.word_alignment import Link
from heed.decode.batching import batches, padded
from heed.errors import ConfigError, DataError
from heed.explain.attention.competition import MAX_PAIRS, best_layer, links_by_layer
from heed.explain.attention.links import Gold
from heed.explain.attention.statistical import reference
from heed.explain.attention.words import between_words
from heed.model.interface import Floats, Inspectable
from heed.text.piece_words import Word, words_of
from heed.train.run.calibrate import training_pairs
from heed.translate.parts import Chunk
from heed.translate.result import Translation
from heed.translate.translator import Translator, load
from heed.translate.whole import is_shown, read_pair, shown_pieces, written_pieces

BATCH_TOKENS = 2048
MAX_HELD_OUT, MAX_TRAINED_ON = 1000, 2000
MAX_TOKENS = 128
"""Longer sentences are skipped."""


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The result of the measurement.

    Attributes:
        best: the heads of the lowest error rate, with the layer for documents.
        before: the heads that the model has used so far, with their error rate on the same data.
        tried: all candidates, the best first.
        n_pairs: number of pairs that were used.
    """

    best: AlignmentHeads
    before: AlignmentHeads
    tried: list[AlignmentHeads]
    n_pairs: int


@dataclass(frozen=True)
class _Pair:
    """A pair of development data: its ids, and the words to align."""

    texts: tuple[str, str]
    src_ids: list[int]
    tgt_ids: list[int]
    shown: list[int]
    pieces: tuple[list[str], list[str]]
    src: list[Word]
    tgt: list[Word]


def choose(
    translator: Translator,
    src: Sequence[str],
    tgt: Sequence[str],
    *,
    gold: Sequence[Gold] | None = None,
    more: Sequence[tuple[str, str]] = (),
    target_lang: str | None = None,
) -> Choice:
    """Find the alignment heads of a model.

    Args:
        translator: translator of a model with attention to the source.
        src: source lines.
        tgt: their translations.
        gold: links of each pair, between words separated by blanks; None = links of a statistical
            aligner, which is trained on these pairs and on `more`.
        more: further sources with their translations, such as `trained_on`, for the aligner only.
            From 200 pairs alone it learns too few words to rank the heads.
        target_lang: one of the model's target languages.

    Raises:
        ConfigError: the model has no attention to the source.
        DataError: there are no pairs, the numbers of translations or alignments differ from that
            of the sources, or a link is outside its pair.
    """
    if not len(src) == len(tgt) == len(src if gold is None else gold):
        raise DataError(
            f"There must be as many translations and alignments as sources ({len(src)}), but there "
            f"are {len(tgt)}{'' if gold is None else f' and {len(gold)}'}."
        )
    pairs = _pairs(translator, src, tgt, target_lang, only_blanks=gold is not None)
    numbers = [number for number, pair in enumerate(pairs) if pair is not None]
    kept = [pair for pair in pairs if pair is not None]
    if not kept:
        raise DataError(f"No pair has text on both sides with at most {MAX_TOKENS} tokens each.")
    if gold is None:
        measure = "both directions of a statistical aligner"
        further = _pairs(translator, *_sides(more), target_lang, only_blanks=False)
        known = [*kept, *filter(None, further)]
        sources = [[word.text for word in pair.src] for pair in known]
        targets = [[word.text for word in pair.tgt] for pair in known]
        wanted = reference(sources, targets)[: len(kept)]
    else:
        measure = "alignments made by hand"
        wanted = [gold[number] for number in numbers]
        _require_inside(kept, wanted, numbers)
    return _chosen(translator, kept, wanted, measure, more)


def held_out(
    run: Path, translator: Translator, target_lang: str | None = None
) -> tuple[list[str], list[str]]:
    """Sources and translations of the development pairs of a run, at most `MAX_HELD_OUT`.

    Args:
        run: a training's run folder.
        translator: its model.
        target_lang: for a model with several target languages, the one to use.

    Raises:
        ConfigError: the folder has no such pairs.
    """
    if not (run / DATA / DEV_FILE).is_file():
        raise ConfigError(f"{run} has no development pairs; name files: SRC TGT.")
    pairs = read_held_out(run / DATA, DEV_FILE)
    if translator.reader.target_langs:
        _, into = translator.reader.direction(None, target_lang)
        pairs = [pair for pair in pairs if pair.target_lang == into]
    pairs = pairs[:MAX_HELD_OUT]
    return [pair.src for pair in pairs], [pair.tgt for pair in pairs]


def trained_on(
    run: Path, translator: Translator, target_lang: str | None = None
) -> list[tuple[str, str]]:
    """Pairs that the model of a run was trained on, spread evenly: at most `MAX_TRAINED_ON`, and
    none if the run has not kept them.

    Args:
        run: a training's run folder.
        translator: its model.
        target_lang: for a model with several target languages, the one to use.
    """
    store = training_pairs(run, translator)
    if store is None:
        return []
    tag = translator.reader.tag(target_lang)
    places = np.linspace(0, len(store) - 1, min(len(store), MAX_TRAINED_ON), dtype=np.int64)
    found = [(store.src(place).tolist(), store.tgt(place).tolist()) for place in places.tolist()]
    return [
        (translator.src_vocab.decode(src[len(tag) :]), translator.tgt_vocab.decode(tgt))
        for src, tgt in found
        if src[: len(tag)] == tag
    ]


def choose_after_training(run: Path) -> AlignmentHeads | None:
    """Find the alignment heads of a run on its development pairs, and store them.

    Returns:
        The heads; None if there is nothing to choose: the model has no attention to the source or
        another task, or there are no pairs.

    Raises:
        RunError: the disk is full or read-only, or permission is denied.
    """
    try:
        translator = load(run)
        best = choose(translator, *held_out(run, translator), more=trained_on(run, translator)).best
        save_alignment_heads(run, best)
    except (ConfigError, DataError):
        return None
    return best


def _chosen(
    translator: Translator,
    pairs: list[_Pair],
    wanted: Sequence[Gold],
    measure: str,
    more: Sequence[tuple[str, str]],
) -> Choice:
    """Count the agreeing links of every candidate, and rank the candidates."""
    n_sure = sum(len(gold.sure) for gold in wanted)
    n_agreed = np.zeros(0)
    n_links = sum(len(pair.tgt) for pair in pairs)
    competing: dict[int, list[set[Link]]] = {}
    for place, layers in _attention(translator, pairs):
        pair, gold = pairs[place], wanted[place]
        if place < MAX_PAIRS:
            competing[place] = _competing(pair, layers)
        found = _strongest(pair, layers)
        agreed = np.zeros(found.shape[:-1])
        for links in (gold.sure, gold.possible):
            is_linked = np.zeros((len(pair.tgt), len(pair.src)), bool)
            for source, target in links:
                is_linked[target, source] = True
            agreed += is_linked[np.arange(len(pair.tgt)), found].sum(axis=-1)
        n_agreed = agreed if not n_agreed.size else n_agreed + agreed
    rates = 1 - n_agreed / (n_links + n_sure)
    tried = [
        AlignmentHeads(
            layer=layer,
            heads=(head,) if head < rates.shape[2] - 1 else (),
            is_shifted=bool(shift),
            error_rate=round(float(rate), 4),
            measure=measure,
        )
        for (layer, shift, head), rate in np.ndenumerate(rates)
    ]
    tried.sort(key=lambda heads: heads.error_rate or 0.0)
    now = translator.alignment_heads or AlignmentHeads()
    sources, targets = _sides([*(pair.texts for pair in pairs), *more])
    layer = best_layer(sources, targets, [competing[place] for place in sorted(competing)])
    best = replace(tried[0], documents_layer=layer)
    return Choice(best=best, before=_same(now, tried, len(rates)), tried=tried, n_pairs=len(pairs))


def _sides(pairs: Sequence[tuple[str, str]]) -> tuple[list[str], list[str]]:
    return [src for src, _ in pairs], [tgt for _, tgt in pairs]


def _competing(pair: _Pair, layers: list[Floats]) -> list[set[Link]]:
    """The links for documents from the mean of each layer."""
    source_tokens, tokens = pair.pieces
    aligned = Translation(text=pair.texts[1], tokens=tokens, source_tokens=source_tokens)
    means = [layer.mean(axis=0)[: len(pair.tgt_ids), pair.shown] for layer in layers]
    return links_by_layer(pair.texts[0], aligned, means)


def _same(now: AlignmentHeads, tried: list[AlignmentHeads], n_layers: int) -> AlignmentHeads:
    """The candidate equal to the current heads, or those without an error rate."""
    place = now.layer % n_layers, now.heads, now.is_shifted
    for heads in tried:
        if (heads.layer, heads.heads, heads.is_shifted) == place:
            return heads
    return replace(now, error_rate=None, measure="")


def _strongest(pair: _Pair, layers: list[Floats]) -> NDArray[np.intp]:
    """For each target word, its strongest source word, `(n_layers, 2, n_heads + 1, n_tgt_words)`.

    The second axis is `is_shifted`; the last head is the mean of all heads.
    """
    found = []
    for weights in layers:
        each = np.concatenate([weights, weights.mean(axis=0, keepdims=True)])[..., pair.shown]
        n_tokens = len(pair.tgt_ids)
        rows = np.stack([each[:, :n_tokens], each[:, 1 : n_tokens + 1]])
        found.append(between_words(rows, pair.tgt, pair.src).argmax(axis=-1))
    return np.stack(found)


def _pairs(
    translator: Translator,
    src: Sequence[str],
    tgt: Sequence[str],
    target_lang: str | None,
    *,
    only_blanks: bool,
) -> list[_Pair | None]:
    """The pairs as ids and words, encoded as for translation; None if a side is empty or long."""
    reader = translator.reader
    vocab, tag = reader.src_vocab, reader.tag(target_lang)
    pairs: list[_Pair | None] = []
    for source, target in zip(src, tgt, strict=True):
        chunk = read_pair(reader, source, target, tag)
        tgt_ids = chunk.prefix
        pieces = shown_pieces(vocab, chunk), written_pieces(reader.tgt_vocab, tgt_ids, chunk.source)
        if only_blanks and any(" " in piece for side in pieces for piece in side):
            # Its span of several words is one piece, but links name each of them.
            chunk = Chunk(reader.src_ids(source, tag), tgt_ids := reader.tgt_ids(target), 0)
            pieces = shown_pieces(vocab, chunk), reader.tgt_vocab.pieces(tgt_ids)
        shown = [place for place, id in enumerate(chunk.src_ids) if is_shown(vocab, id)]
        if not shown or not tgt_ids or max(len(chunk.src_ids), len(tgt_ids)) > MAX_TOKENS:
            pairs.append(None)
            continue
        words = [words_of(side, only_blanks=only_blanks) for side in pieces]
        pairs.append(_Pair((source, target), chunk.src_ids, tgt_ids, shown, pieces, *words))
    return pairs


def _require_inside(pairs: list[_Pair], gold: Sequence[Gold], numbers: list[int]) -> None:
    for pair, wanted, number in zip(pairs, gold, numbers, strict=True):
        for source, target in wanted.possible:
            if source >= len(pair.src) or target >= len(pair.tgt):
                raise DataError(
                    f"Pair {number + 1} has {len(pair.src)} and {len(pair.tgt)} words, but a link "
                    f"{source}-{target}. Words are separated by blanks; give the text in the "
                    "tokenization that was aligned."
                )


def _attention(translator: Translator, pairs: list[_Pair]) -> Iterator[tuple[int, list[Floats]]]:
    """Each pair's index, with its cross-attention by layer, `(n_heads, tgt_len, src_len)`."""
    model = translator.model
    reader = translator.reader
    lengths = [max(len(pair.src_ids), len(pair.tgt_ids) + 1) for pair in pairs]
    for places in batches(lengths, BATCH_TOKENS, None):
        batch = [pairs[place] for place in places]
        layers: list[Floats] = []
        if isinstance(model, Inspectable):
            layers = model.cross_attention(
                padded([pair.src_ids for pair in batch], reader.src_vocab.pad_id),
                padded(
                    [[reader.tgt_vocab.bos_id, *pair.tgt_ids] for pair in batch],
                    reader.tgt_vocab.pad_id,
                ),
            )
        if not layers:
            raise ConfigError(
                "this model has no heads to choose: it does not attend to the source."
            )
        for row, place in enumerate(places):
            yield place, [weights[row] for weights in layers]
