# ruff: noqa: T201 (a script speaks to its terminal)
"""Translation speed of heed, CTranslate2 and Hugging Face: same weights, same ids, in turn.

    python benchmarks/translate_speed.py --size small --threads 1
    python benchmarks/translate_speed.py --size base --shapes 1x1,32x4 --repeat 5

The first call installs the peers from PyPI into a virtualenv of their own (`--peers`, kept). Every
source has 24 tokens, and every translation is forced to 24. Each system waits in a process of its
own; a measurement goes round all of them before the next begins, and the ratio is that of the two
neighbors in time. Time is that of the CPU on one thread, so that other work on the machine hardly
counts, else of the clock. Not here: the systems (`translators.py`), or real text (`speed.py`).
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
CONSTRAINTS = HERE.parent / "constraints.txt"
TRANSLATORS = HERE / "translators.py"
PACKAGES = ("ctranslate2==4.8.5", "transformers", "torch", "safetensors", "numpy")
SYSTEMS = ("heed int8", "heed float32", "CTranslate2 int8", "CTranslate2 float32")
SYSTEMS += ("Hugging Face float32",)
PEER = "CTranslate2 int8"
SECONDS = 1.0
"""About how long a measurement takes: as many batches as fill it."""


def install_peers(folder: Path) -> Path:
    """The peers' own Python, installed at the first call."""
    python, ready = folder / "translators" / "bin" / "python", folder / "translators" / "ready"
    if not ready.exists():
        subprocess.run([sys.executable, "-m", "venv", str(folder / "translators")], check=True)
        command = [str(python), "-m", "pip", "install", "-q", "-c", str(CONSTRAINTS)]
        subprocess.run([*command, *PACKAGES], check=True, stdout=sys.stderr)
        ready.touch()
    return python


class System:
    """One system in its own process."""

    def __init__(self, name: str, python: Path, folder: Path, threads: int) -> None:
        self.name = name
        is_ours = name.startswith("heed")
        command = [sys.executable if is_ours else str(python), str(TRANSLATORS), "run"]
        self._process = subprocess.Popen(
            [*command, str(folder), name, str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": str(threads), "CUDA_VISIBLE_DEVICES": ""},
        )
        self._answer()

    def measure(self, batch: int, beam: int, batches: int) -> dict[str, Any]:
        """Translate so many batches."""
        assert self._process.stdin is not None
        asked = {"batch": batch, "beam": beam, "batches": batches}
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def end(self) -> None:
        """Let it go."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            sys.exit(f"{self.name} ended; what it said is above")
        return dict(json.loads(line))


def measure_all(settings: argparse.Namespace, systems: list[System]) -> dict[str, Any]:
    """Shape → system → tokens a second, one for each round; and the most memory of each system."""
    clock = "cpu_s" if settings.threads == 1 else "wall_s"
    rates: dict[str, dict[str, list[float]]] = {}
    memory: dict[str, float] = {}
    for shape in settings.shapes:
        batch, beam = map(int, shape.split("x"))
        found = rates.setdefault(shape, {system.name: [] for system in systems})
        # The first batch also warms up.
        firsts = {system.name: system.measure(batch, beam, 1)[clock] for system in systems}
        batches = {name: max(1, round(SECONDS / first)) for name, first in firsts.items()}
        for turn in range(settings.repeat):
            print(f"{shape}: {turn + 1} of {settings.repeat}", file=sys.stderr)
            for system in systems:
                answer = system.measure(batch, beam, batches[system.name])
                found[system.name].append(answer["tokens"] / answer[clock])
                memory[system.name] = answer["memory_mb"]
    return {"rates": rates, "memory_mb": memory}


def table(results: dict[str, Any], peer: str) -> str:
    """Markdown: a row for each system, a column for each shape; medians, and ratios to the peer."""
    rates = results["rates"]
    names = list(next(iter(rates.values())))
    lines = [f"| batch x beam | {' | '.join(rates)} | memory, MB |"]
    lines.append("|---|" + "--:|" * (len(rates) + 1))
    for name in names:
        cells = [f"{statistics.median(found[name]):,.0f}" for found in rates.values()]
        lines.append(f"| {name} | {' | '.join(cells)} | {results['memory_mb'][name]:,.0f} |")
    for name in names if peer in names else []:
        if name != peer:
            ratios = [
                statistics.median(a / b for a, b in zip(found[name], found[peer], strict=True))
                for found in rates.values()
            ]
            cells = [f"{ratio:.2f}" for ratio in ratios]
            lines.append(f"| {name} / {peer} | {' | '.join(cells)} | |")
    return "\n".join(lines)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    whole = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    whole.add_argument("--size", choices=("small", "base"), default="small")
    whole.add_argument("--systems", default=",".join(SYSTEMS))
    whole.add_argument("--shapes", default="1x1,1x4,32x1,32x4,64x1,64x4", help="batch x beam, …")
    whole.add_argument("--threads", type=int, default=1)
    whole.add_argument("--repeat", type=int, default=3)
    whole.add_argument("--peers", type=Path, default=Path("peers"), help="where they are installed")
    whole.add_argument("--json", action="store_true", help="every single number, as JSON")
    return whole


def main(arguments: list[str]) -> None:
    """Install, make the weights, measure in turn, print."""
    settings = parser().parse_args(arguments)
    settings.shapes = settings.shapes.split(",")
    python = install_peers(settings.peers.absolute())
    with tempfile.TemporaryDirectory(prefix="heed-translate-") as name:
        folder = Path(name)
        make = [sys.executable, str(TRANSLATORS), "make", str(folder), settings.size]
        subprocess.run(make, check=True)
        systems = [
            System(each, python, folder, settings.threads) for each in settings.systems.split(",")
        ]
        results = measure_all(settings, systems)
        for system in systems:
            system.end()
    print(json.dumps(results, indent=2) if settings.json else table(results, PEER))


if __name__ == "__main__":
    main(sys.argv[1:])
