"""What the machine can do at most, measured: the roofs that `roofline.py` draws.

    python benchmarks/machine.py 41600000 1073741824

Multiply-adds of int8 (summed in 32 bits, exactly) and float32 in registers, and reading memory over
and over in sets of so many bytes: a small one stays in a cache. The kernels are `peak.cpp`.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

SOURCE = Path(__file__).resolve().parent / "peak.cpp"
MEMORY_BYTES = 1 << 30
"""Read over and over, these come from memory."""


@dataclass(frozen=True, kw_only=True)
class Peaks:
    """The roofs.

    Attributes:
        int8_gmacs: billions of multiply-adds of bytes a second.
        float32_gmacs: the same of floats.
        read_gbs: bytes that are read over and over → billions of bytes a second.
    """

    int8_gmacs: float
    float32_gmacs: float
    read_gbs: dict[int, float]

    @classmethod
    def of(cls, values: dict[str, Any]) -> Self:
        """From JSON, where sizes are text."""
        sizes = {int(size): speed for size, speed in values["read_gbs"].items()}
        return cls(**{**values, "read_gbs": sizes})


def measure(threads: int, sizes: Iterable[int]) -> Peaks:
    """Measure on so many threads at the same time, and add them up."""
    compiler = os.environ.get("CXX") or next(filter(shutil.which, ("c++", "g++", "clang++")), None)
    if compiler is None:
        sys.exit("measuring the machine needs a C++ compiler (c++, g++ or clang++; or CXX=...)")
    with tempfile.TemporaryDirectory(prefix="heed-peak-") as folder:
        program = f"{folder}/peak"
        flags = ["-std=c++17", "-O3", "-march=native"]
        if subprocess.run([compiler, *flags, str(SOURCE), "-o", program]).returncode:
            sys.exit(f"{compiler} cannot compile {SOURCE.name}; what it said is above")
        command = [program, *map(str, [*sizes, MEMORY_BYTES])]
        started = [
            subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(threads)
        ]
        said = [process.communicate()[0] for process in started]
    if any(process.returncode for process in started):
        sys.exit("measuring the machine failed; what it said is above")
    return together([Peaks.of(json.loads(each)) for each in said])


def together(threads: list[Peaks]) -> Peaks:
    """What all threads do in a second."""
    return Peaks(
        int8_gmacs=sum(each.int8_gmacs for each in threads),
        float32_gmacs=sum(each.float32_gmacs for each in threads),
        read_gbs={
            size: sum(each.read_gbs[size] for each in threads) for size in threads[0].read_gbs
        },
    )


def higher(a: Peaks, b: Peaks) -> Peaks:
    """The better of two measurements: another program may have spoilt one."""
    return Peaks(
        int8_gmacs=max(a.int8_gmacs, b.int8_gmacs),
        float32_gmacs=max(a.float32_gmacs, b.float32_gmacs),
        read_gbs={size: max(speed, b.read_gbs[size]) for size, speed in a.read_gbs.items()},
    )


if __name__ == "__main__":
    print(measure(1, map(int, sys.argv[1:])))  # noqa: T201 (a script speaks to its terminal)
