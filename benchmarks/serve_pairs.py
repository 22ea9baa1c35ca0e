# ruff: noqa: T201 (a script speaks to its terminal)
"""Two versions of heed's server in turn: what a change has done to the time of a text.

    git worktree add ../before COMMIT
    nice -n -10 taskset -c 0 python benchmarks/serve_pairs.py ../before/src src \
        -m run/ --src test.en --pairs 7

Both servers run all the time, and each load goes to one right after the other, so that what else
the machine does meets both alike. The columns are medians of the ratios of the pairs, second
version to first; then the second's own medians. `serve.py` says how texts and clients are made.
The folder of a version needs the compiled engine (`python hatch_build.py`).
"""

import argparse
import itertools
import statistics
import sys
import tempfile
from pathlib import Path

import http_load
import serve

Load = tuple[int | None, int]
"""Texts of a list, None for a single text, and clients."""


def measure_once(server: serve.Server, load: Load, given: argparse.Namespace) -> list[float]:
    """Milliseconds of wall time and of CPU time of a text, and p95 of a request."""
    n_texts, n_clients = load
    requests = serve.requests_of(given.lines, given.languages, n_texts)
    before_s = server.cpu_s()
    outcome = http_load.Load(server.port, requests, n_clients).finish(given.seconds)
    cpu_s = server.cpu_s() - before_s
    if outcome.n_lost or outcome.refused:
        sys.exit(f"{outcome.n_lost} lost, refused {outcome.refused}")
    texts = len(outcome.latencies_s) * (n_texts or 1)
    p95_s = serve.percentile(outcome.latencies_s, 95)
    return [1e3 * outcome.wall_s / texts, 1e3 * cpu_s / texts, 1e3 * p95_s]


def run_pairs(servers: list[serve.Server], load: Load, given: argparse.Namespace) -> str:
    """A row of the table."""
    pairs = []
    for number in range(given.pairs):
        order = [0, 1] if number % 2 else [1, 0]
        found = {place: measure_once(servers[place], load, given) for place in order}
        pairs.append((found[0], found[1]))
    ratios = (statistics.median(new[kind] / old[kind] for old, new in pairs) for kind in range(3))
    values = (statistics.median(new[kind] for _, new in pairs) for kind in range(3))
    numbers = [*(f"{ratio:.2f}" for ratio in ratios), *(f"{value:.2f}" for value in values)]
    return f"| {load[1]} × {load[0] or 1} | {' | '.join(numbers)} |"


def main() -> None:
    """Read the command line, measure, print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("versions", nargs=2, type=Path, help="folders that Python imports from")
    parser.add_argument("-m", "--model", type=Path, required=True)
    parser.add_argument("--src", type=Path, required=True, help="lines to translate")
    parser.add_argument("--languages", nargs=2, default=["en", "de"])
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 2, 4, 8, 16, 64])
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1.0, help="of each load")
    given = parser.parse_args()
    given.lines = [line for line in given.src.read_text("utf-8").splitlines() if line.strip()]
    command = [sys.executable, "-m", "heed", "serve", "-m", str(given.model.absolute()), "-q"]
    command += ["--threads", "1", "--set", "work.cache_mb=0"]
    with tempfile.TemporaryDirectory(prefix="heed-pairs-") as folder:
        servers = []
        for place, version in enumerate(given.versions):
            own = Path(folder) / str(place)
            own.mkdir()
            environment = {"PYTHONPATH": str(version.absolute()), "OMP_NUM_THREADS": "1"}
            servers.append(
                serve.Server(serve.System(command=command, environment=environment, folder=own))
            )
            servers[-1].wait_for_health()
        for server in servers:
            measure_once(server, (None, 8), given)
        print("| clients × texts | time | CPU | p95 | ms a text | CPU ms a text | p95 ms |")
        print("|---|--:|--:|--:|--:|--:|--:|")
        for load in itertools.chain(((None, n) for n in given.clients), [(serve.LIST, 8)]):
            print(run_pairs(servers, load, given), flush=True)
        for server in servers:
            server.process.terminate()
            server.process.wait(serve.START_S)


if __name__ == "__main__":
    main()
