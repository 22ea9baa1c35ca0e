"""What the processor can do, and the switches that make torch faster on it."""

import functools
import os
from ctypes import c_char_p
from pathlib import Path

from heed.machine.compiled import function
from heed.machine.memory import keep_freed_memory

_CPU_INFO = Path("/proc/cpuinfo")

_ONEDNN_CACHE = ("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "128")
"""Shapes for which oneDNN keeps compiled code. Its default of 1024 takes gigabytes where every
batch has another shape, as in a recurrent model: 3.9 GB after ten minutes, 0.7 GB with 128 after
350 steps instead of 1.35, at the same speed (Multi30k, `model.family=rnn`)."""


def prepare_cpu() -> None:
    """Switch on what makes torch faster and smaller on a CPU; call it before any parallel work.

    Denormal numbers become 0 (they are up to 100 times slower). The processor keeps that switch per
    thread; torch's workers inherit it only if they start afterwards.
    """
    import torch

    os.environ.setdefault(*_ONEDNN_CACHE)
    torch.set_flush_denormal(True)
    keep_freed_memory()


@functools.cache
def has_faster_onednn() -> bool:
    """Whether oneDNN multiplies float32 matrices faster than MKL here, and just as exactly.

    It does on AMD processors with AVX-512, where MKL uses AVX2 only. On a processor with AMX,
    oneDNN would round to bfloat16.
    """
    import torch

    has_mkl = torch.backends.mkl.is_available()  # type: ignore[no-untyped-call]
    is_amd = cpu_info("vendor_id") == "AuthenticAMD" and "amx" not in cpu_info("flags")
    return has_mkl and _has_wide_onednn() and is_amd


@functools.cache
def has_bfloat16_tiles() -> bool:
    """Whether oneDNN can multiply matrices with AMX tiles here, with factors in bfloat16.

    Intel's server processors have AMX since Sapphire Rapids.
    """
    return _has_wide_onednn() and "amx_bf16" in cpu_info("flags").split()


@functools.cache
def has_compiled_bfloat16(kernels: str = "") -> bool:
    """Whether the compiled library multiplies matrices with factors in bfloat16 here.

    Args:
        kernels: `amx` or `avx512` for that instruction set's bfloat16 instruction (AMD has the
            latter since Zen 4, some of Intel's processors since 2020); "" for either.
    """
    why_not = function("heed_tiles_are_here", (c_char_p,))
    return why_not is not None and why_not(kernels.encode()) is None


def has_bfloat16_products() -> bool:
    """Whether matrix products with bfloat16 factors are faster here than float32 products."""
    return has_compiled_bfloat16() or has_bfloat16_tiles()


def _has_wide_onednn() -> bool:
    """Whether torch can be told to multiply float32 matrices with oneDNN, which has AVX-512."""
    import torch

    has_switch = hasattr(torch.backends.mkldnn, "matmul")  # torch 2.9
    return has_switch and torch.backends.cpu.get_cpu_capability() == "AVX512"


def cpu_info(key: str) -> str:
    """A field of the first processor in /proc/cpuinfo; empty if it is missing."""
    try:
        lines = _CPU_INFO.read_text("utf-8").splitlines()
    except OSError:
        return ""
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(key)), "")
