"""Slow, half-open, oversized and endless requests are refused; others do not notice them."""

import json
import re
import resource
import socket
import ssl
import statistics
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from tests.serve.program import QUESTION, Program, posted, read_all

from heed.errors import ConfigError
from heed.serve.access.keys import Keys
from heed.serve.listening import read_certificate
from heed.serve.settings import Listen

SHORT = (
    *("--set", "listen.head_s=0.3"),
    *("--set", "listen.body_s=0.3"),
    *("--set", "listen.write_s=0.3"),
    *("--set", "listen.idle_s=0.3"),
    *("--set", "listen.head_bytes=2048"),
    *("--set", "limits.body_bytes=100000"),
)


@pytest.fixture(scope="module")
def program(en_de: str) -> Iterator[Program]:
    """A server of little patience."""
    with Program("-m", en_de, *SHORT) as program:
        yield program


@pytest.fixture(scope="module")
def open_to(program: Program) -> Iterator[Callable[[], socket.socket]]:
    """Makes connections, and closes them in the end."""
    made: list[socket.socket] = []

    def connect() -> socket.socket:
        made.append(program.connect())
        return made[-1]

    yield connect
    for each in made:
        each.close()


Connect = Callable[[], socket.socket]


def status(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer else 0


@pytest.mark.parametrize(
    "beginning",
    [
        b"",
        b"POST /trans",
        b"POST /translate HTTP/1.1\r\nHost: x\r\nX-Slow: ",
        posted(QUESTION)[:-1],
        b"POST /translate HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
    ],
)
def test_a_request_that_does_not_end_gets_408(open_to: Connect, beginning: bytes) -> None:
    client = open_to()
    client.sendall(beginning)
    answer = read_all(client)
    assert status(answer) == 408
    assert json.loads(answer.partition(b"\r\n\r\n")[2]) == {
        "error": "The request took too long to arrive."
    }


@pytest.mark.parametrize(("chunk", "expected"), [(b"5\r\nab", 408), (b"five\r\n", 400)])
def test_a_refusal_within_a_body_is_logged_and_counted_with_its_status(
    open_to: Connect, program: Program, chunk: bytes, expected: int
) -> None:
    client, name = open_to(), f"body-{expected}"
    head = b"POST /translate HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n"
    client.sendall(head + b"X-Request-Id: %s\r\n\r\n" % name.encode() + chunk)
    assert status(read_all(client)) == expected
    assert f" status={expected} " in program.wait_for(f" id={name}")
    counted = f'request_seconds_count{{.*route="/translate",status="{expected}"}} [1-9]'
    assert re.search(counted, program.ask("/metrics")[2].decode())


@pytest.mark.parametrize("is_head", [True, False])
def test_a_byte_now_and_then_does_not_keep_it_open(open_to: Connect, is_head: bool) -> None:
    client = open_to()
    whole = posted(QUESTION)
    n_first = 20 if is_head else whole.index(b"\r\n\r\n") + 4
    client.sendall(whole[:n_first])
    client.settimeout(0.05)
    answer = b""
    for byte in whole[n_first:]:
        try:
            client.sendall(bytes([byte]))
            answer += client.recv(4096)
        except TimeoutError:
            continue
        except OSError:
            break
        if answer:
            break
    assert status(answer) == 408


def test_an_idle_connection_is_closed_without_words(open_to: Connect) -> None:
    client = open_to()
    client.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
    answer = read_all(client)
    assert answer.count(b"HTTP/1.1") == 1 and status(answer) == 200


CODED = b"POST / HTTP/1.%s\r\nHost: x\r\nTransfer-Encoding: %s\r\n\r\n0\r\n\r\n"


@pytest.mark.parametrize(
    ("sent", "expected"),
    [
        (b"GET /health HTTP/1.1\r\nHost: x\r\nX-A: " + b"a" * 3000 + b"\r\n\r\n", 431),
        (b"GET /" + b"a" * 3000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 431),
        (b"GET /health HTTP/1.1\r\nHost: x\r\n" + b"X-A: b\r\n" * 500 + b"\r\n", 431),
        (b"GET /health HTTP/1.1\r\nHost: x\r\nX-A: " + b"a" * 9000, 431),
        (b"not HTTP at all\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
        (b"GET /health HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", 400),
        (
            b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n"
            b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            400,
        ),
        (CODED % (b"1", b"gzip, chunked"), 501),
        (CODED % (b"1", b"gzip\r\nTransfer-Encoding: chunked"), 501),
        (CODED % (b"1", b"chunked, chunked"), 400),
        (CODED % (b"1", b"gzip"), 400),
        (CODED % (b"0", b"chunked"), 400),
        (b"GET /health HTTP/1.1\r\nHost: x\r\nX A: b\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\nConnection: close\r\n\r\n", 400),
        (b"GET /health HTTP/1.1\r\nHost: x\r\nHost: y\r\nConnection: close\r\n\r\n", 400),
    ],
)
def test_heads_that_are_too_long_or_no_http_are_refused(
    open_to: Connect, sent: bytes, expected: int
) -> None:
    client = open_to()
    client.sendall(sent)
    answer = read_all(client)
    assert status(answer) == expected
    assert "error" in json.loads(answer.partition(b"\r\n\r\n")[2])


def test_the_name_of_a_transfer_coding_may_be_in_capitals(open_to: Connect) -> None:
    client = open_to()
    client.sendall(CHUNKED.replace(b"chunked", b" Chunked ") + CHUNK + b"0\r\n\r\n")
    assert status(client.recv(4096)) == 200


def test_http_1_0_needs_no_host(open_to: Connect) -> None:
    client = open_to()
    client.sendall(b"GET /health HTTP/1.0\r\n\r\n")
    assert status(read_all(client)) == 200


def test_a_body_that_says_it_is_too_long_is_refused_before_it_comes(open_to: Connect) -> None:
    client = open_to()
    client.sendall(
        b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Content-Length: 40000000\r\nExpect: 100-continue\r\n\r\n"
    )
    assert status(client.recv(4096)) == 413


def test_an_endless_body_is_refused_and_cut_off(open_to: Connect) -> None:
    client = open_to()
    client.sendall(
        b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n"
    )
    sent = 0
    begun = time.monotonic()
    with pytest.raises(OSError):
        while time.monotonic() < begun + 30:
            client.sendall(b"1000\r\n" + b"a" * 4096 + b"\r\n")
            sent += 4096
    assert sent > 100_000


CHUNKED = (
    b"POST /translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    b"Transfer-Encoding: chunked\r\n\r\n"
)
CHUNK = b"%x\r\n%s\r\n" % (len(QUESTION), QUESTION)


@pytest.mark.parametrize(
    ("beginning", "piece"),
    [
        (CHUNK + b"0\r\nX-Endless: ", b"a" * 1000),
        (CHUNK + b"0\r\n", b"X-Many: a\r\n" * 100),
        (b"1;extension=", b"a" * 1000),
        (b"", b"0" * 1000),
    ],
    ids=["trailer", "trailers", "extension", "size"],
)
def test_bytes_of_a_body_in_chunks_that_never_become_body_are_refused(
    open_to: Connect, program: Program, beginning: bytes, piece: bytes
) -> None:
    client = open_to()
    client.sendall(CHUNKED + beginning)
    program.ask("/health")  # the head was read
    n_sent = 0
    with suppress(OSError):
        while n_sent < 2_000_000:
            client.sendall(piece)
            n_sent += len(piece)
            time.sleep(0.001)
    assert n_sent < 100_000
    answer = read_all(client)
    assert not answer or status(answer) == 431


def test_a_body_in_chunks_may_have_trailers_and_extensions(open_to: Connect) -> None:
    client = open_to()
    chunk = b'%x;name="value"\r\n%s\r\n' % (len(QUESTION), QUESTION)
    client.sendall(
        CHUNKED + chunk + b"0\r\nX-Sum: 1\r\n\r\n" + posted(QUESTION, "Connection: close")
    )
    assert read_all(client).count(b"HTTP/1.1 200") == 2


def test_many_requests_before_a_body_are_no_long_trailer(open_to: Connect) -> None:
    client = open_to()
    client.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n" * 200 + posted(QUESTION)[:-1])
    time.sleep(0.1)
    client.sendall(posted(QUESTION)[-1:])
    answers = b""
    while answers.count(b"HTTP/1.1 200") < 201:
        data = client.recv(65536)
        assert data, answers[-300:]
        answers += data


def test_a_trailer_brings_no_key(en_de: str, tmp_path: Path) -> None:
    keys = Keys(tmp_path / "keys.sqlite")
    key = keys.add("anna").encode()
    keys.close()
    settings = ("--keys", "on", "--set", f"access.keys_file={keys.path}")
    with Program("-m", en_de, *settings) as program:
        line = b"Authorization: Bearer %s\r\n" % key
        for head, trailer, expected in ((line, b"", 200), (b"", line, 403)):
            sent = CHUNKED[:-2] + b"Connection: close\r\n" + head + b"\r\n" + CHUNK
            with program.connect() as client:
                client.sendall(sent + b"0\r\n" + trailer + b"\r\n")  # read at once
                assert status(read_all(client)) == expected


def test_http_1_0_does_not_know_interim_answers(open_to: Connect) -> None:
    client = open_to()
    lines = posted(QUESTION, "Expect: 100-continue").replace(b"HTTP/1.1", b"HTTP/1.0")
    client.sendall(lines)
    assert read_all(client).startswith(b"HTTP/1.1 200")


def test_a_refused_body_that_ends_leaves_the_connection_usable(open_to: Connect) -> None:
    client = open_to()
    client.sendall(posted(b"a" * 200_000))
    answer = b""
    while not answer.endswith(b"}"):
        answer += client.recv(65536)
    assert status(answer) == 413
    client.sendall(posted(QUESTION, "Connection: close"))
    assert status(read_all(client)) == 200


def test_pipelined_requests_are_answered_in_order(open_to: Connect) -> None:
    client = open_to()
    texts = [f"Number {number}." for number in range(30)]
    bodies = [json.dumps({"q": q, "source": "en", "target": "de"}).encode() for q in texts]
    client.sendall(b"".join(map(posted, bodies[:-1])) + posted(bodies[-1], "Connection: close"))
    pipelined = read_all(client)
    assert pipelined.count(b"HTTP/1.1 200") == 30
    alone = []
    for body in bodies:
        client = open_to()
        client.sendall(posted(body, "Connection: close"))
        alone.append(read_all(client).partition(b"\r\n\r\n")[2])
    found = [part.partition(b"\r\n\r\n")[2] for part in pipelined.split(b"HTTP/1.1 200 OK")[1:]]
    assert found == alone


def test_a_pipelined_request_may_take_longer_than_a_connection_may_be_idle(
    open_to: Connect,
) -> None:
    client = open_to()
    texts = [f"Two dogs play in the snow, number {number} of many." for number in range(999)]
    body = json.dumps({"q": texts, "source": "en", "target": "de"}).encode()
    client.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n" + posted(body))
    assert read_all(client).count(b"HTTP/1.1 200 OK") == 2


UPGRADE = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk")


@pytest.mark.parametrize("size", [1, 50, 10_000])
def test_an_upgrade_to_another_protocol_is_ignored(open_to: Connect, size: int) -> None:
    """Java's HttpClient asks for one with its first request, whose body was lost."""
    client = open_to()
    sent = posted(QUESTION, *UPGRADE) * 2 + posted(QUESTION) + posted(b"", *UPGRADE)
    sent += b"GET /health HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
    for start in range(0, len(sent), size):
        client.sendall(sent[start : start + size])
    answers = read_all(client)
    assert re.findall(rb"HTTP/1.1 (\d+)", answers) == [b"200"] * 3 + [b"400", b"200"]
    assert answers.count(b"translatedText") == 3 and b'"status":"ok"' in answers


def test_a_tunnel_is_refused(open_to: Connect) -> None:
    client = open_to()
    client.sendall(b"CONNECT /health HTTP/1.1\r\nHost: x\r\n\r\n")
    assert status(read_all(client)) == 405


@pytest.mark.parametrize(("more", "expected"), [(b"X-A: " + b"a" * 3000, 431), (b"Host: y", 400)])
def test_a_wrong_head_with_an_upgrade_is_refused(
    open_to: Connect, more: bytes, expected: int
) -> None:
    client = open_to()
    client.sendall(posted(QUESTION, *UPGRADE, more.decode()))
    assert status(read_all(client)) == expected


def test_many_pipelined_requests_are_no_long_head(open_to: Connect) -> None:
    """Also if a piece of the stream ends within a head."""
    client = open_to()
    request = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n"
    client.sendall(request * 200 + request[:-2])
    time.sleep(0.1)
    client.sendall(request[-2:])
    assert read_all(client).count(b"HTTP/1.1 200 OK") == 201


def test_pipelined_requests_are_not_read_faster_than_answered(open_to: Connect) -> None:
    """They filled the memory, and hardly any was answered meanwhile."""
    client, answers, end = open_to(), 0, time.monotonic() + 1
    client.setblocking(False)
    requests = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n" * 1000
    unsent = requests
    while time.monotonic() < end:
        with suppress(BlockingIOError):
            unsent = unsent[client.send(unsent) :] or requests
        with suppress(BlockingIOError):
            answers += client.recv(1 << 20).count(b"HTTP/1.1 200 OK")
    assert answers > 100


def test_an_endless_head_after_another_request_is_refused(en_de: str) -> None:
    # A server with the usual ten seconds for a head, because a machine may stand still for a while.
    settings = "--set", "listen.head_bytes=2048"
    with Program("-m", en_de, *settings) as program, program.connect() as client:
        client.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\nGET /health HTTP/1.1\r\nX-A: ")
        time.sleep(0.1)
        client.sendall(b"a" * 9000)
        assert b"HTTP/1.1 431" in read_all(client)


def test_an_answer_that_nobody_reads_is_cut_off(open_to: Connect, program: Program) -> None:
    client = open_to()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    request = b"GET /openapi.json HTTP/1.1\r\nHost: x\r\n\r\n"
    with pytest.raises(OSError):
        client.settimeout(0.2)
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            try:
                client.sendall(request)
            except TimeoutError:
                continue
    assert program.ask("/health")[0] == 200


def test_too_many_connections_are_refused(en_de: str) -> None:
    with Program("-m", en_de, "--set", "listen.connections=5") as program:
        held = [program.connect() for _ in range(5)]
        for each in held:  # all five are accepted
            each.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            assert status(each.recv(4096)) == 200
        with program.connect() as client:
            answer = read_all(client)
        assert status(answer) == 503 and b"retry-after: 1" in answer
        held.pop().close()
        deadline = time.monotonic() + 30
        while program.ask("/health")[0] != 200 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert program.ask("/health")[0] == 200
        for each in held:
            each.close()


def test_a_client_that_leaves_frees_its_work(en_de: str) -> None:
    settings = ("--set", "work.cache_mb=0", "--threads", "1")
    with Program("-m", en_de, *settings) as program:
        texts = [f"Number {number} is here. " * 20 for number in range(200)]
        body = json.dumps({"q": texts, "source": "en", "target": "de"}).encode()
        with program.connect() as client:
            client.sendall(posted(body))
            time.sleep(0.3)
        program.translate("A man.")
        figures = program.ask("/metrics")[2].decode()
        written = next(
            float(line.split()[1])
            for line in figures.splitlines()
            if line.startswith("heed_source_tokens_total")
        )
    # All of it would be 200 texts of 20 sentences of more than 10 tokens.
    assert written < 40_000 / 2


def slow_connections(program: Program, n: int) -> list[socket.socket]:
    """Connections in all kinds of half-sent states."""
    beginnings = (b"", b"POST /tra", posted(QUESTION)[:-1], b"GET / HTTP/1.1\r\nX: ")
    made = []
    for number in range(n):
        client = program.connect()
        client.sendall(beginnings[number % len(beginnings)])
        made.append(client)
    return made


def seconds_of(program: Program, n: int) -> list[float]:
    found = []
    for number in range(n):
        begun = time.perf_counter()
        program.translate(f"Number {number}.")
        found.append(time.perf_counter() - begun)
    return found


@pytest.mark.parametrize(
    "n_slow",
    [
        50,
        pytest.param(1000, marks=pytest.mark.slow),
    ],
)
def test_slow_connections_leave_good_requests_alone(en_de: str, n_slow: int) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(soft, 4096)), hard))
    patience_s = 2 if n_slow < 100 else 10
    limits = [
        *("--set", f"listen.head_s={patience_s}"),
        *("--set", f"listen.body_s={patience_s}"),
        *("--set", "work.cache_mb=0"),
    ]
    with Program("-m", en_de, *limits) as program:
        alone = seconds_of(program, 4 * n_slow // 5)
        slow = slow_connections(program, n_slow)
        beside = seconds_of(program, 4 * n_slow // 5)
        closed = [status(read_all(each)) for each in slow]
        for each in slow:
            each.close()
    for where, seconds in (("alone", alone), ("beside", beside)):
        p99 = statistics.quantiles(seconds, n=100)[-1]
        print(f"{where}: median {1e3 * statistics.median(seconds):.1f} ms, p99 {1e3 * p99:.1f} ms")
    # On the machine of this test they are equal. Other programs on it may hold up any of them.
    assert statistics.median(beside) < 10 * statistics.median(alone)
    assert closed == [408] * n_slow


def test_https_by_files(en_de: str, certificate: tuple[str, str]) -> None:
    path, key = certificate
    trusting = ssl.create_default_context(cafile=path)
    with Program("-m", en_de, "--certificate", path, "--private-key", key) as program:
        assert program.url.startswith("https://")
        with (
            program.connect() as plain,
            trusting.wrap_socket(plain, server_hostname="127.0.0.1") as client,
        ):
            client.sendall(posted(QUESTION, "Connection: close"))
            assert status(read_all(client)) == 200
            assert client.version() in ("TLSv1.2", "TLSv1.3")
        with program.connect() as client:
            client.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            assert not read_all(client).startswith(b"HTTP/1.1 200")
        assert program.stop() == 0


def test_files_that_do_not_belong_together_are_refused(
    certificate: tuple[str, str], tmp_path: Path
) -> None:
    read_certificate(Listen(certificate=certificate[0], key=certificate[1]))
    other = tmp_path / "other.pem"
    command = f"openssl ecparam -genkey -name prime256v1 -noout -out {other}"
    subprocess.run(command.split(), check=True, capture_output=True)
    with pytest.raises(ConfigError, match="are not a PEM certificate and its key"):
        read_certificate(Listen(certificate=certificate[0], key=str(other)))


def test_files_that_are_no_pem_are_refused_without_pythons_words(tmp_path: Path) -> None:
    text = tmp_path / "a.txt"
    text.write_text("a\n")
    with pytest.raises(ConfigError, match=r"are not a PEM certificate and its key\.$"):
        read_certificate(Listen(certificate=str(text), key=str(text)))
