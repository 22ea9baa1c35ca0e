"""A server process ends without losing a request, and its exit code says how it went."""

import json
import signal
import threading
import time
from collections import Counter
from http.client import HTTPConnection
from pathlib import Path

import pytest
from tests.serve.program import QUESTION, Program, posted, read_all

CLIENTS = 64


def ask_until_refused(port: int, outcomes: list[str]) -> None:
    """One client that asks again and again, on a connection that stays open while it may."""
    while True:
        connection = HTTPConnection("127.0.0.1", port, timeout=60)
        try:
            connection.connect()
        except ConnectionRefusedError:
            outcomes.append("refused")
            return
        try:
            stays_open = True
            while stays_open:
                connection.request(
                    "POST", "/translate", QUESTION, {"Content-Type": "application/json"}
                )
                answer = connection.getresponse()
                answer.read()
                outcomes.append(str(answer.status))
                stays_open = not answer.will_close
        except OSError as error:
            outcomes.append(f"lost: {error!r}")
        finally:
            connection.close()


def stopped_under_load(program: Program, *, n_answers: int) -> Counter[str]:
    """What `CLIENTS` clients got from a program that is stopped after some answers."""
    outcomes: list[str] = []
    clients = [
        threading.Thread(target=ask_until_refused, args=(program.port, outcomes))
        for _ in range(CLIENTS)
    ]
    for client in clients:
        client.start()
    deadline = time.monotonic() + 60
    while len(outcomes) < n_answers and time.monotonic() < deadline:
        time.sleep(0.01)
    assert program.stop() == 0
    for client in clients:
        client.join(60)
    return Counter(outcomes)


@pytest.mark.reliability
def test_sigterm_under_64_clients_loses_nothing(en_de: str) -> None:
    with Program("-m", en_de) as program:
        counts = stopped_under_load(program, n_answers=4 * CLIENTS)
    assert counts.pop("200") >= 4 * CLIENTS
    assert counts == {"refused": CLIENTS}


def test_while_it_drains_it_is_not_ready_and_closes_connections(en_de: str) -> None:
    with Program("-m", en_de) as program:
        kept = HTTPConnection("127.0.0.1", program.port, timeout=30)
        kept.request("GET", "/ready")
        first = kept.getresponse()
        assert (first.status, first.will_close) == (200, False)
        first.read()
        kept.close()
        program.signal(signal.SIGTERM)
        while True:
            status, headers, body = program.ask("/ready")
            if status == 503:
                break
        assert json.loads(body) == {"status": "draining"}
        assert headers["connection"] == "close"
        assert program.wait() == 0


def test_a_request_that_is_half_sent_is_answered(en_de: str) -> None:
    with Program("-m", en_de) as program, program.connect() as client:
        whole = posted(QUESTION)
        client.sendall(whole[:40])
        program.ask("/health")  # so the half request was read
        program.signal(signal.SIGTERM)
        time.sleep(0.6)  # the socket does not listen any more
        client.sendall(whole[40:])
        answer = read_all(client)
        assert answer.startswith(b"HTTP/1.1 200") and b"connection: close" in answer
        assert program.wait() == 0


def test_a_request_that_never_ends_is_cut_off_and_the_exit_code_says_so(en_de: str) -> None:
    with (
        Program("-m", en_de, "--set", "listen.grace_s=0.5") as program,
        program.connect() as client,
    ):
        client.sendall(posted(QUESTION)[:-1])
        program.ask("/health")
        program.signal(signal.SIGTERM)
        assert program.wait() == 1
        assert "requests were still unanswered 0.5 s after the signal" in program.lines[-1]


def test_an_idle_server_ends_well_however_short_its_grace_is(en_de: str) -> None:
    with Program("-m", en_de, "--set", "listen.grace_s=0.2") as program:
        assert program.stop() == 0
        assert "unanswered" not in program.lines[-1]


HANGS = """
import sys, threading

def hang(*_, **named):
    print("it hangs", file=sys.stderr, flush=True)
    threading.Event().wait()
"""
"""A call that never returns, as of a network disk that does not answer."""

READING_HANGS = (
    HANGS
    + """
from heed.serve.work import models
models.{name} = hang
"""
)

STORE_HANGS = (
    HANGS
    + """
from heed.serve.shapes.storage import Storage
Storage.summaries = hang
"""
)


@pytest.mark.parametrize("n_processes", [1, 2])
def test_a_thread_that_hangs_does_not_keep_the_process(en_de: str, n_processes: int) -> None:
    hangs = READING_HANGS.format(name="version_of")
    with Program("-m", en_de, "--processes", str(n_processes), before=hangs) as program:
        program.signal(signal.SIGHUP)
        program.wait_for("it hangs")
        program.translate()
        assert program.stop() == 0
        assert "heed: a thread is still busy" in program.lines[-1]


def test_a_model_that_is_never_read_does_not_keep_the_process(en_de: str) -> None:
    hangs = READING_HANGS.format(name="open_version")
    with Program("-m", en_de, is_ready=False, before=hangs) as program:
        program.wait_for("it hangs")
        assert program.stop() == 0


def test_a_request_in_a_thread_that_hangs_is_cut_off(en_de: str) -> None:
    with (
        Program("-m", en_de, "--set", "listen.grace_s=0.5", before=STORE_HANGS) as program,
        program.connect() as client,
    ):
        client.sendall(b"GET /v2/glossaries HTTP/1.1\r\nHost: x\r\n\r\n")
        program.wait_for("it hangs")
        program.signal(signal.SIGTERM)
        assert program.wait() == 1
        assert any("requests were still unanswered" in line for line in program.lines)
        assert "heed: a thread is still busy" in program.lines[-1]


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM])
def test_a_second_signal_ends_it_at_once(en_de: str, first: signal.Signals) -> None:
    with Program("-m", en_de) as program, program.connect() as client:
        client.sendall(posted(QUESTION)[:-1])
        program.ask("/health")
        program.signal(first)
        time.sleep(0.2)
        program.signal(signal.SIGTERM)
        assert program.wait() == 128 + signal.SIGTERM
        assert program.lines[-1] == "heed: stopped at once."


def test_a_damaged_model_ends_the_start_with_a_message(en_de: str, tmp_path: Path) -> None:
    for file in Path(en_de).iterdir():
        data = file.read_bytes()
        (tmp_path / file.name).write_bytes(data[:-9] if file.suffix == ".safetensors" else data)
    with pytest.raises(AssertionError, match="the program ended") as caught:
        Program("-m", str(tmp_path))
    assert "safetensors" in str(caught.value)
