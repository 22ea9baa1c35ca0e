"""Learn to rank hypotheses by word translations as well, where few pairs were trained on; store it.

From few pairs a network learns fluent sentences sooner than what each word means. Counts know
that: see `heed.translate.rerank`. How much they should count is chosen on development pairs.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heed.bundle.lexicon import Lexicon
from heed.data.links import Pairs, Swapped, translations
from heed.data.readers import Pair, with_text
from heed.data.store import Store
from heed.evaluate.counts import Counts, Reading, count_bleu, count_chrf, reading_here
from heed.text.normalize import normalize
from heed.translate.doubts.calibrate import LEAST_PAIRS
from heed.translate.doubts.words import MAX_LINKS
from heed.translate.rerank import Reranker, added_scores, learns_from
from heed.translate.translator import Translator

LEAST_GAIN = 0.3
"""Points of the mean of BLEU and chrF2; less may be chance."""

LEAST_CHANCE = 1e-3
"""Links of a smaller probability are not stored."""

WEIGHTS = 0.0, 0.015, 0.03, 0.06, 0.12
PER_TOKEN = 0.0, -0.01, -0.02, -0.03, -0.05
"""The values to choose from."""


class Reranking(NamedTuple):
    """What was learned, and the development scores without and with it.

    Attributes:
        lexicon: with its weights; None = it does not help.
        before: BLEU and chrF2.
        after: the same of hypotheses that are ranked anew.
    """

    lexicon: Lexicon | None
    before: tuple[float, float]
    after: tuple[float, float]


def learn_reranking(
    translator: Translator, pairs: Sequence[Pair], training: Store | None
) -> Reranking | None:
    """Count word translations, and choose their weights.

    Args:
        translator: of the model, without second searches.
        pairs: development pairs.
        training: ids of the pairs that the model was trained on; None = unknown.

    Returns:
        None if there are too few pairs, too many training pairs, several target languages, or one
        hypothesis in a search.
    """
    pairs = with_text(pairs)
    if training is None or not learns_from(len(training)):
        return None
    has_choice = translator.options.beam_size > 1 and not translator.options.sample
    if len(pairs) < LEAST_PAIRS or translator.reader.target_langs or not has_choice:
        return None
    sizes = translator.src_vocab.size, translator.tgt_vocab.size
    lexicon = count_translations(training, *sizes)
    found = _found(translator, Reranker(lexicon, *sizes), [pair.src for pair in pairs])
    references = [pair.tgt for pair in pairs]
    counts = _counts(found, references, reading_here(translator.target_lang))
    scored = {
        weights: _scores(counts, found.best(*weights)) for weights in product(WEIGHTS, PER_TOKEN)
    }
    weight, per_token = max(scored, key=lambda weights: sum(scored[weights]))
    before, after = scored[0.0, 0.0], scored[weight, per_token]
    if weight == 0.0 or (sum(after) - sum(before)) / 2 < LEAST_GAIN:
        return Reranking(None, before, after)
    return Reranking(replace(lexicon, weight=weight, per_token=per_token), before, after)


def count_translations(pairs: Pairs, n_src: int, n_tgt: int) -> Lexicon:
    """p(source piece | target piece) in training pairs, by EM; its weights are 0.

    Args:
        pairs: ids without special pieces.
        n_src: size of the source vocabulary.
        n_tgt: size of the target vocabulary.
    """
    tgt, src, chances, _ = translations(Swapped(pairs), n_tgt, n_src, at_most=MAX_LINKS)
    kept = chances >= LEAST_CHANCE
    return Lexicon(
        src=src[kept].astype(np.int32),
        tgt=tgt[kept].astype(np.int32),
        chances=np.minimum(chances[kept], 1.0).astype(np.float32),
        weight=0.0,
        per_token=0.0,
    )


class _Found(NamedTuple):
    """The hypotheses of each text; arrays are `(n_texts, beam_size)`.

    Attributes:
        texts: of all hypotheses, text by text, `n_texts * beam_size`.
        scores: of the search, minus infinity where there is no hypothesis.
        explained: log-probability of the source.
        lengths: tokens, `<eos>` included.
    """

    texts: list[str]
    scores: NDArray[np.float64]
    explained: NDArray[np.float64]
    lengths: NDArray[np.int64]

    def best(self, weight: float, per_token: float) -> NDArray[np.int64]:
        """The index in `texts` of the best hypothesis of each text, `(n_texts,)`."""
        scores = added_scores(weight, per_token, self.scores, self.explained, self.lengths)
        n_texts, beam_size = scores.shape
        best: NDArray[np.int64] = scores.argmax(axis=1) + np.arange(n_texts) * beam_size
        return best


def _found(translator: Translator, reranker: Reranker, texts: Sequence[str]) -> _Found:
    beam_size = translator.options.beam_size
    shape = len(texts), beam_size
    every: list[str] = []
    scores, explained = np.full(shape, -np.inf), np.zeros(shape)
    lengths = np.zeros(shape, np.int64)
    src_vocab, tgt_vocab = translator.src_vocab, translator.tgt_vocab
    for row, first in enumerate(translator.translate(texts, n_best=beam_size)):
        some = [first, *first.alternatives]
        n = len(some)
        scores[row, :n] = [each.score for each in some]
        lengths[row, :n] = [len(each.token_scores) for each in some]
        explained[row, :n] = reranker.explained(
            src_vocab.encode(normalize(texts[row])), [tgt_vocab.encode(each.text) for each in some]
        )
        every += [*(each.text for each in some), *[""] * (beam_size - n)]
    return _Found(every, scores, explained, lengths)


def _counts(found: _Found, references: Sequence[str], reading: Reading) -> tuple[Counts, Counts]:
    """The counts of BLEU and of chrF2 for each hypothesis."""
    repeated = [reference for reference in references for _ in range(found.scores.shape[1])]
    return count_bleu(found.texts, [repeated], reading), count_chrf(
        found.texts, [repeated], reading
    )


def _scores(counts: tuple[Counts, Counts], best: NDArray[np.int64]) -> tuple[float, float]:
    bleu, chrf = (float(each.score(each.per_sentence[best].sum(axis=0))) for each in counts)
    return bleu, chrf
