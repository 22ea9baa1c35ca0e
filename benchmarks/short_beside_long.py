# ruff: noqa: T201 (a script speaks to its terminal)
"""Short requests beside long searches, on a real server: how long they wait.

    python benchmarks/short_beside_long.py --make /tmp/model --words 120
    python benchmarks/short_beside_long.py --model /tmp/model --words 120

`--make` writes a model with random weights, which never ends a translation before its limit, and
which is as large as a small real one. Clients with a wide beam and a long text ask without a
pause. One client asks for the translation of three words, with a pause in between, so that it comes
at any moment of the others' searches. The server keeps no translations.

Besides the time of short requests it prints the processor time that the server used meanwhile,
which hardly depends on what else the machine does: with one thread, the time on an idle core.
"""

import argparse
import json
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

import http_load
from serve import Server, System

SHORT = "A man {number}."
WORDS = ["two", "dogs", "play", "in", "the", "snow", "while", "a", "man", "is", "riding"]


def ask(port: int, text: str, **options: int) -> float:
    """Seconds of one request."""
    body = {"text": [text], "source": "en", "target": "de", "options": options}
    request = http_load.request_of("/api/v1/translate", json.dumps(body).encode())
    begun = time.perf_counter()
    status, answer = http_load.ask(port, request)
    if status != 200:
        raise SystemExit(f"{status}: {answer!r}")
    return time.perf_counter() - begun


def used_s(pid: int) -> float:
    """Processor time of a process so far, in seconds."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9


def make(folder: str) -> None:
    """Write the model."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from tests.serve.conftest import make_model

    make_model(Path(folder), "en", "de", d_model=256)


def arguments() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--make")
    parser.add_argument("--model")
    parser.add_argument("--words", type=int, default=120, help="of a long text")
    parser.add_argument("--beam", type=int, default=64)
    parser.add_argument("--clients", type=int, default=4, help="with long texts")
    parser.add_argument("--requests", type=int, default=60, help="short ones")
    parser.add_argument("--pause", type=float, default=0.1, help="seconds between short ones")
    parser.add_argument("--threads", type=int, default=2)
    return parser.parse_args()


def start(chosen: argparse.Namespace, folder: Path) -> Server:
    """The server, which has translated a first sentence."""
    command = f"-m heed serve -m {chosen.model} -q --set work.cache_mb=0"
    command += f" --set work.threads={chosen.threads} --set work.timeout_s=600"
    threads = {"OMP_NUM_THREADS": "1"}
    server = Server(
        System(command=[sys.executable, *command.split()], environment=threads, folder=folder)
    )
    server.wait_for_health()
    ask(server.port, SHORT.format(number=0))
    return server


def say(name: str, found: list[float]) -> None:
    """Print a row."""
    print(
        f"{name}: {len(found)}, median {statistics.median(found) * 1000:.0f} ms,"
        f" worst {max(found) * 1000:.0f} ms",
        flush=True,
    )


def main() -> None:
    """Measure, and print rows."""
    chosen = arguments()
    if chosen.make:
        make(chosen.make)
        return
    with tempfile.TemporaryDirectory() as folder:
        measure(chosen, start(chosen, Path(folder)))


def measure(chosen: argparse.Namespace, server: Server) -> None:
    """Print rows about a server, and end it."""
    port, pid = server.port, server.process.pid
    is_over = threading.Event()
    lengths: list[float] = []

    def ask_at_length(client: int) -> None:
        number = 0
        while not is_over.is_set():
            number += 1
            text = " ".join((WORDS * chosen.words)[: chosen.words]) + f" {client} {number}"
            lengths.append(ask(port, text, beam_size=chosen.beam, max_length=256))

    say("alone", [ask(port, SHORT.format(number=-number)) for number in range(1, 21)])
    clients = [threading.Thread(target=ask_at_length, args=(n,)) for n in range(chosen.clients)]
    for client in clients:
        client.start()
    time.sleep(0.5)
    begun, used_before = time.perf_counter(), used_s(pid)
    beside, used = [], []
    for number in range(chosen.requests):
        before = used_s(pid)
        beside.append(ask(port, SHORT.format(number=number)))
        used.append(used_s(pid) - before)
        time.sleep(chosen.pause)
    say("beside", beside)
    say("beside, processor", used)
    is_over.set()
    for client in clients:
        client.join()
    passed, all_used = time.perf_counter() - begun, used_s(pid) - used_before
    say("long", lengths)
    print(
        f"long requests per second: {len(lengths) / passed:.2f} (in {passed:.0f} s),"
        f" of processor time {len(lengths) / all_used:.2f} (in {all_used:.1f} s)"
    )
    server.process.terminate()
    server.process.wait()


if __name__ == "__main__":
    main()
