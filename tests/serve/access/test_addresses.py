"""Only what trusted proxies have appended to X-Forwarded-For is believed."""

import pytest

from heed.serve.access.addresses import bucket_of, client_address, networks_of

TRUSTED = networks_of(["10.0.0.0/8", "::1"])


@pytest.mark.parametrize(
    ("peer", "forwarded_for", "address"),
    [
        ("203.0.113.9", "", "203.0.113.9"),
        ("203.0.113.9", "198.51.100.1", "203.0.113.9"),
        ("10.0.0.1", "198.51.100.1", "198.51.100.1"),
        ("10.0.0.1", "1.1.1.1, 198.51.100.1", "198.51.100.1"),
        ("10.0.0.1", "1.1.1.1, 198.51.100.1, 10.0.0.2", "198.51.100.1"),
        ("10.0.0.1", "198.51.100.1:4711", "198.51.100.1"),
        ("::1", "[2001:db8::7]:443", "2001:db8::7"),
        ("10.0.0.1", "nonsense", "nonsense"),
        ("10.0.0.1", "", "10.0.0.1"),
        ("", "198.51.100.1", ""),
        # A server that listens on :: has such peers.
        ("::ffff:10.0.0.1", "198.51.100.1", "198.51.100.1"),
        ("::ffff:10.0.0.1", "1.1.1.1, 198.51.100.1, ::ffff:10.0.0.2", "198.51.100.1"),
        ("::ffff:203.0.113.9", "198.51.100.1", "::ffff:203.0.113.9"),
    ],
)
def test_the_last_address_that_is_not_trusted_counts(
    peer: str, forwarded_for: str, address: str
) -> None:
    assert client_address(peer, forwarded_for, TRUSTED) == address


def test_clients_of_one_ipv6_network_share_a_limit() -> None:
    assert bucket_of("2001:db8::1") == bucket_of("2001:db8::2:3") == "2001:db8::/64"
    assert bucket_of("2001:db8:0:1::1") != bucket_of("2001:db8::1")
    assert bucket_of("::ffff:192.0.2.1") == bucket_of("192.0.2.1")
    assert bucket_of("nonsense") == bucket_of("") == "unknown"
