"""`heed doctor`: report what is installed and what this machine supports.

It imports no package that is missing, and repairs nothing.
"""

import importlib.metadata
import importlib.util
import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path

from heed import __version__
from heed.cli.command import command
from heed.cli.models import installed
from heed.cli.terminal import echo
from heed.disk.home import home
from heed.errors import ConfigError
from heed.machine.cpu import cpu_info
from heed.machine.threads import count_cores

PACKAGES = {
    "click": "always",
    "numpy": "always",
    "regex": "always",
    "safetensors": "always",
    "sentencepiece": "always",
    "torch": "train",
    "sacrebleu": "train",
    "zstandard": "train",
    "starlette": "serve",
    "uvicorn": "serve",
    "httptools": "serve",
    "py3langid": "serve",
    "python-multipart": "serve",
    "prometheus-client": "serve",
    "uvloop": "serve",
    "tensorboard": "tensorboard",
    "matplotlib": "plot",
}
"""Maps a package to the extra that installs it."""

CPU_FLAGS = ("avx2", "fma", "avx512f", "avx512_vnni", "avx_vnni", "amx_tile", "asimd", "asimddp")
"""Instruction sets on which the speed of matrix products depends."""


@command("doctor", "Show versions, processor and optional parts.", examples="heed doctor")
def doctor() -> None:
    """Show versions, processor, threads and which optional parts are installed."""
    for name, value in facts():
        echo(f"{name:<17} {value}")
    missing = sorted({extra for name, extra in PACKAGES.items() if not _version(name)})
    for extra in missing:
        what = "heed" if extra == "always" else f"'heed[{extra}]'"
        echo(f"For the missing part: pip install {what}", err=True)


def facts() -> Iterator[tuple[str, str]]:
    """The lines of the report, as names and values."""
    yield "heed", f"{__version__} ({Path(__file__).parents[1]})"
    yield "python", f"{platform.python_version()} ({sys.executable})"
    yield "system", platform.platform()
    yield "processor", _processor()
    yield "instructions", " ".join(flag for flag in CPU_FLAGS if flag in _cpu_flags()) or "unknown"
    yield "cores", f"{count_cores()} usable of {os.cpu_count()}"
    yield "memory", _memory()
    for name, extra in PACKAGES.items():
        needs = "" if extra == "always" else f" (optional: heed[{extra}])"
        yield name, _version(name) or f"not installed{needs}"
    if importlib.util.find_spec("torch"):
        import torch

        yield "torch threads", str(torch.get_num_threads())
        has_gpu = torch.cuda.is_available()
        yield "gpu", torch.cuda.get_device_name() if has_gpu else "none"
    yield "engine", _engine()
    yield "models", _models()
    for name in ("HEED_MODEL", "HEED_KERNELS", "OMP_NUM_THREADS", "CUDA_VISIBLE_DEVICES"):
        if name in os.environ:
            yield name, os.environ[name]


def _engine() -> str:
    from heed.engine.library import is_compiled, kernels

    if not is_compiled():
        return "not compiled (needs a C++ compiler): NumPy or torch is used, which is slower"
    name = os.environ.get("HEED_KERNELS", "")
    found = kernels(name)
    return f"compiled, {found}" if found else f"compiled, but without {name} (HEED_KERNELS)"


def _models() -> str:
    try:
        return f"{len(installed())} in {home() / 'models'}"
    except ConfigError as error:
        return str(error)


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _processor() -> str:
    return cpu_info("model name") or platform.processor() or platform.machine()


def _cpu_flags() -> list[str]:
    return (cpu_info("flags") or cpu_info("Features")).split()


def _memory() -> str:
    try:
        size_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (ValueError, OSError, AttributeError):
        return "unknown"
    return f"{size_bytes / 2**30:.1f} GiB"
