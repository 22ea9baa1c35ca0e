"""The server's listening socket, which is made before any heavy import.

So a port in use gives an error message, and port 0 is known when the address is printed.
"""

import ctypes
import errno
import logging
import socket
import ssl
import struct
import sys
from contextlib import suppress
from pathlib import Path
from shlex import quote

from heed.disk.files import read_bytes
from heed.errors import ConfigError, FormatError
from heed.serve.settings import Listen

log = logging.getLogger(__name__)

BACKLOG = 2048
"""Connections that wait to be accepted by the server."""

OTHER_FILES = 256
"""Open files that are not connections: models, keys, stores, and files of requests."""

_SO_ATTACH_FILTER = 26
# Classic BPF: load the byte with the flags of the TCP header. If SYN is set, keep 0 bytes of the
# packet, which drops it; else keep all. An instruction: code, jump if true, jump if false, operand.
_LOAD_BYTE, _JUMP_IF_SET, _RETURN = 0x30, 0x45, 0x06
_FLAGS_AT, _SYN, _WHOLE = 13, 0x02, 0xFFFFFFFF
_DROP_SYN = b"".join(
    struct.pack("HBBI", *instruction)
    for instruction in (
        (_LOAD_BYTE, 0, 0, _FLAGS_AT),
        (_JUMP_IF_SET, 0, 1, _SYN),
        (_RETURN, 0, 0, 0),
        (_RETURN, 0, 0, _WHOLE),
    )
)


def open_sockets(listen: Listen) -> list[socket.socket]:
    """One listening socket for each process.

    On Linux the sockets share the port, and the kernel spreads connections evenly. Elsewhere the
    processes share one socket.

    Raises:
        ConfigError: the address is not one of this machine, or the port is in use or not allowed.
    """
    first = _bound(listen, listen.port)
    shares_port = sys.platform == "linux" and listen.processes > 1
    if not shares_port:
        first.listen(BACKLOG)
        return [first] * listen.processes
    port = first.getsockname()[1]
    # The first one was bound alone, because only that fails if another program listens there.
    first.close()
    sockets = [_bound(listen, port, shares_port=True) for _ in range(listen.processes)]
    for each in sockets:
        each.listen(BACKLOG)
    return sockets


def allow_open_files(listen: Listen) -> None:
    """Raise the limit on open files, each connection being one, as far as the system allows.

    Many systems allow 1,024 unless a program asks for more. Without files, a server can neither
    accept a connection nor refuse one.
    """
    if sys.platform == "win32":
        return
    import resource

    needed = listen.connections + OTHER_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return
    allowed = needed if hard == resource.RLIM_INFINITY else min(needed, hard)
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    if allowed < needed:
        log.warning(
            "listen.connections is %d, but the system allows %d open files, some of which are not "
            "connections: raise that limit (ulimit -n) or set fewer connections",
            listen.connections,
            allowed,
        )


def begin_no_more(listener: socket.socket) -> None:
    """Accept no new clients; a connection that has begun is still completed.

    The kernel completes connections by itself. Between the last call of `accept` and that of
    `close` it might complete one more, whose request would be lost. So a filter first drops new
    connection attempts. The client's kernel then retries, and learns that the port is closed. This
    does nothing where the kernel has no such filter, as outside Linux.

    Source: McCanne and Jacobson 1993, "The BSD Packet Filter".
    """
    if sys.platform != "linux":
        return
    program = ctypes.create_string_buffer(_DROP_SYN, len(_DROP_SYN))
    described = struct.pack("HP", len(_DROP_SYN) // 8, ctypes.addressof(program))
    with suppress(OSError):
        listener.setsockopt(socket.SOL_SOCKET, _SO_ATTACH_FILTER, described)


def _bound(listen: Listen, port: int, *, shares_port: bool = False) -> socket.socket:
    where = f"listen.host {listen.host}"
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            listen.host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except (socket.gaierror, UnicodeError) as error:
        raise ConfigError(
            f"{where} is not an address: {error}. Use 127.0.0.1 for this machine only, or 0.0.0.0."
        ) from None
    made = socket.socket(family, kind, protocol)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shares_port:
            made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        made.bind(address)
    except OSError as error:
        made.close()
        raise ConfigError(_why_not(error, listen, port)) from None
    made.setblocking(False)
    return made


def _why_not(error: OSError, listen: Listen, port: int) -> str:
    if error.errno == errno.EADDRINUSE:
        return (
            f"Port {port} of {listen.host} is in use by another program. "
            "Choose another with --port, or --port 0 for a free one."
        )
    if error.errno == errno.EACCES:
        return f"Port {port} needs administrator rights. Choose 1024 or higher."
    if error.errno == errno.EADDRNOTAVAIL:
        return f"{listen.host} is not an address of this machine. Use 127.0.0.1 or 0.0.0.0."
    return f"{listen.host} port {port}: {error.strerror}."


def url_of(listen: Listen, listener: socket.socket) -> str:
    """The URL for users, such as `http://127.0.0.1:5000`.

    For all addresses of this machine it has the machine's name.
    """
    host, port = listener.getsockname()[:2]
    host = socket.gethostname() if host in ("0.0.0.0", "::") else host
    host = f"[{host}]" if ":" in host else host
    return f"{'https' if listen.certificate else 'http'}://{host}:{port}"


def read_certificate(listen: Listen) -> ssl.SSLContext | None:
    """The certificate and its key, for new connections; None = the server speaks HTTP without TLS.

    Raises:
        ConfigError: a file is missing, damaged or encrypted, or they do not belong together.
    """
    if not listen.certificate:
        return None
    for name, path in (("certificate", listen.certificate), ("key", listen.key)):
        try:
            read_bytes(Path(path))  # the library for TLS would wait for a named pipe forever
        except FormatError as error:
            raise ConfigError(f"listen.{name} {error}") from None

    def refuse() -> str:  # otherwise the library asks for the passphrase on the terminal
        raise ConfigError(
            f"listen.key {listen.key} is encrypted. A server needs a key without a passphrase, "
            f"such as openssl pkey -in {quote(listen.key)} -out plain.pem writes."
        )

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        context.load_cert_chain(listen.certificate, listen.key, refuse)
    except ssl.SSLError as error:
        raise ConfigError(
            f"listen.certificate {listen.certificate} and listen.key {listen.key} are not a PEM "
            f"certificate and its key{f' ({error.reason})' if error.reason else ''}."
        ) from None
    return context
