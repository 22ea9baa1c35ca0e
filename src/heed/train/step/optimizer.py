"""From gradients to new weights: Adam, AdamW, and Muon for matrices.

`Optimizer` is the one class that the loop uses. Its state is saved and loaded as named tensors, so
checkpoints need no pickle.
"""

import itertools
from collections import defaultdict
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.optim.adam import adam

from heed.model.fast.products import faster_products, is_rounding
from heed.model.layers import relu_networks
from heed.model.network import TorchNetwork
from heed.train.parallel.shard import collected, fill, rows_of, whole
from heed.train.step.config import POLYNOMIALS, TrainConfig

TOGETHER = 1 << 24
"""Numbers orthogonalized at once: enough to keep any device busy, few beside a large model."""

Block = tuple[str, Tensor, int, int]
"""One logical matrix inside a parameter: its name, the parameter, first row, end row."""


def orthogonalize(matrices: Tensor) -> Tensor:
    """Replace each matrix by one with the same singular vectors and all singular values near 1.

    Values below a hundredth of the matrix's Frobenius norm end below 0.73. If products may round,
    they are in bfloat16, as in the authors' code.

    Args:
        matrices: a stack of equal shapes, `(n_matrices, n_rows, n_columns)`.

    Source: Jordan et al. 2024, "Muon"; the polynomials are the Polar Express.
    """
    x = matrices.mT if matrices.size(-2) > matrices.size(-1) else matrices
    x = x / (x.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    x = x.bfloat16() if is_rounding() else x
    with faster_products():
        for a, b, c in POLYNOMIALS:
            gram = x @ x.mT
            x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    x = x.to(matrices.dtype)
    return x.mT if matrices.size(-2) > matrices.size(-1) else x


def matrix_blocks(model: TorchNetwork) -> list[Block]:
    """The hidden matrices of a model, fused ones split (W^Q, W^K and W^V; gate and value).

    Embeddings and the output layer are not among them: their rows are looked up, not mixed.
    """
    blocks: list[Block] = []
    for weight in model.plan:
        if weight.role == "matrix" and weight.tied_to is None:
            ends = list(itertools.accumulate(block.n_rows for block in weight.blocks))
            parameter = model.get_parameter(weight.name)
            rows = zip([0, *ends], ends, strict=False)
            blocks += [(weight.name, parameter, start, end) for start, end in rows]
    return blocks


class Muon:
    """Momentum, then orthogonalized updates, for stacks of equally shaped matrices.

    Source: Jordan et al. 2024; the scale √max(1, rows/columns) is theirs.
    """

    def __init__(self, blocks: list[Block], *, learning_rate: float, momentum: float) -> None:
        self.learning_rate = learning_rate
        self.momentum = momentum
        self.groups: dict[tuple[int, int], list[Block]] = defaultdict(list)
        for block in blocks:
            _, parameter, start, end = block
            self.groups[(end - start, parameter.size(1))].append(block)
        self.parameters = {name: parameter for name, parameter, _, _ in blocks}
        self.momenta = {name: torch.zeros_like(p) for name, p in self.parameters.items()}

    def gather(self) -> None:
        """Add the gradients to the momentum."""
        gradients = [_gradient(parameter) for parameter in self.parameters.values()]
        torch._foreach_lerp_(list(self.momenta.values()), gradients, 1 - self.momentum)

    def step(self, factor: float, weight_decay: float) -> None:
        """Update every matrix with `factor` times the peak learning rate."""
        # Nesterov momentum: the newest gradient counts once more.
        ahead = {name: _gradient(parameter) for name, parameter in self.parameters.items()}
        momenta = list(self.momenta.values())
        torch._foreach_lerp_(list(ahead.values()), momenta, self.momentum)
        rate = self.learning_rate * factor
        for (n_rows, n_columns), group in self.groups.items():
            scale = max(1.0, n_rows / n_columns) ** 0.5
            n_together = max(1, TOGETHER // (n_rows * n_columns))
            for first in range(0, len(group), n_together):
                blocks = group[first : first + n_together]
                updates = orthogonalize(_stacked(blocks, ahead, whole))
                found = [rows_of(parameter, start, end) for _, parameter, start, end in blocks]
                rows = [here for here, _ in found]
                if weight_decay:
                    torch._foreach_mul_(rows, 1 - rate * weight_decay)
                own = [u[places] for u, (_, places) in zip(updates, found, strict=True)]
                torch._foreach_add_(rows, own, alpha=-rate * scale)

    def state(self) -> dict[str, Tensor]:
        """The momentum; matrices of the same shape are in one tensor."""
        return {
            f"{n_rows}x{n_columns}": _stacked(group, self.momenta, collected)
            for (n_rows, n_columns), group in self.groups.items()
        }

    def load_state(self, tensors: dict[str, Tensor]) -> None:
        """Continue from the result of `state`."""
        for (n_rows, n_columns), group in self.groups.items():
            matrices = tensors[f"{n_rows}x{n_columns}"]
            for matrix, (name, _, start, end) in zip(matrices, group, strict=True):
                rows, places = rows_of(self.momenta[name], start, end)
                rows.copy_(matrix[places])


class Adam:
    """Adam, or AdamW, whose weight decay does not pass through the moments.

    The step is torch's, but `torch.optim.Optimizer` would import the compiler: 0.8 s and 70 MB.

    Args:
        parameters: by name.
        decayed: names of those that decay.
        config: rates and kind.

    Source: Kingma and Ba 2015, algorithm 1; Loshchilov and Hutter 2019, algorithm 2.
    """

    def __init__(
        self, parameters: dict[str, nn.Parameter], decayed: set[str], config: TrainConfig
    ) -> None:
        self.parameters = parameters
        self.config = config
        self.groups = [
            (config.weight_decay, [name for name in parameters if name in decayed]),
            (0.0, [name for name in parameters if name not in decayed]),
        ]
        self.moments: dict[str, dict[str, Tensor]] = {}

    def step(self, factor: float) -> None:
        """Update every parameter that has a gradient with `factor` times the peak rate."""
        for weight_decay, names in self.groups:
            found = [name for name in names if self.parameters[name].grad is not None]
            parameters: list[Tensor] = [self.parameters[name] for name in found]
            moments = [self._moments_of(name) for name in found]
            adam(
                parameters,
                [_gradient(parameter) for parameter in parameters],
                [of["exp_avg"] for of in moments],
                [of["exp_avg_sq"] for of in moments],
                [],
                [of["step"] for of in moments],
                fused=True,
                decoupled_weight_decay=self.config.optimizer != "adam",
                amsgrad=False,
                beta1=self.config.beta1,
                beta2=self.config.beta2,
                lr=self.config.learning_rate * factor,
                weight_decay=weight_decay,
                eps=self.config.adam_eps,
                maximize=False,
            )

    def _moments_of(self, name: str) -> dict[str, Tensor]:
        """The state of a parameter: zeros before its first step."""
        if name not in self.moments:
            parameter = self.parameters[name]
            self.moments[name] = {
                "step": torch.zeros((), device=parameter.device),
                "exp_avg": torch.zeros_like(parameter),
                "exp_avg_sq": torch.zeros_like(parameter),
            }
        return self.moments[name]

    def state(self) -> dict[str, Tensor]:
        """The moments and the number of steps of each parameter."""
        return {
            f"{key}.{name}": collected(value)
            for name in self.parameters
            for key, value in self.moments.get(name, {}).items()
        }

    def load_state(self, tensors: dict[str, Tensor]) -> None:
        """Continue from the result of `state`."""
        for name in self.parameters:
            if f"step.{name}" in tensors:
                moments = self._moments_of(name)
                moments["step"].copy_(tensors[f"step.{name}"])
                for key in ("exp_avg", "exp_avg_sq"):
                    fill(moments[key], tensors[f"{key}.{name}"])


class Optimizer:
    """All of a model's parameters that are not frozen, updated together.

    Args:
        model: the model; tied parameters are updated once.
        config: rates and kind.
    """

    def __init__(self, model: TorchNetwork, config: TrainConfig) -> None:
        self.config = config
        self.parameters = {n: p for n, p in model.named_parameters() if p.requires_grad}
        blocks = matrix_blocks(model)
        matrices = {id(parameter) for _, parameter, _, _ in blocks}
        self.muon: Muon | None = None
        rest = self.parameters
        if config.optimizer == "muon":
            self.muon = Muon(
                blocks, learning_rate=config.matrix_learning_rate, momentum=config.momentum
            )
            rest = {name: p for name, p in rest.items() if id(p) not in matrices}
        decaying = matrices | {
            id(model.get_parameter(weight.name))
            for weight in model.plan
            if weight.role == "n_grams"
        }
        decayed = {name for name, parameter in rest.items() if id(parameter) in decaying}
        self.adam = Adam(rest, decayed, config)
        biases: list[Tensor | None] = [network.expand.bias for network in relu_networks(model)]
        self.relu_biases = [b for b in biases if b is not None and b.requires_grad]

    @torch.no_grad()
    def step(self, factor: float, number: int = 0) -> None:
        """Apply the gradients with `factor` times the peak rates, then forget them.

        Args:
            factor: the schedule's factor, 0 to 1.
            number: steps made before this one in the whole run. In the last of `matrix_every`
                steps Muon updates the matrices, by as many times as much.
        """
        self.adam.step(factor)
        if self.config.revive_features:
            self._revive(factor)
        if self.muon is not None:
            self.muon.gather()
            every = self.config.matrix_every
            if (number + 1) % every == 0:
                self.muon.step(factor * every, self.config.weight_decay)
        self.zero_grad()

    def _revive(self, factor: float) -> None:
        """Raise the bias of each ReLU feature that fired nowhere in the batch.

        Its gradient is exactly 0, so no other rule would change it again, except that its weights
        decay.
        """
        for bias in self.relu_biases:
            is_dead = _gradient(bias) == 0
            bias.add_(is_dead.to(bias.dtype), alpha=self.config.learning_rate * factor)

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for parameter in self.parameters.values():
            parameter.grad = None

    def clip(self) -> Tensor:
        """Scale the gradients down to `clip_norm` and return their norm before that."""
        limit = self.config.clip_norm or float("inf")
        return whole(nn.utils.clip_grad_norm_(self.parameters.values(), limit, foreach=True))

    def state(self) -> dict[str, Tensor]:
        """Everything the next step depends on besides weights and gradients, by name.

        If the model is sharded, all processes must call this; only the leader gets the numbers.
        """
        tensors = {f"adam.{key}": value for key, value in self.adam.state().items()}
        if self.muon is not None:
            tensors.update({f"muon.{key}": value for key, value in self.muon.state().items()})
        return tensors

    def load_state(self, tensors: dict[str, Tensor]) -> None:
        """Continue from the result of `state`."""
        self.adam.load_state(_within("adam.", tensors))
        if self.muon is not None:
            self.muon.load_state(_within("muon.", tensors))


def _within(prefix: str, tensors: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors whose names begin with `prefix`, by their names without it."""
    return {
        name.removeprefix(prefix): value
        for name, value in tensors.items()
        if name.startswith(prefix)
    }


def _gradient(parameter: Tensor) -> Tensor:
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad


def _stacked(
    blocks: list[Block], tensors: dict[str, Tensor], put_together: Callable[[Tensor], Tensor]
) -> Tensor:
    """The blocks' rows of tensors, each gathered once, `(n_blocks, n_rows, n_columns)`."""
    # In the blocks' order: all processes must gather the same tensor at a time.
    found = {name: put_together(tensors[name]) for name in dict.fromkeys(b[0] for b in blocks)}
    return torch.stack([found[name][start:end] for name, _, start, end in blocks])
