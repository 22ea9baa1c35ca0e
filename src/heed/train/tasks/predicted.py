"""Loss and predictions of held-out text, for tasks that label tokens or texts."""

from collections.abc import Iterator

import numpy as np
from torch import Tensor

from heed.train.step.forward import real_states
from heed.train.step.loss import output_cross_entropy
from heed.train.step.trainer import EpochPairs, Trainer


def predicted(trainer: Trainer, pairs: EpochPairs) -> Iterator[tuple[float, Tensor, Tensor]]:
    """Compute pairs in batches of about `batch_tokens` positions, in order of source length.

    Args:
        trainer: in evaluation mode; the caller turns gradients off.
        pairs: sources with their labels.

    Yields:
        Negative log-likelihood of a batch's labels, summed; their logits, `(n_labels, n_outputs)`;
        the labels, `(n_labels,)`.
    """
    model, pad_id = trainer.model, trainer.special_ids["pad_id"]
    order = np.argsort(pairs.src_lengths, kind="stable")
    n_rows = max(1, trainer.config.batch_tokens // int(pairs.src_lengths.max()))
    for start in range(0, len(order), n_rows):
        batch = trainer.collate(pairs, order[start : start + n_rows], **trainer.special_ids)
        states, labels = real_states(
            model, batch, pad_id=pad_id, device=trainer.device, dtype=trainer.dtype
        )
        _, nll = output_cross_entropy(states, model.output.weight, labels)
        yield nll.item(), model.logits(states), labels
