# ruff: noqa: T201 (a script speaks to its terminal)
"""heed's server beside LibreTranslate: the same weights, the same requests, in turn.

    heed quantize run/
    nice -n -10 taskset -c 0 python benchmarks/serve.py -m run/ --src test.en
    python benchmarks/serve.py -m run/ --src test.en --cores 2 --rounds 5 --json serve.json
    python benchmarks/serve.py -m run/ --src test.en --cores 2 --processes 2

`widen.py` makes a model that was trained in minutes as large as those that people serve.

The run folder must hold float32 weights, which LibreTranslate gets as int8 by CTranslate2, and
int8 ones, which heed serves. The first call installs LibreTranslate from PyPI into a virtualenv of
its own (`--peers`, kept). Both get the same beam and a thread of search for each core; heed keeps
no translations, because the lines come again (LibreTranslate keeps the last one only). The rest is
as they are shipped. Nothing is fetched from the network while they run (`argos.py` says what stands
for LibreTranslate's sentence splitter).

In a round each server is started and stopped, with nothing beside it. Clients are those of
`http_load.py`; they run on the same cores unless `--client-core` names another. A text's CPU time
is that of the server alone. Memory is what the server's processes have of their own and their share
of what they have in common (PSS), after the load. At last each server is sent SIGTERM while 64
requests are in work. Offline is `heed translate` on the same lines, less the time for one line.
"""

import argparse
import itertools
import json
import os
import resource
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import argos
import http_load
import peers

PEER = ("libretranslate==1.9.6", "onnx==1.23.2", "safetensors", "numpy<2")
"""LibreTranslate, and what writes its package; NumPy as LibreTranslate wants it."""
LIST = 32
"""Texts of a request that has a list."""
START_S = 60.0
TERM_CLIENTS = 64
HEED, LIBRETRANSLATE = "heed", "LibreTranslate"

Numbers = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class System:
    """A server: how it is started.

    Attributes:
        command: without the port.
        environment: variables beside those of this process.
        folder: where it runs.
    """

    command: list[str]
    environment: dict[str, str]
    folder: Path


class Server:
    """A running server."""

    def __init__(self, system: System) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
        self._log = system.folder / "server.log"
        self._started_at = time.perf_counter()
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [*system.command, "--port", str(self.port)],
                env={**os.environ, **system.environment},
                cwd=system.folder,
                stdout=log,
                stderr=log,
            )

    def wait_for_health(self) -> float:
        """Seconds from the start until it says that it is well."""
        request = b"GET /health HTTP/1.1\r\nHost: localhost\r\n\r\n"
        while self.seconds < START_S and self.process.poll() is None:
            try:
                if http_load.ask(self.port, request)[0] == 200:
                    return self.seconds
            except ConnectionError:
                time.sleep(0.002)
        sys.exit(f"the server did not start; it said:\n{self._log.read_text()}")

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.perf_counter() - self._started_at

    def memory_mb(self) -> float:
        """PSS of all its processes, in 10^6 bytes."""
        rollups = (Path(f"/proc/{pid}/smaps_rollup").read_text() for pid in self._processes())
        lines = (line for text in rollups for line in text.splitlines() if line.startswith("Pss:"))
        return sum(int(line.split()[1]) for line in lines) * 1024 / 1e6

    def cpu_s(self) -> float:
        """CPU time of all its processes."""
        ticks = 0
        for pid in self._processes():
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            ticks += int(fields[11]) + int(fields[12])
        return ticks / os.sysconf("SC_CLK_TCK")

    def _processes(self) -> Iterator[int]:
        waiting = [self.process.pid]
        while waiting:
            yield (pid := waiting.pop())
            for task in Path(f"/proc/{pid}/task").iterdir():
                waiting += map(int, (task / "children").read_text().split())


def requests_of(
    lines: Sequence[str], languages: tuple[str, str], n_texts: int | None
) -> Iterator[bytes]:
    """Requests without end, of one text or of a list of `n_texts`, line after line."""
    each = itertools.cycle(lines)
    while True:
        q = next(each) if n_texts is None else list(itertools.islice(each, n_texts))
        body = {"q": q, "source": languages[0], "target": languages[1]}
        yield http_load.request_of("/translate", json.dumps(body).encode())


def measure_server(system: System, settings: argparse.Namespace) -> Numbers:
    """One life of a server: its start, all loads, its memory, its end."""
    server = Server(system)
    found: Numbers = {"health_s": server.wait_for_health(), "loads": {}}
    status, _ = http_load.ask(
        server.port, next(requests_of(settings.lines, settings.languages, None))
    )
    if status != 200:
        sys.exit(f"{system.command[0]} answered {status}")
    found["first_s"] = server.seconds
    found["idle_mb"] = server.memory_mb()
    for n_texts, n_clients in itertools.product((None, LIST), settings.clients):
        requests = requests_of(settings.lines, settings.languages, n_texts)
        before_s = server.cpu_s()
        with on_core(settings.client_core):
            outcome = http_load.Load(server.port, requests, n_clients).finish(settings.seconds)
        cpu_s = server.cpu_s() - before_s
        if outcome.n_lost or outcome.refused:
            sys.exit(f"{n_clients} clients: {outcome.n_lost} lost, refused {outcome.refused}")
        texts = len(outcome.latencies_s) * (n_texts or 1)
        load = {"texts_per_s": texts / outcome.wall_s, "cpu_ms": 1e3 * cpu_s / texts}
        for share in (50, 95, 99):
            load[f"p{share}_ms"] = 1e3 * percentile(outcome.latencies_s, share)
        load["client_share"] = outcome.client_cpu_s / outcome.wall_s
        found["loads"][f"{n_clients} × {n_texts or 1}"] = load
    found["memory_mb"] = server.memory_mb()
    return found | measure_end(server, settings)


@contextmanager
def on_core(core: int | None) -> Iterator[None]:
    """Run this process on one core meanwhile; None = where it is."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, before if core is None else {core})
    yield
    os.sched_setaffinity(0, before)


def measure_end(server: Server, settings: argparse.Namespace) -> Numbers:
    """SIGTERM while each of many clients waits for an answer: how many never get it."""
    load = http_load.Load(
        server.port, requests_of(settings.lines, settings.languages, LIST), TERM_CLIENTS
    )
    time.sleep(0.1)
    server.process.send_signal(signal.SIGTERM)
    outcome = load.finish(0)
    lost = outcome.n_lost + len(outcome.refused)
    return {"lost": lost, "exit_status": server.process.wait(START_S)}


def percentile(values: Sequence[float], share: int) -> float:
    """The smallest value that is not below so many percent of them."""
    return sorted(values)[max(0, -(-len(values) * share // 100) - 1)]


def translate(
    lines: Sequence[str], settings: argparse.Namespace, folder: Path, *options: str
) -> list[str]:
    """`heed translate` on these lines."""
    asked, found = folder / "lines", folder / "translations"
    asked.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    files = ["-m", str(settings.model), "-i", str(asked), "-o", str(found)]
    search = ["--beam", str(settings.beam), "--threads", str(settings.cores), "-q", *options]
    subprocess.run([sys.executable, "-m", "heed", "translate", *files, *search], check=True)
    return found.read_text("utf-8").split("\n")[:-1]


def measure_offline(settings: argparse.Namespace, folder: Path) -> Numbers:
    """`heed translate` on all lines, less what it takes for one."""
    spent = []
    lines = settings.lines
    for some in (lines[:1], lines):
        before, started_at = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        translate(some, settings, folder)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        spent.append((time.perf_counter() - started_at, cpu_s))
    (one_s, one_cpu_s), (all_s, all_cpu_s) = spent
    n = len(lines) - 1
    return {"texts_per_s": n / (all_s - one_s), "cpu_ms": 1e3 * (all_cpu_s - one_cpu_s) / n}


def systems_of(settings: argparse.Namespace, folder: Path) -> dict[str, System]:
    """Both servers, with LibreTranslate installed and its package made."""
    n_threads = max(1, settings.cores // settings.processes)
    threads = {"OMP_NUM_THREADS": str(n_threads)}
    heed = [sys.executable, "-m", "heed", "serve", "-m", str(settings.model.absolute())]
    heed += ["--threads", str(n_threads), "--processes", str(settings.processes)]
    heed += ["--set", "work.cache_mb=0", "-q"]
    python = peers.install(PEER, settings.peers.absolute())
    plain, packages = folder / "plain", folder / "packages"
    script = str(Path(argos.__file__))
    write = [sys.executable, script, "write", str(settings.model), str(plain)]
    subprocess.run(write, check=True)
    splitter = [str(settings.splitter.absolute())] if settings.splitter else []
    install = [str(python), script, "install", str(plain), str(packages), *splitter]
    subprocess.run(install, check=True, stdout=sys.stderr)
    homes = {f"XDG_{kind}_HOME": str(folder / kind) for kind in ("DATA", "CONFIG", "CACHE")}
    argos_settings = {"ARGOS_PACKAGES_DIR": str(packages), "ARGOS_BEAM_SIZE": str(settings.beam)}
    argos_settings |= {"ARGOS_INTER_THREADS": str(settings.processes)}
    argos_settings |= {"ARGOS_INTRA_THREADS": str(n_threads)}
    peer = [str(python.parent / "libretranslate"), "--load-only", ",".join(settings.languages)]
    return {
        HEED: System(command=heed, environment=threads, folder=folder),
        LIBRETRANSLATE: System(
            command=peer, environment={**threads, **homes, **argos_settings}, folder=folder
        ),
    }


def same_share(peer: System, settings: argparse.Namespace) -> float:
    """Which share of the lines LibreTranslate translates as heed does with its score of a length.

    The others: both round to int8, each in its own way, and LibreTranslate gives a translation the
    capitals and the last sign of its source.
    """
    lines = settings.lines
    ours = translate(lines, settings, peer.folder, "--length-formula", "power", "--lenpen", "0.2")
    server = Server(peer)
    theirs: list[str] = []
    server.wait_for_health()
    requests = requests_of(settings.lines, settings.languages, LIST)
    while len(theirs) < len(lines):
        _, body = http_load.ask(server.port, next(requests))
        theirs += json.loads(body)["translatedText"]
    server.process.terminate()
    server.process.wait(START_S)
    equal = [a == b for a, b in zip(ours, theirs[: len(lines)], strict=True)]
    return sum(equal) / len(equal)


def median(rounds: Sequence[Numbers], *keys: str) -> float:
    """Of a number that every round has."""
    values = []
    for each in rounds:
        value: Any = each
        for key in keys:
            value = value[key]
        values.append(float(value))
    return statistics.median(values)


def report(results: Numbers) -> str:
    """Markdown: throughput, latencies, and the rest; medians of the rounds, and ratios."""
    ours, theirs = results["rounds"][HEED], results["rounds"][LIBRETRANSLATE]
    offline = median(results["offline"], "texts_per_s")
    speed = [
        "| clients × texts | texts/s, heed | LibreTranslate | ratio | of offline "
        "| CPU ms a text, heed | LibreTranslate | CPU of the clients |",
        "|---|" + "--:|" * 7,
    ]
    shares = ("p50", "p95", "p99")
    names = " | ".join(f"{share}, heed | LibreTranslate" for share in shares)
    delay = [f"| clients × texts | {names} | p95, ratio |", "|---|" + "--:|" * 7]
    for case in ours[0]["loads"]:

        def of(rounds: list[Numbers], key: str, case: str = case) -> float:
            return median(rounds, "loads", case, key)

        rate = of(ours, "texts_per_s")
        rivals = of(theirs, "texts_per_s")
        speed.append(
            f"| {case} | {rate:,.0f} | {rivals:,.1f} | {rate / rivals:.1f} | {rate / offline:.0%} "
            f"| {of(ours, 'cpu_ms'):.2f} | {of(theirs, 'cpu_ms'):.2f} "
            f"| {of(ours, 'client_share'):.0%} |"
        )
        times = (f"{of(each, f'{s}_ms'):,.1f}" for s in shares for each in (ours, theirs))
        ratio = of(ours, "p95_ms") / of(theirs, "p95_ms")
        delay.append(f"| {case} | {' | '.join(times)} | {ratio:.2f} |")
    rest = ["| | heed | LibreTranslate | ratio |", "|---|--:|--:|--:|"]
    for key, words, shape in (
        ("health_s", "s until `/health`", ".2f"),
        ("first_s", "s until the first translation", ".2f"),
        ("idle_mb", "MB (PSS) after the first translation", ".0f"),
        ("memory_mb", "MB (PSS) after the load", ".0f"),
    ):
        a, b = median(ours, key), median(theirs, key)
        rest.append(f"| {words} | {a:{shape}} | {b:{shape}} | {a / b:.2f} |")
    lost = " | ".join(str(max(each["lost"] for each in rounds)) for rounds in (ours, theirs))
    rest.append(f"| of {TERM_CLIENTS} requests, lost on SIGTERM (the worst round) | {lost} | |")
    words = (
        f"`heed translate` on the same lines: {offline:,.0f} texts/s, "
        f"{median(results['offline'], 'cpu_ms'):.2f} CPU ms a text. "
        f"With the same score of a length {results['same_share']:.0%} of the translations are "
        f"equal. "
        f"{len(ours)} rounds, {results['cores']} core(s) for each server, "
        f"clients on {results['client_core']}."
    )
    return "\n\n".join(("\n".join(speed), "\n".join(delay), "\n".join(rest), words))


def measure(settings: argparse.Namespace) -> Numbers:
    """Install, and go round both servers and `heed translate`."""
    from heed.bundle.bundle import load_bundle
    from heed.bundle.find import INT8, find_model_folder
    from heed.data.lines import read_lines
    from heed.translate.load import stored_decoding

    if not (find_model_folder(settings.model) / INT8).exists():
        sys.exit(f"{settings.model} has no int8 weights: heed quantize {settings.model}")
    bundle = load_bundle(settings.model)
    settings.beam = settings.beam or stored_decoding(bundle)[0].beam_size
    lines = [line for line in read_lines(str(settings.src)) if line.strip()]
    settings.lines, settings.languages = lines, (bundle.source_lang, bundle.target_lang)
    rounds: dict[str, list[Numbers]] = {HEED: [], LIBRETRANSLATE: []}
    offline = []
    with tempfile.TemporaryDirectory(prefix="heed-serve-") as name:
        systems = systems_of(settings, Path(name))
        same = same_share(systems[LIBRETRANSLATE], settings)
        for turn in range(settings.rounds):
            print(f"round {turn + 1} of {settings.rounds}", file=sys.stderr)
            offline.append(measure_offline(settings, Path(name)))
            for system, described in systems.items():
                rounds[system].append(measure_server(described, settings))
    where = "the same core" if settings.client_core is None else f"core {settings.client_core}"
    about = {"cores": settings.cores, "client_core": where, "same_share": same}
    return {**about, "offline": offline, "rounds": rounds}


def parser() -> argparse.ArgumentParser:
    """The command line."""
    whole = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    whole.add_argument("-m", "--model", type=Path, required=True, metavar="RUN")
    whole.add_argument("--src", type=Path, required=True, help="lines to translate")
    whole.add_argument("--beam", type=int, help="default: the model's")
    whole.add_argument("--cores", type=int, default=1, help="threads of each server; default: 1")
    whole.add_argument(
        "--processes",
        type=int,
        default=1,
        help="processes of heed, and translators of LibreTranslate, that share these threads",
    )
    whole.add_argument("--client-core", type=int, help="default: where the servers are")
    whole.add_argument("--clients", type=int, nargs="+", default=[1, 8, 64])
    whole.add_argument("--seconds", type=float, default=4.0, help="of each load; default: 4")
    whole.add_argument("--rounds", type=int, default=3, help="default: 3")
    whole.add_argument("--splitter", type=Path, help="MiniSBD's model, where you have it: en.onnx")
    whole.add_argument("--peers", type=Path, default=Path("peers"), help="where they are installed")
    whole.add_argument("--json", type=Path, metavar="FILE", help="write every single number there")
    return whole


def main(arguments: list[str]) -> None:
    """Measure and print."""
    settings = parser().parse_args(arguments)
    results = measure(settings)
    if settings.json:
        settings.json.write_text(json.dumps(results, indent=1), "utf-8")
    print(report(results))


if __name__ == "__main__":
    main(sys.argv[1:])
