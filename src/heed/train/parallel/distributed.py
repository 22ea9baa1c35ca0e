"""Several processes that train one model: the leader, shared facts, summed gradients.

`torchrun` starts the processes. Each holds the whole model, unless `shard.py` splits it. A single
process is a group of one, for which all of this costs nothing, so the loop is written once.
`docs/distributed.md` explains its use.
"""

import itertools
import os
import platform
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.rendezvous import rendezvous

from heed.errors import HeedError, RunError, WorkerError
from heed.machine.device import choose_device
from heed.machine.threads import process_rank

Item = TypeVar("Item")

BUCKET = 1 << 23
"""Numbers summed in one message: large enough for the network, small enough to copy while the one
before is sent."""

STEP_TIMEOUT_S = 600.0
"""Timeout of processes for each other in a step, in which a checkpoint may be written."""

PATIENCE = timedelta(days=1)
"""Timeout while the leader prepares the corpus or validates."""


@dataclass(frozen=True, kw_only=True)
class Group:
    """The processes that train together, as one of them sees the group.

    Attributes:
        device: the device of this process.
        rank: number of this process, from 0.
        size: number of processes.
        patient: the same processes with a long timeout; None in a group of one.
    """

    device: torch.device = field(default_factory=lambda: torch.device("cpu"))
    rank: int = 0
    size: int = 1
    patient: Any = None

    @property
    def is_leader(self) -> bool:
        """Whether this process reads the corpus, writes files, validates and reports."""
        return self.rank == 0

    def places(self) -> Iterator[int]:
        """Indices of this process's batches, endless: every `size`-th."""
        return itertools.count(self.rank, self.size)

    def share(self, step: Sequence[Item]) -> Sequence[Item]:
        """The items of a step at those indices; a short step may have none."""
        return step[self.rank :: self.size]

    def sum(self, *values: float) -> list[float]:
        """Each value summed over all processes, in float64; the same bits in every process."""
        if self.size == 1:
            return list(values)
        sums = torch.tensor(values, dtype=torch.float64)
        with _as_run_error():
            dist.all_reduce(sums)
        return sums.tolist()

    def agree(self, value: float) -> float:
        """The leader's value, so that clocks and validations are the same in all processes."""
        return self.sum(value if self.is_leader else 0.0)[0]

    def any(self, is_so: bool) -> bool:
        """Whether it is true in any process."""
        return self.sum(float(is_so))[0] > 0

    def most(self, value: float) -> float:
        """The largest value of any process."""
        if self.size == 1:
            return value
        found = torch.tensor(value, dtype=torch.float64)
        with _as_run_error():
            dist.all_reduce(found, op=dist.ReduceOp.MAX)
        return found.item()

    def sum_gradients(self, parameters: Iterable[Tensor]) -> None:
        """Replace every gradient by its sum over all processes; one that is missing counts as 0."""
        if self.size == 1:
            return
        sent = []
        for bucket in _buckets(parameters):
            gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in bucket]
            flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
            with _as_run_error():
                sent.append((bucket, flat, dist.all_reduce(flat, async_op=True)))
        for bucket, flat, message in sent:
            with _as_run_error():
                message.wait()
            for parameter, piece in zip(
                bucket, torch.split(flat, [p.numel() for p in bucket]), strict=True
            ):
                parameter.grad = piece.view_as(parameter)

    def wait(self) -> None:
        """Wait for all processes, however long the leader takes."""
        if self.size > 1:
            with _as_run_error():
                dist.barrier(group=self.patient)

    def require_same(self, number: int, message: str) -> None:
        """Make sure that all processes have the leader's number.

        Args:
            number: below 2⁵³, such as a checksum of the data that must be the same.
            message: the error if they differ.

        Raises:
            RunError: the numbers differ; raised in every process.
        """
        if self.any(number != self.agree(number)):
            raise RunError(message)

    @contextmanager
    def on_its_own(self) -> Iterator[None]:
        """Turn errors of this process into a WorkerError: the other processes do not have them.

        Raises:
            WorkerError: the error inside the block, with the name of the process.
        """
        try:
            yield
        except HeedError as error:
            if self.is_leader:
                raise
            raise WorkerError(f"process {self.rank} on {platform.node()}: {error}") from error


@contextmanager
def join_group(device_name: str, *, timeout_s: float = STEP_TIMEOUT_S) -> Iterator[Group]:
    """The group that `torchrun` made this process part of; a group of one without it.

    The end of the block waits for all processes, except after an error: then this process ends,
    and the others get an error.

    Args:
        device_name: as `choose_device` takes it; each process has a GPU of its own.
        timeout_s: how long a process may keep the others waiting within a step.

    Raises:
        ConfigError: there is no such device.
        RunError: another process has ended before its work was done.
        WorkerError: another process has not answered in time, or this one finds no device.
    """
    device, size = choose_device(device_name), int(os.environ.get("WORLD_SIZE", "1"))
    if size == 1:
        yield Group(device=device)
        return
    rank, timeout = process_rank(), timedelta(seconds=timeout_s)
    with _as_run_error():
        dist.init_process_group(
            # The numbers of `agree` are on the CPU even if gradients are not.
            "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo",
            store=_meeting_place(timeout),
            rank=rank,
            world_size=size,
            timeout=timeout,
        )
        patient = dist.new_group(backend="gloo", timeout=PATIENCE)
    group = Group(device=device, rank=rank, size=size, patient=patient)
    if device.type == "cuda":
        with group.on_its_own():
            device = choose_device(f"cuda:{os.environ['LOCAL_RANK']}")
        torch.cuda.set_device(device)
        group = replace(group, device=device)
    with _as_run_error():  # sharded weights are sent during the computation
        yield group
    group.wait()
    dist.destroy_process_group()


def _meeting_place(timeout: timedelta) -> Any:
    """The store in which processes exchange their addresses."""
    store, _, _ = next(rendezvous("env://", timeout=timeout))
    # torchrun may keep one store over all restarts, with the addresses of earlier processes.
    attempt = f"attempt {os.environ.get('TORCHELASTIC_RESTART_COUNT', '0')}"
    return dist.PrefixStore(attempt, store)  # type: ignore[attr-defined]  # absent from torch's types


def _buckets(parameters: Iterable[Tensor]) -> Iterator[list[Tensor]]:
    """Parameters in order, in small groups."""
    bucket: list[Tensor] = []
    for parameter in parameters:
        if bucket and sum(map(torch.numel, bucket)) + parameter.numel() > BUCKET:
            yield bucket
            bucket = []
        bucket.append(parameter)
    yield bucket


@contextmanager
def _as_run_error() -> Iterator[None]:
    """Turn errors of the network about a lost process into a RunError."""
    try:
        yield
    except RuntimeError as error:
        words = str(error).lower()
        if any(word in words for word in ("closed", "refused", "reset", "broken pipe")):
            raise RunError(
                "another process of this run has ended. The last checkpoint is intact. Run the "
                "same command to continue; with torchrun --max-restarts 2 it restarts "
                "automatically."
            ) from error
        if "timed out" in words or "timeout" in words:
            raise WorkerError(
                f"process {process_rank()} on {platform.node()} timed out waiting for another "
                "process. Check that all hosts and processes of the run are alive. The last "
                "checkpoint is intact."
            ) from error
        raise
