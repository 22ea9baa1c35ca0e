"""Compiles the engine (engine/*.cpp) into the package when it is installed.

One plain C library, loaded by ctypes: it depends on no version of Python. Where there is no C++
compiler, or it fails, heed is installed without; the same arithmetic then runs in NumPy, slower.
`HEED_ENGINE=0` leaves it out, `HEED_ENGINE=1` insists on it; `CXX` names the compiler.
"""

import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # called as a script, which needs the compiler only
    BuildHookInterface = object

ROOT = Path(__file__).resolve().parent
SOURCES = ROOT / "engine"
LIBRARY = ROOT / "src" / "heed" / "engine" / "libheed.so"
FLAGS = ["-std=c++17", "-O3", "-fPIC", "-fvisibility=hidden", "-pthread"]
# No fused multiply-add unless asked for: all instruction sets must give the same numbers.
FLAGS += ["-ffp-contract=off", "-fno-math-errno", "-Wall", "-Wextra"]
AVX2 = ["-mavx2", "-mfma"]
AVX512 = [f"-mavx512{part}" for part in ("f", "dq", "bw", "vl", "vnni")]
# For training alone, which may fuse.
TILES = ["-mavx512bf16", "-ffp-contract=fast", "-Wno-maybe-uninitialized"]
X86_FLAGS = {
    "amx": [*AVX2, *AVX512, "-mamx-tile", "-mamx-int8", "-Wno-maybe-uninitialized"],
    "avx2": AVX2,
    "avxvnni": [*AVX2, "-mavxvnni"],
    "avx512": [*AVX2, *AVX512, "-Wno-maybe-uninitialized"],
    "tiles_amx": [*AVX2, *AVX512, *TILES, "-mamx-tile", "-mamx-bf16"],
    "tiles_avx512": [*AVX2, *AVX512, *TILES],
    "training_avx2": AVX2,
    "training_avx512": [*AVX2, *AVX512, "-Wno-maybe-uninitialized"],
    "word2vec_avx2": AVX2,
    "word2vec_avx512": [*AVX2, *AVX512],
}
ARM_FLAGS = {"dotprod": ["-march=armv8.2-a+dotprod"]}
FLAGS_OF = {"x86_64": X86_FLAGS, "amd64": X86_FLAGS, "aarch64": ARM_FLAGS, "arm64": ARM_FLAGS}


def compile_engine(target: Path, *, more_flags: tuple[str, ...] = ()) -> None:
    """Compile and link.

    Args:
        target: the library to write.
        more_flags: for every file, such as those of a sanitizer.

    Raises:
        RuntimeError: there is no compiler, or it failed; says what it said.
    """
    compiler = os.environ.get("CXX") or next(filter(shutil.which, ("c++", "g++", "clang++")), None)
    if compiler is None:
        raise RuntimeError("there is no C++ compiler (c++, g++ or clang++; or name one by CXX)")
    flags_of = FLAGS_OF.get(platform.machine().lower(), {})
    with tempfile.TemporaryDirectory() as folder:

        def compiled(source: Path) -> Path:
            target = Path(folder) / f"{source.stem}.o"
            special = flags_of.get(source.stem, [])
            if special and not _knows(compiler, special):
                special = []  # the file then says that it has no kernels
            _run([compiler, *FLAGS, *special, *more_flags, "-c", str(source), "-o", str(target)])
            return target

        with ThreadPoolExecutor(os.cpu_count()) as pool:
            objects = list(pool.map(compiled, sorted(SOURCES.glob("*.cpp"))))
        draft = Path(folder) / target.name
        link = [compiler, "-shared", "-pthread", *more_flags, *map(str, objects), "-ldl"]
        _run([*link, "-o", str(draft)])
        target.parent.mkdir(parents=True, exist_ok=True)
        # A process that has the old one open keeps it: a new file, not new content.
        shutil.copy(draft, target.with_suffix(".new"))
        target.with_suffix(".new").replace(target)


def _knows(compiler: str, flags: list[str]) -> bool:
    """Whether a compiler is new enough for these flags."""
    try:
        _run([compiler, *flags, "-E", "-x", "c++", os.devnull])
    except RuntimeError:
        return False
    return True


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        raise RuntimeError(f"{command[0]} does not start: {error}") from error
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr[-4000:]}")


class EngineHook(BuildHookInterface):  # type: ignore[misc] # may be `object`
    """Calls the compiler before a wheel, also an editable one, is put together."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """See hatchling's documentation of build hooks."""
        wish = os.environ.get("HEED_ENGINE", "")
        if self.target_name != "wheel" or wish == "0":
            return
        try:
            compile_engine(LIBRARY)
        except RuntimeError as error:
            if wish == "1":
                raise
            self.app.display_warning(f"heed is installed without its compiled engine: {error}")
            return
        build_data["artifacts"].append(str(LIBRARY.relative_to(ROOT)))
        build_data["pure_python"] = False
        platform_tag = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{platform_tag}"


if __name__ == "__main__":
    # python hatch_build.py [LIBRARY [FLAG]...]
    compile_engine(Path(sys.argv[1]) if sys.argv[1:] else LIBRARY, more_flags=tuple(sys.argv[2:]))
