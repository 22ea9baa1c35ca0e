"""The address of a client, also behind proxies that are trusted."""

from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

Network = IPv4Network | IPv6Network


def networks_of(trusted: Sequence[str]) -> tuple[Network, ...]:
    """Addresses or networks, parsed."""
    return tuple(ip_network(each, strict=False) for each in trusted)


def client_address(peer: str, forwarded_for: str, trusted: Sequence[Network]) -> str:
    """The last address that is not a trusted proxy's.

    Each proxy appends the address that it was called from, so only what trusted ones have appended
    is believed: a client can write any others before it.

    Args:
        peer: the other end of the connection.
        forwarded_for: the header X-Forwarded-For.
        trusted: proxies.
    """
    address = peer
    for hop in reversed([peer_of(each) for each in forwarded_for.split(",") if each.strip()]):
        if not _is_within(address, trusted):
            break
        address = hop
    return address


def peer_of(spelled: str) -> str:
    """An address without a port and brackets."""
    spelled = spelled.strip()
    if spelled.startswith("["):
        return spelled[1:].partition("]")[0]
    return spelled.partition(":")[0] if spelled.count(":") == 1 else spelled


def bucket_of(address: str) -> str:
    """The clients that share a limit: an IPv4 address, or the 64 bits of an IPv6 network."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return "unknown"
    if isinstance(parsed, IPv6Address):
        if parsed.ipv4_mapped:
            return str(parsed.ipv4_mapped)
        return str(ip_network((parsed, 64), strict=False))
    return str(parsed)


def _is_within(address: str, networks: Sequence[Network]) -> bool:
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    return any(parsed in network for network in networks)
