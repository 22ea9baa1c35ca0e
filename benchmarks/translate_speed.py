# ruff: noqa: T201 (a script speaks to its terminal)
"""Translation speed of heed and of others: same weights, same ids, in turn.

    python benchmarks/translate_speed.py --size small --threads 1
    python benchmarks/translate_speed.py --size base --json base.json --plot roofline.svg
    python benchmarks/translate_speed.py --read base.json
    python benchmarks/translate_speed.py --systems "heed bfloat16,Hugging Face bfloat16" --threads 2

The first call installs the peers from PyPI into virtualenvs of their own (`--peers`, kept). Every
source has 24 tokens, and every translation is forced to 24. Each system waits in a process of its
own; a measurement goes round all of them before the next begins, and the ratio is that of the two
neighbors in time. Time is that of the CPU on one thread, so that other work on the machine hardly
counts, else of the clock. The two with bfloat16 are torch's, on a GPU if there is one. Not here:
the systems (`translators.py`), what the machine can do (`machine.py`), shares of it
(`roofline.py`), or real text (`speed.py`).
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import machine
import peers
import roofline

TRANSLATORS = Path(__file__).resolve().parent / "translators.py"
PACKAGES = {
    "heed": (),
    "CTranslate2": ("ctranslate2==4.8.5", "safetensors"),
    "Hugging Face": peers.TRANSFORMERS,
    "eole": peers.EOLE,
}
SYSTEMS = (
    *("heed int8", "heed float32", "CTranslate2 int8", "CTranslate2 float32"),
    *("Hugging Face float32", "eole float32"),
)
PEER = "CTranslate2 int8"
EXACT = "heed float32"
N_TOKENS = 24
"""As in `translators.py`, which needs NumPy."""
SECONDS = 1.0
"""About how long a measurement takes: as many batches as fill it."""


class System:
    """One system in its own process.

    Args:
        name: of the system in `script`.
        script: `translators.py`, or another that calls its `serve`.
        python: which runs the script.
        folder: of the weights.
        threads: of a CPU.
    """

    def __init__(self, name: str, script: Path, python: Path, folder: Path, threads: int) -> None:
        self.name = name
        where = {} if name.endswith(" bfloat16") else {"CUDA_VISIBLE_DEVICES": ""}
        self._process = subprocess.Popen(
            [str(python), str(script), "run", str(folder), name, str(threads)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "OMP_NUM_THREADS": str(threads), **where},
        )
        self._answer()

    def measure(self, **asked: int) -> dict[str, Any]:
        """What the script measures."""
        assert self._process.stdin is not None
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


def start(
    script: Path,
    packages: dict[str, tuple[str, ...]],
    names: list[str],
    folder: Path,
    settings: argparse.Namespace,
) -> list[System]:
    """Install the systems of a script, give them the weights, and start them."""
    products = [name.rpartition(" ")[0] for name in names]
    pythons = {each: peers.install(packages[each], settings.peers.absolute()) for each in products}
    subprocess.run([sys.executable, str(script), "make", str(folder), settings.size], check=True)
    for product, python in pythons.items():
        if packages[product]:
            export = [str(python), str(script), "export", str(folder), product]
            subprocess.run(export, check=True, stdout=sys.stderr)
    return [
        System(name, script, pythons[product], folder, settings.threads)
        for name, product in zip(names, products, strict=True)
    ]


def measure_all(
    settings: argparse.Namespace, systems: list[System], axes: tuple[str, str] = ("batch", "beam")
) -> dict[str, Any]:
    """Shape → system → tokens a second, one for each round. A shape has two sizes, the `axes`.

    And of each system the most memory, and which share of its tokens is that of `EXACT`.
    """
    clock = "cpu_s" if settings.threads == 1 else "wall_s"
    rates: dict[str, dict[str, list[float]]] = {}
    memory: dict[str, float] = {}
    written: dict[str, list[int]] = {system.name: [] for system in systems}
    for shape in settings.shapes:
        asked = dict(zip(axes, roofline.sizes(shape), strict=True))
        found = rates.setdefault(shape, {system.name: [] for system in systems})
        # The first batch also warms up.
        firsts = {system.name: system.measure(**asked, batches=1) for system in systems}
        batches = {name: max(1, round(SECONDS / first[clock])) for name, first in firsts.items()}
        for name, first in firsts.items():
            written[name] += [token for ids in first["found"] for token in ids]
        for turn in range(settings.repeat):
            print(f"{shape}: {turn + 1} of {settings.repeat}", file=sys.stderr)
            for system in systems:
                answer = system.measure(**asked, batches=batches[system.name])
                found[system.name].append(answer["tokens"] / answer[clock])
                memory[system.name] = answer["memory_mb"]
    exact = written.get(EXACT)
    same = {name: same_share(ids, exact) for name, ids in written.items()} if exact else {}
    return {"rates": rates, "memory_mb": memory, "same_share": same}


def same_share(ids: list[int], others: list[int]) -> float:
    """Which share of two equally long lists is equal, place by place."""
    return statistics.mean(a == b for a, b in zip(ids, others, strict=True))


def table(results: dict[str, Any], peer: str, shapes: str = "batch x beam") -> str:
    """Markdown: a row for each system, a column for each shape; medians, and ratios to the peer."""
    rates = results["rates"]
    names = list(next(iter(rates.values())))
    lines = [f"| tokens/s, {shapes} | {' | '.join(rates)} | memory, MB | same tokens |"]
    lines.append("|---|" + "--:|" * (len(rates) + 2))
    for name in names:
        cells = [f"{statistics.median(found[name]):,.0f}" for found in rates.values()]
        same = f"{results['same_share'][name]:.0%}" if results["same_share"] else ""
        memory = f"{results['memory_mb'][name]:,.0f}"
        lines.append(f"| {name} | {' | '.join(cells)} | {memory} | {same} |")
    for name in names if peer in names else []:
        if name != peer:
            ratios = [
                statistics.median(a / b for a, b in zip(found[name], found[peer], strict=True))
                for found in rates.values()
            ]
            cells = [f"{ratio:.2f}" for ratio in ratios]
            lines.append(f"| {name} / {peer} | {' | '.join(cells)} | | |")
    return "\n".join(lines)


def sentence_table(rates: roofline.Rates) -> str:
    """Markdown: the same as milliseconds a sentence."""
    lines = [f"| ms a sentence | {' | '.join(rates)} |", "|---|" + "--:|" * len(rates)]
    for name in next(iter(rates.values())):
        times = [1e3 * N_TOKENS / statistics.median(found[name]) for found in rates.values()]
        lines.append(f"| {name} | {' | '.join(f'{time:,.1f}' for time in times)} |")
    return "\n".join(lines)


def report(results: dict[str, Any]) -> str:
    """All tables."""
    config, peaks = results["config"], machine.Peaks.of(results["peaks"])
    shares = roofline.share_table(config, N_TOKENS, peaks, results["rates"])
    tables = (table(results, PEER), sentence_table(results["rates"]), shares)
    return "\n\n".join((*tables, roofline.peaks_in_words(peaks)))


def picture(results: dict[str, Any]) -> str:
    """The roofs and what was reached."""
    threads = "one thread" if results["threads"] == 1 else f"{results['threads']} threads"
    title = f"Billion multiply-adds a second, {results['size']}, {threads}, batch × beam"
    peaks = machine.Peaks.of(results["peaks"])
    return roofline.picture(results["config"], N_TOKENS, peaks, results["rates"], title)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    whole = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    whole.add_argument("--size", choices=("small", "base"), default="small")
    whole.add_argument("--systems", default=",".join(SYSTEMS))
    whole.add_argument("--shapes", default="1x1,1x4,32x1,32x4,64x1,64x4", help="batch x beam, …")
    whole.add_argument("--threads", type=int, default=1)
    whole.add_argument("--repeat", type=int, default=3)
    whole.add_argument("--peers", type=Path, default=Path("peers"), help="where they are installed")
    whole.add_argument("--json", type=Path, metavar="FILE", help="write every single number there")
    whole.add_argument("--read", type=Path, metavar="FILE", help="measure nothing, read these")
    whole.add_argument("--plot", type=Path, metavar="FILE", help="write the roofline as SVG")
    return whole


def measure(settings: argparse.Namespace) -> dict[str, Any]:
    """Install, make the weights, measure the machine and the systems in turn."""
    settings.shapes = settings.shapes.split(",")
    with tempfile.TemporaryDirectory(prefix="heed-translate-") as name:
        systems = start(TRANSLATORS, PACKAGES, settings.systems.split(","), Path(name), settings)
        config = json.loads((Path(name) / "config.json").read_text())
        sets = [roofline.step_bytes(config, is_rounded=rounded) for rounded in (True, False)]
        before = machine.measure(settings.threads, sets)
        results = measure_all(settings, systems)
        for system in systems:
            system.end()
    peaks = machine.higher(before, machine.measure(settings.threads, sets))
    about = {"size": settings.size, "threads": settings.threads, "config": config}
    return {**about, "peaks": asdict(peaks), **results}


def main(arguments: list[str]) -> None:
    """Measure or read, print, write."""
    settings = parser().parse_args(arguments)
    results = json.loads(settings.read.read_text()) if settings.read else measure(settings)
    if settings.json:
        settings.json.write_text(json.dumps(results, indent=2), "utf-8")
    if settings.plot:
        settings.plot.write_text(picture(results), "utf-8")
    print(report(results))


if __name__ == "__main__":
    main(sys.argv[1:])
