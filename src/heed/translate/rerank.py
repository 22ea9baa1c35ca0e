"""Rank the hypotheses of a search anew: a good translation also explains its source.

To the score of a hypothesis y of the source x is added

    w_pieces · log p(x | y) + w_words · log p(x | y) + per_token · |y|,
    p(x | y) = Π_j Σ_i p(x_j | y_i) / (|y| + 1),

once with the pieces of x and y and once with their words, where i also counts an empty word, which
explains what no other word does. What a translation leaves out makes its source improbable. Counts
of words are more exact for words that were seen; counts of pieces also cover all others.

Source: Brown et al. 1993, section 4.1 (model 1); Och and Ney 2002, "Discriminative Training and
    Maximum Entropy Models for Statistical Machine Translation", section 2, for the sum.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from heed.bundle.lexicon import Lexicon, Links, Weights
from heed.decode.options import DecodeOptions
from heed.decode.state import Hypothesis
from heed.decode.state import IsWanted as BatchIsWanted
from heed.text.piece_words import counted_words
from heed.text.vocab import Vocab
from heed.translate.empty import Search
from heed.translate.parts import Chunk

LEAST_PAIRS = 1000
"""Fewer training pairs do not tell which word translates which."""

LEAST = 1e-4
"""The probability of a source unit that nothing in the translation explains."""

Scores = NDArray[np.float64]
_Ids = Sequence[int]


class Ranking(Protocol):
    """What decides which hypotheses of a search come first."""

    def applied(self, search: Search) -> Search:
        """The same search with its hypotheses in this order."""


class Reranker:
    """Ranks hypotheses by their scores and by word translations.

    Args:
        lexicon: of the model.
        src_vocab: its source vocabulary.
        tgt_vocab: its target vocabulary.
    """

    def __init__(self, lexicon: Lexicon, src_vocab: Vocab, tgt_vocab: Vocab) -> None:
        self.lexicon = lexicon
        self._src_vocab, self._tgt_vocab = src_vocab, tgt_vocab
        self._src_words = {word: place for place, word in enumerate(lexicon.src_words)}
        self._tgt_words = {word: place for place, word in enumerate(lexicon.tgt_words)}
        self._pieces = _Table(lexicon.pieces, src_vocab.size, tgt_vocab.size)
        self._words = _Table(lexicon.words, len(lexicon.src_words), len(lexicon.tgt_words))

    def ranked(self, src_ids: _Ids, hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
        """The same hypotheses, best first.

        Args:
            src_ids: of the source.
            hypotheses: of a search, whose order decides between equal ones.
        """
        if len(hypotheses) < 2:
            return [*hypotheses]
        scores = added_scores(
            self.lexicon.weights,
            np.array([each.score for each in hypotheses]),
            self.explained(src_ids, [each.ids for each in hypotheses]),
            np.array([len(each.token_log_probs) for each in hypotheses]),
        )
        # A search ranks hypotheses that ended before those that were cut.
        is_other = np.array([each.status != hypotheses[0].status for each in hypotheses])
        return [hypotheses[place] for place in np.lexsort((-scores, is_other)).tolist()]

    def applied(self, search: Search) -> Search:
        """The same search, whose hypotheses are ranked anew; samples stay as they are drawn."""

        def changed(
            parts: Sequence[Chunk], options: DecodeOptions, are_wanted: BatchIsWanted | None
        ) -> list[list[Hypothesis]]:
            if options.sample:
                return search(parts, options, are_wanted)
            found = search(parts, _whole_beam(options), are_wanted)
            return [
                (some if _is_decided(part) else self.ranked(part.src_ids, some))[: options.n_best]
                for part, some in zip(parts, found, strict=True)
            ]

        return changed

    def explained(self, src_ids: _Ids, targets: Sequence[_Ids]) -> Scores:
        """log p(x | y) of a source, by its pieces and by its words, `(2, n_targets)`.

        Args:
            src_ids: of the source, x; tags of languages and `<eos>` count for nothing.
            targets: ids of some translations, each of which is y.
        """
        src_ids = [id for id in src_ids if not self._src_vocab.is_control(id)]
        src_words = counted_words(self._src_vocab.pieces(src_ids))
        tgt_words = [counted_words(self._tgt_vocab.pieces(target)) for target in targets]
        return np.stack(
            [
                self._pieces.explained(src_ids, targets),
                self._words.explained(
                    _places(src_words, self._src_words, self._words.no_source),
                    [_places(own, self._tgt_words, self._words.no_target) for own in tgt_words],
                ),
            ]
        )


class _Table:
    """The links of pieces or of words, to look them up.

    Attributes:
        no_source: a source unit without links.
        no_target: a target unit without links.
    """

    def __init__(self, links: Links, n_src: int, n_tgt: int) -> None:
        self.no_source, self.no_target = n_src, n_tgt + 1
        self._empty = n_tgt
        keys = links.tgt.astype(np.int64) * (n_src + 1) + links.src
        order = np.argsort(keys, kind="stable")
        # One key more, so that a search for a larger one ends inside the array.
        self._keys = np.append(keys[order], np.iinfo(np.int64).max)
        self._chances = np.append(links.chances[order].astype(np.float64), 0.0)

    def explained(self, src: _Ids, targets: Sequence[_Ids]) -> Scores:
        """log p(x | y) of a source, given each of some translations, `(n_targets,)`."""
        rows = [unit for target in targets for unit in (*target, self._empty)]
        lengths = np.array([len(target) + 1 for target in targets])
        keys = np.array(rows)[:, None] * (self.no_source + 1) + np.array(src, np.int64)
        places = np.searchsorted(self._keys, keys)
        chances = np.where(self._keys[places] == keys, self._chances[places], 0.0)
        sums = np.add.reduceat(chances, np.cumsum(lengths) - lengths, axis=0)
        found: Scores = np.log(np.maximum(sums / lengths[:, None], LEAST)).sum(axis=1)
        return found


def _places(words: Sequence[str], known: dict[str, int], unknown: int) -> list[int]:
    return [known.get(word, unknown) for word in words]


def reranker_of(lexicon: Lexicon | None, src_vocab: Vocab, tgt_vocab: Vocab) -> Reranker | None:
    """The reranker of a model; None if it has no lexicon."""
    return None if lexicon is None else Reranker(lexicon, src_vocab, tgt_vocab)


def reranking(search: Search, ranking: Ranking | None) -> Search:
    """The same search, whose hypotheses are ranked anew; None = by their scores only."""
    return search if ranking is None else ranking.applied(search)


@lru_cache(maxsize=64)
def _whole_beam(options: DecodeOptions) -> DecodeOptions:
    """The same options, for all hypotheses of the beam; kept, because each new one is checked."""
    return replace(options, n_best=options.beam_size)


def _is_decided(part: Chunk) -> bool:
    """Whether a memory or a glossary says what its translation must be or contain."""
    return part.is_remembered or part.phrases is not None


def added_scores(
    weights: Weights, scores: Scores, explained: Scores, lengths: NDArray[np.int64]
) -> Scores:
    """Scores with word translations and length, of any shape.

    Args:
        weights: of what is added.
        scores: of the search.
        explained: log-probabilities of the source, by pieces and by words, `(2, …)`.
        lengths: tokens of the hypotheses, `<eos>` included.
    """
    pieces, words = explained
    sums: Scores = scores + weights.pieces * pieces + weights.words * words
    return sums + weights.per_token * lengths
