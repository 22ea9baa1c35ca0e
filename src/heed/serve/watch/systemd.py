"""`notify`: report the state of the service to systemd, for `Type=notify`."""

import os
import socket
from contextlib import suppress

READY = "READY=1"
STOPPING = "STOPPING=1"


def notify(state: str) -> None:
    """Send a state to systemd's notification socket."""
    if address := os.environ.get("NOTIFY_SOCKET"):
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as messages:
            messages.connect("\0" + address[1:] if address.startswith("@") else address)
            messages.send(state.encode())
