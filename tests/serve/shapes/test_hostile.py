"""No request makes the real program fail: every answer is below 500, and JSON if it is an error."""

import socket
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from tests.serve.shapes.requests_made import requests_made

SECONDS = 60.0
GOOD_BODY = b'{"q": "Two dogs", "source": "en", "target": "de"}'
JSON = b"Content-Type: application/json\r\n"


def ask(client: httpx.Client, program: str, made: dict[str, Any]) -> httpx.Response:
    """Send a request as it was made."""
    request = httpx.Request(
        made["method"],
        f"{program}{made['path']}",
        params=made["query"],
        headers=made["headers"],
        **({"data": made["form"]} if "form" in made else {"content": made["body"]}),
    )
    return client.send(request)


def check(made: dict[str, Any], answer: httpx.Response) -> None:
    assert answer.status_code < 500, (made, answer.text)
    if answer.status_code >= 400 and made["method"] != "HEAD":
        assert answer.headers["content-type"] == "application/json", (made, answer.text)
        assert isinstance(answer.json(), dict)


def run(program: str, max_examples: int) -> None:
    @settings(
        max_examples=max_examples,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(requests_made())
    def every_request_is_answered(made: dict[str, Any]) -> None:
        check(made, ask(client, program, made))

    with httpx.Client(timeout=SECONDS) as client:
        every_request_is_answered()
        assert client.get(f"{program}/health").status_code == 200


@pytest.mark.timeout(300)
def test_requests_that_no_client_means_are_answered(program: str) -> None:
    run(program, 300)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_ten_thousand_requests_that_no_client_means_are_answered(program: str) -> None:
    run(program, 10_000)


def exchange(program: str, sent: list[bytes], *, ends: bool = False) -> bytes:
    """What the server answers to these bytes, until it closes or has answered."""
    place = urlsplit(program)
    with socket.create_connection((place.hostname, place.port), timeout=20) as connection:
        connection.settimeout(20)
        for each in sent:
            connection.sendall(each)
        if ends:
            connection.shutdown(socket.SHUT_WR)
        received = b""
        while True:
            try:
                data = connection.recv(65536)
            except ConnectionResetError:
                return received
            received += data
            if not data or is_complete(received):
                return received


def is_complete(received: bytes) -> bool:
    """Whether the last answer has all of its body. An interim one (100) is no answer."""
    head, end, body = received.rpartition(b"HTTP/1.1")[2].partition(b"\r\n\r\n")
    if not end or head.lstrip().startswith(b"100"):
        return False
    fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
    return len(body) >= int(fields.get(b"content-length", b"0"))


def status(received: bytes) -> int:
    """Of the last answer."""
    return int(received.rpartition(b"HTTP/1.1 ")[2][:3])


def post(headers: bytes, path: bytes = b"/translate") -> bytes:
    return b"POST " + path + b" HTTP/1.1\r\nHost: x\r\n" + headers + b"\r\n"


def chunked(body: bytes, size: int) -> list[bytes]:
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    return [b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces] + [b"0\r\n\r\n"]


def test_a_body_in_chunks_of_one_byte_is_read(program: str) -> None:
    head = post(JSON + b"Transfer-Encoding: chunked\r\n")
    received = exchange(program, [head, *chunked(GOOD_BODY, 1)])
    assert status(received) == 200
    assert b"translatedText" in received


def test_a_client_that_expects_to_be_asked_for_its_body_is_asked(program: str) -> None:
    length = b"Content-Length: %d\r\n" % len(GOOD_BODY)
    head = post(JSON + length + b"Expect: 100-continue\r\n")
    received = exchange(program, [head, GOOD_BODY])
    assert received.startswith(b"HTTP/1.1 100 Continue\r\n\r\n")
    assert status(received) == 200


def test_a_body_that_is_too_long_is_refused_before_it_is_sent(program: str) -> None:
    head = post(JSON + b"Content-Length: 99999999\r\n")
    received = exchange(program, [head])
    assert status(received) == 413


def test_a_body_of_any_length_is_refused_at_the_limit(program: str) -> None:
    head = post(JSON + b"Transfer-Encoding: chunked\r\n")
    piece = b"x" * 65536
    received = exchange(program, [head, *chunked(piece * 20, 65536)[:17]])
    assert status(received) == 413
    assert b"connection: close" in received.lower()


@pytest.mark.parametrize(
    "sent",
    [
        post(JSON + b"Content-Length: 100\r\n") + GOOD_BODY,
        post(JSON + b"Content-Length: -5\r\n") + GOOD_BODY,
        post(JSON + b"Content-Length: 5\r\nContent-Length: 6\r\n") + GOOD_BODY,
        post(JSON + b"Content-Length: abc\r\n") + GOOD_BODY,
        post(JSON + b"Content-Length: 999999999999999999999999999\r\n"),
        post(JSON + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n") + b"0\r\n\r\n",
        post(JSON + b"Transfer-Encoding: chunked\r\n") + b"zz\r\n",
        post(JSON + b"Transfer-Encoding: chunked\r\n") + b"ffffffffffffffffff\r\nx",
        post(JSON + b"Transfer-Encoding: gzip\r\n") + GOOD_BODY,
        post(b"Content-Encoding: gzip\r\n" + JSON + b"Content-Length: 3\r\n") + b"abc",
        post(b"Content-Type: \xff\xfe\r\nContent-Length: 2\r\n") + b"{}",
        post(b"Content-Type: multipart/form-data; boundary=\r\nContent-Length: 2\r\n") + b"{}",
        post(b"X: a\x00b\r\n"),
        post(b"Content-Length: 2\r\n", path=b"/translate?q=%ff%fe&q=%") + b"{}",
        post(b"Content-Length: 2\r\n", path=b"http://other.example/translate") + b"{}",
        post(b"Content-Length: 2\r\n", path=b"/" + b"a" * 9000) + b"{}",
        b"GET /translate HTTP/1.0\r\n\r\n",
        b"GET /languages HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}",
        b"BREW /translate HTTP/1.1\r\nHost: x\r\n\r\n",
        b"POST /translate HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\r\n\r\n\r\n",
        b"hello\r\n\r\n",
    ],
)
def test_bytes_that_are_hardly_http_do_no_harm(program: str, sent: bytes) -> None:
    received = exchange(program, [sent], ends=True)
    assert not received or status(received) < 500
    assert httpx.get(f"{program}/health", timeout=SECONDS).status_code == 200
