"""First guesses of an untrained decoder: frequent pieces, and translations of source words.

Embeddings from co-occurrence counts put a word near its translation. So a decoder that copies the
embedding of a source word to its output predicts the translation. For that, cross-attention's W^O
begins as the transpose of its W^V, head by head, with its usual norm.
"""

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from heed.data.store import Store
from heed.model.config import AnyConfig, ModelConfig
from heed.model.families import plan
from heed.train.start.rows import own_tables

PENALTY = 1e-3
"""Weight of the L2 penalty in the fit of frequencies: rare pieces need not be exact."""

MOST_PAIRS = 100_000
"""Of a larger corpus, pairs at equal distances are counted."""

ITERATIONS = 30
"""Newton's steps at most; it takes six."""


def with_guesses(
    weights: Mapping[str, Tensor], config: AnyConfig, pairs: Store
) -> dict[str, Tensor]:
    """Weights whose decoder copies source embeddings and starts from the pieces' frequencies.

    A part is left out if the model does not allow it: without cross-attention, if heads are joined
    without W^O, and with post-norm, which has no norm after the last layer.

    Args:
        weights: those of a fresh model with embeddings from co-occurrence counts, by name.
        config: its shape.
        pairs: the corpus, ids without special pieces.
    """
    found = dict(weights)
    if not isinstance(config, ModelConfig):
        return found
    for weight in plan(config):
        name = weight.name.replace("project_in", "project_out")
        if weight.name.endswith("cross_attention.project_in.weight") and name in found:
            value = found[weight.name][-weight.blocks[-1].n_rows :]
            usual = found[name].norm() / value.norm()
            found[name] = (usual * value.T).contiguous()
    bias = "decoder_norm.bias"
    if bias in found:
        table = found[own_tables(config)[-1].name]
        counts = _target_counts(pairs, config)
        found[bias] = frequency_bias(table, counts).to(found[bias].dtype)
    return found


def _target_counts(pairs: Store, config: AnyConfig) -> NDArray[np.int64]:
    """The frequency of each target piece, `(tgt_vocab_size,)`; each target ends with `<eos>`."""
    gap = -(-len(pairs) // MOST_PAIRS)
    targets = [pairs.tgt(index) for index in range(0, len(pairs), gap)]
    counts = np.bincount(np.concatenate(targets), minlength=config.tgt_vocab_size)
    counts[config.eos_id] += len(targets)
    return counts


def frequency_bias(table: Tensor, counts: NDArray[np.int64]) -> Tensor:
    """The state b for which softmax(E b) is closest to the frequencies of pieces.

    As the bias of the last norm it acts as a bias of the output layer, which has none. It is the
    minimum of cross-entropy + `PENALTY` |b|²/2, found by Newton's method.

    Args:
        table: the output layer E, `(tgt_vocab_size, d_model)`.
        counts: of each piece, `(tgt_vocab_size,)`.

    Returns:
        b, `(d_model,)`, in float64.
    """
    rows = table.double()
    wanted = torch.from_numpy(counts / counts.sum())
    bias = torch.zeros(rows.size(1), dtype=torch.float64)

    def loss(at: Tensor) -> float:
        nll = -(wanted * (rows @ at).log_softmax(0)).sum()
        return float(nll + PENALTY * at.square().sum() / 2)

    for _ in range(ITERATIONS):
        found = (rows @ bias).softmax(0)
        mean = rows.T @ found
        gradient = mean - rows.T @ wanted + PENALTY * bias
        hessian = (rows * found[:, None]).T @ rows - torch.outer(mean, mean)
        step = torch.linalg.solve(hessian + PENALTY * torch.eye(len(bias)), gradient)
        while loss(bias - step) > loss(bias) and step.norm() > 1e-4:
            step = step / 2
        bias = bias - step
        if step.norm() < 1e-4:
            break
    return bias
