"""Models change under many clients: no request is lost, and no answer is of something between."""

import json
import signal
import threading
import time
from http.client import HTTPConnection
from pathlib import Path

import pytest
from tests.serve.conftest import make_model
from tests.serve.program import QUESTION, Program

from heed.translate.translator import load

CLIENTS = 64
SEEDS = (1, 2, 3, 4)


def ask_until(over: threading.Event, port: int, texts: list[str], failures: list[str]) -> None:
    """One client that asks again and again on one connection."""
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        while not over.is_set():
            connection.request("POST", "/translate", QUESTION, {"Content-Type": "application/json"})
            answer = connection.getresponse()
            body = answer.read()
            if answer.status == 200:
                texts.append(json.loads(body)["translatedText"])
            else:
                failures.append(f"{answer.status} {body!r}")
    except OSError as error:
        failures.append(repr(error))
    finally:
        connection.close()


@pytest.mark.slow
@pytest.mark.reliability
def test_sighup_under_64_clients_loses_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "en-de"
    versions = []
    for seed in SEEDS:
        made = make_model(tmp_path / f"version-{seed}", "en", "de", seed=seed)
        versions.append(load(made, threads=1).translate(["A man."])[0].text)
    make_model(folder, "en", "de", seed=SEEDS[0])
    texts: list[str] = []
    failures: list[str] = []
    over = threading.Event()
    with Program("-m", str(folder), "--set", "work.cache_mb=0") as program:
        clients = [
            threading.Thread(target=ask_until, args=(over, program.port, texts, failures))
            for _ in range(CLIENTS)
        ]
        for client in clients:
            client.start()
        for seed, version in zip(SEEDS, versions, strict=True):
            make_model(folder, "en", "de", seed=seed)
            program.signal(signal.SIGHUP)
            deadline = time.monotonic() + 60
            while texts[-CLIENTS:] != [version] * CLIENTS and time.monotonic() < deadline:
                time.sleep(0.01)
            assert texts[-1] == version
        over.set()
        for client in clients:
            client.join(60)
        assert program.stop() == 0
    assert not failures
    assert len(set(versions)) == len(SEEDS)
    assert set(texts) == set(versions)
