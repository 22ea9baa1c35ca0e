"""The memory this process may still take, the most it has held, and how glibc keeps it."""

import ctypes
import math
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

# glibc's <malloc.h>.
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD, _M_MMAP_MAX = -1, -2, -3, -4
_M_ARENA_MAX = -8
_PROC, _CGROUPS = Path("/proc"), Path("/sys/fs/cgroup")
# Control groups, versions 2 and 1: the limit, the memory in use, and the part of it that is page
# cache, which the kernel drops when memory is short.
_MEMORY_FILES = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def share_one_heap() -> bool:
    """Ask glibc to serve all threads from one heap; False where there is no glibc.

    By default glibc makes up to eight heaps a core. In a server, memory freed in one heap is of no
    use to a thread with another heap, so each heap grows to its own peak. Large blocks get pages of
    their own; setting the threshold stops glibc from raising it when such a block is freed.
    """
    return _accepts([(_M_ARENA_MAX, 1), (_M_MMAP_THRESHOLD, 1 << 22), (_M_TRIM_THRESHOLD, 1 << 23)])


def keep_freed_memory() -> bool:
    """Ask glibc to keep freed memory for the next tensor; False where there is no glibc.

    By default glibc returns every large freed block to the kernel, which must zero its pages again
    at the next step.
    """
    return _accepts(
        [
            (_M_MMAP_MAX, 0),
            (_M_MMAP_THRESHOLD, 1 << 25),
            (_M_TRIM_THRESHOLD, (1 << 31) - 1),
            (_M_TOP_PAD, 1 << 26),
        ]
    )


def _accepts(settings: Sequence[tuple[int, int]]) -> bool:
    """Whether glibc is there and accepts all these options."""
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except AttributeError:  # musl
        return False
    accepted = [mallopt(option, value) == 1 for option, value in settings]
    return all(accepted)


def peak_memory_mb(device: "torch.device") -> float:
    """The peak memory of this process in MB: on the GPU if it computes there, else on the host."""
    if device.type == "cuda":
        import torch

        return torch.cuda.max_memory_allocated(device) / 2**20
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)  # bytes there, KiB elsewhere


def spare_memory(device: "torch.device") -> float:
    """Bytes this process can still allocate before it fails or is killed; infinite if unknown.

    On the CPU it is the least of the machine's free memory, the rest of the control group's
    (container's) limit, and the rest of `ulimit -v`. Processes that `torchrun` started together
    get equal shares.
    """
    if device.type == "cuda":
        import torch

        free, _ = torch.cuda.mem_get_info(device)
        kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return float(free + kept)
    return spare_host_memory()


def spare_host_memory() -> float:
    """Bytes of the machine's own memory that are left, counted as in `spare_memory`; no torch."""
    give_back_freed_memory()
    together = os.environ.get("LOCAL_WORLD_SIZE", "")
    shared = min([math.inf, *_numbers(_PROC / "meminfo", "MemAvailable:"), *_spare_in_groups()])
    return min(shared / (int(together) if together.isdigit() else 1), _spare_addresses())


def give_back_freed_memory() -> None:
    """Return glibc's free heap memory to the kernel, including that of `keep_freed_memory`."""
    if sys.platform.startswith("linux"):
        with suppress(AttributeError):  # musl
            ctypes.CDLL(None).malloc_trim(0)


def _spare_in_groups() -> Iterator[float]:
    """Bytes left under the memory limit of each control group of this process and its parents."""
    try:
        lines = (_PROC / "self" / "cgroup").read_text("utf-8").splitlines()
    except OSError:
        return
    for _, controllers, path in (line.split(":", 2) for line in lines):
        if controllers and "memory" not in controllers.split(","):
            continue
        root = _CGROUPS / "memory" if controllers else _CGROUPS
        own = root / path.lstrip("/")
        for folder in (own, *own.parents):
            for limit, used, files in _MEMORY_FILES:
                bounds = zip(_numbers(folder / limit), _numbers(folder / used), strict=False)
                for most, taken in bounds:
                    yield most - taken + sum(_numbers(folder / "memory.stat", files))
            if folder == root:
                break


def _spare_addresses() -> float:
    if not sys.platform.startswith("linux"):
        return math.inf
    import resource

    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    if most == resource.RLIM_INFINITY:
        return math.inf
    return most - sum(_numbers(_PROC / "self" / "status", "VmSize:"))


def _numbers(path: Path, name: str = "") -> list[float]:
    """The number in a kernel file, or the one after `name`; an empty list if there is none."""
    try:
        lines = path.read_text("utf-8").splitlines()
    except OSError:
        return []
    found = (line.removeprefix(name).split() for line in lines if line.startswith(name))
    return [
        float(words[0]) * (1024 if words[1:] == ["kB"] else 1)
        for words in found
        if words and words[0].isdigit()
    ]
