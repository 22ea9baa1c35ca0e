"""How much each row of a bag of n-grams counts: the rarer in the training texts, the more."""

import numpy as np
import torch
from torch import Tensor

from heed.model.bag.network import BagOfNGrams, inverse_frequencies
from heed.train.step.trainer import Trainer

TOGETHER = 256
"""Texts read at once."""


@torch.no_grad()
def row_weights(trainer: Trainer) -> Tensor:
    """The weights of the rows of this trainer's table, `(n_rows,)`."""
    model, pairs = trainer.model, trainer.pairs(1)
    assert isinstance(model, BagOfNGrams)
    n_texts, n_rows = len(pairs.src_lengths), len(model.row_weights)
    counts = torch.zeros(n_rows, dtype=torch.long)
    for start in range(0, n_texts, TOGETHER):
        chosen = np.arange(start, min(start + TOGETHER, n_texts))
        batch = trainer.collate(pairs, chosen, **trainer.special_ids).to(trainer.device)
        rows, _ = model.rows(batch.src, batch.src_mask)
        counts += rows.cpu().bincount(minlength=n_rows)
    return inverse_frequencies(counts, n_texts).float()
