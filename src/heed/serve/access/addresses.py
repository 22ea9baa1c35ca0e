"""The address of a client and how it connects, even behind trusted proxies."""

from collections.abc import Sequence
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
    ip_network,
)

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


def networks_of(trusted: Sequence[str]) -> tuple[Network, ...]:
    """Parse addresses or networks."""
    return tuple(ip_network(each, strict=False) for each in trusted)


def client_address(peer: str, forwarded_for: str, trusted: Sequence[Network]) -> str:
    """The last address that does not belong to a trusted proxy.

    Each proxy appends the address that called it. Only entries from trusted proxies are believed,
    because a client can write any others before them.

    Args:
        peer: address of the other end of the connection.
        forwarded_for: the header X-Forwarded-For.
        trusted: networks of trusted proxies.
    """
    address = peer
    for hop in reversed([peer_of(each) for each in forwarded_for.split(",") if each.strip()]):
        if not _is_within(address, trusted):
            break
        address = hop
    return address


def uses_https(peer: str, forwarded_protos: Sequence[str], trusted: Sequence[Network]) -> bool:
    """Whether a trusted proxy says that the client speaks HTTPS with it.

    Args:
        peer: address of the other end of the connection.
        forwarded_protos: each header X-Forwarded-Proto.
        trusted: networks of trusted proxies.
    """
    return list(forwarded_protos) == ["https"] and _is_within(peer, trusted)


def peer_of(spelled: str) -> str:
    """An address without its port and brackets."""
    spelled = spelled.strip()
    if spelled.startswith("["):
        return spelled[1:].partition("]")[0]
    return spelled.partition(":")[0] if spelled.count(":") == 1 else spelled


def bucket_of(address: str) -> str:
    """The clients that share a limit: one IPv4 address, or the /64 network of an IPv6 address."""
    try:
        parsed = _unmapped(ip_address(address))
    except ValueError:
        return "unknown"
    if isinstance(parsed, IPv6Address):
        return str(ip_network((parsed, 64), strict=False))
    return str(parsed)


def _is_within(address: str, networks: Sequence[Network]) -> bool:
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    return any(form in network for form in (parsed, _unmapped(parsed)) for network in networks)


def _unmapped(address: Address) -> Address:
    """192.0.2.1 for ::ffff:192.0.2.1, which is how a socket for IPv6 spells it."""
    return (isinstance(address, IPv6Address) and address.ipv4_mapped) or address
