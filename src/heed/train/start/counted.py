"""First weights that a model counts from the training texts, such as how rare an n-gram is."""

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor

from heed.train.step.trainer import Trainer

TOGETHER = 256
"""Texts read at once."""


@torch.no_grad()
def counted_weights(trainer: Trainer) -> dict[str, Tensor]:
    """The counted weights of a trainer's model, by name."""
    pairs = trainer.pairs(1)
    n_texts = len(pairs.src_lengths)

    def texts() -> Iterator[tuple[Tensor, Tensor | None]]:
        for start in range(0, n_texts, TOGETHER):
            chosen = np.arange(start, min(start + TOGETHER, n_texts))
            batch = trainer.collate(pairs, chosen, **trainer.special_ids).to(trainer.device)
            yield batch.src, batch.src_mask

    return trainer.model.counted(texts())
