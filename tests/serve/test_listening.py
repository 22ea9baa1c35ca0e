"""The socket is opened before anything heavy; what fails is told in words."""

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from heed.errors import ConfigError
from heed.serve.listening import begin_no_more, open_sockets, read_certificate, url_of
from heed.serve.settings import Listen


def close(sockets: list[socket.socket]) -> None:
    for each in sockets:
        each.close()


def test_port_0_becomes_a_real_one() -> None:
    sockets = open_sockets(Listen(port=0))
    url = url_of(Listen(), sockets[0])
    close(sockets)
    assert url.startswith("http://127.0.0.1:") and not url.endswith(":0")


def test_https_and_ipv6_are_spelled_as_one_types_them() -> None:
    sockets = open_sockets(Listen(port=0, host="::1"))
    url = url_of(Listen(certificate="a", key="b"), sockets[0])
    close(sockets)
    assert url.startswith("https://[::1]:")


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_of_all_addresses_the_url_has_the_name_of_the_machine(host: str) -> None:
    """Nothing can connect to 0.0.0.0 of another machine."""
    sockets = open_sockets(Listen(port=0, host=host))
    url = url_of(Listen(), sockets[0])
    close(sockets)
    assert url.startswith(f"http://{socket.gethostname()}:")


@pytest.mark.parametrize("processes", [1, 3])
def test_a_port_in_use_is_refused(processes: int) -> None:
    first = open_sockets(Listen(port=0, processes=processes))
    port = first[0].getsockname()[1]
    with pytest.raises(ConfigError, match=f"Port {port} of 127.0.0.1 is in use by another program"):
        open_sockets(Listen(port=port, processes=processes))
    close(first)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux spreads connections over sockets")
def test_processes_share_a_port_by_sockets_of_their_own() -> None:
    sockets = open_sockets(Listen(port=0, processes=3))
    assert len({each.getsockname() for each in sockets}) == 1
    assert len({each.fileno() for each in sockets}) == 3
    close(sockets)


def test_a_name_that_is_no_address_is_refused() -> None:
    with pytest.raises(ConfigError, match="listen.host no such host is not an address"):
        open_sockets(Listen(host="no such host"))


def test_an_address_of_another_machine_is_refused() -> None:
    with pytest.raises(ConfigError, match="192.0.2.1 is not an address of this machine"):
        open_sockets(Listen(host="192.0.2.1", port=0))


def test_an_address_that_cannot_be_bound_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(error, "not this time")

    monkeypatch.setattr("heed.serve.listening.socket.socket.bind", refuse, raising=False)
    error = 13
    with pytest.raises(ConfigError, match="Port 80 needs administrator rights"):
        open_sockets(Listen(port=80))
    error = 5
    with pytest.raises(ConfigError, match="127.0.0.1 port 80: not this time"):
        open_sockets(Listen(port=80))


def test_a_certificate_that_is_missing_or_damaged_is_refused(tmp_path: Path) -> None:
    read_certificate(Listen())
    bad = tmp_path / "bad.pem"
    bad.write_text("nothing")
    absent = str(tmp_path / "absent.pem")
    with pytest.raises(ConfigError, match=r"listen\.certificate .*absent\.pem is missing"):
        read_certificate(Listen(certificate=absent, key=str(bad)))
    with pytest.raises(ConfigError, match=r"listen\.key .*absent\.pem is missing"):
        read_certificate(Listen(certificate=str(bad), key=absent))
    with pytest.raises(ConfigError, match="are not a PEM certificate and its key"):
        read_certificate(Listen(certificate=str(bad), key=str(bad)))


def test_an_encrypted_key_is_refused(certificate: tuple[str, str], tmp_path: Path) -> None:
    """The library for TLS asked for the passphrase on the terminal, in each process."""
    path = str(tmp_path / "my key.pem")
    command = ["openssl", "pkey", "-in", certificate[1], "-aes256", "-passout", "pass:a"]
    subprocess.run([*command, "-out", path], check=True)
    with pytest.raises(ConfigError, match=r"key\.pem is encrypted\. .* openssl pkey -in '/"):
        read_certificate(Listen(certificate=certificate[0], key=path))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="Windows has no named pipes in folders")
@pytest.mark.parametrize("setting", ["certificate", "key"])
def test_a_named_pipe_in_place_of_a_certificate_is_refused(
    certificate: tuple[str, str], tmp_path: Path, setting: str
) -> None:
    files = dict(zip(("certificate", "key"), certificate, strict=True))
    files[setting] = str(tmp_path / "pipe")
    os.mkfifo(files[setting])
    with pytest.raises(ConfigError, match=rf"listen\.{setting} .*pipe .*not a regular file"):
        read_certificate(Listen(**files))


@pytest.mark.skipif(sys.platform != "linux", reason="the filter is one of Linux")
def test_no_more_begin_but_those_begun_are_served() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(4)
        address = listener.getsockname()
        with socket.create_connection(address) as early:
            begin_no_more(listener)
            with pytest.raises(TimeoutError):
                socket.create_connection(address, timeout=0.2)
            early.sendall(b"request")
            accepted, _ = listener.accept()
            with accepted:
                assert accepted.recv(16) == b"request"
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(address, timeout=5)


LIMITED = """
import logging, resource, sys
from heed.serve.listening import allow_open_files
from heed.serve.settings import Listen

logging.basicConfig(stream=sys.stdout, format="%(message)s")
soft, hard, connections = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
allow_open_files(Listen(connections=connections))
print(*resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
@pytest.mark.parametrize(
    ("soft", "connections", "allowed", "is_told"),
    [(64, 100, 356, False), (400, 100, 400, False), (64, 600, 512, True)],
)
def test_as_many_files_may_be_open_as_connections(
    soft: int, connections: int, allowed: int, is_told: bool
) -> None:
    program = [sys.executable, "-c", LIMITED, str(soft), "512", str(connections)]
    done = subprocess.run(program, capture_output=True, text=True, timeout=60, check=True)
    *told, limits = done.stdout.splitlines()
    assert limits == f"{allowed} 512"
    words = "listen.connections is 600, but the system allows 512 open files"
    assert [line.startswith(words) for line in told] == [True] * is_told
