"""Device and number type of a computation.

torch is imported inside the functions.
"""

import ctypes
import platform
import re
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from heed.errors import ConfigError
from heed.machine.cpu import has_bfloat16_products, has_bfloat16_tiles, has_faster_onednn

if TYPE_CHECKING:
    import torch


DTYPES = ("auto", "float32", "int8", "bfloat16", "float16")
"""Number types to translate in; `machine.device.choose_dtype` and the engine resolve `auto`."""

ROUNDED = "bfloat16_products"
"""A precision of training: float32, but the factors of matrix products are rounded to bfloat16."""

RUNTIMES = ("auto", "engine", "torch")
"""The implementation of a translation: heed's own engine on a CPU, or torch."""

_NUMBER = re.compile("0|[1-9][0-9]*")
"""The number of a device, as torch reads it."""


def has_gpu() -> bool:
    """Whether CUDA's driver shows this process a GPU; takes a millisecond, without torch."""
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


def prepare_gpu() -> None:
    """Switch off cuDNN's attention, which makes a new plan for every shape of batch.

    On an H200 each plan takes 6 ms of the processor: two thirds of a step of `base`. The other
    fused kernels of torch take any shape.
    """
    import torch

    torch.backends.cuda.enable_cudnn_sdp(False)


def split_device(name: str) -> tuple[str, str]:
    """The two parts of a device's name: `cuda` and `1` of `cuda:1`; the second may be empty.

    Raises:
        ConfigError: it is not the name of a device.
    """
    kind, colon, index = name.partition(":")
    is_numbered = kind == "cuda" and _NUMBER.fullmatch(index)
    if kind not in ("auto", "cpu", "cuda") or (colon and not is_numbered):
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
        setting: its name in messages.

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


def choose_rounding(name: str, device: "torch.device") -> bool:
    """Whether the factors of float32 products are rounded: to bfloat16, or on a GPU to TF32.

    Args:
        name: the precision. On a CPU, `bfloat16_products` rounds, and `auto` does where that is
            faster. A GPU rounds if the rest is computed in bfloat16.
        device: where to compute.

    Raises:
        ConfigError: rounding is requested, but this processor cannot do it.
    """
    import torch

    can_round = device.type == "cpu" and has_bfloat16_products()
    if name == ROUNDED and not can_round:
        raise ConfigError(
            f"precision {ROUNDED} needs a CPU with AMX and torch 2.9 or later, or heed's compiled "
            "library and AVX-512 with bfloat16 (amx_bf16 or avx512_bf16 in /proc/cpuinfo); use "
            "auto or float32."
        )
    if device.type == "cuda":
        return choose_dtype(name, device) == torch.bfloat16
    return can_round and name in ("auto", ROUNDED)


def autocast(device: "torch.device", dtype: "torch.dtype") -> AbstractContextManager[Any]:
    """A context in which matrix products are computed in `dtype`; no effect for float32."""
    import torch

    if dtype == torch.float32:
        return nullcontext()
    return torch.autocast(device_type=device.type, dtype=dtype)


def _products() -> str:
    of_float32 = "oneDNN" if has_faster_onednn() else "torch's choice"
    if not has_bfloat16_products():
        return of_float32
    return f"{of_float32}, or {'AMX' if has_bfloat16_tiles() else 'bfloat16 with AVX-512'}"


def describe_environment() -> dict[str, Any]:
    """The software and hardware that decide the exact bits of a run, as JSON values."""
    import torch

    return {
        "python": platform.python_version(),
        "torch": torch.__version__,
        "platform": platform.platform(),
        "cpu": torch.backends.cpu.get_cpu_capability(),
        "products": _products(),
        "threads": torch.get_num_threads(),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else None,
    }
