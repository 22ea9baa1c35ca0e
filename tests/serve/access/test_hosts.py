"""The names under which a server answers: none that a page elsewhere could choose."""

import socket
from collections.abc import Callable
from typing import Any

import pytest
from starlette.testclient import TestClient

from heed.errors import ConfigError
from heed.serve.access.hosts import is_answered, names_of
from heed.serve.settings import Access, Listen, ServeSettings

Serve = Callable[..., TestClient]

OWN = ["", "localhost", "LOCALHOST:5000", "127.0.0.1", "127.0.0.1:5000", "[::1]", "[::1]:5000"]
OWN += ["192.0.2.7:80", "server", "de.localhost", "printer.local:5000", "host.docker.internal"]
OWN += ["localhost."]
OTHER = ["evil.example", "evil.example:5000", "127.0.0.1.evil.example", "localhost.evil.example"]
OTHER += ["local.example.", "127.1", "example.localhost.com", "évil.example"]


@pytest.mark.parametrize("host", OWN)
def test_addresses_and_private_names_are_answered(host: str) -> None:
    assert is_answered(host, frozenset())


@pytest.mark.parametrize("host", OTHER)
def test_names_that_anyone_can_register_are_not(host: str) -> None:
    assert not is_answered(host, frozenset())
    assert is_answered(host, {host.partition(":")[0].rstrip(".")})


def test_only_a_server_that_nobody_else_should_reach_is_limited_by_itself() -> None:
    def names(listen: Listen | None = None, **access: Any) -> object:
        return names_of(ServeSettings(listen=listen or Listen(), access=Access(**access)))

    assert names() == {socket.gethostname().lower()}
    assert names(keys="on") is None
    assert names(listen=Listen(host="0.0.0.0")) is None
    assert names(listen=Listen(host="0.0.0.0"), keys="off") is None
    assert names(listen=Listen(trusted_proxies=("10.0.0.0/8",))) is None
    listed = names(listen=Listen(host="0.0.0.0"), keys="off", hosts=("MT.Example.org",))
    assert listed == {"mt.example.org"}


@pytest.mark.parametrize(
    ("listed", "sent"),
    [
        ("Mu\u0308nchen.DE", "xn--mnchen-3ya.de"),
        ("straße.example", "xn--strae-oqa.example"),
        ("हिन्दी.example", "xn--j2bd4cyah0f.example"),
        ("食狮.中国", "xn--85x722f.xn--fiqs8s"),
        ("ＭＴ.example", "mt.example"),
    ],
)
def test_names_may_be_listed_in_any_letters(
    serve: Serve, en_de: str, listed: str, sent: str
) -> None:
    """Browsers send them in ASCII."""
    client = serve(en_de, access=Access(hosts=(listed,)))
    assert client.get("/health", headers={"Host": f"{sent}:5000"}).status_code == 200
    assert client.get("/health", headers={"Host": "xn--e1afmkfd.example"}).status_code == 421


def test_another_name_is_refused_for_every_path_and_method(serve: Serve, en_de: str) -> None:
    client = serve(en_de, access=Access(hosts=("mt.example.org",)))
    question = {"q": "a dog", "source": "en", "target": "de"}
    for host, code in (("evil.example", 421), ("mt.example.org:5000", 200), ("localhost", 200)):
        headers = {"Host": host}
        found = client.post("/translate", json=question, headers=headers)
        assert found.status_code == code
        assert client.get("/", headers=headers).status_code == code
        assert client.get("/health", headers=headers).status_code == code
        if code == 421:
            assert found.json()["error"].startswith("This server does not answer under the name")
            assert "evil" not in found.text


@pytest.mark.parametrize(
    "host",
    ["https://example.org", "example.org:80", "*.example.org", "", "ä b.org", "ä:80", "a。b/"],
)
def test_a_name_that_is_none_is_refused(host: str) -> None:
    with pytest.raises(ConfigError, match=r"access\.hosts must be names like example\.org"):
        Access(hosts=(host,))
