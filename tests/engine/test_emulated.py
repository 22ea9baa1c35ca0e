"""Kernels on a machine that lacks their instructions: each instruction done in words.

Says that they compute the same bits; nothing of speed, or of what a compiler makes of them.
"""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from heed.engine import library
from heed.machine.cpu import has_compiled_bfloat16

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent


def compiled(target: Path, *flags: str) -> None:
    build = [sys.executable, str(ROOT / "hatch_build.py"), str(target), *flags]
    built = subprocess.run(build, capture_output=True, text=True)
    if "there is no C++ compiler" in built.stderr:
        pytest.skip("there is no C++ compiler")
    assert built.returncode == 0, built.stderr[-4000:]


def run_with(emulating: Path, *command: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "HEED_LIBRARY": str(emulating)}
    return subprocess.run(
        [sys.executable, *command], env=environment, cwd=ROOT, capture_output=True, text=True
    )


def pytest_of(*parts: str) -> list[str]:
    files = [str(ROOT / "tests" / part) for part in parts]
    return ["-m", "pytest", "-q", "-p", "no:xdist", "-p", "no:cacheprovider", *files]


KERNELS = "-c", "import heed.engine.library as n; print(n.kernels())"


@pytest.mark.slow
@pytest.mark.reliability
@pytest.mark.timeout(300)
def test_avx512_kernels_give_the_bits_of_all_others(tmp_path: Path) -> None:
    if platform.machine().lower() not in ("x86_64", "amd64"):
        pytest.skip("their other halves are instructions of x86-64")
    if library.is_compiled() and library.kernels("avx512"):
        pytest.skip("this processor has AVX-512: test_equal.py runs these kernels themselves")
    emulating = tmp_path / "libheed.so"
    words = ("-include", str(HERE / "avx512_in_words.h"))
    # The least optimization that pays: most of this test's time is the compiler's.
    compiled(emulating, "-O1", "-mno-avx512f", "-mno-amx-tile", "-Wno-psabi", *words)
    tests = pytest_of("engine/test_equal.py", "engine/test_native.py", "vectors/test_word2vec.py")
    # Slow in words, and its blocks are those of AMX; memory is the same for all kernels.
    tests += ["-k", "not any_number_of_rows and not memory_of_ended_batches"]
    assert run_with(emulating, *KERNELS).stdout.strip() == "avx512"
    found = run_with(emulating, *tests)
    assert found.returncode == 0, found.stdout[-4000:]


@pytest.mark.slow
@pytest.mark.reliability
@pytest.mark.timeout(300)
def test_neon_kernels_give_the_bits_of_all_others(tmp_path: Path) -> None:
    if platform.machine().lower() not in ("x86_64", "amd64"):
        pytest.skip("their compiler's header would be found first")
    emulating = tmp_path / "libheed.so"
    # Of all other instruction sets only plain C++ is compiled.
    words = (f"-I{HERE / 'neon_in_words'}", "-D__aarch64__", "-D__ARM_FEATURE_DOTPROD")
    compiled(emulating, "-O1", "-mno-avx2", "-mno-avx512f", "-Wno-psabi", *words)
    of_engine = (f"engine/test_{name}.py" for name in ("equal", "native", "decoder"))
    tests = pytest_of(*of_engine, "vectors/test_word2vec.py", "model/fast/test_attention.py")
    assert run_with(emulating, *KERNELS).stdout.strip() == "dotprod"
    found = run_with(emulating, *tests, "-k", "neon or dotprod or portable or kernels")
    assert found.returncode == 0, found.stdout[-4000:]


@pytest.mark.slow
def test_amx_kernels_compute_what_those_of_avx512_do(tmp_path: Path) -> None:
    if not has_compiled_bfloat16():
        pytest.skip("this processor lacks AVX-512 with bfloat16, or heed is not compiled")
    if library.kernels("amx"):
        pytest.skip("this processor has AMX: test_equal.py and test_tiles.py run its kernels")
    emulating = tmp_path / "libheed.so"
    compiled(emulating, "-include", str(HERE / "amx_in_words.h"))
    tests = pytest_of("engine/test_equal.py", "model/fast/test_tiles.py", "train/step/test_loss.py")
    assert run_with(emulating, *KERNELS).stdout.strip() == "amx"
    found = run_with(emulating, *tests)
    assert found.returncode == 0, found.stdout[-4000:]
