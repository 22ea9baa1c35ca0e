"""Where and how to compute, chosen once per process: device, number type, threads, seeds, memory.

Not here: what is computed. Nothing happens on import; torch loads inside the functions.
Read on in `train/loop.py` and `translate.py`, the callers.
"""

import ctypes
import functools
import math
import os
import platform
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from heed.errors import ConfigError

if TYPE_CHECKING:
    import torch

# glibc's <malloc.h>.
_M_TRIM_THRESHOLD, _M_TOP_PAD, _M_MMAP_THRESHOLD, _M_MMAP_MAX = -1, -2, -3, -4
_CPU_QUOTA = "/sys/fs/cgroup/cpu.max"
_PROC, _CGROUPS = Path("/proc"), Path("/sys/fs/cgroup")
# Versions 2 and 1: the limit, what is used of it, and which part of that is files read, which the
# kernel drops when memory is short.
_MEMORY_FILES = (
    ("memory.max", "memory.current", "inactive_file"),
    ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
)


def has_gpu() -> bool:
    """Whether CUDA's driver shows this process a GPU; asks without torch, in a millisecond."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return False
    count = ctypes.c_int(0)
    return (
        driver.cuInit(0) == 0
        and driver.cuDeviceGetCount(ctypes.byref(count)) == 0
        and count.value > 0
    )


def split_device(name: str) -> tuple[str, str]:
    """The two parts of a device's name: `cuda` and `1` of `cuda:1`; the second may be empty.

    Raises:
        ConfigError: it is no name of a device.
    """
    kind, _, index = name.partition(":")
    if kind not in ("auto", "cpu", "cuda") or (index and not (kind == "cuda" and index.isdigit())):
        raise ConfigError(f"device must be auto, cpu, cuda or cuda:N, but is {name!r}.")
    return kind, index


def choose_device(name: str = "auto") -> "torch.device":
    """The device called `auto` (CUDA where there is one), `cpu`, `cuda` or `cuda:N`.

    Raises:
        ConfigError: no such device, or not on this machine.
    """
    import torch

    kind, index = split_device(name)
    n_devices = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if kind == "auto":
        return torch.device("cuda" if n_devices else "cpu")
    if kind == "cuda" and int(index or 0) >= n_devices:
        raise ConfigError(
            f"device {name} is not usable: torch {torch.__version__} sees {n_devices} CUDA devices "
            "here. Use device auto or cpu."
        )
    return torch.device(name)


def choose_dtype(name: str, device: "torch.device", *, setting: str = "precision") -> "torch.dtype":
    """The type to compute in: `auto`, `float32`, `bfloat16` or `float16`.

    `auto` is bfloat16 on a GPU that has it and float32 elsewhere.

    Args:
        name: one of these.
        device: where to compute.
        setting: what messages call it.

    Raises:
        ConfigError: no such type, or float16 on a CPU.
    """
    import torch

    if name == "auto":
        is_fast = device.type == "cuda" and torch.cuda.is_bf16_supported(including_emulation=False)
        return torch.bfloat16 if is_fast else torch.float32
    dtypes = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
    if name not in dtypes:
        raise ConfigError(f"{setting} must be auto, {', '.join(dtypes)}, but is {name!r}.")
    if name == "float16" and device.type == "cpu":
        raise ConfigError(f"{setting} float16 needs a GPU; use float32 or bfloat16 on a CPU.")
    return dtypes[name]


def autocast(device: "torch.device", dtype: "torch.dtype") -> AbstractContextManager[Any]:
    """Compute matrix products in `dtype`; does nothing for float32."""
    import torch

    if dtype == torch.float32:
        return nullcontext()
    return torch.autocast(device_type=device.type, dtype=dtype)


def set_threads(n_threads: int | None = None) -> int:
    """Let torch use as many threads as `choose_threads` says; returns how many.

    Raises:
        ConfigError: fewer than one.
    """
    import torch

    chosen = choose_threads(n_threads)
    torch.set_num_threads(chosen)
    return chosen


def choose_threads(n_threads: int | None = None) -> int:
    """How many threads to compute with: `n_threads`, or as many as `count_cores` finds.

    More than there are cores would make each step take minutes, so `n_threads` is at most that.
    Where no number is asked for, `OMP_NUM_THREADS` counts.

    Raises:
        ConfigError: it is no whole number from 1 on.
    """
    if n_threads is not None and (type(n_threads) is not int or n_threads < 1):
        raise ConfigError(f"threads must be a whole number from 1, but is {n_threads!r}.")
    if n_threads:
        return min(n_threads, count_cores())
    asked = os.environ.get("OMP_NUM_THREADS", "").split(",")[0]
    return int(asked) if asked.isdigit() and int(asked) else count_cores()


def too_many_threads(asked: int) -> str:
    """A remark if more threads are asked for than there are cores, else ""."""
    n_cores = count_cores()
    if asked <= n_cores:
        return ""
    cores = "1 core" if n_cores == 1 else f"{n_cores} cores"
    return f"{asked} threads are more than the {cores} of this machine; {n_cores} will be used."


def count_cores() -> int:
    """CPU cores this process may use: its affinity, and its container's quota where one is set."""
    n_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    try:
        with open(_CPU_QUOTA, encoding="ascii") as file:
            quota, period = file.read().split()
        return max(1, min(n_cores or 1, round(int(quota) / int(period))))
    except (OSError, ValueError):  # no control groups, or the quota is "max"
        return n_cores or 1


def process_rank() -> int:
    """Number of this process among those that `torchrun` started together, from 0."""
    rank = os.environ.get("RANK", "") if os.environ.get("WORLD_SIZE", "1") != "1" else ""
    return int(rank) if rank.isdigit() else 0


def derive_seed(seed: int, *parts: int | str) -> int:
    """A seed of 63 bits for one purpose, as `derive_seed(seed, "dropout", step)`.

    Randomness that is derived need not be stored: a resumed run knows its seed and its step.
    """
    import hashlib

    text = repr((seed, *parts)).encode("ascii", "backslashreplace")
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "little") >> 1


def seed_everything(seed: int, *parts: int | str) -> None:
    """Seed torch on all devices, numpy's and Python's global generators from `derive_seed`."""
    import random

    import numpy as np
    import torch

    derived = derive_seed(seed, *parts)
    random.seed(derived)
    np.random.seed(derived % 2**32)
    torch.manual_seed(derived)


def prepare_cpu() -> None:
    """Switch on what makes torch faster on a CPU; before its first parallel work.

    Denormal numbers become 0 (they are up to 100 times slower). The processor keeps that switch per
    thread; torch's workers inherit it only if they start afterwards.
    """
    import torch

    torch.set_flush_denormal(True)
    keep_freed_memory()


@functools.cache
def has_faster_onednn() -> bool:
    """Whether oneDNN multiplies float32 matrices faster here than MKL, and as exactly.

    So it is on AMD's processors with AVX-512, of which MKL uses AVX2. Where there is AMX, oneDNN
    would round to bfloat16.
    """
    import torch

    has_mkl = torch.backends.mkl.is_available()  # type: ignore[no-untyped-call]
    has_switch = hasattr(torch.backends.mkldnn, "matmul")  # torch 2.9
    is_wide = torch.backends.cpu.get_cpu_capability() == "AVX512"
    is_amd = cpu_info("vendor_id") == "AuthenticAMD" and "amx" not in cpu_info("flags")
    return has_mkl and has_switch and is_wide and is_amd


def cpu_info(key: str) -> str:
    """What Linux says of the first processor under this name; empty where nobody says."""
    try:
        lines = (_PROC / "cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(key)), "")


def keep_freed_memory() -> bool:
    """Ask glibc to keep freed memory for the next tensor; False where there is no glibc.

    By default it hands every large freed block back to the kernel, which zeroes it again page by
    page at the next step.
    """
    if not sys.platform.startswith("linux"):
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
    except AttributeError:  # musl
        return False
    settings = (
        (_M_MMAP_MAX, 0),
        (_M_MMAP_THRESHOLD, 1 << 25),
        (_M_TRIM_THRESHOLD, (1 << 31) - 1),
        (_M_TOP_PAD, 1 << 26),
    )
    accepted = [mallopt(option, value) == 1 for option, value in settings]
    return all(accepted)


def peak_memory_mb(device: "torch.device") -> float:
    """The most memory this process has held so far in MB: on the GPU if it computes there."""
    if device.type == "cuda":
        import torch

        return torch.cuda.max_memory_allocated(device) / 2**20
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (2**20 if sys.platform == "darwin" else 2**10)  # bytes there, KiB elsewhere


def spare_memory(device: "torch.device") -> float:
    """Bytes this process can still take before it is refused or killed; infinite if nobody says.

    On the CPU the least of: what the machine has, what a control group (a container) may use, and
    what `ulimit -v` leaves. Processes started together by `torchrun` share alike.
    """
    if device.type == "cuda":
        import torch

        free, _ = torch.cuda.mem_get_info(device)
        kept = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return float(free + kept)
    return spare_host_memory()


def spare_host_memory() -> float:
    """Bytes of the machine's own memory that are left, as `spare_memory` counts them; no torch."""
    _give_back_freed_memory()
    together = os.environ.get("LOCAL_WORLD_SIZE", "")
    shared = min([math.inf, *_numbers(_PROC / "meminfo", "MemAvailable:"), *_spare_in_groups()])
    return min(shared / (int(together) if together.isdigit() else 1), _spare_addresses())


def _give_back_freed_memory() -> None:
    """Let what `keep_freed_memory` has kept so far count as free: the kernel calls it ours."""
    if sys.platform.startswith("linux"):
        with suppress(AttributeError):  # musl
            ctypes.CDLL(None).malloc_trim(0)


def _spare_in_groups() -> Iterator[float]:
    """What the memory limits of this process's control groups leave, each and all above it."""
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
    """The number in a file of the kernel, or behind `name`; none if there is none."""
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


def describe_environment() -> dict[str, Any]:
    """What the exact bits of a run depend on besides its recipe, as JSON values."""
    import torch

    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "platform": platform.platform(),
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "products": "oneDNN" if has_faster_onednn() else "torch's choice",
        "threads": torch.get_num_threads(),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
    }
