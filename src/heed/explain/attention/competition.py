"""Which layer is best read by documents, where the words of both sides compete for one another.

Competition profits from weak second choices, so a single sharp head is worse there than the mean of
a layer, though it aligns better by itself.
"""

from collections.abc import Sequence

import numpy as np

from heed.bundle.alignment import AlignmentHeads
from heed.documents.words import link_words, word_spans
from heed.explain.attention.links import Gold, Link, error_rate, strongest
from heed.explain.attention.statistical import reference
from heed.translate.inspect import cross_attention
from heed.translate.result import Translation
from heed.translate.translator import Translator

MAX_PAIRS = 300
LAST = -1
_BATCH = 32


def best_layer(
    translator: Translator,
    src: Sequence[str],
    tgt: Sequence[str],
    n_layers: int,
    *,
    target_lang: str | None = None,
) -> int:
    """The layer whose mean over heads has the lowest AER after competition; −1 is the last.

    Args:
        translator: whose model has attention to the source.
        src: sources that the model can read in one piece; the first `MAX_PAIRS` are tried.
        tgt: their translations.
        n_layers: of the decoder.
        target_lang: one of the model's target languages.
    """
    words = [[_words(text) for text in side] for side in (src, tgt)]
    gold = reference(*words)[:MAX_PAIRS]
    pairs = list(zip(src, tgt, strict=True))[:MAX_PAIRS]
    rates = {
        layer: _rate(translator, pairs, gold, layer, target_lang)
        for layer in [LAST, *range(n_layers - 1)]
    }
    best: int = min(rates, key=rates.__getitem__)
    return best


def _rate(
    translator: Translator,
    pairs: list[tuple[str, str]],
    gold: list[Gold],
    layer: int,
    target_lang: str | None,
) -> float:
    reader = translator.reader
    vocabs = reader.src_vocab, reader.tgt_vocab
    tag = reader.tag(target_lang)
    found: list[set[Link]] = []
    for start in range(0, len(pairs), _BATCH):
        batch = pairs[start : start + _BATCH]
        sources = [reader.src_ids(source, tag) for source, _ in batch]
        targets = [reader.tgt_ids(target) for _, target in batch]
        read = cross_attention(
            translator.model, vocabs, sources, targets, AlignmentHeads(layer=layer)
        )
        for (source, target), src_ids, tgt_ids, weights in zip(
            batch, sources, targets, read, strict=True
        ):
            aligned = Translation(
                text=target,
                tokens=reader.tgt_vocab.pieces(tgt_ids),
                source_tokens=reader.src_tokens(src_ids),
                alignment=weights,
            )
            links = link_words(source, aligned).weights
            found.append(strongest(links.astype(np.float32)))
    return error_rate(found, gold)


def _words(text: str) -> list[str]:
    return [text[start:end] for start, end in word_spans(text)]
