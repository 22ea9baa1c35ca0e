"""The number of CPU threads to compute with, and this process's rank among several."""

import os

from heed.errors import ConfigError

_CPU_QUOTA = "/sys/fs/cgroup/cpu.max"


def set_threads(n_threads: int | None = None) -> int:
    """Let torch use the number of threads from `choose_threads`, and return it.

    Raises:
        ConfigError: fewer than one.
    """
    import torch

    chosen = choose_threads(n_threads)
    torch.set_num_threads(chosen)
    return chosen


def choose_threads(n_threads: int | None = None) -> int:
    """The number of threads to compute with: `n_threads`, or that of `count_cores`.

    `n_threads` is lowered to the number of cores: with more threads, each step would take minutes.
    Without it, the variable `OMP_NUM_THREADS` decides, whatever the number of cores.

    Raises:
        ConfigError: it is not a whole number from 1.
    """
    if n_threads is not None and (type(n_threads) is not int or n_threads < 1):
        raise ConfigError(f"threads must be a whole number from 1, but is {n_threads!r}.")
    if n_threads:
        return min(n_threads, count_cores())
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    return int(asked) if asked.isdecimal() and int(asked) else count_cores()


def too_many_threads(asked: int) -> str:
    """A remark if more threads are asked for than there are cores, else ""."""
    n_cores = count_cores()
    if asked <= n_cores:
        return ""
    cores = "1 core" if n_cores == 1 else f"{n_cores} cores"
    return f"{asked} threads are more than the {cores} of this machine; {n_cores} will be used."


def count_cores() -> int:
    """CPU cores this process may use, by its affinity and its container's quota, if any."""
    n_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    try:
        with open(_CPU_QUOTA, encoding="ascii") as file:
            quota, period = file.read().split()
        return max(1, min(n_cores or 1, round(int(quota) / int(period))))
    except (OSError, ValueError):  # no control groups, or the quota is "max"
        return n_cores or 1


def is_one_of_several() -> bool:
    """Whether `torchrun` started other processes together with this one."""
    return os.environ.get("WORLD_SIZE", "1") != "1"


def process_rank() -> int:
    """Number of this process among those that `torchrun` started together, from 0."""
    rank = os.environ.get("RANK", "") if is_one_of_several() else ""
    return int(rank) if rank.isdigit() else 0
