"""From a batch to its loss."""

import torch
from torch import Tensor

from heed.data.batch import Batch
from heed.machine.device import autocast
from heed.model.network import TorchNetwork
from heed.train.step.loss import output_cross_entropy


def losses(
    model: TorchNetwork,
    batch: Batch,
    *,
    pad_id: int,
    smoothing: float,
    device: torch.device,
    dtype: torch.dtype,
) -> tuple[Tensor, Tensor]:
    """The loss to learn from and the negative log-likelihood, both summed over target tokens.

    Args:
        model: computes on `device`.
        batch: on the CPU, or on `device`.
        pad_id: fills the short rows.
        smoothing: share of probability spread evenly over the vocabulary.
        device: the device to compute on.
        dtype: type of matrix products.
    """
    states, targets = real_states(model, batch, pad_id=pad_id, device=device, dtype=dtype)
    return output_cross_entropy(states, model.output.weight, targets, smoothing=smoothing)


def real_states(
    model: TorchNetwork, batch: Batch, *, pad_id: int, device: torch.device, dtype: torch.dtype
) -> tuple[Tensor, Tensor]:
    """Decoder states at real target positions, `(n_tokens, d_model)`, and targets, `(n_tokens,)`.

    The arguments are those of `losses`.
    """
    batch = batch.to(device)
    is_real = batch.tgt_out != pad_id
    with autocast(device, dtype):
        states = model(batch.src, batch.tgt_in, batch.src_mask)
    return states[is_real], batch.tgt_out[is_real]
