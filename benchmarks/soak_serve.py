# ruff: noqa: T201 (a script speaks to its terminal)
"""Soak `heed serve` with mixed requests and watch its memory and open files.

    python benchmarks/soak_serve.py MODEL --requests 10000
    python benchmarks/soak_serve.py MODEL --minutes 60 --rate 6 --long-share 0.002 --looks 120

First every client sends the largest requests, because the engine keeps the memory of its largest
batches. Then requests differ in API, length (1 to 500 words), lists, HTML, mistakes, and clients
that leave. The resident memory (RSS), its proportional share (PSS) and the open files of the server
are read from /proc on the way, twenty times or `--looks`, so this runs on Linux only, and the
memory once more after a rest. Exit code 1 if a request failed that should not have.
"""

import argparse
import json
import os
import random
import re
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from itertools import count
from pathlib import Path

WORDS = (
    "a",
    "man",
    "dog",
    "house",
    "rides",
    "the",
    "snow",
    "Ünïcode",
    "中文",
    "12",
    ",",
    ".",
    "<b>x</b>",
)
SHORT, LONG = (1, 3, 8, 20, 60), 500
"""Words of a text."""
LONG_SHARE = 1 / 6
"""Of the texts that are long; these take most of the server's time."""
N_CLIENTS = 8
WAIT_S = 600
"""A request that takes longer is lost; so busy may the machine be."""
N_LOOKS = 20
WARM_SHARE = 1 / 4
"""Of the soak. By then the cache is full; growth is counted from here."""
REST_S = 14
"""Then the server has given back what it can."""
MOST_TEXTS = 20


def request_of(
    draw: random.Random, source: str, target: str, long_share: float
) -> tuple[str, bytes, int]:
    """Path, body and expected status of a request drawn at random."""

    def text() -> str:
        is_long = draw.random() < long_share
        return " ".join(draw.choices(WORDS, k=LONG if is_long else draw.choice(SHORT)))

    kind = draw.randrange(8)
    given = {"source": source, "target": target}
    if kind == 0:
        return "/translate", json.dumps({"q": text()}).encode(), 400
    if kind == 1:
        return "/translate", b'{"q": "broken', 400
    if kind == 2:
        texts = [text() for _ in range(draw.randint(1, MOST_TEXTS))]
        asked = {"text": texts, "source_lang": source, "target_lang": target}
        return "/v2/translate", json.dumps(asked).encode(), 200
    if kind == 3:
        return "/api/v1/translate", json.dumps({"text": text(), **given}).encode(), 200
    if kind == 4:
        body = {"q": f"<p>{text()}</p>", "format": "html", **given}
        return "/translate", json.dumps(body).encode(), 200
    return "/translate", json.dumps({"q": text(), "alternatives": kind - 5, **given}).encode(), 200


def largest_requests(source: str, target: str) -> list[tuple[str, bytes]]:
    """Paths and bodies of the largest of each kind."""
    text = " ".join(random.Random(1).choices(WORDS, k=LONG))
    texts = [f"{number} {text}" for number in range(MOST_TEXTS)]
    listed = {"text": texts, "source_lang": source, "target_lang": target}
    others = {"q": text, "alternatives": 2, "source": source, "target": target}
    return [
        ("/v2/translate", json.dumps(listed).encode()),
        ("/translate", json.dumps(others).encode()),
    ]


def run_client(
    port: int,
    numbers: Iterator[int],
    pair: tuple[str, str],
    long_share: float,
    seen: Counter[str],
) -> None:
    """Send requests until all are sent; one in fifty is left before its answer."""
    connection = HTTPConnection("127.0.0.1", port, timeout=WAIT_S)
    for path, body in largest_requests(*pair):
        connection.request("POST", path, body, {"Content-Type": "application/json"})
        connection.getresponse().read()
    for number in numbers:
        draw = random.Random(number)
        path, body, expected = request_of(draw, *pair, long_share)
        try:
            connection.request("POST", path, body, {"Content-Type": "application/json"})
            if draw.random() < 0.02:
                seen["left"] += 1
                connection.close()
                continue
            answer = connection.getresponse()
            answer.read()
            right = answer.status == expected
            seen[f"{answer.status}" if right else f"{answer.status}, not {expected}"] += 1
        except (OSError, HTTPException) as error:
            seen[f"lost: {type(error).__name__}"] += 1
            connection.close()
    connection.close()


@dataclass(frozen=True, kw_only=True)
class Look:
    """What a process had at a moment.

    Attributes:
        resident_mb: RSS.
        share_mb: PSS: its own pages, and its share of those that it has with others.
        n_files: open files.
    """

    resident_mb: float
    share_mb: float
    n_files: int


def look_at(pid: int) -> Look:
    """Memory and open files of a process, from /proc."""
    rollup = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8")
    found = dict(re.findall(r"^(Rss|Pss): +(\d+) kB", rollup, re.MULTILINE))
    return Look(
        resident_mb=int(found["Rss"]) / 1024,
        share_mb=int(found["Pss"]) / 1024,
        n_files=len(os.listdir(f"/proc/{pid}/fd")),
    )


class Numbers:
    """The numbers of the requests, until there are enough of them or the time is over.

    Args:
        n_requests: how many.
        seconds: how long; 0 = as long as they take.
        rate: of them a second at most; 0 = as many as are answered.
    """

    def __init__(self, n_requests: int, seconds: float, rate: float) -> None:
        self._n_requests = n_requests
        self._seconds = seconds
        self._rate = rate
        self._next = count()  # its `next` is atomic: clients are threads
        self._begun = time.monotonic()
        self._due = 0.0
        self._lock = threading.Lock()

    @property
    def seconds(self) -> float:
        """Since the start."""
        return time.monotonic() - self._begun

    def share(self, n_done: int) -> float:
        """How much of the soak is over, from 0 to 1."""
        return self.seconds / self._seconds if self._seconds else n_done / self._n_requests

    def __iter__(self) -> Iterator[int]:
        while (number := next(self._next)) < self._n_requests or self._seconds:
            if self._seconds and self.seconds > self._seconds:
                return
            time.sleep(self._pause())
            yield number

    def _pause(self) -> float:
        """Seconds that the next request waits; what came too late is not made up for."""
        with self._lock:
            now = self.seconds
            self._due = max(now, self._due + (1 / self._rate if self._rate else 0.0))
            return self._due - now


def look_on(
    server: "subprocess.Popen[str]", numbers: Numbers, seen: Counter[str], n_looks: int
) -> list[float]:
    """Print what the server has, `n_looks` times until the soak is over; its resident memory."""
    print("requests  seconds  resident MB  open files   PSS MB")
    found = []
    for number in range(1, n_looks + 1):
        while numbers.share(sum(seen.values())) < number / n_looks and server.poll() is None:
            time.sleep(0.05)
        look = look_at(server.pid)
        found.append(look.resident_mb)
        row = f"{sum(seen.values()):8}  {numbers.seconds:7.1f}  {look.resident_mb:11.1f}"
        print(f"{row}  {look.n_files:10}  {look.share_mb:7.1f}", flush=True)
    return found


def soak(given: argparse.Namespace) -> int:
    """Start a server, send the requests, print a line now and then; the exit code."""
    command = [
        sys.executable,
        "-m",
        "heed",
        "serve",
        "-m",
        given.model,
        "--port",
        "0",
        "--threads",
        "1",
    ]
    settings = ["--set", "log.requests=false", "--set", "work.cache_mb=4"]
    settings += ["--set", f"work.timeout_s={WAIT_S}"]
    server = subprocess.Popen([*command, *settings], stderr=subprocess.PIPE, encoding="utf-8")
    assert server.stderr
    head = [server.stderr.readline() for _ in range(4)]
    port = int(re.findall(r":(\d+)\n", head[0])[0])
    source, target = re.findall(r": (\S+) → ([^\s,]+)", head[1])[0]
    numbers, seen = Numbers(given.requests, 60 * given.minutes, given.rate), Counter[str]()
    arguments = port, numbers, (source, target), given.long_share, seen
    clients = [threading.Thread(target=run_client, args=arguments) for _ in range(N_CLIENTS)]
    for client in clients:
        client.start()
    found = look_on(server, numbers, seen, given.looks)
    for client in clients:
        client.join()
    n_warm = max(1, round(WARM_SHARE * given.looks))
    warm = max(found[:n_warm])
    print(f"most since warm: {max(found[n_warm:]) / warm - 1:+.1%} of {warm:.1f} MB")
    print(", ".join(f"{what}: {times}" for what, times in sorted(seen.items())))
    time.sleep(REST_S)
    print(f"after a rest of {REST_S} s: {look_at(server.pid).resident_mb:.1f} MB")
    server.terminate()
    code = server.wait()
    server.stderr.close()
    print(f"exit code of the server: {code}")
    return int(code != 0 or any("not" in what or "lost" in what for what in seen))


def main() -> None:
    """Read the command line and soak."""
    parser = argparse.ArgumentParser(description="Soak heed serve with mixed requests.")
    parser.add_argument("model", help="folder of a translator")
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--minutes", type=float, default=0, help="in the place of --requests")
    parser.add_argument("--rate", type=float, default=0, help="requests a second at most")
    parser.add_argument(
        "--long-share", type=float, default=LONG_SHARE, help=f"of the texts have {LONG} words"
    )
    parser.add_argument("--looks", type=int, default=N_LOOKS, help="at the server's memory")
    given = parser.parse_args()
    if given.looks < 2:
        parser.error("--looks must be at least 2")
    sys.exit(soak(given))


if __name__ == "__main__":
    main()
