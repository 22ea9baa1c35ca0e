"""Choose the layer for documents, where words of both sides compete for one another.

Competition profits from weak second choices. So the mean of a layer works better there than a
single sharp head, even if that head aligns better alone.
"""

from collections.abc import Sequence

import numpy as np

from heed.data.word_alignment import Link
from heed.explain.attention.links import error_rate, strongest
from heed.explain.attention.statistical import reference
from heed.model.interface import Floats
from heed.translate.result import Translation
from heed.translate.words import link_words, whole_words

MAX_PAIRS = 300
LAST = -1


def links_by_layer(source: str, aligned: Translation, layers: Sequence[Floats]) -> list[set[Link]]:
    """The links for documents from each layer: a source word for each target word.

    Args:
        source: the source.
        aligned: its translation, with the tokens of both sides.
        layers: for each layer, the mean over heads, `(n_target_tokens, n_source_tokens)`.
    """
    found = []
    for weights in layers:
        read = Translation(
            text=aligned.text,
            tokens=aligned.tokens,
            source_tokens=aligned.source_tokens,
            alignment=weights.tolist(),
        )
        found.append(strongest(link_words(source, read).weights.astype(np.float32)))
    return found


def best_layer(
    sources: Sequence[str], targets: Sequence[str], found: Sequence[Sequence[set[Link]]]
) -> int:
    """The layer with the lowest AER after competition; −1, the last, unless another one is better.

    Args:
        sources: all sources, on which the statistical aligner is trained.
        targets: their translations.
        found: for each of the first pairs, its links by layer.
    """
    words = (
        [[text[start:end] for start, end in whole_words(text)] for text in side]
        for side in (sources, targets)
    )
    gold = reference(*words)[: len(found)]
    rates = [error_rate(layer, gold) for layer in zip(*found, strict=True)]
    best = int(np.argmin(rates))
    return best if rates[best] < rates[LAST] else LAST
