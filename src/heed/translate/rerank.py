"""Rank the hypotheses of a search anew: a good translation also explains its source.

To the score of a hypothesis y of the source x is added

    weight · log p(x | y) + per_token · |y|,   p(x | y) = Π_j Σ_i p(x_j | y_i) / (|y| + 1),

where i also counts an empty word, which explains what no other word does. What a translation
leaves out makes its source improbable.

Source: Brown et al. 1993, section 4.1 (model 1); Och and Ney 2002, "Discriminative Training and
    Maximum Entropy Models for Statistical Machine Translation", section 2, for the sum.
"""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from heed.bundle.lexicon import Lexicon
from heed.decode.options import DecodeOptions
from heed.decode.state import Hypothesis
from heed.decode.state import IsWanted as BatchIsWanted
from heed.text.vocab import Vocab
from heed.translate.empty import Search
from heed.translate.parts import Chunk

FEW_PAIRS = 1000, 20_000
"""Training pairs from which word translations are learned: fewer do not tell which piece translates
which, and with more a network knows its words. Counting gained 0.3 points with 29,000 captions, 0.5
with 10,000 pairs, 0.9 with 5,000 (the mean of BLEU and chrF2 on development pairs).
"""

LEAST = 1e-4
"""The probability of a source piece that nothing in the translation explains."""

Scores = NDArray[np.float64]
_Ids = Sequence[int]


def learns_from(n_pairs: int) -> bool:
    """Whether word translations are learned from so many training pairs."""
    return FEW_PAIRS[0] <= n_pairs <= FEW_PAIRS[1]


class Reranker:
    """Ranks hypotheses by their scores and by word translations.

    Args:
        lexicon: of the model.
        n_src: size of the source vocabulary.
        n_tgt: size of the target vocabulary.
    """

    def __init__(self, lexicon: Lexicon, n_src: int, n_tgt: int) -> None:
        self.lexicon = lexicon
        self._n_src, self._empty = n_src, n_tgt
        keys = lexicon.tgt.astype(np.int64) * n_src + lexicon.src
        order = np.argsort(keys, kind="stable")
        # One key more, so that a search for a larger one ends inside the array.
        self._keys = np.append(keys[order], np.iinfo(np.int64).max)
        self._chances = np.append(lexicon.chances[order].astype(np.float64), 0.0)

    def ranked(self, src_ids: _Ids, hypotheses: Sequence[Hypothesis]) -> list[Hypothesis]:
        """The same hypotheses, best first.

        Args:
            src_ids: of the source.
            hypotheses: of a search, whose order decides between equal ones.
        """
        if len(hypotheses) < 2:
            return [*hypotheses]
        scores = added_scores(
            self.lexicon.weight,
            self.lexicon.per_token,
            np.array([each.score for each in hypotheses]),
            self.explained(src_ids, [each.ids for each in hypotheses]),
            np.array([len(each.token_log_probs) for each in hypotheses]),
        )
        # A search ranks hypotheses that ended before those that were cut.
        is_other = np.array([each.status != hypotheses[0].status for each in hypotheses])
        return [hypotheses[place] for place in np.lexsort((-scores, is_other)).tolist()]

    def explained(self, src_ids: _Ids, targets: Sequence[_Ids]) -> Scores:
        """log p(x | y) of a source, given each of some translations, `(n_targets,)`."""
        rows = [id for target in targets for id in (*target, self._empty)]
        lengths = np.array([len(target) + 1 for target in targets])
        keys = np.array(rows)[:, None] * self._n_src + np.array(src_ids, np.int64)
        places = np.searchsorted(self._keys, keys)
        chances = np.where(self._keys[places] == keys, self._chances[places], 0.0)
        sums = np.add.reduceat(chances, np.cumsum(lengths) - lengths, axis=0)
        found: Scores = np.log(np.maximum(sums / lengths[:, None], LEAST)).sum(axis=1)
        return found


def reranker_of(lexicon: Lexicon | None, src_vocab: Vocab, tgt_vocab: Vocab) -> Reranker | None:
    """The reranker of a model; None if it has no lexicon."""
    return None if lexicon is None else Reranker(lexicon, src_vocab.size, tgt_vocab.size)


def reranking(search: Search, reranker: Reranker | None) -> Search:
    """The same search, whose hypotheses are ranked anew; samples stay as they are drawn."""
    if reranker is None:
        return search

    def changed(
        parts: Sequence[Chunk], options: DecodeOptions, are_wanted: BatchIsWanted | None
    ) -> list[list[Hypothesis]]:
        if options.sample:
            return search(parts, options, are_wanted)
        found = search(parts, replace(options, n_best=options.beam_size), are_wanted)
        return [
            (some if _is_decided(part) else reranker.ranked(part.src_ids, some))[: options.n_best]
            for part, some in zip(parts, found, strict=True)
        ]

    return changed


def _is_decided(part: Chunk) -> bool:
    """Whether a memory or a glossary says what its translation must be or contain."""
    return part.is_remembered or part.phrases is not None


def added_scores(
    weight: float, per_token: float, scores: Scores, explained: Scores, lengths: NDArray[np.int64]
) -> Scores:
    """Scores with word translations and length, of any shape.

    Args:
        weight: of `explained`.
        per_token: of `lengths`.
        scores: of the search.
        explained: log-probabilities of the source.
        lengths: tokens of the hypotheses, `<eos>` included.
    """
    return scores + weight * explained + per_token * lengths
