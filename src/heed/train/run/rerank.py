"""Learn to rank hypotheses by word translations as well; store it.

A network learns fluent sentences sooner than what each word means, which can be counted: see
`heed.translate.rerank`. The weights of the counts are chosen on development pairs.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain, product, starmap
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from heed.bundle.lexicon import Lexicon, Links, Weights
from heed.data.links import Counted, Pairs, Swapped, Translations, translations
from heed.data.portions import random_portions
from heed.data.readers import Pair, with_text
from heed.evaluate.counts import Counts, count_bleu, count_chrf, reading_here
from heed.machine.seeds import derive_seed
from heed.text.normalize import normalize
from heed.text.piece_words import counted_words
from heed.text.vocab import Vocab
from heed.translate.doubts.calibrate import LEAST_PAIRS
from heed.translate.doubts.words import MAX_LINKS
from heed.translate.rerank import LEAST_PAIRS as LEAST_TRAINING_PAIRS
from heed.translate.rerank import Reranker, added_scores
from heed.translate.translator import Translator

LEAST_GAIN = 0.3
"""Points of the mean of BLEU and chrF2; less may be chance."""

LEAST_CHANCE = 1e-3
"""Links of a smaller probability are not stored."""

WEIGHTS = 0.0, 0.02, 0.04, 0.08, 0.16, 0.3
PER_TOKEN = 0.0, -0.01, -0.02, -0.03, -0.05, -0.1
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
    translator: Translator, pairs: Sequence[Pair], training: Counted | None
) -> Reranking | None:
    """Count word translations, and choose their weights.

    Args:
        translator: of the model, without second searches.
        pairs: development pairs.
        training: the pairs that the model was trained on; None = unknown.

    Returns:
        None if there are too few pairs, or one hypothesis in a search.
    """
    pairs = with_text(pairs)
    has_choice = translator.options.beam_size > 1 and not translator.options.sample
    if not has_choice or len(pairs) < LEAST_PAIRS:
        return None
    if training is None or len(training) < LEAST_TRAINING_PAIRS:
        return None
    vocabs = translator.src_vocab, translator.tgt_vocab
    lexicon = count_translations(training, *vocabs)
    found = _search(translator, Reranker(lexicon, *vocabs), pairs)
    scored = {
        weights: _scores(found, weights)
        for weights in starmap(Weights, product(WEIGHTS, WEIGHTS, PER_TOKEN))
    }
    weights = max(scored, key=lambda weights: sum(scored[weights]))
    before, after = scored[Weights(0.0, 0.0, 0.0)], scored[weights]
    if not (weights.pieces or weights.words) or (sum(after) - sum(before)) / 2 < LEAST_GAIN:
        return Reranking(None, before, after)
    return Reranking(replace(lexicon, weights=weights), before, after)


def count_translations(training: Counted, src_vocab: Vocab, tgt_vocab: Vocab) -> Lexicon:
    """p(source | target) of pieces and of words in training pairs, by EM; its weights are 0.

    Args:
        training: ids; tags of languages are not words.
        src_vocab: pieces of the source side.
        tgt_vocab: pieces of the target side.
    """
    words = _Words(training.pairs, src_vocab, tgt_vocab)
    sizes = len(words.targets), len(words.sources)
    return Lexicon(
        pieces=_links(training.back),
        words=_links(translations(Swapped(words), *sizes, at_most=MAX_LINKS)),
        src_words=(*words.sources,),
        tgt_words=(*words.targets,),
        weights=Weights(0.0, 0.0, 0.0),
    )


def _links(back: Translations) -> Links:
    kept = back.chances >= LEAST_CHANCE
    return Links(
        src=back.tgt[kept].astype(np.int32),
        tgt=back.src[kept].astype(np.int32),
        chances=np.minimum(back.chances[kept], 1.0).astype(np.float32),
    )


class _Words:
    """Random pairs as words, which are numbered as they come; satisfies `Pairs`.

    Attributes:
        sources: number of each source word.
        targets: number of each target word.
    """

    def __init__(self, pairs: Pairs, src_vocab: Vocab, tgt_vocab: Vocab) -> None:
        costs = pairs.src_lengths.astype(np.int64) * pairs.tgt_lengths
        chosen = random_portions(costs, MAX_LINKS, seed=derive_seed(0, "lexicon"))
        numbers = [*chain.from_iterable(chosen)]
        self.sources: dict[str, int] = {}
        self.targets: dict[str, int] = {}
        self._src = [_numbered(src_vocab, pairs.src(each), self.sources) for each in numbers]
        self._tgt = [_numbered(tgt_vocab, pairs.tgt(each), self.targets) for each in numbers]
        self.src_lengths = np.array([len(row) + 1 for row in self._src], np.int32)
        self.tgt_lengths = np.array([len(row) + 1 for row in self._tgt], np.int32)

    def src(self, index: int, /) -> NDArray[np.int32]:
        """Source words of a pair."""
        return self._src[index]

    def tgt(self, index: int, /) -> NDArray[np.int32]:
        """Target words of a pair."""
        return self._tgt[index]


def _numbered(vocab: Vocab, ids: NDArray[np.int32], known: dict[str, int]) -> NDArray[np.int32]:
    text = [id for id in ids.tolist() if not vocab.is_control(id)]
    words = counted_words(vocab.pieces(text))
    return np.array([known.setdefault(word, len(known)) for word in words], np.int32)


class _Found(NamedTuple):
    """The hypotheses of texts in one language; arrays are `(n_texts, beam_size)`.

    Attributes:
        scores: of the search, minus infinity where there is no hypothesis.
        explained: log-probability of the source, by pieces and by words, `(2, …)`.
        lengths: tokens, `<eos>` included.
        counts: of BLEU and of chrF2, of all hypotheses, text by text.
    """

    scores: NDArray[np.float64]
    explained: NDArray[np.float64]
    lengths: NDArray[np.int64]
    counts: tuple[Counts, Counts]

    def counts_with(self, weights: Weights) -> list[NDArray[np.float64]]:
        """The counts of BLEU and of chrF2 if each text has its best hypothesis."""
        scores = added_scores(weights, self.scores, self.explained, self.lengths)
        n_texts, beam_size = scores.shape
        best = scores.argmax(axis=1) + np.arange(n_texts) * beam_size
        return [each.per_sentence[best].sum(axis=0) for each in self.counts]


def _search(translator: Translator, reranker: Reranker, pairs: Sequence[Pair]) -> list[_Found]:
    """The hypotheses of each target language."""
    has_several = bool(translator.reader.target_langs)
    by_language: dict[str, list[Pair]] = {}
    for pair in pairs:
        lang = (has_several and pair.target_lang) or translator.target_lang
        by_language.setdefault(lang, []).append(pair)
    return [_found(translator, reranker, some, lang) for lang, some in by_language.items()]


def _found(
    translator: Translator, reranker: Reranker, pairs: Sequence[Pair], target_lang: str
) -> _Found:
    beam_size = translator.options.beam_size
    shape = len(pairs), beam_size
    texts: list[str] = []
    scores, explained = np.full(shape, -np.inf), np.zeros((2, *shape))
    lengths = np.zeros(shape, np.int64)
    src_vocab, tgt_vocab = translator.src_vocab, translator.tgt_vocab
    sources = [pair.src for pair in pairs]
    into = target_lang if translator.reader.target_langs else None
    for row, first in enumerate(translator.translate(sources, n_best=beam_size, target_lang=into)):
        some = [first, *first.alternatives]
        n = len(some)
        scores[row, :n] = [each.score for each in some]
        lengths[row, :n] = [len(each.token_scores) for each in some]
        explained[:, row, :n] = reranker.explained(
            src_vocab.encode(normalize(sources[row])),
            [tgt_vocab.encode(each.text) for each in some],
        )
        texts += [*(each.text for each in some), *[""] * (beam_size - n)]
    references = [[pair.tgt for pair in pairs for _ in range(beam_size)]]
    reading = reading_here(target_lang)
    counts = count_bleu(texts, references, reading), count_chrf(texts, references, reading)
    return _Found(scores, explained, lengths, counts)


def _scores(found: Sequence[_Found], weights: Weights) -> tuple[float, float]:
    """BLEU and chrF2 of all texts together."""
    sums = [sum(each) for each in zip(*(some.counts_with(weights) for some in found), strict=True)]
    bleu, chrf = (float(of.score(some)) for of, some in zip(found[0].counts, sums, strict=True))
    return bleu, chrf
