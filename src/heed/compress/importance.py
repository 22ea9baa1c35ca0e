"""How much each attention head and each feed-forward feature of a model matters.

Both measures multiply the output of a unit by a gate: `importance` is the loss's gradient with
respect to the gate, `ablation` the loss with the gate at 0. `prune.py` removes units for good.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from heed.data.batch import Batch
from heed.model.config import AnyConfig
from heed.model.families import plan
from heed.model.network import TorchNetwork
from heed.train.step.forward import losses

Scores = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Sublayer:
    """A sublayer and its parallel units: attention heads, or feed-forward features.

    Attributes:
        name: the sublayer's name in the plan, such as `decoder.0.cross_attention`.
        kind: `heads` or `features`.
        n_units: how many there are.
        readers: the module that reads the outputs of the units, concatenated; several modules where
            layers share these weights.
    """

    name: str
    kind: str
    n_units: int
    readers: tuple[str, ...]


def sublayers(config: AnyConfig) -> list[Sublayer]:
    """The sublayers with units, in the order of the plan; the first of those that share weights.

    The result is empty if the family has no heads.
    """
    found: dict[str, Sublayer] = {}
    for weight in plan(config):
        name, _, matrix = weight.name.removesuffix(".weight").rpartition(".")
        if matrix == "project_in" and weight.blocks and weight.blocks[0].name == "query":
            n_heads: int = config.to_dict()["n_heads"]
            each = Sublayer(name, "heads", n_heads, (f"{name}.project_out",))
        elif matrix == "contract" and weight.role == "matrix":
            each = Sublayer(name, "features", weight.shape[1], (f"{name}.contract",))
        else:
            continue
        if weight.tied_to is None:
            found[weight.name] = each
        else:
            first = found[weight.tied_to]
            found[weight.tied_to] = replace(first, readers=first.readers + each.readers)
    return list(found.values())


@contextmanager
def gated(model: nn.Module, gates: Mapping[str, Tensor]) -> Iterator[None]:
    """Multiply the outputs of units by their gates inside the block.

    Args:
        model: the model.
        gates: by the name of a module in `readers`, `(batch, n_units)` or `(1, n_units)`.
    """

    def through(gate: Tensor) -> Callable[[nn.Module, tuple[Tensor, ...]], Tensor]:
        def multiply(_: nn.Module, inputs: tuple[Tensor, ...]) -> Tensor:
            (passed,) = inputs
            units = passed.view(*passed.shape[:2], gate.size(-1), -1)
            return (units * gate[:, None, :, None]).flatten(2)

        return multiply

    handles = [
        model.get_submodule(reader).register_forward_pre_hook(through(gate))
        for reader, gate in gates.items()
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def importance(
    model: TorchNetwork, batches: Sequence[Batch], chosen: Sequence[Sublayer], *, pad_id: int
) -> dict[str, Scores]:
    """I_u = E_x |∂L(x) / ∂ξ_u|: the mean over sequences x, for the gate ξ_u of unit u, at ξ_u = 1.

    Args:
        model: in evaluation mode, on the CPU.
        batches: sequences with labels.
        chosen: the sublayers to measure.
        pad_id: the id that pads short rows.

    Returns:
        For the name of each sublayer, one number per unit `(n_units,)`.

    Source: Michel et al. 2019, "Are Sixteen Heads Really Better than One?", section 4.1.
    """
    totals: dict[str, Any] = {each.name: np.zeros(each.n_units) for each in chosen}
    for batch in batches:
        n_rows = len(batch.tgt_out)
        gates = [torch.ones(n_rows, each.n_units, requires_grad=True) for each in chosen]
        with gated(model, by_reader(chosen, gates)):
            loss, _ = losses(
                model,
                batch,
                pad_id=pad_id,
                smoothing=0.0,
                device=torch.device("cpu"),
                dtype=torch.float32,
            )
        # A row's gates affect that row alone, so one pass gives the gradients of every sequence.
        gradients = torch.autograd.grad(loss, gates)
        for each, gradient in zip(chosen, gradients, strict=True):
            totals[each.name] += gradient.abs().sum(dim=0).double().numpy()
    n_sequences = sum(len(batch.tgt_out) for batch in batches)
    return {name: total / n_sequences for name, total in totals.items()}


def ablation(
    model: TorchNetwork, batches: Sequence[Batch], chosen: Sequence[Sublayer], *, pad_id: int
) -> dict[str, Scores]:
    """The loss with each unit switched off, in nats per token.

    Returns:
        For the name of each sublayer, one number per unit `(n_units,)`.
    """
    found: dict[str, Scores] = {}
    for each in chosen:
        found[each.name] = np.zeros(each.n_units)
        for unit in range(each.n_units):
            gate = torch.ones(1, each.n_units)
            gate[0, unit] = 0.0
            with gated(model, by_reader([each], [gate])):
                nll, n_tokens = sequence_losses(model, batches, pad_id=pad_id)
            found[each.name][unit] = nll.sum() / n_tokens.sum()
    return found


def by_reader(chosen: Sequence[Sublayer], gates: Sequence[Tensor]) -> dict[str, Tensor]:
    """Map each reader of a sublayer to the sublayer's gate, for `gated`."""
    return {
        reader: gate for each, gate in zip(chosen, gates, strict=True) for reader in each.readers
    }


@torch.inference_mode()
def sequence_losses(
    model: TorchNetwork, batches: Sequence[Batch], *, pad_id: int
) -> tuple[Scores, Scores]:
    """Negative log-likelihood and number of labels of each sequence, both `(n_sequences,)`."""
    nll, n_tokens = [], []
    for batch in batches:
        logits = model.logits(model(batch.src, batch.tgt_in, batch.src_mask))
        each = F.cross_entropy(
            logits.transpose(1, 2), batch.tgt_out, ignore_index=pad_id, reduction="none"
        )
        nll.append(each.sum(dim=1).double().numpy())
        n_tokens.append((batch.tgt_out != pad_id).sum(dim=1).double().numpy())
    return np.concatenate(nll), np.concatenate(n_tokens)


def difference_of_losses(
    before: Scores, after: Scores, n_tokens: Scores, *, resamples: int = 1000, seed: int = 12345
) -> tuple[float, float, float]:
    """The increase of the loss per token, and its 95 % bootstrap interval over sequences.

    Args:
        before: negative log-likelihood of each sequence, `(n_sequences,)`.
        after: the same, for another model.
        n_tokens: number of labels of each sequence, `(n_sequences,)`.
        resamples: number of resampled sets, drawn with replacement and as large as the original.
        seed: decides the draws.

    Source: paired bootstrap resampling, Koehn 2004.
    """
    added = after - before
    chosen = np.random.default_rng(seed).integers(len(added), size=(resamples, len(added)))
    low, high = np.quantile(added[chosen].sum(1) / n_tokens[chosen].sum(1), [0.025, 0.975])
    return added.sum() / n_tokens.sum(), float(low), float(high)
