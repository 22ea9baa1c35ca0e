"""Sharded training (FSDP2): each process holds some rows of every tensor.

torch gathers a layer's weights for the computation, frees them afterwards, and gives each process
its rows of the summed gradients (Zhao et al. 2023, "PyTorch FSDP"). A sharded tensor is a
`DTensor`; the functions here return its local rows or the whole tensor, and accept plain tensors.
"""

import sys
from typing import TYPE_CHECKING, cast

import numpy as np
import torch
from torch import Tensor

from heed.data.batch import Batch
from heed.errors import ConfigError
from heed.model.network import TorchNetwork
from heed.train.parallel.distributed import Group

if TYPE_CHECKING:
    from torch.distributed.tensor import DTensor


def require_processes(is_sharded: bool, group: Group) -> None:
    """Refuse to shard a model over one process.

    Raises:
        ConfigError: there is only one.
    """
    if is_sharded and group.size == 1:
        raise ConfigError(
            "training.shard splits a model between processes, but only one is running. Start "
            "more with torchrun (docs/distributed.md), or set training.shard=false."
        )


def shard(model: TorchNetwork, group: Group) -> None:
    """Keep only this process's rows of every parameter.

    Raises:
        ConfigError: this version of torch cannot, or layers share weights.
    """
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import FSDPModule, fully_shard

    if not hasattr(FSDPModule, "set_force_sum_reduction_for_comms"):
        raise ConfigError(
            f"training.shard needs a newer torch, such as 2.13, but this is {torch.__version__}."
        )
    if any(weight.tied_to and weight.role == "matrix" for weight in model.plan):
        raise ConfigError(
            "training.shard splits the weights of each layer, but with model.share_layers = all "
            "the layers share them. Set training.shard = false."
        )
    mesh = init_device_mesh(group.device.type, (group.size,))
    for layer in model.layers():
        fully_shard(layer, mesh=mesh)
    # The loss reads the output layer's matrix after the model's own forward pass.
    fully_shard(model, mesh=mesh, reshard_after_forward=False)
    for module in model.modules():
        if isinstance(module, FSDPModule):
            # Sums, as the loop expects, not means; gloo cannot scale its sums.
            module.set_gradient_divide_factor(1.0)
            module.set_force_sum_reduction_for_comms(True)


def rows_of(tensor: Tensor, start: int = 0, end: int | None = None) -> tuple[Tensor, slice]:
    """The rows from `start` to `end` of a tensor that this process has.

    Returns:
        A view of them, `(n_rows, …)`, and their indices among those rows.
    """
    end = tensor.size(0) if end is None else end
    rows, first, part = tensor.detach(), 0, _part(tensor)
    if part is not None:
        rows = part.to_local().detach()
        n_rows_each = -(-part.size(0) // part.device_mesh.size())
        first = min(part.device_mesh.get_local_rank() * n_rows_each, part.size(0))
    here, there = (min(max(row - first, 0), len(rows)) for row in (start, end))
    return rows[here:there], slice(first + here - start, first + there - start)


def fill(tensor: Tensor, values: Tensor) -> None:
    """Copy this process's rows of `values` into a tensor."""
    if _part(values) is not None:
        tensor.copy_(values)
        return
    rows, places = rows_of(tensor)
    rows.copy_(values[places])


def whole(tensor: Tensor) -> Tensor:
    """The whole tensor, gathered from all processes; all must call this."""
    part = _part(tensor)
    put_together: Tensor = tensor if part is None else part.full_tensor()
    return put_together


def collected(tensor: Tensor) -> Tensor:
    """The same, only in the leader and in its own memory; the others get a `meta` tensor."""
    part = _part(tensor)
    if part is None:
        return tensor
    return whole(tensor).detach().to("meta" if part.device_mesh.get_rank() else "cpu")


def idle_batches(special_ids: dict[str, int], n_passes: int, group: Group) -> list[Batch]:
    """Empty batches for a process with fewer batches than another: all must gather weights."""
    bos, eos, pad = (torch.tensor([[special_ids[f"{name}_id"]]]) for name in ("bos", "eos", "pad"))
    nothing = Batch(
        src=eos,
        tgt_in=bos,
        tgt_out=pad,
        src_mask=None,
        n_src_tokens=0,
        n_tgt_tokens=0,
        indices=np.zeros(0, dtype=np.int64),
    )
    return [nothing] * (int(group.most(n_passes)) - n_passes)


def _part(tensor: Tensor) -> "DTensor | None":
    # Importing it loads the compiler, which takes over a second; not imported = no DTensors.
    module = sys.modules.get("torch.distributed.tensor")
    is_part = module is not None and isinstance(tensor, module.DTensor)
    return cast("DTensor", tensor) if is_part else None
