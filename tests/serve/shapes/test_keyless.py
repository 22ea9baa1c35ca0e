"""Before a key is known, a server reads no more than it must; clients with keys notice nothing."""

import json
import socket
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
import requests
from libretranslatepy import LibreTranslateAPI
from tests.serve.program import QUESTION, Program, posted, read_all

from heed.serve.access.keys import Keys
from heed.serve.shapes.keyless import MOST_FILES

LIMIT = 2000
LONG = {"q": "A man. " * 1000, "source": "en", "target": "de"}
"""A request that is longer than the limit."""


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Path]]:
    """A key and its file."""
    path = tmp_path_factory.mktemp("keys") / "keys.sqlite"
    keys = Keys(path)
    yield keys.add("a"), path
    keys.close()


@pytest.fixture(scope="module")
def program(en_de: str, key: tuple[str, Path]) -> Iterator[Program]:
    """A server with keys. A body that does not come is waited for longer than a test takes."""
    settings = (
        "access.keys=on",
        f"access.keys_file={key[1]}",
        f"limits.keyless_bytes={LIMIT}",
        f"store.folder={key[1].parent}",
        "listen.body_s=600",
    )
    more = [part for each in settings for part in ("--set", each)]
    with Program("-m", en_de, *more) as program:
        yield program


def head(path: str, n_bytes: int, *lines: str) -> bytes:
    """The head of a request, whose body does not follow."""
    found = posted(b"x" * n_bytes, *lines, path=path)
    return found[: -n_bytes or None]


def answer_to(program: Program, sent: bytes) -> tuple[int, str]:
    """Status and body of the answer to bytes, after which the client sends nothing."""
    with program.connect() as client:
        client.sendall(sent)
        received = receive(client)
    return int(received.split(b" ", 2)[1]), received.partition(b"\r\n\r\n")[2].decode()


def receive(client: socket.socket) -> bytes:
    """One answer, whose body is an object in JSON."""
    received = b""
    while not received.endswith(b"}"):
        piece = client.recv(65536)
        assert piece, received
        received += piece
    return received


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/translate", 403),
        ("/translate_file", 403),
        ("/v2/translate", 403),
        ("/language/translate/v2", 401),
        ("/api/v1/translate", 401),
    ],
)
@pytest.mark.parametrize(
    ("query", "line"),
    [("", "Authorization: Bearer heed_a_wrong"), ("", "X-API-Key: x"), ("?api_key=x", "X-A: b")],
)
def test_a_wrong_key_in_the_head_is_refused_before_the_body_comes(
    program: Program, path: str, status: int, query: str, line: str
) -> None:
    found, body = answer_to(program, head(path + query, 1000, line))
    assert found == status and "Invalid API key" in body


@pytest.mark.parametrize("path", ["/api/v1/translate", "/api/v1/files", "/kiss", "/hcfy"])
def test_where_the_body_has_no_key_it_is_not_waited_for(program: Program, path: str) -> None:
    status, body = answer_to(program, head(path, 1000))
    assert status in (401, 403) and "Invalid API key" in body


def test_a_body_with_a_key_may_have_a_limited_length(
    program: Program, key: tuple[str, Path]
) -> None:
    question = {**json.loads(QUESTION), "api_key": key[0]}
    for url in ("/translate", f"/translate?api_key={key[0]}"):
        content = json.dumps(question).encode().ljust(LIMIT)
        status, _ = answer_to(program, posted(content, path=url))
        assert status == 200
    status, body = answer_to(program, head("/translate", LIMIT + 1))
    assert status == 403
    assert body.startswith(
        '{"error":"Invalid API key: a body of more than 2000 bytes needs the key in a header'
    )


def test_a_body_of_unknown_length_is_read_no_further(program: Program) -> None:
    begin = head("/translate", 0, "Transfer-Encoding: chunked").replace(
        b"Content-Length: 0\r\n", b""
    )
    with program.connect() as client:
        client.sendall(begin + b"%x\r\n" % LIMIT + b"x" * LIMIT + b"\r\n1\r\nx\r\n")
        answer = read_all(client)
    assert answer.startswith(b"HTTP/1.1 403") and b"connection: close" in answer


def test_a_long_request_needs_its_key_in_the_head(program: Program, key: tuple[str, Path]) -> None:
    url, headers = f"{program.url}/translate", {"Authorization": f"Bearer {key[0]}"}
    assert requests.post(url, json=LONG, headers=headers, timeout=30).status_code == 200
    assert requests.post(url, json=LONG, params={"api_key": key[0]}, timeout=30).ok
    refused = requests.post(url, json={**LONG, "api_key": key[0]}, timeout=30)
    assert refused.status_code == 403 and "needs the key in a header" in refused.text


def test_clients_of_libretranslate_send_the_key_in_a_form(
    program: Program, key: tuple[str, Path]
) -> None:
    api = LibreTranslateAPI(program.url, api_key=key[0])
    assert (
        api.translate("A man.", "en", "de")
        == requests.post(
            f"{program.url}/translate", data={**json.loads(QUESTION), "api_key": key[0]}, timeout=30
        ).json()["translatedText"]
    )


FORM = b"\r\n".join(
    [
        b"--x",
        b'Content-Disposition: form-data; name="file"; filename="a.txt"',
        b"",
        b"A man. " * 1000,
        b"--x",
        b'Content-Disposition: form-data; name="source"',
        b"",
        b"en",
        b"--x",
        b'Content-Disposition: form-data; name="target"',
        b"",
        b"de",
        b"--x",
        b'Content-Disposition: form-data; name="api_key"',
        b"",
        b"%s",
        b"--x--",
        b"",
    ]
)
"""As LibreTranslate's page sends a file: the key comes last."""


def begin_file(program: Program, form: bytes) -> socket.socket:
    """A connection that has sent half of a file."""
    client = program.connect()
    sent = posted(form, path="/translate_file").replace(
        b"application/json", b"multipart/form-data; boundary=x"
    )
    client.sendall(sent[: len(sent) - len(form) // 2])
    return client


def test_a_few_files_at_a_time_may_have_their_key_behind_them(
    program: Program, key: tuple[str, Path]
) -> None:
    form = FORM % key[0].encode()
    with ExitStack() as begun:
        clients = [begun.enter_context(begin_file(program, form)) for _ in range(MOST_FILES)]
        with begin_file(program, form) as client:
            answer = receive(client)
        assert answer.startswith(b"HTTP/1.1 503") and b"retry-after: 1" in answer
        assert b"Too many files without a key in a header" in answer
        for client in clients:
            client.sendall(form[-(len(form) // 2) :])
            assert receive(client).startswith(b"HTTP/1.1 200")
    with begin_file(program, form) as client:
        client.sendall(form[-(len(form) // 2) :])
        assert receive(client).startswith(b"HTTP/1.1 200")


def test_what_needs_no_key_reads_no_body(program: Program) -> None:
    sent = head("/languages", 5000).replace(b"POST", b"GET", 1)
    with program.connect() as client:
        client.sendall(sent)
        assert client.recv(65536).startswith(b"HTTP/1.1 200")
