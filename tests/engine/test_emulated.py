"""The AVX-512 kernels on a machine without AVX-512: each instruction done in words.

Says that they compute the same bits; nothing of speed, or of what a compiler makes of them.
"""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from heed.engine import library

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FLAGS = ("-mno-avx512f", "-mno-amx-tile", "-Wno-psabi", "-include", str(HERE / "avx512_in_words.h"))


@pytest.mark.slow
@pytest.mark.reliability
def test_avx512_kernels_give_the_bits_of_all_others(tmp_path: Path) -> None:
    if platform.machine().lower() not in ("x86_64", "amd64"):
        pytest.skip("their other halves are instructions of x86-64")
    if library.is_compiled() and library.kernels("avx512"):
        pytest.skip("this processor has AVX-512: test_equal.py runs these kernels themselves")
    emulating = tmp_path / "libheed.so"
    build = [sys.executable, str(ROOT / "hatch_build.py"), str(emulating), *FLAGS]
    built = subprocess.run(build, capture_output=True, text=True)
    if "there is no C++ compiler" in built.stderr:
        pytest.skip("there is no C++ compiler")
    assert built.returncode == 0, built.stderr[-4000:]
    names = "import heed.engine.library as n; print(n.kernels())"
    tests = ["-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider"]
    tests += [str(HERE / "test_equal.py"), str(HERE / "test_native.py")]
    tests += [str(ROOT / "tests" / "vectors" / "test_word2vec.py")]
    tests += ["-k", "not any_number_of_rows"]  # slow in words, and its blocks are those of AMX
    environment = {**os.environ, "HEED_LIBRARY": str(emulating)}
    outputs = [
        subprocess.run(
            [sys.executable, *command], env=environment, cwd=ROOT, capture_output=True, text=True
        )
        for command in (["-c", names], tests)
    ]
    assert outputs[0].stdout.strip() == "avx512"
    assert outputs[1].returncode == 0, outputs[1].stdout[-4000:]
