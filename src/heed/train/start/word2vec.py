"""Initialize embeddings by word2vec, on the pieces of the run's own corpus.

Each side of a pair is a separate line: unlike co-occurrence counts, this does not place a piece
near its translation.
"""

from collections.abc import Mapping

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from heed.data.portions import random_portions
from heed.data.progress import Report
from heed.data.store import Store
from heed.machine.seeds import derive_seed
from heed.model.config import AnyConfig
from heed.train.start.rows import own_target_rows, with_rows
from heed.vectors.config import VectorsConfig
from heed.vectors.corpus import Corpus
from heed.vectors.word2vec import learn_word2vec

MAX_PIECES = 4_000_000
"""Most pieces of the corpus that are read."""

FEWEST_EPOCHS, MOST_EPOCHS = 5, 40
"""Times that they are read: more often the fewer there are, up to `FEWEST_EPOCHS` × `MAX_PIECES` in
all, ten seconds or so."""


def word2vec_weights(
    weights: Mapping[str, Tensor], config: AnyConfig, pairs: Store, report: Report, *, seed: int
) -> dict[str, Tensor]:
    """Weights with embeddings learned by skip-gram; the others stay as they are.

    Args:
        weights: those of a fresh model, by name.
        config: its shape.
        pairs: the corpus, ids without special pieces.
        report: gets events of the progress.
        seed: decides the sample of a large corpus and the random numbers of skip-gram.

    Returns:
        The weights; rows have the length of random ones, and pieces that do not occur keep theirs.
    """
    n_src, n_own = config.src_vocab_size, own_target_rows(config)
    known, corpus = _corpus(pairs, n_src if n_own else 0, seed)
    rows = torch.zeros(n_src + n_own, config.d_model)
    if len(known) > 1:
        epochs = FEWEST_EPOCHS * MAX_PIECES // len(corpus.ids)
        epochs = max(FEWEST_EPOCHS, min(MOST_EPOCHS, epochs))
        settings = VectorsConfig(size=config.d_model, epochs=epochs, min_count=1, seed=seed)
        found = torch.from_numpy(learn_word2vec(corpus, settings, report))
        rows[torch.from_numpy(known)] = F.normalize(found, dim=1)
    return with_rows(weights, config, rows[:n_src], rows[n_src:])


def _corpus(pairs: Store, shift: int, seed: int) -> tuple[np.ndarray, Corpus]:
    """Pieces that occur, ascending, and the lines of both sides as indices of these.

    Args:
        pairs: the corpus.
        shift: row of the first target id.
        seed: decides the sample of a large corpus.
    """
    lines: list[np.ndarray] = [np.empty(0, np.int64)]
    lengths = (pairs.src_lengths + pairs.tgt_lengths).astype(np.int64)
    for numbers in random_portions(lengths, MAX_PIECES, seed=derive_seed(seed, "word2vec")):
        for number in numbers:
            lines.append(pairs.src(number).astype(np.int64))
            lines.append(pairs.tgt(number).astype(np.int64) + shift)
    known, ids, counts = np.unique(np.concatenate(lines), return_inverse=True, return_counts=True)
    ends = np.cumsum([len(line) for line in lines])
    return known, Corpus((), counts, ids.astype(np.int32), ends, len(ids))
